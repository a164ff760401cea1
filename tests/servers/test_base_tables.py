"""The base tables, which ``cdc_lakehouse_base_tables`` adds: keys of two columns."""

import json
from decimal import Decimal
from typing import Any

from tests.conftest import NewLake
from tests.support.project import PROJECT
from tests.support.records import Record, Row, flattened, record

BASE_TABLES = ("--vars", json.dumps({"cdc_lakehouse_base_tables": True}))
MODELS = ("order_details", "employee_territories")


def change(table: str, op: str, key: Row, lsn: int, **columns: Any) -> Record:
    """A flattened change; of a delete the other columns are made up, as Debezium does."""
    value = flattened(op, {**key, **columns}, lsn, table=table)
    return record(key, value, lsn, topic=f"demo.datalake.{table}")


def line(op: str, order_id: Any, product_id: Any, lsn: int, quantity: int) -> Record:
    key = {"order_id": order_id, "product_id": product_id}
    price = {"unit_price": 14.5, "quantity": quantity, "discount": 0.05}
    return change("order_details", op, key, lsn, **price)


def territory(op: str, territory_id: str, lsn: int) -> Record:
    key = {"employee_id": 1, "territory_id": territory_id}
    return change("employee_territories", op, key, lsn)


def test_a_key_of_two_columns_is_their_values_joined(new_lake: NewLake) -> None:
    """A dash within a value makes another key; one that is not whole is rejected."""
    lake = new_lake(PROJECT / "topics.toml")
    lake.build(
        [
            *(line("c", 1, 11, 10, 5), line("c", 1, 12, 20, 6), line("c", 11, 1, 30, 7)),
            *(line("c", 1, None, 40, 1), line("c", 1, "x", 50, 1)),
            *(territory("c", "06897", 60), territory("c", "06-897", 70)),
        ],
        *("-s", "path:models/staging", *MODELS, "rejected_rows", *BASE_TABLES),
    )
    rejected = lake.rows("silver.rejected_rows")
    assert {row["kafka_offset"]: row["reason"] for row in rejected} == {
        40: "no product_id, which is the key",
        50: "product_id: 'x' is no int",
    }
    lake.land(
        [
            *(line("u", 1, 11, 80, 9), line("d", 1, 12, 90, 0)),
            *(line("d", 11, 1, 100, 0), line("c", 11, 1, 110, 8)),
            territory("d", "06897", 120),
        ]
    )
    assert lake.ingest().code == 0
    lake.dbt("build", "-s", *MODELS, *BASE_TABLES)
    rows = {row["order_detail_id"]: row for row in lake.rows("silver.order_details")}
    assert {key: row["quantity"] for key, row in rows.items()} == {
        **{"1-11": 9, "11-1": 8, "1-12": None},
    }
    first, deleted = rows["1-11"], rows["1-12"]
    assert (first["unit_price"], first["discount"]) == (Decimal("14.5"), Decimal("0.05"))
    assert (first["order_id"], first["product_id"]) == (1, 11)
    assert (deleted["is_deleted"], deleted["source_lsn"]) == (True, 90)
    territories = lake.rows("silver.employee_territories")
    assert {row["employee_territory_id"]: row["is_deleted"] for row in territories} == {
        **{"1-06897": True, "1-06\\-897": False},
    }
