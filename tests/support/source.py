"""The source database's rows and answers, in the form that silver and gold have theirs."""

import base64
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from cdc_lakehouse.serving.gold import KEYS as GOLD
from tests.support.project import PROJECT
from tests.support.records import Row

QUESTIONS = Path(__file__).parent / "source_sql"
TOPICS_FILE = PROJECT / "topics.toml"

# Each silver table, with the source table and the columns of its key.
SILVER = {
    "orders": ("cdc_events", ["order_id"]),
    "categories": ("categories", ["category_id"]),
    "customers": ("customers", ["customer_id"]),
    "employee_territories": ("employee_territories", ["employee_id", "territory_id"]),
    "employees": ("employees", ["employee_id"]),
    "order_details": ("order_details", ["order_id", "product_id"]),
    "order_headers": ("orders", ["order_id"]),
    "products": ("products", ["product_id"]),
    "regions": ("region", ["region_id"]),
    "shippers": ("shippers", ["shipper_id"]),
    "suppliers": ("suppliers", ["supplier_id"]),
    "territories": ("territories", ["territory_id"]),
}
JSON_COLUMNS = {
    "order_items",
    "products",
    "customer",
    "employee",
    "shipper",
    "shipment",
}

Rows = dict[tuple[Any, ...], Row]


def _plain(value: Any) -> Any:
    """A value without the differences that mean nothing: scale, padding, zone."""
    if isinstance(value, float):
        return Decimal(str(value)).normalize()
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, memoryview | bytes):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, str):
        return value.rstrip(" ")
    return value


def _query(connection: Any, statement: str) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [column.name for column in cursor.description]
        return [
            {
                name: value if isinstance(value, dict | list) else _plain(value)
                for name, value in zip(names, row, strict=True)
            }
            for row in cursor
        ]


def table_rows(connection: Any, silver: str) -> Rows:
    """The rows of the source table behind a silver table, by key."""
    table, key = SILVER[silver]
    # The name is one of the mapping's own above.
    found = _query(connection, f"select * from datalake.{table}")
    return {tuple(row[name] for name in key): row for row in found}


def silver_rows(rows: list[Row], silver: str, columns: list[str]) -> Rows:
    """The live rows of a silver table in the source's columns, by key."""
    _, key = SILVER[silver]
    json_columns = JSON_COLUMNS if silver == "orders" else set()
    found = {}
    for row in rows:
        if row["is_deleted"]:
            continue
        plain = {
            name: json.loads(row[name])
            if name in json_columns and row[name] is not None
            else _plain(row[name])
            for name in columns
        }
        found[tuple(plain[name] for name in key)] = plain
    return found


def answers(connection: Any) -> dict[str, dict[Any, Row]]:
    """What PostgreSQL answers to the questions of gold, by table and key."""
    with connection.cursor() as cursor:
        cursor.execute((QUESTIONS / "_items.sql").read_text())
    found = {
        table: {
            row[key]: row
            for row in _query(connection, (QUESTIONS / f"{table}.sql").read_text())
        }
        for table, key in GOLD.items()
    }
    with connection.cursor() as cursor:
        cursor.execute("drop view items")
    return found


def gold_rows(rows: list[Row], table: str) -> dict[Any, Row]:
    """The rows of a gold table, by key."""
    return {
        _plain(row[GOLD[table]]): {name: _plain(value) for name, value in row.items()}
        for row in rows
    }
