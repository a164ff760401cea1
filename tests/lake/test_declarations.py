"""What a staging model may declare (``declarations.toml``), in a table of many columns.

And a value in each form that a connector has for it.
"""

import base64
import json
import re
import tomllib
import uuid
from datetime import datetime
from decimal import Decimal
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Record, Row, compact, envelope, flattened, record
from tests.support.small_project import (
    set_columns,
    small_project,
    write_model,
    write_staging,
)

DECLARED = tomllib.loads(Path(__file__).with_name("declarations.toml").read_text())
MANY = {f"an_attribute_with_a_long_name_{number}": "string" for number in range(60)}
# What the connector sends for a value that it lacks, and its bytes as Java has them.
PLACEHOLDER = """it's "né\\\\" sent"""
BYTES = [byte - 256 if byte > 127 else byte for byte in PLACEHOLDER.encode()]
BASE64 = base64.b64encode(PLACEHOLDER.encode()).decode()
UUID = str(uuid.UUID(bytes=md5(PLACEHOLDER.encode()).digest(), version=3))


# For each kind of column a value, and what is sent where it did not change.
UNSENT: dict[str, tuple[Any, Any]] = {
    "name": ("a", PLACEHOLDER),
    "blob": ("AP8=", BASE64),
    "blobs": (["AP8="], [BASE64]),
    "tags": (["a"], [PLACEHOLDER]),
    "ids": ([1, 2], BYTES),
    "refs": (["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], [UUID]),
    "attributes": ('{"a":"1"}', compact({PLACEHOLDER: PLACEHOLDER})),
    "properties": ({"a": "1"}, {PLACEHOLDER: PLACEHOLDER}),
}
FULL = {"prices": ["1.5"]}  # of a type whose form is null
COLUMNS: dict[str, str] = DECLARED["columns"] | MANY
SOURCE_NAMES: dict[str, str] = DECLARED["source_names"]
Built = tuple[Lake, list[list[str]]]
VARIABLES = ("--vars", json.dumps({"cdc_lakehouse_unavailable_value": PLACEHOLDER}))
# What ``declarations.toml`` calls some values.
SAID = {"null": None, "not sent": PLACEHOLDER}


def event(
    at: int, op: str, key: Any, row: Row | None = None, lsn: int = 0, form: str = ""
) -> Record:
    if not isinstance(key, dict):
        key = {"Order Id": key}
    if row is not None:
        row = {n: SAID.get(v, v) if isinstance(v, str) else v for n, v in row.items()}
    if form:
        brought = None if row is None else key | row
        return record(key, envelope(op, brought, lsn or at), at)
    return record(key, flattened(op, key | (row or {}), lsn or at), at)


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


def exact(event: Record | Row) -> str:
    """The line of a record whose texts in angle brackets are JSON."""
    line = json.dumps(event)
    return re.sub(r'"<(.*?)>"', lambda found: json.loads(f'"{found[1]}"'), line)


# Values with the names that an event's form is told by.
FORMS = ("", "envelope")
MISLEADING = {
    "name": '{"__op":"c","payload":{}}',
    "properties": {"__op": "c", "after": {"name": "not this"}},
    "attributes": '"before"',
}

# The events of the orders from 40 on.
EVENTS_OF_FORMS: list[list[Record | str]] = [
    [
        event(60, "c", 40, {name: sent for name, (sent, _) in UNSENT.items()} | FULL),
        event(61, "c", 41, FULL),
        # In a value that the sink nested, in Debezium's envelope, in a text.
        exact(event(62, "c", 42, NUMBERS)),
        exact(event(63, "c", 43, NUMBERS, form="envelope")),
        record({}, exact(event(64, "c", 44, NUMBERS)["value"]), 64),
        # The key alone, in Kafka's.
        exact(event(65, "d", {"gross": f"<{GROSS}>"}, form="envelope")),
        event(66, "c", 45, DECLARED["texts"]),
        *(event(67 + n, "c", 46 + n, MISLEADING, form=FORMS[n]) for n in range(2)),
    ],
    [
        event(69, "u", 40, {n: sent for n, (_, sent) in UNSENT.items()} | {"prices": None}),
        event(70, "u", 41, {"prices": [PLACEHOLDER]}),
    ],
]


def renamed(names: dict[str, Any]) -> dict[str, Any]:
    """The same by the hash of the key."""
    return {"order_ref" if name == "order_id" else name: names[name] for name in names}


def fields_of(meta: dict[str, Any]) -> set[str]:
    """The fields of events that a model's columns have their values of."""
    names = meta["source_names"]
    given = [names.get(column, column) for column in meta["columns"]]
    return {n for each in given for n in ([each] if isinstance(each, str) else each)}


@pytest.fixture(scope="module")
def built(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The table, the same by its key's hash, and with other columns.

    After two builds, with what each warned of.
    """
    project = small_project(tmp_path_factory.mktemp("declarations") / "project")
    by_hash = renamed(COLUMNS) | {"order_ref": "string hashed"}
    metas = DECLARED["others"] | {
        "orders": {"key": "order_id", "columns": COLUMNS},
        "orders_by_hash": {"key": "order_ref", "columns": by_hash},
    }
    metas["orders"]["source_names"] = SOURCE_NAMES
    metas["orders_by_hash"]["source_names"] = renamed(SOURCE_NAMES)
    fields = {*DECLARED["ignored_fields"]}.union(*map(fields_of, metas.values()))
    for name, meta in metas.items():
        ignored = {"ignored_fields": sorted(fields - fields_of(meta))}
        write_staging(project, f"stg_{name}", meta | ignored)
    tables = {"orders_by_hash": "order_ref", "renamed": "order_id", "forms": "order_id"}
    for name, key in tables.items():
        rows = f"{{{{ current_rows(ref('stg_{name}')) }}}}"
        write_model(project, f"silver/{name}", rows, unique_key=key)
    lake = new_lake(project=project)
    return lake, [
        [
            text
            for text in lake.build([*(event(**each) for each in batch), *forms], *VARIABLES)
            if "Configuration paths" not in text
        ]
        for batch, forms in zip(DECLARED["batches"].values(), EVENTS_OF_FORMS, strict=True)
    ]


@pytest.fixture(scope="module")
def rows(built: Built) -> dict[int, Row]:
    return {row["order_id"]: row for row in built[0].rows("silver.orders")}


@pytest.fixture(scope="module")
def forms(built: Built) -> dict[int, Row]:
    return {row["order_id"]: row for row in built[0].rows("silver.forms")}


def test_row_is_as_declared(rows: dict[int, Row], snapshot: SnapshotAssertion) -> None:
    """Of each order what is not null, as ``declarations.toml`` says."""
    names = (*COLUMNS, "op", "source_lsn", "carried_columns", "untyped_columns")
    assert {
        key: {
            name: str(row[name]) if isinstance(row[name], datetime) else row[name]
            for name in names
            if row[name] not in (None, [])
        }
        for key, row in rows.items()
        if key < 30
    } == snapshot


def test_renamed_column_has_the_values_of_its_old_names(built: Built) -> None:
    """Of an event that has two of them, the newest one's; the key's, too."""
    rows = {row["order_id"]: row for row in built[0].rows("silver.renamed")}
    assert rows.keys() == {*range(16), *range(30, 34), *range(40, 48)}
    found = {key: (rows[key]["op"], rows[key]["topic_name"]) for key in range(30, 34)}
    assert found == {30: ("u", "kept"), 31: ("u", None), 32: ("d", None), 33: ("d", None)}


def test_event_without_a_key_has_no_row(built: Built, rows: dict[int, Row]) -> None:
    """A delete that brings no row and no key, or one that is made up."""
    assert built[1] == [[], []]
    assert rows.keys() == {*range(16), 30, 31, 32, *range(40, 48)}
    rejected = built[0].sql(
        "select kafka_offset, rejection from staging.stg_orders"
        " where rejection is not null and kafka_offset < 30"
    )
    reason = "no order_id, which is the key"
    made_up = f"{reason}: a made-up value, as Kafka's key lacks it"
    assert dict(rejected) == {"9": reason, "27": made_up, "28": made_up}


def hashed(key: int) -> str:
    return sha256(str(key).encode()).hexdigest()


def without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def test_key_may_be_hashed(built: Built, rows: dict[int, Row]) -> None:
    """Also where only Kafka's key has it, and where its history is replayed."""
    by_hash = built[0].rows("silver.orders_by_hash")
    assert {row["order_ref"]: without(row, "order_ref") for row in by_hash} == {
        hashed(key): without(row, "order_id") for key, row in rows.items()
    }


def test_raw_value_of_a_hashed_column_ends_in_bronze(built: Built) -> None:
    def count(table: str) -> str:
        texts = f"(select to_json(struct(*)) as text from {table})"
        ((found,),) = built[0].sql(
            f"select count(*) from {texts} where text like '%@example.org%'"
        )
        return found

    tables = ("staging.stg_orders", "silver.orders", "silver.orders_by_hash")
    found = [count(table) for table in ("bronze.cdc_events", *tables)]
    assert found == ["3", "0", "0", "0"]


def test_full_refresh_gives_the_hashes_that_the_increments_gave(built: Built) -> None:
    def live() -> list[list[Row]]:
        return [
            [
                without(row, "ingested_at", "ingest_batch")
                for row in built[0].rows(table)
                if not row["is_deleted"]
            ]
            for table in ("silver.orders", "silver.orders_by_hash")
        ]

    before = live()
    built[0].dbt("run", "--full-refresh", *VARIABLES)
    assert live() == before


def test_unavailable_value_is_recognised_in_each_form(forms: dict[int, Row]) -> None:
    row = forms[40]
    assert {name: row[name] for name in UNSENT} == {
        name: value if isinstance(value, str) else compact(value)
        for name, (value, _) in UNSENT.items()
    }
    assert [value["column_name"] for value in row["carried_columns"]] == list(UNSENT)


def test_null_of_a_source_with_the_full_identity_is_null(forms: dict[int, Row]) -> None:
    """A value that it left out after all is named."""
    found = {key: (forms[key]["prices"], forms[key]["untyped_columns"]) for key in (40, 41)}
    assert found == {40: (None, []), 41: (None, ["prices"])}


def test_json_number_is_neither_rounded_nor_taken_for_base64(
    built: Built, forms: dict[int, Row]
) -> None:
    expected = (Decimal(GROSS), GROSS, PROPERTIES, NAME, None, ["amount"])
    for key in (42, 43, 44):
        names = ("gross", "tags", "properties", "name", "amount", "untyped_columns")
        assert tuple(forms[key][name] for name in names) == expected
    rejections = built[0].sql(
        "select rejection from staging.stg_orders_by_amount"
        " where kafka_offset between 62 and 64"
    )
    assert rejections == [["amount: '1234' is no decimal(10,2) base64"]] * 3


def test_number_of_a_kafka_key_is_not_rounded(built: Built) -> None:
    ((gross, is_deleted),) = built[0].sql(
        "select gross, is_deleted from staging.stg_orders_by_gross where kafka_offset = 65"
    )
    assert (Decimal(gross), is_deleted) == (Decimal(GROSS), "True")


def test_text_of_digits_may_be_base64(built: Built, forms: dict[int, Row]) -> None:
    assert forms[45]["amount"] == Decimal("-26588.24")
    found = built[0].sql(
        "select order_ref, rejection from staging.stg_orders_by_amount"
        " where kafka_offset = 66"
    )
    assert found == [[r"45-\-26588.24", "None"]]


def test_form_of_an_event_is_not_taken_from_its_values(forms: dict[int, Row]) -> None:
    expected = MISLEADING | {"properties": compact(MISLEADING["properties"])}
    for key in (46, 47):
        assert {name: forms[key][name] for name in MISLEADING} == expected


def test_dates_and_times_may_be_iso_texts(forms: dict[int, Row]) -> None:
    """Of `time.precision.mode=isostring`."""
    found = [str(forms[45][name]) for name in ("signed_on", "paid_at")]
    assert found == ["2024-02-29", "2024-02-29 23:59:59+00:00"]


@pytest.mark.thorough
def test_table_of_numbers_is_replayed(new_lake: NewLake, tmp_path: Path) -> None:
    """None of its columns can be left out, so none is looked for in a previous row."""
    project = small_project(tmp_path / "project")
    set_columns(project, {"order_id": "int", "priority": "int"})
    lake = new_lake(project=project)
    before, after = ({"order_id": 1, "priority": number} for number in (5, 6))
    read = flattened("r", before, None)
    create, update = flattened("c", before, 10), flattened("u", after, 20)
    # Only all events of the key say where a read that is delivered again stands.
    for batch in ([(create, 0), (read, 1)], [(update, 2)], [(read, 9)]):
        lake.build([record({"order_id": 1}, *each) for each in batch])
    [row] = lake.rows("silver.orders")
    assert (row["priority"], row["op"], row["source_lsn"]) == (6, "u", 20)


TEXTS = ["-", "--", "a", "a ", "a-", "__empty__", ""]
ROWS_BY_TEXT = "{{ current_rows(ref('stg_orders')) }}"
MODELS_BY_TEXT: dict[str, tuple[str, dict[str, str]]] = {
    "silver/orders": (ROWS_BY_TEXT, {}),
    "silver/moved": (ROWS_BY_TEXT, {"partition_by": "name"}),
    "silver/selected": ("select word, name, is_deleted from {{ ref('orders') }}", {}),
    "gold/by_text": ("select * from {{ ref('selected') }}", {}),
}


@pytest.mark.thorough
def test_every_text_is_a_key(new_lake: NewLake, tmp_path: Path) -> None:
    """Hudi refuses the empty one."""
    project = small_project(tmp_path / "project")
    set_columns(project, {"word": "string", "name": "string"}, key="word")
    for name, (text, settings) in MODELS_BY_TEXT.items():
        write_model(project, name, text, unique_key="word", **settings)
    lake = new_lake(project=project)

    def build(op: str, offset: int, texts: list[str], **row: Any) -> None:
        keys = ({"word": word} for word in texts)
        lake.build(record(key, flattened(op, key | row, offset), offset) for key in keys)

    def expect(*values: str) -> None:
        for name in MODELS_BY_TEXT:
            found = lake.sql(f"select word, name, is_deleted from {name.replace('/', '.')}")
            assert sorted(found) == sorted([text, *values] for text in TEXTS), name

    build("c", 1, TEXTS[:-1], name="1")
    build("u", 2, TEXTS, name="2")
    for arguments in ([], ["--full-refresh"]):
        lake.dbt("run", *arguments)
        expect("2", "False")
    build("d", 3, TEXTS)
    expect("None", "True")


def test_wrong_setting_is_a_compile_error(built: Built, tmp_path: Path) -> None:
    """It names the model and the setting; a right declaration beside it is built."""
    project = small_project(tmp_path / "project")
    usual = {"key": "a", "columns": {"a": "int", "b": "int"}}
    wrong = [(usual | m, said) for said, metas in DECLARED["wrong"].items() for m in metas]
    write_staging(project, "stg_right", DECLARED["right"])
    for number, (meta, _) in enumerate(wrong):
        write_staging(project, f"stg_odd_{number}", meta)
    models = ("-s", "stg_odd_*", "stg_right")
    nodes = built[0].try_dbt("run", *models, project=project)["nodes"]
    assert nodes["stg_right"]["status"] == "success"
    for number, (_, said) in enumerate(wrong):
        message = nodes[f"stg_odd_{number}"]["message"]
        assert f"model 'stg_odd_{number}': " in message
        assert said in message
