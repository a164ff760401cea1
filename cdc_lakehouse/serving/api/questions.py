"""What can be asked: gold's tables and the files of ``analyses/``, as SQL with parameters.

What a caller sends becomes a parameter of a statement, or chooses one of the names that are
known before; it never becomes SQL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.gold import find_place, table_at
from cdc_lakehouse.serving.manifest import Analysis, Manifest, Relation
from cdc_lakehouse.storage.tables import schema_of

# What a filter has behind its column's name, and what that is in SQL.
OPERATORS = {"": "=", ".min": ">=", ".max": "<="}
KINDS: tuple[tuple[Callable[[pa.DataType], bool], type], ...] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_floating, float),
    (pa.types.is_date, date),
    (pa.types.is_timestamp, datetime),
    (pa.types.is_string, str),
)
Tables = Mapping[str, Relation]
Statement = tuple[str, list[Any]]


@dataclass(frozen=True)
class Column:
    """A column of an answer, with the description that dbt has of it."""

    name: str
    type: pa.DataType
    description: str

    @property
    def kind(self) -> type | None:
        """Python's type of its values; None of those that are no filter and no order."""
        return next((kind for has, kind in KINDS if has(self.type)), None)


@dataclass(frozen=True)
class Question:
    """A table of gold, or an analysis.

    Attributes:
        path: ``gold/<table>`` or ``analyses/<file>``.
        description: what one row is, or what is asked.
        sql: all rows of the answer.
        is_sorted: whether the SQL ends with an order of its own.
        tables: the relations that it reads, by their names there.
        places: where these are in the lake.
        columns: those of the answer.
    """

    path: str
    description: str
    sql: str
    is_sorted: bool
    tables: Tables
    places: Mapping[str, str]
    columns: tuple[Column, ...]

    def statement(
        self,
        filters: Sequence[tuple[str, str, Any]],
        order: Sequence[str],
        offset: int,
        limit: int,
    ) -> Statement:
        """The SQL of some rows, and the values of its question marks.

        Args:
            filters: of each the column's name, the key of ``OPERATORS`` and the value.
            order: names of columns, with ``-`` before those that descend.
            offset: how many rows are skipped.
            limit: how many follow.
        """
        sql = self.sql
        if filters or order or not self.is_sorted:
            names = ", ".join(_quoted(column.name) for column in self.columns)
            sql = f"select {names} from (\n{sql}\n) as answer"
            if filters:
                sql += " where " + " and ".join(
                    f"{_quoted(name)} {OPERATORS[operator]} ?"
                    for name, operator, _ in filters
                )
            # The other columns come last: pages need an order without ties.
            descends = {name.removeprefix("-"): name.startswith("-") for name in order}
            for column in self.columns:
                if column.kind:
                    descends.setdefault(column.name, False)
            sql += " order by " + ", ".join(
                f"{_quoted(name)} {'desc' if down else 'asc'} nulls last"
                for name, down in descends.items()
            )
        values = [value for _, _, value in filters]
        return f"{sql}\noffset ? limit ?", [*values, offset, limit]


def questions_of(
    manifest: Manifest, lake: Path | str, prefix: str, complain: Callable[[str], None]
) -> Iterator[Question]:
    """What a project's lake can be asked: gold's tables, then the analyses.

    Args:
        manifest: what dbt knows of it.
        lake: its folder, or its ``s3://`` URL.
        prefix: what the databases' names begin with.
        complain: is told what is left out, and why.
    """
    gold = [each for each in manifest.relations() if each.layer == "gold"]
    found: list[tuple[str, Callable[[str], Question]]] = [
        *((f"gold/{each.name}", partial(_of_table, lake, prefix, each)) for each in gold),
        *(
            (f"analyses/{each.name}", partial(_of_file, manifest, lake, prefix, each))
            for each in manifest.analyses()
        ),
    ]
    for path, question in found:
        try:
            yield question(path)
        except (UserError, duckdb.Error) as error:
            complain(f"{path} is left out: {error}")


def _of_table(lake: Path | str, prefix: str, relation: Relation, path: str) -> Question:
    tables = {f"{prefix}_gold.{relation.name}": relation}
    sql = "".join(f"select * from {name}" for name in tables)
    places = _places(lake, tables)
    [place] = places.values()
    columns = _columns(schema_of(table_at(lake, place)), tables)
    return Question(path, relation.description, sql, False, tables, places, columns)


def _of_file(
    manifest: Manifest, lake: Path | str, prefix: str, analysis: Analysis, path: str
) -> Question:
    sql = manifest.render(analysis.file, prefix)
    read = [manifest.model(name) for name in analysis.models]
    tables = {f"{prefix}_{each.layer}.{each.name}": each for each in read}
    places = _places(lake, tables)
    empty = {
        name: schema_of(table_at(lake, place)).empty_table()
        for name, place in places.items()
    }
    with duckdb_over(empty) as connection:
        schema = connection.sql(f"select * from (\n{sql}\n)").to_arrow_table().schema
        parse = connection.execute("select json_serialize_sql(?)", [sql])
        [node] = [each["node"] for each in json.loads(parse.fetchall()[0][0])["statements"]]
    # A limit behind the order keeps to it; where the file has a limit, none can follow.
    is_sorted = [each["type"] for each in node["modifiers"]] == ["ORDER_MODIFIER"]
    columns = _columns(schema, tables)
    return Question(path, analysis.description, sql, is_sorted, tables, places, columns)


@contextmanager
def duckdb_over(
    tables: Mapping[str, pa.Table],
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that has these tables, and can read no file.

    Args:
        tables: of each ``<schema>.<name>`` the rows.
    """
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        connection.execute("set TimeZone = 'UTC'")
        for number, (name, rows) in enumerate(tables.items()):
            connection.register(f"rows_{number}", rows)
            connection.execute(f"create schema if not exists {name.partition('.')[0]}")
            connection.execute(f"create view {name} as select * from rows_{number}")
        yield connection


def _places(lake: Path | str, tables: Tables) -> dict[str, str]:
    found = {}
    for name, relation in tables.items():
        place = find_place(lake, relation.schemas, relation.name)
        if place is None:
            raise UserError(f"{relation.schema}.{relation.name} is not built yet")
        found[name] = place
    return found


def _columns(schema: pa.Schema, tables: Tables) -> tuple[Column, ...]:
    described: dict[str, str] = {}
    for relation in tables.values():
        described = relation.columns | described
    return tuple(
        Column(field.name, field.type, described.get(field.name, "")) for field in schema
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
