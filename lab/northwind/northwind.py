"""Northwind's rows, as the files of `csv/` hold them."""

from __future__ import annotations

import csv
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg2 import sql

from cdc_lakehouse.errors import UserError

ROWS = Path(__file__).with_name("csv")

# Every table after those that it refers to.
TABLES = (
    "region",
    "territories",
    "employees",
    "employee_territories",
    "customers",
    "shippers",
    "suppliers",
    "categories",
    "products",
    "orders",
    "order_details",
)

Row = dict[str, str | None]


@dataclass(frozen=True)
class Table:
    """A table's rows as text; an empty one is NULL."""

    name: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Order:
    """An order and its lines, column by column; None is NULL."""

    row: Row
    lines: list[Row]


def read_table(name: str, hold_back: Collection[int] = (), folder: Path = ROWS) -> Table:
    """A table's rows, without those of the orders held back.

    Raises:
        UserError: the file is missing, or it is no CSV with a header.
    """
    path = folder / f"{name}.csv"
    held_back = {str(order_id) for order_id in hold_back}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file, strict=True)
            columns = next(lines, [])
            rows = [
                row
                for row in lines
                if dict(zip(columns, row, strict=True)).get("order_id") not in held_back
            ]
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"cannot read the rows of {name} from {path}: {error}") from error
    return Table(name, columns, rows)


def order_rows(order_id: int, folder: Path = ROWS) -> Order:
    """One order of Northwind with its lines.

    Raises:
        UserError: Northwind has no such order.
    """
    orders = _rows_of_order("orders", order_id, folder)
    if not orders:
        raise UserError(f"Northwind has no order {order_id}")
    return Order(orders[0], _rows_of_order("order_details", order_id, folder))


def insert_order(connection: Any, order_id: int, folder: Path = ROWS) -> None:
    """Insert an order that was held back, with its lines; committing is the caller's."""
    order = order_rows(order_id, folder)
    with connection.cursor() as cursor:
        for table, rows in (("orders", [order.row]), ("order_details", order.lines)):
            for row in rows:
                statement = sql.SQL("insert into datalake.{} ({}) values ({})").format(
                    sql.Identifier(table),
                    sql.SQL(", ").join(map(sql.Identifier, row)),
                    sql.SQL(", ").join(map(sql.Literal, row.values())),
                )
                cursor.execute(statement)


def _rows_of_order(name: str, order_id: int, folder: Path) -> list[Row]:
    table = read_table(name, folder=folder)
    rows = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    return [
        {column: value or None for column, value in row.items()}
        for row in rows
        if row["order_id"] == str(order_id)
    ]
