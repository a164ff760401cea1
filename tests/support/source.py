"""The source database's rows and answers, in the form that silver and gold have theirs."""

import base64
import json
from collections.abc import Collection
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from lab.demo.gold import KEYS
from tests.support.project import PROJECT
from tests.support.records import Row

QUESTIONS = Path(__file__).parent / "source_sql"
# Gold's tables, and the key of each.
GOLD = {**KEYS, "order_items": "order_item_id"}
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


def plain(value: Any) -> Any:
    """A value without the differences that mean nothing: scale, padding, zone."""
    if isinstance(value, float):
        return Decimal(str(value)).normalize()
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, memoryview | bytes):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, str):
        return value.rstrip(" ")
    return value


def asked(connection: Any, question: str, *key: str) -> Rows:
    """The rows that a database answers a question with, by key."""
    with connection.cursor() as cursor:
        cursor.execute(question)
        names = [column[0] for column in cursor.description]
        return live_rows([dict(zip(names, row, strict=True)) for row in cursor], *key)


def live_rows(
    rows: list[Row],
    *key: str,
    columns: Collection[str] = (),
    json_columns: Collection[str] = (),
) -> Rows:
    """The rows that are not deleted, by key; all columns where none are given."""
    found = [
        {
            name: json.loads(row[name])
            if name in json_columns and row[name] is not None
            else plain(row[name])
            for name in columns or row
        }
        for row in rows
        if not row.get("is_deleted")
    ]
    return {tuple(row[name] for name in key): row for row in found}


def differences(
    connection: Any,
    question: str,
    rows: list[Row],
    *key: str,
    json_columns: Collection[str] = (),
) -> list[tuple[Any, ...]]:
    """Keys for which silver's live rows are not what the source answers, with both."""
    expected = asked(connection, question, *key)
    columns = next(iter(expected.values()), dict.fromkeys(key)).keys()
    found = live_rows(rows, *key, columns=columns, json_columns=json_columns)
    return [
        (its, expected.get(its), found.get(its))
        for its in expected.keys() | found.keys()
        if expected.get(its) != found.get(its)
    ]


def versions(history: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    """The versions of a history, in the order of their keys, which are the first column.

    Each has the milliseconds from and until when it was; None where a snapshot's read began
    it, which does not say since when it was.
    """
    history.sort(key=lambda row: (row[columns[0]], row["version_number"]))
    found = []
    for row in history:
        assert row["is_current"] == (row["valid_to"] is None)
        times = (None if row["op"] == "r" else row["valid_from"], row["valid_to"])
        milliseconds = (at and round(at.timestamp() * 1000) for at in times)
        found.append((*(row[name] for name in columns), *milliseconds))
    return found


def silver_differences(
    connection: Any, silver: str, rows: list[Row]
) -> list[tuple[Any, ...]]:
    """The same of one of Northwind's silver tables."""
    table, key = SILVER[silver]
    json_columns = JSON_COLUMNS if silver == "orders" else ()
    # The name is one of the mapping's own above.
    question = f"select * from datalake.{table}"
    return differences(connection, question, rows, *key, json_columns=json_columns)


def answers(connection: Any) -> dict[str, Rows]:
    """What PostgreSQL answers to the questions of gold, by table and key."""
    with connection.cursor() as cursor:
        cursor.execute((QUESTIONS / "_items.sql").read_text())
        found = {
            table: asked(connection, (QUESTIONS / f"{table}.sql").read_text(), key)
            for table, key in GOLD.items()
        }
        cursor.execute("drop view items")
    return found


def gold_rows(rows: list[Row], table: str) -> Rows:
    """The rows of a gold table, by key."""
    return live_rows(rows, GOLD[table])
