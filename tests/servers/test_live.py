"""From commits in PostgreSQL to gold through Debezium and Kafka, also with faults."""

from __future__ import annotations

import json
import random
import shutil
import string
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.stack.northwind import NorthwindStack
from tests.servers.conftest import start_stack
from tests.support.faults import (
    FAULTS,
    KILLS,
    assert_each_record_once,
    assert_equal_to_source,
    storm_with_faults,
)
from tests.support.pipeline import Pipeline
from tests.support.project import copy_project
from tests.support.records import UNAVAILABLE
from tests.support.source import SILVER
from tests.support.storm import Storm
from tests.support.tables import Tables

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def stack_and_lake(servers: None, fast_stack: None) -> Iterator[Pipeline]:
    """A stack of this module's own, and the pipeline on it.

    It writes to every topic, and runs beside the tests of the shared stack.
    """
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)
    stack = NorthwindStack(root)
    pipeline = Pipeline(stack)
    try:
        start_stack(stack)
        yield pipeline
    finally:
        pipeline.kill()
        stack.remove()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def pipeline(stack_and_lake: Pipeline) -> Pipeline:
    """The pipeline, which runs, and has brought everything to gold."""
    stack_and_lake.start()
    stack_and_lake.wait_until_built()
    return stack_and_lake


@pytest.mark.smoke
def test_every_kind_of_change_reaches_gold_through_kills(pipeline: Pipeline) -> None:
    """A snapshot, changes, deletes and TOAST, with one kill of each kind."""
    update_beside_a_long_value(pipeline.stack)
    storm_with_faults(pipeline, random.Random(5).sample(KILLS, len(KILLS)), 5, 400)
    lake = Tables(pipeline.lake)
    operations = {row["op"] for row in lake.rows("bronze.cdc_events")}
    assert operations == {"r", "c", "u", "d"}
    # Once, or again after a kill.
    updates = [row for row in lake.rows("bronze.categories") if row["op"] == "u"]
    values = {json.loads(row["value"])["after"]["description"] for row in updates}
    assert values == {UNAVAILABLE}


def update_beside_a_long_value(stack: NorthwindStack) -> None:
    """Change a row of which PostgreSQL keeps a value apart, and sends it in no update."""
    long = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
    with closing(stack.connect_to_source()) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("alter table datalake.categories replica identity default")
            cursor.execute(
                "insert into datalake.categories values (99, 'Long', %s)", (long,)
            )
            cursor.execute(
                "update datalake.categories set category_name = 'Longer'"
                " where category_id = 99"
            )


@pytest.mark.nightly
def test_a_storm_of_transactions(pipeline: Pipeline) -> None:
    """While everything runs; long transactions commit late."""
    storm = Storm(pipeline.stack.connect_to_source, seed=1, transactions=2_400)
    storm.start()
    storm.wait()
    pipeline.wait_until_built()
    assert storm.committed == 2_400
    assert_equal_to_source(pipeline)
    assert_each_record_once(pipeline)
    assert pipeline.stop() == 0


@pytest.mark.nightly
def test_a_storm_with_one_fault_of_each_kind(pipeline: Pipeline) -> None:
    faults = random.Random(7).sample(FAULTS, len(FAULTS))
    storm_with_faults(pipeline, faults, seed=7, transactions=1_600)


def test_a_column_is_added_and_dropped(pipeline: Pipeline, tmp_path: Path) -> None:
    """Nothing stops; a warning names it; a line and a full refresh bring its past."""
    stack = pipeline.stack
    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        cursor.execute("alter table datalake.shippers add column rating integer default 3")
        connection.commit()
        cursor.execute("update datalake.shippers set rating = 5 where shipper_id = 2")
        connection.commit()
    pipeline.wait_until_built()
    warning = "model 'stg_shippers' does not list the field 'rating'"
    assert warning in pipeline.output()
    assert pipeline.stop() == 0

    copy = copy_project(tmp_path / "project")
    model = copy / "models/staging/tables/stg_shippers.sql"
    model.write_text(
        model.read_text().replace(
            "'phone': 'string',", "'phone': 'string',\n        'rating': 'int',"
        )
    )
    Pipeline(stack, copy).run_once(build="run --full-refresh -s stg_shippers+")
    rows = {
        row["shipper_id"]: row["rating"]
        for row in Tables(pipeline.lake).rows("silver.shippers")
    }
    # A row that was not touched since never shows the added column's default.
    assert rows == {1: None, 2: 5, **dict.fromkeys(rows.keys() - {1, 2})}

    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        cursor.execute("alter table datalake.shippers drop column rating")
        cursor.execute("update datalake.shippers set phone = 'after' where shipper_id = 1")
        connection.commit()
    Pipeline(stack, copy).run_once()
    after = {
        row["shipper_id"]: row for row in Tables(pipeline.lake).rows("silver.shippers")
    }
    assert (after[1]["phone"], after[1]["rating"]) == ("after", None)


def test_a_lost_slot(pipeline: Pipeline) -> None:
    """Rows deleted meanwhile are gone once the new snapshot is declared complete."""
    stack = pipeline.stack
    stack.connect.remove("source-tables")
    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        cursor.execute("select pg_drop_replication_slot('cdc_lakehouse_tables')")
        cursor.execute("delete from datalake.order_details where product_id = 11")
        cursor.execute("delete from datalake.employee_territories where employee_id = 9")
        connection.commit()
    stack.register("source-tables")
    stack.wait_until_streaming()
    pipeline.wait_until_built()
    lake = Tables(pipeline.lake)

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
    assert pipeline.stop() == 0
    pipeline.run_once(variables={"cdc_lakehouse_complete_snapshots": snapshots})
    assert 11 not in lines()
    assert_equal_to_source(pipeline)
