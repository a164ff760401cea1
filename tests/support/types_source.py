"""Tables for each type of the matrix in a database, and their way to silver."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.stack.northwind import NorthwindStack
from tests.support.project import write_topics
from tests.support.small_project import (
    SOURCES,
    empty_project,
    write_model,
    write_staging,
)
from tests.support.source_database import SourceDatabase, source_database
from tests.support.types_matrix import FOLDER, Type, Way

Columns = Mapping[str, str]
# The schema of PostgreSQL's tables, and MariaDB's database.
DATABASE = "types"
# Two tables of long values, by their replica identity.
UNCHANGED = {"unchanged": "default", "unchanged_full": "full"}


class TypesTables:
    """A table for each group of the matrix, and more where column names come twice.

    Args:
        types: the rows of the matrix.
        cursor: of a connection that commits each statement.
    """

    def __init__(self, types: Sequence[Type], cursor: Any) -> None:
        self.types = types
        self.cursor = cursor

    def create(self) -> None:
        """Make the tables with the rows that a snapshot reads."""
        columns: dict[str, list[str]] = {}
        for row in self.types:
            # MariaDB's timestamps are not null by default.
            columns.setdefault(row.table, []).append(f"{row.column} {row.sql} null")
        for table, listed in columns.items():
            self.cursor.execute(
                f"create table types.{table} (id int primary key, {', '.join(listed)})"
            )
        for row in self.types:
            for value in row.all_values:
                first = row.values[0].text if value.text is None else None
                self._insert(row, row.key(value, Way.SNAPSHOT), value.text)
                self._insert(row, row.key(value, Way.UPDATE), first)

    def change(self) -> None:
        """Insert and update, which a connector that streams reads."""
        for row in self.types:
            for value in row.all_values:
                self._insert(row, row.key(value, Way.INSERT), value.text)
                self.cursor.execute(
                    f"update types.{row.table} set {row.column} = {row.input}"
                    " where id = %s",
                    (value.text, row.key(value, Way.UPDATE)),
                )

    def create_wide(
        self, name: str, texts: Mapping[Type, str | None], *statements: str
    ) -> None:
        """Make a table with a column of each type, and after the statements a row."""
        listed = ", ".join(f"{wide_column(row)} {row.sql} null" for row in texts)
        create = f"create table types.{name} (id int primary key, n int, {listed})"
        for statement in (create, *statements):
            self.cursor.execute(statement)
        columns = ", ".join(("id", "n", *map(wide_column, texts)))
        inputs = ", ".join(row.input for row in texts)
        self.cursor.execute(
            f"insert into types.{name} ({columns}) values (1, 1, {inputs})",
            [*texts.values()],
        )

    def create_unchanged(self) -> None:
        """Make PostgreSQL's with a row of long values, each stored beside the row."""
        texts = {row: row.long for row in long_types(self.types)}
        external = ", ".join(
            f"alter {wide_column(row)} set storage external" for row in texts
        )
        for table, identity in UNCHANGED.items():
            alter = f"alter table types.{table}"
            self.create_wide(
                table,
                texts,
                f"{alter} set (toast_tuple_target = 128)",
                # No row without it is so long that PostgreSQL stores anything beside it.
                f"{alter} add filler text default repeat('x', 2100)",
                f"{alter} alter filler set storage plain, {external}",
                f"{alter} replica identity {identity}",
            )

    def texts(self) -> dict[int, str | None]:
        """The database's own text of every value, by key."""
        found: dict[int, str | None] = {}
        for row in self.types:
            text = row.form.sql.format(row.column)
            first = row.number * 1000
            # Without parameters, as a form of PostgreSQL's has a percent sign.
            self.cursor.execute(
                f"select id, case when {row.column} is not null then {text} end"
                f" from types.{row.table} where id between {first} and {first + 999}"
            )
            found |= {
                key: text.decode() if isinstance(text, bytes) else text
                for key, text in self.cursor.fetchall()
            }
        return found

    def named(self, question: str) -> dict[Type, str]:
        """The type of each row as the catalogue writes it, by table and column."""
        self.cursor.execute(question)
        found = {(table, column): name for table, column, name in self.cursor.fetchall()}
        return {row: found[row.table, row.column] for row in self.types}

    def _insert(self, row: Type, key: int, text: str | None) -> None:
        self.cursor.execute(
            f"insert into types.{row.table} (id, {row.column}) values (%s, {row.input})",
            (key, text),
        )


@contextmanager
def types_source(
    stack: NorthwindStack, types: Sequence[Type]
) -> Iterator[tuple[SourceDatabase, TypesTables]]:
    """A database of a stack's PostgreSQL with the tables, which connectors may read."""
    with source_database(stack, DATABASE) as source:
        source.execute((FOLDER / "postgresql.sql").read_text())
        with source.cursor() as cursor:
            tables = TypesTables(types, cursor)
            tables.create()
            for row in types:
                if row.declared.endswith(" full"):
                    cursor.execute(f"alter table types.{row.table} replica identity full")
            tables.create_unchanged()
            source.publish("types")
            yield source, tables


def wide_column(row: Type) -> str:
    """The column of a type in a table of all."""
    return f"c{row.number}"


def long_types(types: Sequence[Type]) -> list[Type]:
    """The types of the tables of long values: each that Debezium sends, once."""
    found: dict[str, Type] = {}
    for row in types:
        is_sent = not all(value.wrong_today for value in row.values)
        if row.long is not None and row.group == "types" and is_sent:
            found.setdefault(row.sql, row)
    return [*found.values()]


def types_project(
    folder: Path, types: Sequence[Type], topics: Mapping[str, str], **others: Columns
) -> Path:
    """A project of the types' silver tables.

    Args:
        folder: where it is made.
        types: the rows of the matrix.
        topics: the bronze table of each topic.
        others: the columns of other tables, with their types.
    """
    tables: dict[str, Columns] = {
        group: {row.column: row.declared for row in types if row.group == group}
        for group in sorted({row.group for row in types})
    }
    empty_project(folder)
    write_topics(folder, topics)
    for table, columns in (tables | others).items():
        meta = {"key": "id", "columns": {"id": "int", **columns}}
        write_staging(folder, f"stg_{table}", meta, table)
        rows = f"{{{{ current_rows(ref('stg_{table}')) }}}}"
        write_model(folder, f"silver/{table}", rows, unique_key="id")
    listed = "".join(f"      - name: {name}\n" for name in (tables | others))
    sources = SOURCES.replace("      - name: cdc_events\n", listed)
    (folder / "models/staging/_sources.yml").write_text(sources)
    return folder
