"""``cdc-lakehouse resync`` on a live stack: Debezium reads a table again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cdc_lakehouse.errors import TRY_AGAIN
from lab.stack.northwind import DATABASE, NorthwindStack
from lab.stack.postgres import SUPERUSER
from lab.stack.processes import wait_until
from tests.servers.conftest import start_stack
from tests.support.faults import assert_equal_to_source
from tests.support.pipeline import Pipeline
from tests.support.source import TOPICS_FILE
from tests.support.tables import Tables

pytestmark = pytest.mark.timeout(1800)

OUTBOX = ("--connector", "connectors/source-outbox.json")
EDITS = """
from cdc_lakehouse.spark.session import spark_session

spark = spark_session(has_catalogue=True)
spark.sql("update silver.customers set city = 'Edited' where country = 'Germany'")
spark.sql("delete from silver.orders where order_id < 10300")
"""


@pytest.fixture(scope="module")
def pipeline(servers: None, fast_stack: None) -> Iterator[Pipeline]:
    """A stack of this module's own; its lake is empty at first."""
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)
    stack = NorthwindStack(root)
    pipeline = Pipeline(stack, resyncs=True)
    try:
        start_stack(stack)
        yield pipeline
    finally:
        stack.remove()
        shutil.rmtree(root, ignore_errors=True)


def resync(pipeline: Pipeline, *arguments: str) -> subprocess.Popen[str]:
    """Start the command."""
    source = {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(pipeline.stack.postgres.port),
        "PGDATABASE": DATABASE,
        "PGUSER": SUPERUSER,
        "PGPASSWORD": pipeline.stack.postgres.password,
    }
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "cdc_lakehouse", "resync", *arguments),
            *("--topics", str(TOPICS_FILE)),
        ],
        cwd=pipeline.project,
        env=os.environ | source,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_resync(pipeline: Pipeline, *arguments: str) -> tuple[int, str]:
    """Run the command: its exit code and what it printed."""
    process = resync(pipeline, *arguments)
    said, _ = process.communicate(timeout=300)
    return process.returncode, said


def lines_of_product_11(pipeline: Pipeline) -> int:
    rows = Tables(pipeline.lake).rows("silver.order_details")
    return len([row for row in rows if row["product_id"] == 11 and not row["is_deleted"]])


def execute(stack: NorthwindStack, *statements: str) -> None:
    with closing(stack.connect_to_source()) as connection, connection:
        for statement in statements:
            connection.cursor().execute(statement)


def delete_without_slot(stack: NorthwindStack) -> None:
    """Delete lines, and every row of a table, while no slot keeps the changes."""
    stack.connect.remove("source-tables")
    execute(
        stack,
        "select pg_drop_replication_slot('cdc_lakehouse_tables')",
        "delete from datalake.order_details where product_id = 11",
        "delete from datalake.employee_territories",
    )
    stack.register("source-tables")
    stack.wait_until_streaming()


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
            with closing(stack.connect_to_source()) as other, other.cursor() as asked:
                asked.execute(
                    "select from pg_locks join pg_stat_activity using (pid)"
                    " where not granted and usename = 'debezium'"
                )
                return bool(asked.rowcount)

        wait_until(is_waiting, 60, "Debezium does not read")
        process.kill()
        process.communicate()
        stack.kill("connect")
        connection.rollback()
    stack.revive("connect")


def test_rows_that_no_event_deleted_are_deleted(pipeline: Pipeline) -> None:
    """Rows deleted while there was no slot; rows edited in the lake equal the source again.

    A resync that is killed half-way deletes nothing, and can be asked for again.
    """
    stack = pipeline.stack
    delete_without_slot(stack)
    kill_half_way(pipeline)
    pipeline.run_once()
    assert lines_of_product_11(pipeline) > 0

    subprocess.run(
        [sys.executable, "-c", EDITS],
        env=pipeline.environment(),
        cwd=pipeline.project,
        check=True,
        capture_output=True,
        timeout=300,
    )
    for arguments in (
        ("datalake.order_details",),
        ("datalake.employee_territories",),
        ("datalake.customers",),
        ("datalake.cdc_events", *OUTBOX),
    ):
        code, said = run_resync(pipeline, *arguments)
        assert code == 0, said
        assert "read in" in said
        # The stream goes on.
        execute(stack, "update datalake.shippers set phone = phone || '1'")
    pipeline.run_once()
    assert lines_of_product_11(pipeline) == 0
    assert_equal_to_source(pipeline)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("datalake.cdc_events",),
            1,
            "source-tables.json does not capture datalake.cdc_ev",
        ),
        (("datalake.nothing", *OUTBOX), 1, "does not capture datalake.nothing"),
    ],
)
def test_a_table_that_is_not_captured(
    arguments: tuple[str, ...], code: int, message: str, pipeline: Pipeline
) -> None:
    ended, said = run_resync(pipeline, *arguments)
    assert ended == code
    assert message in said


def test_a_connector_that_does_not_run(pipeline: Pipeline) -> None:
    pipeline.stack.connect.halt("source-tables")
    try:
        code, said = run_resync(pipeline, "datalake.shippers")
    finally:
        pipeline.stack.connect.ask("PUT", "/connectors/source-tables/resume")
        pipeline.stack.wait_until_streaming()
    assert code == TRY_AGAIN
    assert "nothing reads from its slot cdc_lakehouse_tables" in said


def test_a_connector_that_ignores_signals(pipeline: Pipeline) -> None:
    """It times out, and deletes nothing."""
    stack = pipeline.stack
    config = stack.configuration("source-tables")
    del config["signal.data.collection"]
    # Its old task must be gone, or the command finds the slot between two tasks.
    stack.connect.halt("source-tables")
    stack.connect.ask("PUT", "/connectors/source-tables/config", config)
    stack.connect.ask("PUT", "/connectors/source-tables/resume")
    stack.wait_until_streaming()
    try:
        code, said = run_resync(pipeline, "datalake.shippers", "--timeout", "4")
    finally:
        stack.register("source-tables")
        stack.wait_until_streaming()
    assert code == TRY_AGAIN
    assert "without a sign that Debezium reads datalake.shippers" in said
