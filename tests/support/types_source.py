"""A database with a table for each type of the matrix, and its way to silver."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from tests.support.project import replace_once
from tests.support.source_database import SourceDatabase
from tests.support.types_matrix import PRECISE, Type, Way

# The schema of PostgreSQL's tables, and MariaDB's database.
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
    create schema types;
"""
# Two tables of long values, by their replica identity.
UNCHANGED = {"unchanged": "default", "unchanged_full": "full"}
# The two connectors; each captures the tables that its pattern names.
CONNECTORS = {
    "types_string": rf"types\.(?!{PRECISE}_).*",
    "types_precise": rf"types\.{PRECISE}_.*",
}


class TypesTables:
    """A table for each group of the matrix, and more where column names come twice.

    Args:
        types: the rows of the matrix.
    """

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = types

    def create(self, cursor: Any) -> None:
        """Make the tables with the rows that a snapshot reads."""
        columns: dict[str, list[str]] = {}
        for row in self.types:
            # MariaDB's timestamps are not null by default.
            columns.setdefault(row.table, []).append(f"{row.column} {row.sql} null")
        for table, listed in columns.items():
            cursor.execute(
                f"create table types.{table} (id int primary key, {', '.join(listed)})"
            )
        for row in self.types:
            for value in row.all_values:
                first = row.values[0].text if value.text is None else None
                self._insert(cursor, row, row.key(value, Way.SNAPSHOT), value.text)
                self._insert(cursor, row, row.key(value, Way.UPDATE), first)

    def change(self, cursor: Any) -> None:
        """Insert and update, which a connector that streams reads."""
        for row in self.types:
            for value in row.all_values:
                self._insert(cursor, row, row.key(value, Way.INSERT), value.text)
                cursor.execute(
                    f"update types.{row.table} set {row.column} = {row.input}"
                    " where id = %s",
                    (value.text, row.key(value, Way.UPDATE)),
                )

    def create_each(self, cursor: Any) -> None:
        """Make a table with a column of each type, and a row."""
        columns = [f"c{row.number} {row.sql} null" for row in self.types]
        cursor.execute(
            "create table types.unchanged"
            f" (id int primary key, n int, {', '.join(columns)})"
        )
        inputs = ", ".join(row.input for row in self.types)
        cursor.execute(
            f"insert into types.unchanged values (1, 1, {inputs})",
            [row.values[0].text for row in self.types],
        )

    def texts(self, cursor: Any) -> dict[int, str | None]:
        """The database's own text of every value, by key."""
        found: dict[int, str | None] = {}
        for row in self.types:
            text = row.form.sql.format(row.column)
            first = row.number * 1000
            # Without parameters, as a form of PostgreSQL's has a percent sign.
            cursor.execute(
                f"select id, case when {row.column} is not null then {text} end"
                f" from types.{row.table} where id between {first} and {first + 999}"
            )
            found |= {
                key: text.decode() if isinstance(text, bytes) else text
                for key, text in cursor.fetchall()
            }
        return found

    def named(self, cursor: Any, question: str) -> list[str]:
        """The type of each row as the catalogue writes it, by table and column."""
        cursor.execute(question)
        found = {(table, column): name for table, column, name in cursor.fetchall()}
        return [found[row.table, row.column] for row in self.types]

    def _insert(self, cursor: Any, row: Type, key: int, text: str | None) -> None:
        cursor.execute(
            f"insert into types.{row.table} (id, {row.column}) values (%s, {row.input})",
            (key, text),
        )


class TypesSource(SourceDatabase):
    """The database of a stack that has the types' tables.

    Args:
        stack: whose PostgreSQL and Connect are used.
        types: the rows of the matrix.
    """

    def __init__(self, stack: NorthwindStack, types: Sequence[Type]) -> None:
        super().__init__(stack, DATABASE)
        self.tables = TypesTables(types)

    def topics(self) -> dict[str, str]:
        """The silver table of every topic."""
        return {
            f"types_{kind}.types.{row.table}": row.group
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
            self.tables.create(cursor)
            for row in self.tables.types:
                if row.declared.endswith(" full"):
                    cursor.execute(f"alter table types.{row.table} replica identity full")
            cursor.execute("create publication types for all tables")
            cursor.execute(f"grant usage on schema types to {REPLICATION_ROLE}")
            cursor.execute(
                f"grant select on all tables in schema types to {REPLICATION_ROLE}"
            )

    def create_unchanged(self) -> None:
        """Make the tables with a row of long values, each stored beside the row."""
        columns = unchanged_columns(self.tables.types)
        listed = ", ".join(f"{name} {row.sql}" for name, row in columns.items())
        stored = ", ".join(f"alter {name} set storage external" for name in columns)
        values = ", ".join(["%s"] * len(columns))
        with self.cursor() as cursor:
            for table, identity in UNCHANGED.items():
                cursor.execute(
                    f"create table types.{table} (id int primary key, n int, filler text,"
                    f" {listed}) with (toast_tuple_target = 128);"
                    f" alter table types.{table} alter filler set storage plain, {stored};"
                    f" alter table types.{table} replica identity {identity};"
                    f" grant select on types.{table} to {REPLICATION_ROLE};"
                    f" insert into types.{table}"
                    f" values (1, 1, repeat('x', 2100), {values})",
                    [row.long for row in columns.values()],
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
        found = {
            name: self.configuration(name, tables) | {"publication.name": DATABASE}
            for name, tables in CONNECTORS.items()
        }
        del found["types_precise"]["decimal.handling.mode"]
        return found

    def catalogue(self) -> list[str]:
        """The type of each row of the matrix as PostgreSQL's catalogue writes it."""
        with self.cursor() as cursor:
            return self.tables.named(
                cursor,
                "select relname, attname, format_type(atttypid, atttypmod)"
                " from pg_attribute join pg_class on pg_class.oid = attrelid"
                " where relnamespace = 'types'::regnamespace",
            )

    def texts(self) -> dict[int, str | None]:
        """PostgreSQL's own text of every value, by key."""
        with self.cursor() as cursor:
            return self.tables.texts(cursor)


def unchanged_columns(types: Sequence[Type]) -> dict[str, Type]:
    """The columns of the tables of long values: each type that Debezium sends, once."""
    found: dict[str, Type] = {}
    for row in types:
        is_sent = row.group == "types" and not all(
            value.wrong_today for value in row.values
        )
        if row.long is not None and is_sent:
            found.setdefault(row.sql, row)
    return {f"c{number}": row for number, row in enumerate(found.values())}


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
    models = project / "models"
    for file, line, added in (
        (
            project / "topics.toml",
            "[topics]\n",
            [f'"{topic}" = "{group}"\n' for topic, group in topics.items()],
        ),
        (
            models / "staging/_sources.yml",
            "    tables:\n",
            [f"      - name: {group}\n        description: Types.\n" for group in tables],
        ),
        (
            models / "silver/rejected_rows.sql",
            "set staging_models = [\n",
            [f"    ref('stg_{group}'),\n" for group in tables],
        ),
    ):
        replace_once(file, line, line + "".join(added))
    for group, declared in tables.items():
        meta = {"key": "id", "columns": {"id": "int", **declared}}
        (models / f"staging/stg_{group}.sql").write_text(
            f"{{{{ config(meta={meta}) }}}}\n\n"
            f"{{{{ change_events(source('bronze', '{group}')) }}}}\n"
        )
        (models / f"silver/{group}.sql").write_text(
            "{{ config(unique_key='id') }}\n\n"
            f"{{{{ current_rows(ref('stg_{group}')) }}}}\n"
        )
    return ["-s", "path:models/staging", *tables, "rejected_rows"]
