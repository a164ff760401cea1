"""A database with a table for each type of the matrix, and its way to silver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from connectors.postgres.checks import REPLICATION_ROLE
from connectors.stack.processes import wait_until
from connectors.stack.stack import Stack
from tests.support.source_database import SourceDatabase
from tests.support.types_matrix import PRECISE, Type
from tests.support.types_tables import TypesTables

DATABASE = "types"
EXTENSIONS = ("citext", "cube", "hstore", "isn", "ltree")
CREATE_TYPES = """
    create type mood as enum ('sad', 'it''s, ok');
    create type pair as (a int, b text);
    create domain positive_int as int check (value > 0);
    create domain price as numeric(10,2);
    create domain email as citext;
"""
# The two connectors; each captures the tables that its pattern names.
CONNECTORS = {
    "types_string": rf"types\.(?!{PRECISE}_).*",
    "types_precise": rf"types\.{PRECISE}_.*",
}


class TypesSource(SourceDatabase):
    """The database of a stack that has the types' tables.

    Args:
        stack: whose PostgreSQL and Connect are used.
        types: the rows of the matrix.
    """

    def __init__(self, stack: Stack, types: Sequence[Type]) -> None:
        super().__init__(stack, DATABASE)
        self.tables = TypesTables(types, "types")

    def topics(self) -> dict[str, str]:
        """The silver table of every topic."""
        return {
            f"types_{kind}.{self.tables.table(row)}": row.group
            for row in self.tables.types
            for kind in ["precise" if row.group == PRECISE else "string"]
        }

    def create(self) -> None:
        """Make the database with the rows that the snapshot reads."""
        super().create()
        with self.cursor() as cursor:
            for name in EXTENSIONS:
                cursor.execute(f"create extension {name}")
            cursor.execute(CREATE_TYPES)
            cursor.execute("create schema types")
            self.tables.create(cursor)
            cursor.execute("create publication types for all tables")
            cursor.execute(f"grant usage on schema types to {REPLICATION_ROLE}")
            cursor.execute(
                f"grant select on all tables in schema types to {REPLICATION_ROLE}"
            )

    def change(self) -> None:
        """Insert and update while the connectors stream."""
        with self.cursor() as cursor:
            self.tables.change(cursor)

    def configurations(self) -> dict[str, dict[str, str]]:
        """The connectors that capture all tables."""
        found = {}
        for name, tables in CONNECTORS.items():
            found[name] = self.stack.configuration("source-tables") | {
                "custom.metric.tags": f"connector={name}",
                "database.dbname": DATABASE,
                "publication.name": "types",
                "slot.name": name,
                "table.include.list": tables,
                "topic.prefix": name,
            }
        del found["types_precise"]["decimal.handling.mode"]
        return found

    def register(self, configurations: dict[str, dict[str, str]]) -> None:
        """Have connectors capture the tables, and wait until they stream."""
        for name, config in configurations.items():
            self.configure(name, config)
        wait_until(self._is_streaming, 120, "the types' connectors do not stream", 0.2)

    def catalogue(self) -> list[str]:
        """The type of each row of the matrix as PostgreSQL's catalogue writes it."""
        found = []
        with self.cursor() as cursor:
            for row in self.tables.types:
                cursor.execute(
                    "select format_type(atttypid, atttypmod) from pg_attribute"
                    " where attrelid = %s::regclass and attname = %s",
                    (self.tables.table(row), row.column),
                )
                found.append(cursor.fetchone()[0])
        return found

    def texts(self) -> dict[int, str | None]:
        """PostgreSQL's own text of every value, by key."""
        with self.cursor() as cursor:
            return self.tables.texts(cursor)

    def _is_streaming(self) -> bool:
        states = self.stack.connect.states()
        traces = [states[name].trace for name in self.connectors if name in states]
        assert not any(traces), traces
        with self.cursor() as cursor:
            cursor.execute(
                "select count(*) from pg_replication_slots where active and database = %s",
                (DATABASE,),
            )
            return bool(cursor.fetchone()[0] == len(self.connectors))


def declare(project: Path, types: Sequence[Type], topics: dict[str, str]) -> list[str]:
    """Add the types' tables to a copy of the project, as docs/models.md says.

    Returns:
        What a build selects, to leave out the project's own silver tables.
    """
    groups = sorted({row.group for row in types})
    lines = "".join(f'"{topic}" = "{group}"\n' for topic, group in topics.items())
    _insert_after(project / "ingest/topics.toml", "[topics]\n", lines)
    sources = "".join(
        f"      - name: {group}\n        description: Types.\n" for group in groups
    )
    _insert_after(project / "models/staging/_sources.yml", "    tables:\n", sources)
    rejected = "".join(f"    ref('stg_{group}'),\n" for group in groups)
    _insert_after(
        project / "models/silver/rejected_rows.sql", "set staging_models = [\n", rejected
    )
    for group in groups:
        declared = {row.column: row.declared for row in types if row.group == group}
        columns = {"id": "int"} | declared
        meta = {"key": "id", "columns": columns}
        (project / f"models/staging/stg_{group}.sql").write_text(
            f"{{{{ config(meta={meta}) }}}}\n\n"
            f"{{{{ change_events(source('bronze', '{group}')) }}}}\n"
        )
        (project / f"models/silver/{group}.sql").write_text(
            "{{ config(unique_key='id') }}\n\n"
            f"{{{{ current_rows(ref('stg_{group}')) }}}}\n"
        )
    return ["-s", "path:models/staging", *groups, "rejected_rows"]


def _insert_after(file: Path, line: str, text: str) -> None:
    before = file.read_text()
    assert before.count(line) == 1
    file.write_text(before.replace(line, line + text))
