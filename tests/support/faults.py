"""Faults in a live pipeline, and what must hold after them."""

import random
import time
from contextlib import closing

from cdc_lakehouse.serving.gold import KEYS as GOLD
from lab.stack.northwind import DATABASE, NorthwindStack
from lab.stack.processes import wait_until
from tests.support.pipeline import Pipeline
from tests.support.source import SILVER, answers, gold_rows, silver_rows, table_rows
from tests.support.storm import Storm
from tests.support.tables import Tables

KILLS = (
    "connect is killed",
    "the broker is killed",
    "the ingest is killed",
    "a build is killed",
    "PostgreSQL is restarted",
)
FAULTS = (*KILLS, "a connector is paused", "the checkpoint is lost")

SECONDS_TO_BUILD = 300


def inject(fault: str, pipeline: Pipeline, draw: random.Random) -> None:
    """Cause one fault, and start again what a service manager would."""
    stack = pipeline.stack
    match fault:
        case "connect is killed" | "the broker is killed":
            part = "connect" if "connect" in fault else "broker"
            stack.kill(part)
            stack.revive(part)
        case "the ingest is killed":
            pipeline.kill()
        case "a build is killed":
            kill_a_build(pipeline, draw)
        case "PostgreSQL is restarted":
            stack.postgres.stop()
            stack.revive("postgres")
        case "a connector is paused":
            stack.connect.pause("source-outbox")
            time.sleep(draw.uniform(1, 4))
            stack.connect.resume("source-outbox")
        case "the checkpoint is lost":
            pipeline.kill()
            pipeline.lose_checkpoint()
    if pipeline.has_ended:
        pipeline.start()


def kill_a_build(pipeline: Pipeline, draw: random.Random) -> None:
    """Kill the continuous run at a random moment of a build that is in flight."""
    end = time.monotonic() + SECONDS_TO_BUILD
    while True:
        # The storm may be over; without a new event there is no build.
        change_nothing_at_source(pipeline)
        wait_until(
            lambda: pipeline.is_building or pipeline.has_ended,
            SECONDS_TO_BUILD,
            f"no build has begun; see {pipeline.log}",
        )
        assert not pipeline.has_ended, pipeline.output()[-4000:]
        time.sleep(draw.uniform(0, 6))
        if pipeline.kill_during_build():
            return
        assert time.monotonic() < end, "each build ended before it was to be killed"


def change_nothing_at_source(pipeline: Pipeline) -> None:
    """Commit an update, of a row that no storm writes, to the values that it has."""
    with closing(pipeline.stack.connect_to_source()) as connection, connection:
        connection.cursor().execute(
            "update datalake.region set region_description = region_description"
            " where region_id = 1"
        )


def northwind_storm(stack: NorthwindStack, seed: int, transactions: int) -> Storm:
    """Transactions on a stack's database."""
    options = "-c search_path=datalake"
    return Storm(
        lambda: stack.postgres.connect(dbname=DATABASE, options=options), seed, transactions
    )


def storm_with_faults(
    pipeline: Pipeline, faults: list[str], seed: int, transactions: int
) -> None:
    """Run transactions, and cause faults at random moments among them."""
    draw = random.Random(seed)
    storm = northwind_storm(pipeline.stack, seed, transactions)
    pipeline.start()
    storm.start()
    for fault in faults:
        time.sleep(draw.uniform(2, 8))
        inject(fault, pipeline, draw)
    storm.wait()
    pipeline.wait_until_built()
    assert storm.committed == transactions
    assert_equal_to_source(pipeline)
    assert_each_record_once(pipeline)


def assert_equal_to_source(pipeline: Pipeline) -> None:
    """Silver equals the source row by row; gold equals PostgreSQL's own answers."""
    lake = Tables(pipeline.lake)
    with closing(pipeline.stack.connect_to_source()) as connection:
        for silver in SILVER:
            expected = table_rows(connection, silver)
            columns = list(next(iter(expected.values()), SILVER[silver][1]))
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
    """Bronze has every offset of every topic once: no gap, no duplicate."""
    lake = Tables(pipeline.lake)
    ends = pipeline.stack.topic_ends()
    for table, _ in SILVER.values():
        offsets = [row["kafka_offset"] for row in lake.rows(f"bronze.{table}")]
        assert sorted(offsets) == list(range(ends[f"demo.datalake.{table}/0"])), table
