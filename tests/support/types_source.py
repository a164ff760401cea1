"""A database with a table for each type of the matrix, and its way to silver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.support.source_database import SourceDatabase
from tests.support.types_matrix import PRECISE, Type, long_text
from tests.support.types_tables import TypesTables

DATABASE = "types"
EXTENSIONS = ("citext", "cube", "hstore", "isn", "ltree")
CREATE_TYPES = """
    create type mood as enum ('sad', 'it''s, ok');
    create type pair as (a int, b text);
    create domain positive_int as int check (value > 0);
    create domain price as numeric(10,2);
    create domain email as citext;
    create domain labels as text[];
    create domain counts as int[];
"""
# Two tables of long values, by their replica identity.
UNCHANGED = {"unchanged": "default", "unchanged_full": "full"}
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

    def __init__(self, stack: NorthwindStack, types: Sequence[Type]) -> None:
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
            for row in self.tables.types:
                if row.declared.endswith(" full"):
                    table = self.tables.table(row)
                    cursor.execute(f"alter table {table} replica identity full")
            cursor.execute("create publication types for all tables")
            cursor.execute(f"grant usage on schema types to {REPLICATION_ROLE}")
            cursor.execute(
                f"grant select on all tables in schema types to {REPLICATION_ROLE}"
            )

    def create_unchanged(self) -> None:
        """Make the tables with a row of long values, each stored beside the row."""
        columns = unchanged_columns(self.tables.types)
        with self.cursor() as cursor:
            for table, identity in UNCHANGED.items():
                listed = ", ".join(f"{name} {row.sql}" for name, row in columns.items())
                stored = ", ".join(f"alter {name} set storage external" for name in columns)
                cursor.execute(
                    f"create table types.{table} (id int primary key, n int, filler text,"
                    f" {listed}) with (toast_tuple_target = 128);"
                    f" alter table types.{table} alter filler set storage plain, {stored};"
                    f" alter table types.{table} replica identity {identity};"
                    f" grant select on types.{table} to {REPLICATION_ROLE}"
                )
                values = ", ".join(["%s"] * len(columns))
                cursor.execute(
                    f"insert into types.{table} values (1, 1, repeat('x', 2100), {values})",
                    [long_text(row) for row in columns.values()],
                )

    def change_unchanged(self) -> None:
        """Update another column of the rows of long values."""
        with self.cursor() as cursor:
            for table in UNCHANGED:
                cursor.execute(f"update types.{table} set n = 2")

    def unchanged_texts(self) -> dict[str, str]:
        """PostgreSQL's own text of each long value, by column."""
        columns = unchanged_columns(self.tables.types)
        texts = ", ".join(row.form.sql.format(name) for name, row in columns.items())
        with self.cursor() as cursor:
            cursor.execute(f"select {texts} from types.unchanged")
            return dict(zip(columns, cursor.fetchone(), strict=True))

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


def unchanged_columns(types: Sequence[Type]) -> dict[str, Type]:
    """The columns of the tables of long values: each type that Debezium sends, once."""
    found: dict[str, Type] = {}
    for row in types:
        is_known = any(row.sql == other.sql for other in found.values())
        is_sent = row.group == "types" and not all(
            value.wrong_today for value in row.values
        )
        if long_text(row) is not None and is_sent and not is_known:
            found[f"c{len(found)}"] = row
    return found


def declare(
    project: Path,
    types: Sequence[Type],
    topics: dict[str, str],
    others: Mapping[str, Mapping[str, str]] | None = None,
) -> list[str]:
    """Add the types' tables to a copy of the project, as docs/models.md says.

    Args:
        project: the copy.
        types: the rows of the matrix.
        topics: the silver table of each topic.
        others: the columns of other tables, with their types.

    Returns:
        What a build selects, to leave out the project's own silver tables.
    """
    tables: dict[str, Mapping[str, str]] = {
        group: {row.column: row.declared for row in types if row.group == group}
        for group in sorted({row.group for row in types})
    }
    tables |= others or {}
    lines = "".join(f'"{topic}" = "{group}"\n' for topic, group in topics.items())
    _insert_after(project / "topics.toml", "[topics]\n", lines)
    sources = "".join(
        f"      - name: {group}\n        description: Types.\n" for group in tables
    )
    _insert_after(project / "models/staging/_sources.yml", "    tables:\n", sources)
    rejected = "".join(f"    ref('stg_{group}'),\n" for group in tables)
    _insert_after(
        project / "models/silver/rejected_rows.sql", "set staging_models = [\n", rejected
    )
    for group, declared in tables.items():
        columns = {"id": "int", **declared}
        meta = {"key": "id", "columns": columns}
        (project / f"models/staging/stg_{group}.sql").write_text(
            f"{{{{ config(meta={meta}) }}}}\n\n"
            f"{{{{ change_events(source('bronze', '{group}')) }}}}\n"
        )
        (project / f"models/silver/{group}.sql").write_text(
            "{{ config(unique_key='id') }}\n\n"
            f"{{{{ current_rows(ref('stg_{group}')) }}}}\n"
        )
    return ["-s", "path:models/staging", *tables, "rejected_rows"]


def _insert_after(file: Path, line: str, text: str) -> None:
    before = file.read_text()
    assert before.count(line) == 1
    file.write_text(before.replace(line, line + text))
