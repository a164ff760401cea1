"""From commits in PostgreSQL to gold, through Debezium and Kafka, come what may."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.stack.stack import Stack
from tests.conftest import PROJECT, Lake
from tests.pipeline import Pipeline
from tests.source import GOLD, SILVER, answers, gold_rows, silver_rows, table_rows
from tests.storm import Storm

pytest_plugins = ["tests.servers"]


@pytest.fixture(scope="module")
def pipeline(servers: None) -> Iterator[Pipeline]:
    """A stack of this module's own, whose snapshot is in gold."""
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)
    stack = Stack(root)
    stack.start(hold_back=11075)
    pipeline = Pipeline(stack)
    try:
        pipeline.catch_up()
        yield pipeline
    finally:
        pipeline.kill()
        stack.remove()
        shutil.rmtree(root, ignore_errors=True)


def assert_equal_to_source(pipeline: Pipeline) -> None:
    """Silver is the source row by row; gold is what PostgreSQL answers."""
    lake = Lake(pipeline.lake)
    with closing(pipeline.stack.connect_to_source()) as connection:
        for silver in SILVER:
            expected = table_rows(connection, silver)
            columns = list(next(iter(expected.values())))
            found = silver_rows(lake.rows(f"silver.{silver}"), silver, columns)
            wrong = {
                key: (expected.get(key), found.get(key))
                for key in expected.keys() | found.keys()
                if expected.get(key) != found.get(key)
            }
            assert not wrong, f"{silver}: {len(wrong)} differ: {list(wrong.items())[:2]}"
        expected_gold = answers(connection)
    for table in GOLD:
        found_gold = gold_rows(lake.rows(f"gold.{table}"), table)
        assert found_gold == expected_gold[table], table
    assert lake.rows("bronze.rejected_events") == []
    assert lake.rows("silver.rejected_rows") == []


def assert_each_record_once(pipeline: Pipeline) -> None:
    """Bronze holds every offset of every topic once: no gap, no double."""
    lake = Lake(pipeline.lake)
    for table, _ in SILVER.values():
        offsets = [row["kafka_offset"] for row in lake.rows(f"bronze.{table}")]
        assert sorted(offsets) == list(range(len(offsets))), table


def test_the_snapshot_reaches_gold(pipeline: Pipeline) -> None:
    assert_equal_to_source(pipeline)
    assert_each_record_once(pipeline)


def test_a_storm_of_transactions(pipeline: Pipeline) -> None:
    """While everything runs; long transactions commit late."""
    storm = Storm(pipeline.stack.connect_to_source, seed=1, transactions=2_400)
    pipeline.start()
    storm.start()
    storm.wait()
    assert pipeline.stop() == 0
    pipeline.catch_up()
    assert storm.committed == 2_400
    assert_equal_to_source(pipeline)
    assert_each_record_once(pipeline)


FAULTS = (
    "connect is killed",
    "the broker is killed",
    "the ingest is killed",
    "a build is killed",
    "PostgreSQL is restarted",
    "a connector is paused",
    "the checkpoint is lost",
)


def strike(fault: str, pipeline: Pipeline, draw: random.Random) -> None:
    """Let one thing go wrong, and start again what a service manager would."""
    stack = pipeline.stack
    if fault == "connect is killed":
        stack.kill("connect")
        stack.revive("connect")
    elif fault == "the broker is killed":
        stack.kill("broker")
        stack.revive("broker")
    elif fault == "the ingest is killed":
        pipeline.kill()
    elif fault == "a build is killed":
        builds = pipeline.said().count("wrote ")
        end = time.monotonic() + 60
        while pipeline.said().count("wrote ") == builds and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(draw.uniform(0.5, 6))
        pipeline.kill()
    elif fault == "PostgreSQL is restarted":
        stack.postgres.stop()
        stack.revive("postgres")
    elif fault == "a connector is paused":
        stack.pause("source-outbox")
        time.sleep(draw.uniform(1, 4))
        stack.resume("source-outbox")
    elif fault == "the checkpoint is lost":
        pipeline.kill()
        pipeline.lose_checkpoint()
    if pipeline.has_ended:
        pipeline.start()


def storm_with_faults(
    pipeline: Pipeline, faults: list[str], seed: int, transactions: int
) -> None:
    """Transactions, and faults at random moments among them."""
    draw = random.Random(seed)
    storm = Storm(pipeline.stack.connect_to_source, seed=seed, transactions=transactions)
    pipeline.start()
    storm.start()
    for fault in faults:
        time.sleep(draw.uniform(2, 8))
        strike(fault, pipeline, draw)
    storm.wait()
    pipeline.kill()
    pipeline.catch_up()
    assert storm.committed == transactions
    assert_equal_to_source(pipeline)
    assert_each_record_once(pipeline)


def test_a_storm_with_one_fault_of_each_kind(pipeline: Pipeline) -> None:
    faults = random.Random(7).sample(FAULTS, len(FAULTS))
    storm_with_faults(pipeline, faults, seed=7, transactions=1_600)


def test_a_column_comes_and_goes(pipeline: Pipeline, tmp_path: Path) -> None:
    """Nothing stops; a warning names it; a line and a full refresh bring its past."""
    stack = pipeline.stack
    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        cursor.execute("alter table datalake.shippers add column rating integer default 3")
        connection.commit()
        cursor.execute("update datalake.shippers set rating = 5 where shipper_id = 2")
        connection.commit()
    said = pipeline.catch_up()
    assert "model 'stg_shippers' does not list the field 'rating'" in said

    copy = tmp_path / "project"
    for folder in ("ingest", "connectors", "macros", "models", "profiles", "tests/dbt"):
        shutil.copytree(PROJECT / folder, copy / folder)
    for file in ("dbt_project.yml", "dbt_single_build.py"):
        shutil.copy(PROJECT / file, copy)
    (copy / ".venv").symlink_to(PROJECT / ".venv")
    model = copy / "models/staging/tables/stg_shippers.sql"
    model.write_text(
        model.read_text().replace(
            "'phone': 'string',", "'phone': 'string',\n        'rating': 'int',"
        )
    )
    Pipeline(stack, copy).catch_up(build="run --full-refresh -s stg_shippers+")
    rows = {
        row["shipper_id"]: row["rating"]
        for row in Lake(pipeline.lake).rows("silver.shippers")
    }
    # A row that was not touched since never shows the added column's default.
    assert rows == {1: None, 2: 5, **dict.fromkeys(rows.keys() - {1, 2})}

    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        cursor.execute("alter table datalake.shippers drop column rating")
        cursor.execute("update datalake.shippers set phone = 'after' where shipper_id = 1")
        connection.commit()
    Pipeline(stack, copy).catch_up()
    after = {row["shipper_id"]: row for row in Lake(pipeline.lake).rows("silver.shippers")}
    assert (after[1]["phone"], after[1]["rating"]) == ("after", None)


def test_a_lost_slot(pipeline: Pipeline) -> None:
    """What was deleted meanwhile is gone once the new snapshot is named as complete."""
    stack = pipeline.stack
    stack.connect.remove("source-tables")
    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        cursor.execute("select pg_drop_replication_slot('cdc_lakehouse_tables')")
        cursor.execute("delete from datalake.order_details where product_id = 11")
        cursor.execute("delete from datalake.employee_territories where employee_id = 9")
        connection.commit()
    stack.register("source-tables")
    stack.wait_until_streaming()
    pipeline.catch_up()
    lake = Lake(pipeline.lake)

    def lines() -> set[int]:
        return {
            row["product_id"]
            for row in lake.rows("silver.order_details")
            if not row["is_deleted"]
        }

    assert 11 in lines()
    snapshots = {}
    for silver, (table, _) in SILVER.items():
        if silver != "orders":
            reads = [row for row in lake.rows(f"bronze.{table}") if row["op"] == "r"]
            snapshots[table] = max(row["source_lsn"] for row in reads)
    pipeline.catch_up(variables={"complete_snapshots": snapshots})
    assert 11 not in lines()
    assert_equal_to_source(pipeline)
