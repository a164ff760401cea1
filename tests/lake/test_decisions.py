"""Truncates and complete snapshots of restored, split and moved tables.

Every epoch's log starts again, so that the positions of a later one are the lower ones.
After each of three builds and a full refresh silver and the histories are what the
reference makes of the same events and decisions (``decisions.toml``). Snapshots that
markers say to be complete have a lake of their own (``complete_snapshots.toml``).
"""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.histories import Lane, Outcome
from tests.support.lake import TOPICS_FILE
from tests.support.lanes import compare, write_project
from tests.support.reference import Event, Snapshot
from tests.support.scenario import MARKERS_TOPIC, live, made
from tests.support.stories import parse_story

pytestmark = pytest.mark.thorough

EMPTIED, READ_AGAIN = LANES = (Lane("emptied", ()), Lane("read_again", ()))
DECISIONS = tomllib.loads(Path(__file__).with_name("decisions.toml").read_text())
STEPS: list[dict[str, Any]] = DECISIONS["steps"]


def events(name: str, topic: str) -> list[list[Event]]:
    """The events of a table by step, of the topic where they do not name another."""
    return [
        [
            replace(
                event,
                topic=f"lanes.public.{event.topic or topic}",
                table=event.table or "orders",
            )
            for event in batch
        ]
        for batch in parse_story("|".join(step[name] for step in STEPS))
    ]


def named(decided: dict[str, Any]) -> tuple[str, str]:
    """The variables of a step or of a refused decision."""
    snapshots = decided.get("complete_snapshots", {})
    if not isinstance(snapshots, dict):
        snapshots = {READ_AGAIN.source_table: snapshots}
    variables = {"cdc_lakehouse_truncates": decided.get("truncates", {})}
    if snapshots:
        variables["cdc_lakehouse_complete_snapshots"] = snapshots
    return ("--vars", json.dumps(variables))


@pytest.fixture(scope="module")
def wrong(
    new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """What differs after each build, and the refusals that were not made."""
    project = write_project(tmp_path_factory.mktemp("decisions") / "project", LANES)
    topics = project / "topics.toml"
    lake = new_lake(project=project)
    snapshots = tuple(Snapshot("lanes.public.resynced", epoch, 500) for epoch in (0, 1))
    read_again = events("read_again", "resynced")
    outcomes = {
        EMPTIED: Outcome(EMPTIED, events("emptied", "restored")),
        READ_AGAIN: Outcome(READ_AGAIN, read_again, snapshots=snapshots),
    }
    found: dict[str, list[str]] = {"refused": []}

    def keep(name: str, step: int) -> None:
        for lane, each in outcomes.items():
            found[f"{lane.name} {name}"] = [*map(str, compare(lake, lane, [each], step))]

    for number, step in enumerate(STEPS):
        topics.write_text(DECISIONS["topics"] + DECISIONS["raised"] * bool(number))
        lake.land(record for each in outcomes.values() for record in each.records(number))
        ingested = lake.ingest()
        assert (ingested.code, ingested.counts[2]) == (0, 0), ingested.err
        for refused in step.get("refused", ()):
            text = lake.dbt_error("run", *named(refused))
            if refused["said"] not in text:
                found["refused"].append(f"{refused['said']}: {text}")
        lake.dbt("run", *named(step))
        keep(str(number), number)
    lake.dbt("run", "--full-refresh")
    # Only a run looks for the epoch of a snapshot.
    lake.dbt("compile", *named({"complete_snapshots": [500]}))
    keep("refreshed", number)
    return found


@pytest.mark.parametrize("step", [*map(str, range(len(STEPS))), "refreshed"])
@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_rows_are_the_reference_s(
    lane: Lane, step: str, wrong: dict[str, list[str]]
) -> None:
    assert wrong[f"{lane.name} {step}"] == []


def test_decisions_that_are_refused(wrong: dict[str, list[str]]) -> None:
    """Names of two events, a decision that was another, none at all."""
    assert wrong["refused"] == []


# Complete snapshots by the markers of ``cdc-lakehouse resync``

RESYNCS = tomllib.loads(Path(__file__).with_name("complete_snapshots.toml").read_text())
MARKED = ("--vars", "cdc_lakehouse_resync: true")
OTHER_TOPIC = "other.datalake.products"
RESYNCED = ("orders", "order_items", "customers", "products")


def test_rows_that_a_snapshot_lacks_are_deleted(new_lake: NewLake, tmp_path: Path) -> None:
    """When all of its reads are there, by markers; one that was cut off deletes nothing.

    Of orders the marker arrives before half of the reads. Customers are emptied. Of
    products a snapshot is cut off, and another is not; then one is of another source that
    fills the same table, at a lower position of its own log.

    A marker is applied once, and again by a full refresh or where tables were dropped. A
    new one costs one statement to see.
    """
    topics = tmp_path / "topics.toml"
    lines = f'"{MARKERS_TOPIC}" = "complete_snapshots"\n"{OTHER_TOPIC}" = "products"\n'
    topics.write_text(TOPICS_FILE.read_text().replace("[topics]\n", "[topics]\n" + lines))
    lake = new_lake(topics)

    def found() -> dict[str, set[Any]]:
        return {table: live(lake.rows(f"silver.{table}"), table) for table in RESYNCED}

    models = ("-s", "path:models/staging", *RESYNCED)
    after = {}
    for step, events in RESYNCS.items():
        lake.build(map(made, events), *models, *MARKED)
        after[step] = found()
    marked, read, later = (after[step] for step in ("markers", "reads", "later"))
    assert (marked["orders"], read["orders"]) == ({1, 2, 3, 4, 5}, {1, 4, 5})
    assert read["order_items"] == {1, 4, 5}
    last = after["other source"]
    assert marked["products"] == {1, 2, 3, 4, 11, 12}
    assert (read["products"], last["products"]) == ({1, 2, 11, 12}, {1, 2, 11})
    # Of a table that was emptied.
    assert (marked["customers"], later["customers"]) == ({"OPEN"}, {"OPEN", "C1", "C2"})

    before = lake.tables.instants()
    marked_run = lake.dbt("run", *models, *MARKED)["statements"]
    plain_run = lake.dbt("run", *models)["statements"]
    assert lake.tables.instants() == before
    assert len(marked_run) <= len(plain_run) + 1, "\n".join(marked_run)
    lake.dbt("run", "--full-refresh", "-s", *RESYNCED, *MARKED)
    assert found() == last
    for table in ("orders", "customers"):
        lake.sql(f"drop table silver.{table} purge")
    lake.dbt("run", "-s", *RESYNCED, *MARKED)
    assert found() == last
