"""From commits in PostgreSQL to gold through Debezium and Kafka, also with faults."""

import json
import random
import string
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from cdc_lakehouse.errors import TRY_AGAIN
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.support.commands import Process, ended, run, start
from tests.support.pipeline import FAULTS, KILLS, Pipeline
from tests.support.records import UNAVAILABLE
from tests.support.source import TOPICS_FILE

pytestmark = pytest.mark.timeout(1800)

# More than a page has room for: PostgreSQL keeps it apart, and sends it in no update.
LONG = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
EDITS = """
from cdc_lakehouse.spark.session import spark_session

spark = spark_session(has_catalogue=True)
spark.sql("update silver.customers set city = 'Edited' where country = 'Germany'")
spark.sql("delete from silver.orders where order_id < 10300")
"""


@pytest.fixture(scope="module")
def stack_and_lake(own_stack: NorthwindStack) -> Iterator[Pipeline]:
    """A stack of this module's own, and the pipeline on it.

    It writes to every topic, and runs beside the tests of the shared stack.
    """
    pipeline = Pipeline(own_stack)
    yield pipeline
    pipeline.kill()


@pytest.fixture
def pipeline(stack_and_lake: Pipeline) -> Pipeline:
    """The pipeline, which runs, and has brought everything to gold."""
    stack_and_lake.start()
    stack_and_lake.wait_until_equal()
    return stack_and_lake


@pytest.mark.smoke
def test_every_kind_of_change_reaches_gold_through_kills(pipeline: Pipeline) -> None:
    """A snapshot, changes, deletes and TOAST, with one kill of each kind."""
    pipeline.source.execute(f"""
        alter table datalake.categories replica identity default;
        insert into datalake.categories values (99, 'Long', '{LONG}');
        update datalake.categories set category_name = 'Longer' where category_id = 99
    """)
    pipeline.storm(random.Random(5).sample(KILLS, len(KILLS)), 5, 400)
    operations = {row["op"] for row in pipeline.tables.rows("bronze.cdc_events")}
    assert operations == {"r", "c", "u", "d"}
    left_out = [
        json.loads(row["value"])["after"]["description"] == UNAVAILABLE
        for row in pipeline.tables.rows("bronze.categories")
        if row["op"] == "u"
    ]
    assert any(left_out)


@pytest.mark.nightly
def test_a_storm_with_one_fault_of_each_kind(pipeline: Pipeline) -> None:
    """Long transactions commit late; and in the end it stops as it is told."""
    faults = random.Random(7).sample(FAULTS, len(FAULTS))
    pipeline.storm(faults, seed=7, transactions=2_400)
    assert pipeline.stop() == 0


# `cdc-lakehouse resync`: Debezium reads a table again.


def resync(pipeline: Pipeline, *arguments: str) -> Process:
    """Start the command."""
    return start(
        *(sys.executable, "-m", "cdc_lakehouse", "resync", *arguments),
        *("--topics", str(TOPICS_FILE)),
        env=pipeline.source.environment(),
    )


def kill_half_way(pipeline: Pipeline) -> None:
    """Kill the command and Connect once Debezium waits for a lock on the second table.

    Connect has committed that the snapshot has begun; otherwise the connector reads the
    signal again when it starts, and takes the snapshot.
    """
    stack = pipeline.stack
    with closing(stack.connect_to_source()) as connection, connection.cursor() as cursor:
        cursor.execute("lock table datalake.complete_snapshots in access exclusive mode")
        process = resync(pipeline, "datalake.order_details")

        def is_waiting() -> bool:
            answer = stack.connect.ask("GET", "/connectors/source-tables/offsets")
            committed = [each["offset"].get("snapshot") for each in answer["offsets"]]
            if committed != ["BLOCKING"]:
                return False
            return bool(
                pipeline.source.execute(
                    "select 1 from pg_locks join pg_stat_activity using (pid)"
                    " where not granted and usename = 'debezium'"
                )
            )

        wait_until(is_waiting, 60, "Debezium does not read")
        process.kill()
        process.communicate()
        stack.kill("connect")
        connection.rollback()
    stack.revive("connect")


def test_rows_that_no_event_deleted_are_deleted_by_resync(pipeline: Pipeline) -> None:
    """Rows deleted while there was no slot; rows edited in the lake equal the source again.

    A resync that is killed half-way deletes nothing, and can be asked for again.
    """
    stack = pipeline.stack

    def lines() -> int:
        rows = pipeline.tables.rows("silver.order_details")
        return sum(row["product_id"] == 11 and not row["is_deleted"] for row in rows)

    assert pipeline.stop() == 0
    stack.connect.remove("source-tables")
    pipeline.source.execute("""
        select pg_drop_replication_slot('cdc_lakehouse_tables');
        delete from datalake.order_details where product_id = 11;
        delete from datalake.employee_territories
    """)
    stack.register("source-tables")
    stack.wait_until_streaming()
    kill_half_way(pipeline)
    pipeline.run_once()
    assert lines() > 0
    run(sys.executable, "-c", EDITS, env=pipeline.environment)
    for arguments in (
        ("datalake.order_details",),
        ("datalake.employee_territories",),
        ("datalake.customers",),
        ("datalake.cdc_events", "--connector", "connectors/source-outbox.json"),
    ):
        assert "read in" in ended(resync(pipeline, *arguments))
        # The stream goes on.
        pipeline.source.execute("update datalake.shippers set phone = phone || '1'")
    pipeline.run_once()
    assert lines() == 0
    assert pipeline.difference(stack.topic_ends()) == ""


def test_resync_without_a_connector_that_reads_signals(stack_and_lake: Pipeline) -> None:
    """It is worth another try, and deletes nothing."""
    stack, name = stack_and_lake.stack, "source-tables"
    config = stack.configuration(name)
    del config["signal.data.collection"]
    # Its old task must be gone, or the command finds the slot between two tasks.
    stack.connect.halt(name)
    try:
        said = ended(resync(stack_and_lake, "datalake.shippers"), TRY_AGAIN)
        assert "nothing reads from its slot cdc_lakehouse_tables" in said
        stack.connect.ask("PUT", f"/connectors/{name}/config", config)
        stack.connect.ask("PUT", f"/connectors/{name}/resume")
        stack.wait_until_streaming()
        arguments = ("datalake.shippers", "--timeout", "4")
        said = ended(resync(stack_and_lake, *arguments), TRY_AGAIN)
        assert "without a sign that Debezium reads datalake.shippers" in said
    finally:
        stack.connect.ask("PUT", f"/connectors/{name}/resume")
        stack.register(name)
        stack.wait_until_streaming()
