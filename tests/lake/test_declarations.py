"""What a staging model may declare, in one table of many columns."""

from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import write_rejected_rows
from tests.support.records import Record, Row, envelope, flattened, record
from tests.support.small_project import STAGING, set_columns, small_project

MANY = {f"an_attribute_with_a_long_name_{number}": "string" for number in range(60)}
COLUMNS = {
    "order_id": "int",
    "topic_name": "string",
    "weird_name": "int",
    "amount": "decimal(10,2) base64",
    "rate": "decimal(38,18) base64",
    "freight": "decimal(6,2)",
    "shipped_at": "timestamp(3)",
    "paid_at": "timestamp(6)",
    "note": "string",
    "email": "string hashed",
    "phone": "bpchar hashed",
    **MANY,
}
# The same table by its key's hash.
BY_HASH = {"order_ref": "string hashed"} | {
    name: declared for name, declared in COLUMNS.items() if name != "order_id"
}
SOURCE_NAMES: dict[str, Any] = {
    "topic_name": "topic",
    "weird_name": "weird-näme.x",
    "order_id": "Order Id",
}
IGNORED = ["gone", "generated-näme"]
OLD_NAMES = ["id", "old_topic", "oldest"]
# The same table with few of its columns, of which two were renamed at the source.
RENAMED: dict[str, Any] = {
    "key": "order_id",
    "columns": {"order_id": "int", "topic_name": "string"},
    "source_names": {
        "order_id": ["Order Id", "id"],
        "topic_name": ["topic", "old_topic", "oldest"],
    },
    "ignored_fields": IGNORED
    + [
        SOURCE_NAMES.get(name, name)
        for name in COLUMNS
        if name not in ("order_id", "topic_name")
    ],
}
SILVER_BY_HASH = """
{{ config(unique_key='order_ref') }}

{{ current_rows(ref('stg_orders_by_hash')) }}
"""
SILVER_RENAMED = """
{{ config(unique_key='order_id') }}

{{ current_rows(ref('stg_renamed')) }}
"""
Built = tuple[Lake, list[list[str]]]
# What the connector of this table sends for a value that it does not know.
PLACEHOLDER = "not sent"
VARIABLES = ("--vars", f"{{cdc_lakehouse_unavailable_value: {PLACEHOLDER}}}")


def order(offset: int, op: str, key: int, **row: Any) -> Record:
    """An order's change, with the source's names."""
    return record({"Order Id": key}, flattened(op, {"Order Id": key} | row, offset), offset)


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


@pytest.fixture(scope="module")
def built(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The table, the same by its key's hash, and with columns that were renamed.

    After two builds, with what each warned of.
    """
    project = small_project(tmp_path_factory.mktemp("declarations") / "project")
    ignored = [*IGNORED, *OLD_NAMES]
    set_columns(project, COLUMNS, source_names=SOURCE_NAMES, ignored_fields=ignored)
    names = {"order_ref" if k == "order_id" else k: v for k, v in SOURCE_NAMES.items()}
    meta: dict[str, Any] = {"key": "order_ref", "columns": BY_HASH, "source_names": names}
    meta["ignored_fields"] = ignored
    models = project / "models"
    (models / "staging" / "stg_orders_by_hash.sql").write_text(STAGING.format(meta=meta))
    (models / "silver" / "orders_by_hash.sql").write_text(SILVER_BY_HASH)
    (models / "staging" / "stg_renamed.sql").write_text(STAGING.format(meta=RENAMED))
    (models / "silver" / "renamed.sql").write_text(SILVER_RENAMED)
    write_rejected_rows(models)
    lake = new_lake(project=project)
    return lake, [
        [
            text
            for text in lake.build(events, *VARIABLES)
            if "Configuration paths" not in text
        ]
        for events in (ALL, LATER)
    ]


OLD_ROWS: list[Row] = [
    {"id": 30, "old_topic": "kept", "gone": 1, "generated-näme": 2},
    {"id": 31, "oldest": "lost"},
    {"id": 32, "old_topic": "a"},
    {"id": 33, "old_topic": "a"},
]
ALL = [
    order(1, "c", 1, topic="a", note="kept", **{"weird-näme.x": 7}),
    order(2, "c", 2, amount="B8Y=", rate={"scale": 1, "value": "AMc="}),
    order(
        *(3, "c", 3),
        amount="1234",
        shipped_at=1_709_251_199_123,
        paid_at=1_709_251_199_123_456,
    ),
    order(4, "c", 4, amount="19.90"),
    order(5, "c", 5, rate={"scale": -2, "value": "AQ=="}, **dict.fromkeys(MANY, "x")),
    order(7, "c", 6),
    record({"Order Id": 6}, envelope("d", None, 8), 8),
    record({}, envelope("d", None, 9), 9),
    order(11, "c", 7, freight="NaN", topic="a"),
    order(12, "c", 8, freight="12.50"),
    order(13, "c", 9, freight="NaN"),
    record({"Order Id": 10}, envelope("d", {"Order Id": 10, "freight": "NaN"}, 14), 14),
    order(15, "c", 11, email="a@example.org", phone="12"),
    order(16, "c", 12, email="a@example.org"),
    order(17, "c", 13, email="b@example.org"),
    # With the names that columns had before, and fields that no column holds.
    *(
        record({"id": row["id"]}, flattened("c", row, row["id"]), row["id"])
        for row in OLD_ROWS
    ),
    order(18, "c", 0),
    order(19, "c", 15),
]
LATER = [
    order(20, "u", 1, topic="c", note=PLACEHOLDER),
    order(21, "u", 8, freight="1e9"),
    order(22, "u", 9, freight="3.00"),
    order(23, "u", 11, email=PLACEHOLDER, phone="13   "),
    record({"Order Id": 12}, envelope("d", None, 24), 24),
    # The key 13 becomes 14; its e-mail address stays where it is.
    record({"Order Id": 13}, envelope("d", None, 25), 25),
    record(
        {"Order Id": 14}, flattened("c", {"Order Id": 14, "email": PLACEHOLDER}, 25), 26
    ),
    order(40, "u", 30, topic=PLACEHOLDER),
    # Another column has the old name now.
    order(41, "u", 31, topic=None, old_topic="another's"),
    record({"Order Id": 32}, envelope("d", None, 42), 42),
    record({"id": 33}, envelope("d", None, 43), 43),
    # Kafka's key is another: zeros are made up, and a number is the key.
    record({"email": "c"}, flattened("d", {"Order Id": 0, "email": "c"}, 27), 27),
    record({"email": "c"}, envelope("d", {"Order Id": 0, "email": "c"}, 28), 28),
    record({"email": "c"}, flattened("d", {"Order Id": 15, "email": "c"}, 29), 29),
]


@pytest.fixture(scope="module")
def rows(built: Built) -> dict[int, Row]:
    return {row["order_id"]: row for row in built[0].rows("silver.orders")}


MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123_000, tzinfo=UTC)
LIVE, DELETED = {"is_deleted": False}, {"is_deleted": True}
EXPECTED: dict[int, Row] = {
    # A delete with another replica identity has a made-up key, of no row.
    0: LIVE,
    # Names that the events' own columns have, or that no column here can have; a value
    # that the connector calls unavailable is kept.
    1: {"topic_name": "c", "weird_name": None, "note": "kept", "carried_columns": ["note"]}
    | {"freight": None, "untyped_columns": [], "email": None, "phone": None},
    # A number in base64, also one whose base64 is digits, and one with a scale of its own.
    2: {"topic_name": None, "amount": Decimal("19.90"), "rate": Decimal("19.9")},
    3: {"amount": Decimal("-26588.24"), "shipped_at": MOMENT}
    | {"paid_at": MOMENT.replace(microsecond=123_456)},
    4: {"amount": None, "untyped_columns": ["amount"]},
    5: {"rate": Decimal(100), **dict.fromkeys(MANY, "x")},
    # A delete in the envelope may bring no row: its key is in Kafka's.
    6: {**DELETED, "source_lsn": 8},
    # A value that its type cannot hold is null, until an event brings one that it can.
    7: {"freight": None, "untyped_columns": ["freight"], "topic_name": "a"},
    8: {"freight": None, "untyped_columns": ["freight"]},
    9: {"freight": Decimal("3.00"), "untyped_columns": []},
    10: {**DELETED, "untyped_columns": None},
    # A hash is of the text without a bpchar's padding; null, and a value that was not sent,
    # have none.
    11: {"email": hashed("a@example.org"), "phone": hashed("13")}
    | {"carried_columns": ["email"], **LIVE},
    12: {**DELETED, "email": None, "phone": None},
    13: {**DELETED, "email": None, "phone": None},
    14: {"email": hashed("b@example.org"), "phone": None, "carried_columns": ["email"]},
    15: DELETED,
}


@pytest.mark.parametrize("key", EXPECTED)
def test_row_is_as_declared(key: int, rows: dict[int, Row]) -> None:
    row, expected = dict(rows[key]), EXPECTED[key]
    assert all(value["is_known"] for value in row["carried_columns"])
    row["carried_columns"] = [value["column_name"] for value in row["carried_columns"]]
    for name in ("shipped_at", "paid_at"):
        row[name] = row[name] and row[name].replace(tzinfo=UTC)
    assert {name: row[name] for name in expected} == expected


def test_renamed_column_has_the_values_of_its_old_names(built: Built) -> None:
    """Of an event that has two of them, the newest one's; the key's, too."""
    rows = {row["order_id"]: row for row in built[0].rows("silver.renamed")}
    assert rows.keys() == {*range(16), *range(30, 34)}
    found = {key: (rows[key]["op"], rows[key]["topic_name"]) for key in range(30, 34)}
    assert found == {30: ("u", "kept"), 31: ("u", None), 32: ("d", None), 33: ("d", None)}


def test_event_without_a_key_has_no_row(built: Built, rows: dict[int, Row]) -> None:
    """A delete that brings no row and no key, or one that is made up."""
    assert built[1] == [[], []]
    assert rows.keys() == {*range(16), 30, 31, 32}
    rejected = built[0].sql(
        "select kafka_offset, rejection from staging.stg_orders"
        " where rejection is not null and kafka_offset < 30"
    )
    reason = "no order_id, which is the key"
    made_up = f"{reason}: a made-up value, as Kafka's key lacks it"
    assert dict(rejected) == {"9": reason, "27": made_up, "28": made_up}


def test_key_may_be_hashed(built: Built, rows: dict[int, Row]) -> None:
    """Also where only Kafka's key has it, and where its history is replayed."""
    by_hash = {row["order_ref"]: row for row in built[0].rows("silver.orders_by_hash")}
    assert by_hash.keys() == {hashed(str(key)) for key in rows}
    for key, row in rows.items():
        found = by_hash[hashed(str(key))]
        assert without(found, "order_ref") == without(row, "order_id")


def test_raw_value_of_a_hashed_column_ends_in_bronze(built: Built) -> None:
    def count(table: str) -> str:
        texts = f"(select to_json(struct(*)) as text from {table})"
        ((found,),) = built[0].sql(
            f"select count(*) from {texts} where text like '%@example.org%'"
        )
        return found

    assert count("bronze.cdc_events") == "3"
    for table in ("staging.stg_orders", "silver.orders", "silver.orders_by_hash"):
        assert count(table) == "0", table


def test_full_refresh_gives_the_hashes_that_the_increments_gave(built: Built) -> None:
    def live(table: str) -> list[Row]:
        arrival = ("ingested_at", "ingest_batch")
        rows = [without(row, *arrival) for row in built[0].rows(table)]
        return sorted(
            (row for row in rows if not row["is_deleted"]),
            key=lambda row: row["source_lsn"],
        )

    tables = ("silver.orders", "silver.orders_by_hash")
    before = {table: live(table) for table in tables}
    built[0].dbt("run", "--full-refresh", *VARIABLES)
    assert {table: live(table) for table in tables} == before


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
        lake.build([record({"order_id": 1}, *event) for event in batch])
    [row] = lake.rows("silver.orders")
    assert (row["priority"], row["op"], row["source_lsn"]) == (6, "u", 20)


TEXTS = ["-", "--", "a", "a ", "a-", "__empty__", ""]
MODELS_BY_TEXT = {
    "silver/orders": (
        "{{ config(unique_key='word') }} {{ current_rows(ref('stg_orders')) }}"
    ),
    "silver/moved": (
        "{{ config(unique_key='word', partition_by='name') }}"
        " {{ current_rows(ref('stg_orders')) }}"
    ),
    "silver/selected": (
        "{{ config(unique_key='word') }}"
        " select word, name, is_deleted from {{ ref('orders') }}"
    ),
    "gold/by_text": "{{ config(unique_key='word') }} select * from {{ ref('selected') }}",
}


@pytest.mark.thorough
def test_every_text_is_a_key(new_lake: NewLake, tmp_path: Path) -> None:
    """Hudi refuses the empty one."""
    project = small_project(tmp_path / "project")
    set_columns(project, {"word": "string", "name": "string"}, key="word")
    (project / "models" / "gold").mkdir()
    for name, text in MODELS_BY_TEXT.items():
        (project / "models" / f"{name}.sql").write_text(text)
    lake = new_lake(project=project)

    def changed(op: str, word: str, offset: int, **row: Any) -> Record:
        row = {"word": word, **row}
        return record({"word": word}, flattened(op, row, offset), offset)

    def found(table: str) -> dict[str, Any]:
        rows = lake.sql(f"select word, name, is_deleted from {table}")
        assert len(rows) == len({row[0] for row in rows})
        return {row[0]: (row[1], row[2]) for row in rows}

    lake.build([changed("c", word, 1, name="1") for word in TEXTS[:-1]])
    lake.build([changed("u", word, 2, name="2") for word in TEXTS])
    tables = ("silver.orders", "silver.moved", "silver.selected", "gold.by_text")
    for arguments in ([], ["--full-refresh"]):
        lake.dbt("run", *arguments)
        for table in tables:
            assert found(table) == dict.fromkeys(TEXTS, ("2", "False")), table
    lake.build([changed("d", word, 3) for word in TEXTS])
    for table in tables:
        assert found(table) == dict.fromkeys(TEXTS, ("None", "True")), table


COLUMN = {"key": "a", "columns": {"a": "int"}}
TWO = {"key": "a", "columns": {"a": "int", "b": "int"}}
SOURCE_NAMES_THAT_ARE_NONE: list[Any] = [
    *({"c": "d"}, ["a"], {"a": "b"}, {"a": "it's"}),
    *({"a": []}, {"a": ["c", "c"]}, {"a": ["a", "b"]}, {"a": 5}),
]
# Staging models' ``meta``, and what the error of each says.
WRONG: list[tuple[dict[str, Any], str]] = [
    (COLUMN | {"colums": {}}, "unknown setting 'colums' under meta"),
    (COLUMN | {"key": "b"}, "setting 'key' under meta is 'b'"),
    ({"key": "a"}, "setting 'columns' under meta is None; it maps each column"),
    (COLUMN | {"columns": {"a": "integer"}}, "gives 'a' the type 'integer'"),
    (COLUMN | {"columns": {"a": "json hashed"}}, "gives 'a' the type 'json hashed'"),
    (COLUMN | {"columns": {"a": "int full"}}, "gives 'a' the type 'int full'"),
    (TWO | {"key_columns": ["a"]}, "'key_columns' under meta is ['a']; it lists two"),
    (TWO | {"key": "Op", "key_columns": ["a", "b"]}, "names 'Op', which no column"),
    *(
        ({"key": "a", "columns": {"a": "int", name: "int"}}, f"names '{name}', which no")
        for name in ("op", "weird-n.x", "A", "__cdc_a")
    ),
    *(
        (TWO | {"source_names": names}, "setting 'source_names' under meta is")
        for names in SOURCE_NAMES_THAT_ARE_NONE
    ),
    *(
        (TWO | {"ignored_fields": fields}, "setting 'ignored_fields' under meta is")
        for fields in ("c", {"c": "d"}, 5, ["a"], ["it's"])
    ),
]
# Names at the source may differ by case alone.
RIGHT = {
    "key": "a",
    "columns": {"a": "decimal(10, 2)", "Name": "decimal(38,0) base64", "name_2": "string"},
    "source_names": {"a": "Name", "Name": "Order Id", "name_2": "name"},
}


def test_wrong_setting_is_a_compile_error(built: Built, tmp_path: Path) -> None:
    """It names the model and the setting; a right declaration beside it is built."""
    project = small_project(tmp_path / "project")
    metas = {f"stg_odd_{number}": meta for number, (meta, _) in enumerate(WRONG)}
    for name, meta in {**metas, "stg_right": RIGHT}.items():
        file = project / "models" / "staging" / f"{name}.sql"
        file.write_text(STAGING.format(meta=meta))
    write_rejected_rows(project / "models")
    models = ("-s", "stg_odd_*", "stg_right")
    nodes = built[0].try_dbt("run", *models, project=project)["nodes"]
    assert nodes["stg_right"]["status"] == "success"
    for name, (_, said) in zip(metas, WRONG, strict=True):
        message = nodes[name]["message"]
        assert f"model '{name}': " in message
        assert said in message
