"""A value in each form that a connector has for it, in one table."""

import base64
import json
import re
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import md5
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Record, Row, envelope, flattened, record
from tests.support.small_project import set_columns, small_project, write_staging

# What the connector sends for a value that it lacks, and its bytes as Java has them.
PLACEHOLDER = """it's "né\\\\" sent"""
BYTES = [byte - 256 if byte > 127 else byte for byte in PLACEHOLDER.encode()]
BASE64 = base64.b64encode(PLACEHOLDER.encode()).decode()
UUID = str(uuid.UUID(bytes=md5(PLACEHOLDER.encode()).digest(), version=3))


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# For each kind of column a value, and what is sent where it did not change.
UNSENT: dict[str, tuple[Any, Any]] = {
    "name": ("a", PLACEHOLDER),
    "blob": ("AP8=", BASE64),
    "blobs": (["AP8="], [BASE64]),
    "tags": (["a"], [PLACEHOLDER]),
    "ids": ([1, 2], BYTES),
    "refs": (["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], [UUID]),
    "attributes": ('{"a":"1"}', as_json({PLACEHOLDER: PLACEHOLDER})),
    "properties": ({"a": "1"}, {PLACEHOLDER: PLACEHOLDER}),
}
COLUMNS = {
    "order_id": "int",
    **dict.fromkeys(UNSENT, "json"),
    "prices": "json full",
    "amount": "decimal(10,2) base64",
    "gross": "decimal(38,10)",
    "signed_on": "date",
    "paid_at": "timestamp(6)",
}
# JSON's numbers, of more digits than a double has, beside strings that look like them.
GROSS = "-12345678901234567890.1234567891"
PROPERTIES = '{"x":0.30000000000000004,"y":[1e400,"a,1.2345678901234567"]}'
NAME = '"1,1.2345678901234567",'
NUMBERS = {
    "amount": 1234,
    "gross": f"<{GROSS}>",
    "properties": f"<{PROPERTIES}>",
    "name": NAME,
    "tags": f"<{GROSS}>",
}


def exact(event: Record) -> str:
    """The line of a record whose texts in angle brackets are JSON."""
    line = json.dumps(event)
    return re.sub(r'"<(.*?)>"', lambda found: json.loads(f'"{found[1]}"'), line)


def change(op: str, key: int, offset: int, **row: Any) -> Record:
    row = {"order_id": key} | row
    return record({"order_id": key}, flattened(op, row, offset), offset)


FIRST: list[Record | str] = [
    change("c", 1, 1, prices=["1.5"], **{name: sent for name, (sent, _) in UNSENT.items()}),
    change("c", 2, 2, prices=["1.5"]),
    # In a value that the sink nested, in Debezium's envelope, in a text.
    exact(change("c", 3, 3, **NUMBERS)),
    exact(record({"order_id": 4}, envelope("c", {"order_id": 4} | NUMBERS, 4), 4)),
    record({}, exact(flattened("c", {"order_id": 5} | NUMBERS, 5)), 5),
    # The key alone, in Kafka's.
    exact(record({"gross": f"<{GROSS}>"}, envelope("d", None, 9), 9)),
    change(
        "c", 6, 6, amount="1234", signed_on="2024-02-29Z", paid_at="2024-02-29T23:59:59Z"
    ),
]
SECOND: list[Record | str] = [
    change("u", 1, 7, prices=None, **{name: sent for name, (_, sent) in UNSENT.items()}),
    change("u", 2, 8, prices=[PLACEHOLDER]),
]


@pytest.fixture(scope="module")
def lake(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """After two builds."""
    project = small_project(tmp_path_factory.mktemp("forms") / "project")
    set_columns(project, COLUMNS)
    # The same by a key that has a number.
    amount, gross = ({name: COLUMNS[name]} for name in ("amount", "gross"))
    meta: dict[str, Any] = {"key": "order_ref", "key_columns": ["order_id", "amount"]}
    meta["columns"] = {"order_id": "int", **amount}
    write_staging(project, "stg_orders_by_amount", meta)
    write_staging(project, "stg_orders_by_gross", {"key": "gross", "columns": gross})
    lake = new_lake(project=project)
    variables = json.dumps({"cdc_lakehouse_unavailable_value": PLACEHOLDER})
    for events in (FIRST, SECOND):
        lake.build(events, "--vars", variables)
    return lake


@pytest.fixture(scope="module")
def rows(lake: Lake) -> dict[int, Row]:
    return {row["order_id"]: row for row in lake.rows("silver.orders")}


def test_unavailable_value_is_recognised_in_each_form(rows: dict[int, Row]) -> None:
    row = rows[1]
    assert {name: row[name] for name in UNSENT} == {
        name: value if isinstance(value, str) else as_json(value)
        for name, (value, _) in UNSENT.items()
    }
    assert [value["column_name"] for value in row["carried_columns"]] == list(UNSENT)


def test_null_of_a_source_with_the_full_identity_is_null(rows: dict[int, Row]) -> None:
    """A value that it left out after all is named."""
    found = {key: (rows[key]["prices"], rows[key]["untyped_columns"]) for key in (1, 2)}
    assert found == {1: (None, []), 2: (None, ["prices"])}


@pytest.mark.parametrize("key", [3, 4, 5])
def test_json_number_is_neither_rounded_nor_taken_for_base64(
    lake: Lake, rows: dict[int, Row], key: int
) -> None:
    row = rows[key]
    assert (row["gross"], row["tags"]) == (Decimal(GROSS), GROSS)
    assert (row["properties"], row["name"]) == (PROPERTIES, NAME)
    assert (row["amount"], row["untyped_columns"]) == (None, ["amount"])
    ((rejection,),) = lake.sql(
        f"select rejection from staging.stg_orders_by_amount where kafka_offset = {key}"
    )
    assert rejection == "amount: '1234' is no decimal(10,2) base64"


def test_number_of_a_kafka_key_is_not_rounded(lake: Lake) -> None:
    ((gross, is_deleted),) = lake.sql(
        "select gross, is_deleted from staging.stg_orders_by_gross where kafka_offset = 9"
    )
    assert (Decimal(gross), is_deleted) == (Decimal(GROSS), "True")


def test_text_of_digits_may_be_base64(lake: Lake, rows: dict[int, Row]) -> None:
    assert rows[6]["amount"] == Decimal("-26588.24")
    found = lake.sql(
        "select order_ref from staging.stg_orders_by_amount where rejection is null"
    )
    assert found == [[r"6-\-26588.24"]]


def test_dates_and_times_may_be_iso_texts(rows: dict[int, Row]) -> None:
    """Of `time.precision.mode=isostring`."""
    assert rows[6]["signed_on"] == date(2024, 2, 29)
    moment = datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)
    assert rows[6]["paid_at"].replace(tzinfo=UTC) == moment
