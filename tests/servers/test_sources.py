"""What an operator decides on, by the positions of MariaDB and of SQL Server.

One table of each goes through the same steps: a truncate, a complete snapshot, and a log
that starts again, in the same epoch and then in a higher one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.histories import LANES, Lane
from tests.support.lake import Lake
from tests.support.lanes import write_project
from tests.support.records import Record, Row, envelope, flattened, position_at, record

OTHERS = [lane for lane in LANES if lane.connector != "postgresql"]
TRUNCATE, SNAPSHOT = 20_200, 20_300


def change(lane: Lane, op: str, key: int, lsn: int, offset: int, name: str = "A") -> Record:
    row = {"order_id": key, "customer_id": name}
    value = flattened(op, row, lsn, table=lane.source_table, connector=lane.connector)
    return record({"order_id": key}, value, offset, lane.topics[0])


def truncate(lane: Lane, lsn: int, offset: int) -> Record:
    value = envelope("t", None, lsn, table=lane.source_table, connector=lane.connector)
    return record(None, value, offset, lane.topics[0])


def variables(**values: Any) -> tuple[str, str]:
    return (
        "--vars",
        json.dumps({f"cdc_lakehouse_{name}": its for name, its in values.items()}),
    )


class Steps:
    """A lake, and what its tables held after each step."""

    def __init__(self, lake: Lake, project: Path) -> None:
        self.lake = lake
        self.project = project
        self.topics = (project / "topics.toml").read_text()
        self.rows: dict[str, dict[str, dict[int, Row]]] = {}
        self.said: dict[str, str] = {}

    def ingest(self, *changes: Any) -> None:
        """Bring the records that functions make for each table to bronze."""
        self.lake.land([make(lane) for lane in OTHERS for make in changes])
        ingested = self.lake.ingest()
        assert (ingested.code, ingested.counts[2]) == (0, 0), ingested.err

    def build(self, step: str, *arguments: str) -> None:
        answer = self.lake.dbt("run", *arguments, project=self.project)
        self.said[step] = " ".join(answer["said"])
        self.rows[step] = {
            lane.connector: {
                row["order_id"]: row
                for row in self.lake.rows(f"silver.{lane.silver_table}")
            }
            for lane in OTHERS
        }

    def live(self, step: str, lane: Lane) -> set[int]:
        rows = self.rows[step][lane.connector]
        return {key for key, row in rows.items() if not row["is_deleted"]}


@pytest.fixture(scope="module")
def steps(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Steps:
    project = write_project(tmp_path_factory.mktemp("sources") / "project", OTHERS)
    topics = project / "topics.toml"
    steps = Steps(new_lake(topics), project)
    steps.ingest(
        lambda lane: change(lane, "c", 1, 9_990, 0),
        lambda lane: change(lane, "c", 2, 10_005, 1),
        lambda lane: truncate(lane, TRUNCATE, 2),
        lambda lane: change(lane, "c", 3, 20_210, 3),
    )
    stopped = steps.lake.try_dbt("run", project=project)
    assert not stopped["success"]
    steps.said["stopped"] = " ".join([str(stopped["error"]), *stopped["said"]])
    named = {position_at(lane.connector, TRUNCATE): "apply" for lane in OTHERS}
    steps.build("truncated", *variables(truncates=named))
    steps.build("rebuilt", "--full-refresh")

    steps.ingest(
        lambda lane: change(lane, "r", 5, SNAPSHOT, 4),
        lambda lane: change(lane, "c", 6, 20_310, 5),
    )
    snapshots = {
        lane.source_table: position_at(lane.connector, SNAPSHOT) for lane in OTHERS
    }
    steps.build("snapshot", *variables(complete_snapshots=snapshots))

    steps.ingest(lambda lane: change(lane, "u", 6, 15, 6, "B"))
    steps.build("restored")
    epochs = "".join(f'"{lane.topics[0]}" = 1\n' for lane in OTHERS)
    topics.write_text(f"{steps.topics}[epochs]\n{epochs}")
    steps.ingest(lambda lane: change(lane, "u", 6, 25, 7, "C"))
    steps.build("in a new epoch")
    return steps


by_connector = pytest.mark.parametrize("lane", OTHERS, ids=lambda lane: lane.connector)


def test_undecided_truncate_stops_the_build(steps: Steps) -> None:
    """It names the first; the position can be copied from it."""
    text = steps.said["stopped"]
    places = [position_at(other.connector, TRUNCATE) for other in OTHERS]
    assert any(f'{{"0@{place}": apply}}' in text for place in places)


@by_connector
@pytest.mark.parametrize("step", ["truncated", "rebuilt"])
def test_applied_truncate_deletes_what_is_older(
    steps: Steps, lane: Lane, step: str
) -> None:
    """Also in a full refresh that no variable tells of it."""
    assert steps.live(step, lane) == {3}
    row = steps.rows[step][lane.connector][1]
    position = position_at(lane.connector, TRUNCATE)
    assert (row["source_position"], row["source_lsn"]) == (position, None)


@by_connector
def test_rows_that_a_complete_snapshot_lacks_are_deleted(steps: Steps, lane: Lane) -> None:
    assert steps.live("snapshot", lane) == {5, 6}


@by_connector
def test_log_that_starts_again(steps: Steps, lane: Lane) -> None:
    """Its events lose, and a warning says so, until they are of a higher epoch."""
    text = steps.said["restored"]
    assert f"1 new events of bronze.{lane.source_table} arrived at higher offsets" in text
    assert steps.rows["restored"][lane.connector][6]["customer_id"] == "A"
    row = steps.rows["in a new epoch"][lane.connector][6]
    assert (row["customer_id"], row["source_epoch"]) == ("C", 1)
    assert row["source_position"] == position_at(lane.connector, 25)
