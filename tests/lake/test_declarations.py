"""What a staging model may declare (``declarations.toml``), in a table of many columns."""

import tomllib
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Record, Row, envelope, flattened, record
from tests.support.small_project import (
    set_columns,
    small_project,
    write_model,
    write_staging,
)

DECLARED = tomllib.loads(Path(__file__).with_name("declarations.toml").read_text())
MANY = {f"an_attribute_with_a_long_name_{number}": "string" for number in range(60)}
COLUMNS: dict[str, str] = DECLARED["columns"] | MANY
SOURCE_NAMES: dict[str, str] = DECLARED["source_names"]
IGNORED: list[str] = DECLARED["ignored_fields"]
Built = tuple[Lake, list[list[str]]]
# What the connector of this table sends for a value that it does not know.
VARIABLES = ("--vars", "{cdc_lakehouse_unavailable_value: not sent}")


def event(
    at: int, op: str, key: Any, row: Row | None = None, lsn: int = 0, form: str = ""
) -> Record:
    if not isinstance(key, dict):
        key = {"Order Id": key}
    if row is not None:
        row = {name: None if value == "null" else value for name, value in row.items()}
    if form:
        brought = None if row is None else key | row
        return record(key, envelope(op, brought, lsn or at), at)
    return record(key, flattened(op, key | (row or {}), lsn or at), at)


def renamed(names: dict[str, Any]) -> dict[str, Any]:
    """The same by the hash of the key."""
    return {"order_ref" if name == "order_id" else name: names[name] for name in names}


@pytest.fixture(scope="module")
def built(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The table, the same by its key's hash, and with columns that were renamed.

    After two builds, with what each warned of.
    """
    project = small_project(tmp_path_factory.mktemp("declarations") / "project")
    old_names = ["id", "old_topic", "oldest"]
    names = {"source_names": SOURCE_NAMES, "ignored_fields": IGNORED + old_names}
    set_columns(project, COLUMNS, **names)
    by_hash = renamed(COLUMNS) | {"order_ref": "string hashed"}
    meta = names | {"key": "order_ref", "columns": by_hash}
    meta["source_names"] = renamed(SOURCE_NAMES)
    write_staging(project, "stg_orders_by_hash", meta)
    others = COLUMNS.keys() - DECLARED["renamed"]["columns"].keys()
    fields = IGNORED + [SOURCE_NAMES.get(name, name) for name in sorted(others)]
    meta = {"key": "order_id", "ignored_fields": fields} | DECLARED["renamed"]
    write_staging(project, "stg_renamed", meta)
    for name, key in (("orders_by_hash", "order_ref"), ("renamed", "order_id")):
        rows = f"{{{{ current_rows(ref('stg_{name}')) }}}}"
        write_model(project, f"silver/{name}", rows, unique_key=key)
    lake = new_lake(project=project)
    return lake, [
        [
            text
            for text in lake.build([event(**each) for each in batch], *VARIABLES)
            if "Configuration paths" not in text
        ]
        for batch in DECLARED["batches"].values()
    ]


@pytest.fixture(scope="module")
def rows(built: Built) -> dict[int, Row]:
    return {row["order_id"]: row for row in built[0].rows("silver.orders")}


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
