"""The base tables, which ``cdc_lakehouse_base_tables`` adds: keys of two columns."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.records import Record, Row, flattened, record

TOPICS = PROJECT / "lab/stack/topics.toml"
BASE_TABLES = ("--vars", json.dumps({"cdc_lakehouse_base_tables": True}))
MODELS = ("order_details", "employee_territories")


def change(table: str, op: str, key: Row, lsn: int, **columns: Any) -> Record:
    """A flattened change; of a delete the other columns are made up, as Debezium does."""
    topic = f"demo.datalake.{table}"
    value = flattened(op, {**key, **columns}, lsn, table=table)
    return record(key, value, lsn, topic=topic)


def line(op: str, order_id: Any, product_id: Any, lsn: int, quantity: int) -> Record:
    key = {"order_id": order_id, "product_id": product_id}
    price = {"unit_price": 14.5, "quantity": quantity, "discount": 0.05}
    return change("order_details", op, key, lsn, **price)


def territory(op: str, employee_id: int, territory_id: str | None, lsn: int) -> Record:
    key = {"employee_id": employee_id, "territory_id": territory_id}
    return change("employee_territories", op, key, lsn)


@pytest.fixture(scope="module")
def built(new_lake: NewLake) -> Lake:
    """A lake after a first build, and an increment whose data tests have passed."""
    lake = new_lake(TOPICS)
    lake.build(
        [
            line("c", 1, 11, 10, 5),
            line("c", 1, 12, 20, 6),
            line("c", 11, 1, 30, 7),
            line("c", 1, None, 40, 1),
            line("c", 1, "x", 50, 1),
            territory("c", 1, "06897", 60),
            territory("c", 1, "06-897", 70),
        ],
        *("-s", "path:models/staging", *MODELS, "rejected_rows", *BASE_TABLES),
    )
    lake.land(
        [
            line("u", 1, 11, 80, 9),
            line("d", 1, 12, 90, 0),
            line("d", 11, 1, 100, 0),
            line("c", 11, 1, 110, 8),
            territory("d", 1, "06897", 120),
        ]
    )
    assert lake.ingest().code == 0
    lake.dbt("build", "-s", *MODELS, *BASE_TABLES)
    return lake


def test_a_key_of_two_columns_is_their_values_joined(built: Lake) -> None:
    rows = {row["order_detail_id"]: row for row in built.rows("silver.order_details")}
    live = {key: row for key, row in rows.items() if not row["is_deleted"]}
    assert {key: row["quantity"] for key, row in live.items()} == {"1-11": 9, "11-1": 8}
    assert live["1-11"]["unit_price"] == Decimal("14.5000")
    assert live["1-11"]["discount"] == Decimal("0.0500")
    assert (live["1-11"]["order_id"], live["1-11"]["product_id"]) == (1, 11)
    assert rows.keys() - live.keys() == {"1-12"}
    assert rows["1-12"]["source_lsn"] == 90


def test_a_dash_within_a_value_makes_another_key(built: Lake) -> None:
    rows = {
        row["employee_territory_id"]: row["is_deleted"]
        for row in built.rows("silver.employee_territories")
    }
    assert rows == {"1-06897": True, "1-06\\-897": False}


def test_a_key_that_is_not_whole_is_rejected(built: Lake) -> None:
    rejected = {
        row["kafka_offset"]: row["reason"] for row in built.rows("silver.rejected_rows")
    }
    assert rejected == {
        40: "no product_id, which is the key",
        50: "product_id: 'x' is no int",
    }
