"""What bronze has lost, as dropped days and erased keys are, the tables still tell.

One small project with silver rows and their history goes through the steps, each with
keys of its own. A position is also the time, in milliseconds, unless an event says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import (
    START_MS,
    TOPIC,
    UNAVAILABLE,
    Record,
    Row,
    flattened,
    record,
)
from tests.support.small_project import set_columns, small_project

pytestmark = pytest.mark.thorough

OTHER = "other.datalake.cdc_events"
TOPICS = f'[topics]\n"{TOPIC}" = "cdc_events"\n"{OTHER}" = "cdc_events"\n'
COLUMNS = {"order_id": "int", "name": "string", "customer": "json"}
# As projects name them that have no word of ours: a select, and what the table is.
HISTORY = """
{{ config(materialized='cdc_merge', scd_type=2, unique_key='history_id') }}

select * from {{ ref('stg_orders') }}
"""
SILVER = """
{{ config(materialized='cdc_merge', unique_key='order_id') }}

select * from {{ ref('stg_orders') }}
"""
LONG = '{"text": "long"}'


def event(
    op: str, key: int, lsn: int | None, offset: int, *, topic: str = TOPIC, **row: Any
) -> Record:
    """A change of an order; a delete has nothing but the key."""
    at = START_MS + row.pop("time", lsn or 0)
    body: Row = {"order_id": key}
    if op != "d":
        body |= {"name": "a", "customer": LONG} | row
    value = flattened(op, body, lsn, at)
    return record({"order_id": key}, value, offset, topic=topic)


FIRST: list[Record] = [
    event("c", 1, 10, 0),
    event("c", 3, 12, 1),
    event("c", 4, 13, 0, topic=OTHER),
    event("r", 5, None, 2, time=14),
    event("d", 5, 15, 3),
    event("r", 6, None, 4, time=16),
]
# Order 2 was order 1; what it leaves out only silver and the history have.
RENUMBERED: list[Record] = [
    event("d", 1, 20, 5),
    event("c", 2, 20, 6, customer=UNAVAILABLE),
    event("u", 6, 21, 7, name="b"),
]
# The key change arrives again, and an older change of the order that was renumbered.
LATE: list[Record] = [
    event("c", 2, 20, 8, customer=UNAVAILABLE),
    event("u", 2, 30, 9, name="b", customer=UNAVAILABLE),
    event("u", 1, 11, 10, name="late", customer=UNAVAILABLE),
    # It was read, and deleted since; nothing of it is in bronze.
    event("r", 5, None, 11, time=14),
]
# It finds orders 2 and 6, of its own topic.
READ_AGAIN: list[Record] = [
    event("r", 2, 40, 12, name="b", customer=LONG),
    event("r", 6, 40, 13, name="b"),
]


class Steps:
    """A lake, and its rows after each step."""

    def __init__(self, lake: Lake, project: Path) -> None:
        self.lake, self.project = lake, project
        self.silver: dict[str, dict[int, Row]] = {}
        self.history: dict[str, dict[int, list[Row]]] = {}

    def build(self, step: str, records: list[Record], *arguments: str) -> None:
        """Ingest and build, and drop all that bronze has."""
        self.lake.land(records)
        ingested = self.lake.ingest()
        assert ingested.code == 0, ingested.err
        models = ("-s", "stg_orders", "orders", "orders_history")
        self.lake.dbt("run", *models, *arguments, project=self.project)
        rows = self.lake.rows("silver.orders")
        self.silver[step] = {row["order_id"]: row for row in rows}
        found: dict[int, list[Row]] = {}
        for row in sorted(
            self.lake.rows("silver.orders_history"), key=lambda row: row["version_number"]
        ):
            found.setdefault(row["order_id"], []).append(row)
        self.history[step] = found
        for day in {row["ingest_date"] for row in self.lake.rows("bronze.cdc_events")}:
            self.lake.sql(
                f"alter table bronze.cdc_events drop partition (ingest_date = '{day}')"
            )

    def live(self, step: str) -> set[int]:
        """The orders that silver has, and the history has as current."""
        silver = {key for key, row in self.silver[step].items() if not row["is_deleted"]}
        history = {
            key for key, rows in self.history[step].items() if rows[-1]["is_current"]
        }
        assert silver == history
        return silver


@pytest.fixture(scope="module")
def steps(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """The lake after all steps; bronze has no more than the last one brought."""
    project = small_project(tmp_path_factory.mktemp("lost") / "project")
    set_columns(project, COLUMNS)
    (project / "models/silver/orders.sql").write_text(SILVER)
    (project / "models/silver/orders_history.sql").write_text(HISTORY)
    topics = project / "topics.toml"
    topics.write_text(TOPICS)
    found = Steps(new_lake(topics), project)
    found.build("first", FIRST)
    found.build("renumbered", RENUMBERED)
    found.build("late", LATE)
    snapshots = {"cdc_lakehouse_complete_snapshots": {"cdc_events": 40}}
    found.build("read again", READ_AGAIN, "--vars", json.dumps(snapshots))
    return found


def test_a_key_change_inherits_what_is_stored(steps: Steps) -> None:
    assert steps.live("renumbered") == {2, 3, 4, 6}
    for step, name in (("renumbered", "a"), ("late", "b")):
        row = steps.silver[step][2]
        assert (row["name"], row["customer"]) == (name, LONG)
        assert [(row["name"], row["customer"]) for row in steps.history[step][2]] == [
            ("a", LONG),
            ("b", LONG),
        ][: 1 if name == "a" else 2]


def test_a_read_that_comes_again_revives_no_row(steps: Steps) -> None:
    assert steps.silver["late"][5]["is_deleted"]


def test_versions_of_reads_without_a_position_stay(steps: Steps) -> None:
    names = [row["name"] for row in steps.history["renumbered"][6]]
    assert names == ["a", "b"]


def test_a_complete_snapshot_deletes_rows_of_its_topic_alone(steps: Steps) -> None:
    assert steps.live("read again") == {2, 4, 6}
    assert len(steps.history["read again"][3]) == 1
