"""The tables of the types' matrix in a database, and the rows with its values."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from tests.support.types_matrix import Type, Value


class Way(IntEnum):
    """How a value comes to the lake."""

    SNAPSHOT = 1
    INSERT = 2
    UPDATE = 3


def row_id(types: Sequence[Type], row: Type, value: Value, way: Way) -> int:
    """The key of a value's row."""
    return types.index(row) * 1000 + row.all_values.index(value) * 10 + way


def source_table(types: Sequence[Type], row: Type) -> str:
    """A row's source table: the first of its group without a column of its name."""
    before = types[: types.index(row)]
    place = (row.group, row.column)
    return f"{row.group}_{sum((it.group, it.column) == place for it in before)}"


class TypesTables:
    """A table for each group of the matrix, and more where column names come twice.

    Args:
        types: the rows of the matrix.
        schema: where the tables are, None for the database's own.
    """

    def __init__(self, types: Sequence[Type], schema: str | None = None) -> None:
        self.types = types
        self.schema = schema

    def column(self, row: Type) -> str:
        """How a type's column is declared in a table."""
        return f"{row.column} {row.sql}"

    def input(self, row: Type) -> str:
        """The expression that takes a value's text."""
        return "%s"

    def table(self, row: Type) -> str:
        """The table of a type, with its schema."""
        table = source_table(self.types, row)
        return f"{self.schema}.{table}" if self.schema else table

    def create(self, cursor: Any) -> None:
        """Make the tables with the rows that a snapshot reads."""
        columns: dict[str, list[str]] = {}
        for row in self.types:
            columns.setdefault(self.table(row), []).append(self.column(row))
        for table, listed in columns.items():
            cursor.execute(
                f"create table {table} (id int primary key, {', '.join(listed)})"
            )
        for row in self.types:
            for value in row.all_values:
                first = row.values[0].text if value.text is None else None
                self._insert(cursor, row, value, Way.SNAPSHOT, value.text)
                self._insert(cursor, row, value, Way.UPDATE, first)

    def change(self, cursor: Any) -> None:
        """Insert and update, which a connector that streams reads."""
        for row in self.types:
            for value in row.all_values:
                self._insert(cursor, row, value, Way.INSERT, value.text)
                cursor.execute(
                    f"update {self.table(row)} set {row.column} = {self.input(row)}"
                    " where id = %s",
                    (value.text, row_id(self.types, row, value, Way.UPDATE)),
                )

    def texts(self, cursor: Any) -> dict[int, str | None]:
        """The database's own text of every value, by key."""
        found: dict[int, str | None] = {}
        for number, row in enumerate(self.types):
            text = row.form.sql.format(row.column)
            cursor.execute(
                f"select id, case when {row.column} is not null then {text} end"
                f" from {self.table(row)}"
                f" where id between {number * 1000} and {number * 1000 + 999}"
            )
            found.update(
                (key, text.decode() if isinstance(text, bytes) else text)
                for key, text in cursor.fetchall()
            )
        return found

    def _insert(
        self, cursor: Any, row: Type, value: Value, way: Way, text: str | None
    ) -> None:
        cursor.execute(
            f"insert into {self.table(row)} (id, {row.column})"
            f" values (%s, {self.input(row)})",
            (row_id(self.types, row, value, way), text),
        )
