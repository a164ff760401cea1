"""What a build says and does about what a source does now and then, and the runbook."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.records import TOPIC, Record, envelope, flattened, record
from tests.support.stories import ORDER

SILVER = ("-s", "path:models/staging", "path:models/silver")


def as_typed(lake: Lake) -> dict[str, str]:
    """The environment of one who types `dbt`, which finds the plugin by itself."""
    return {
        name: value for name, value in lake.environment().items() if name != "PYTHONPATH"
    }


def change(op: str, key: Any, lsn: int, offset: int, **columns: Any) -> Record:
    """One flattened change of an order, delivered with Kafka's key."""
    row = {**ORDER, "order_id": key, **columns}
    return record({"order_id": key}, flattened(op, row, lsn), offset)


def truncate(lsn: int, offset: int) -> Record:
    """A truncate of the outbox, as the envelope brings it."""
    return record(None, envelope("t", None, lsn), offset)


def decided(**decisions: str) -> tuple[str, str]:
    """The variable ``truncates``, by LSN."""
    known = {name.removeprefix("lsn"): value for name, value in decisions.items()}
    return ("--vars", json.dumps({"truncates": known}))


def build(lake: Lake, *records: Record) -> list[str]:
    """Bring records to silver; what dbt warned of."""
    lake.land(records)
    assert lake.ingest().code == 0
    said: list[str] = lake.dbt("run", *SILVER)["said"]
    return said


def live(lake: Lake) -> set[int]:
    """The keys of the orders that are not deleted."""
    return {row["order_id"] for row in lake.rows("silver.orders") if not row["is_deleted"]}


def with_two_orders(lake: Lake) -> Lake:
    """A lake with the orders 1 and 2 in silver."""
    build(lake, change("c", 1, 100, 0), change("c", 2, 110, 1))
    return lake


@pytest.fixture(scope="module")
def shared(new_lake: NewLake) -> Lake:
    """A lake with two orders, for tests that only add to it."""
    return with_two_orders(new_lake())


def test_what_cannot_be_typed_is_in_rejected_rows(shared: Lake) -> None:
    """The good rows of its batch go on; the reason, the event and a warning are there."""
    lake = shared
    bad = (change("u", "x1", 120, 2), change("u", 1, 130, 3, order_date="soon"))
    build(lake, *bad, change("u", 2, 140, 4, customer_id="BONAP"))
    rejected = {row["kafka_offset"]: row for row in lake.rows("silver.rejected_rows")}
    assert {offset: row["reason"] for offset, row in rejected.items()} == {
        2: "order_id: 'x1' is no int",
        3: "order_date: 'soon' is no date",
    }
    events = {row["kafka_offset"]: row for row in lake.rows("bronze.cdc_events")}
    for offset, row in rejected.items():
        assert row["event_id"] == events[offset]["event_id"]
        assert row["table_name"] == "orders"
    orders = {row["order_id"]: row for row in lake.rows("silver.orders")}
    assert (orders[1]["source_lsn"], orders[2]["customer_id"]) == (100, "BONAP")
    tested = lake.dbt("test", "-s", "rejected_rows", "--indirect-selection", "eager")
    assert "warn" in {node["status"] for node in tested["nodes"].values()}

    # A full refresh finds the same rows, and no more.
    lake.dbt("run", "--full-refresh", *SILVER)
    assert {row["kafka_offset"] for row in lake.rows("silver.rejected_rows")} == {2, 3}

    # A field that no model lists is named, with what to do.
    said = build(lake, change("u", 1, 150, 5, gift_note="roses"))
    assert len(said) == 1
    assert "model 'stg_orders' does not list the field 'gift_note'" in said[0]
    assert build(lake, change("u", 1, 160, 6)) == []

    # LSNs that start again, at new offsets: everything new loses.
    said = build(lake, change("u", 1, 10, 7, customer_id="NEWER"))
    assert len(said) == 1
    assert "1 new events of bronze.cdc_events arrived at higher offsets" in said[0]
    assert "ingest/topics.toml" in said[0]
    # What was delivered before and comes again loses too, and is no restored source.
    assert build(lake, change("u", 1, 160, 8)) == []


def test_truncate_stops_until_it_is_decided_on(new_lake: NewLake) -> None:
    lake = with_two_orders(new_lake())
    before = lake.tables.instants()
    lake.land([truncate(200, 2), change("c", 3, 210, 3)])
    assert lake.ingest().code == 0
    answer = lake.try_dbt("run", *SILVER)
    assert not answer["success"]
    messages = " ".join(
        [str(answer["error"]), *answer["said"]]
        + [str(node["message"]) for node in answer["nodes"].values()]
    )
    assert "bronze.cdc_events holds a TRUNCATE at LSN 200" in messages
    assert {
        table: instants
        for table, instants in lake.tables.instants().items()
        if table.startswith("silver.")
    } == {table: made for table, made in before.items() if table.startswith("silver.")}

    assert not lake.try_dbt("run", *SILVER, *decided(lsn200="maybe"))["success"]

    lake.dbt("run", *SILVER, *decided(lsn200="ignore"))
    assert live(lake) == {1, 2, 3}

    lake.land([truncate(300, 4), change("c", 2, 310, 5)])
    assert lake.ingest().code == 0
    both = decided(lsn200="ignore", lsn300="apply")
    lake.dbt("run", *SILVER, *both)
    assert live(lake) == {2}
    deleted = {
        row["order_id"]: row["source_lsn"]
        for row in lake.rows("silver.orders")
        if row["is_deleted"]
    }
    assert deleted == {1: 300, 3: 300}
    lines = lake.rows("silver.order_items")
    assert {row["order_id"] for row in lines if not row["is_deleted"]} == {2}

    lake.dbt("run", "--full-refresh", *SILVER, *both)
    assert live(lake) == {2}
    # What was applied once is applied again, whether or not the variable still says it.
    lake.dbt("run", "--full-refresh", *SILVER)
    assert live(lake) == {2}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("build", "nothing has been ingested into"),
        ("docs generate", "nothing has been built in"),
    ],
)
def test_empty_lake_is_reported(command: str, said: str, new_lake: NewLake) -> None:
    lake = new_lake()
    done = subprocess.run(
        ["dbt", *command.split(), "--profiles-dir", "profiles"],
        cwd=PROJECT,
        env=as_typed(lake),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert f"{said} {lake.root}" in done.stdout + done.stderr


def test_a_bronze_table_that_is_not_there_is_named(shared: Lake) -> None:
    answer = shared.try_dbt("run", "--vars", "{base_tables: true}")
    assert not answer["success"]
    said = " ".join([str(answer["error"]), *answer["said"]])
    assert "bronze.categories has not been ingested: list its topic" in said


def test_ingest_builds_in_its_own_process(shared: Lake) -> None:
    """And says what it wrote, also where the build failed."""
    shared.land([change("c", 77, 7_000, 700)])
    landing = str(shared.landing)
    silver = "run -s stg_orders orders"
    done = shared.ingest(landing, "--then-build", silver)
    built, counts = done.out.splitlines()
    assert built.startswith("built (")
    assert counts == "read 1 records, wrote 1 events, rejected 0, skipped 0"
    assert (done.code, 77 in live(shared)) == (0, True)

    shared.land([change("c", 78, 7_100, 701)])
    wrong = "run -s orders --vars '{complete_snapshots: {cdc_events: 5}}'"
    done = shared.ingest(landing, "--then-build", wrong)
    failed, counts = done.out.splitlines()
    assert failed.startswith("the build failed (")
    assert counts == "read 1 records, wrote 1 events, rejected 0, skipped 0"
    assert "LSN 5 of bronze.cdc_events, which holds no snapshot read" in done.err
    assert done.code == 1
    assert shared.ingest(landing, "--then-build", silver).code == 0
    assert 78 in live(shared)


def test_second_build_is_told_who_is_at_work(shared: Lake) -> None:
    assert shared.sql("select 1")  # its process has the lake's lock since the first build
    second = subprocess.run(
        ["dbt", "run", "--profiles-dir", "profiles", "-s", "stg_orders"],
        cwd=PROJECT,
        env=as_typed(shared),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert second.returncode != 0
    assert str(shared.spark.pid) in second.stdout + second.stderr
    assert "Traceback" not in second.stdout


def test_operations_of_the_runbook(new_lake: NewLake) -> None:
    """Erase a key, drop a table and build it again, drop a day of bronze."""
    lake = with_two_orders(new_lake())
    key = '{"order_id":1}'
    events = lake.rows("bronze.cdc_events")
    assert key in {row["key"] for row in events}
    lake.dbt(
        "run-operation",
        "erase_key",
        "--args",
        json.dumps({"table": "cdc_events", "key": key}),
    )
    left = lake.rows("bronze.cdc_events")
    assert left == [row for row in events if row["key"] != key]
    assert lake.tables.properties("bronze.cdc_events")["hoodie.table.version"] == "6"

    lake.dbt("run-operation", "drop_table", "--args", '{"table": "silver.orders"}')
    lake.dbt("run", "-s", "orders")
    assert live(lake) == {2}
    assert build(lake, change("u", 2, 400, 9, customer_id="BONAP")) == []
    assert {row["customer_id"] for row in lake.rows("silver.orders")} == {"BONAP"}

    day = str(left[0]["ingest_date"])
    lake.dbt(
        "run-operation",
        "drop_bronze_day",
        "--args",
        json.dumps({"table": "cdc_events", "day": day}),
    )
    assert lake.rows("bronze.cdc_events") == []
    assert build(lake, change("c", 3, 500, 10)) == []
    assert live(lake) == {2, 3}
    assert TOPIC in {row["topic"] for row in lake.rows("bronze.cdc_events")}


def test_freshness_of_bronze_is_checked(shared: Lake) -> None:
    answer = shared.dbt("source", "freshness", "-s", "source:bronze.cdc_events")
    statuses = {n["status"] for n in answer["nodes"].values() if n["kind"] == "source"}
    assert statuses == {"pass"}


def test_build_of_one_table_warns_of_no_other(shared: Lake) -> None:
    """What it did not merge has not lost, and the next build takes it in."""
    shared.land([change("c", 79, 9_000, 900)])
    assert shared.ingest().code == 0
    assert shared.dbt("run", "-s", "stg_customers", "customers")["said"] == []
    assert build(shared) == []
    assert 79 in live(shared)
