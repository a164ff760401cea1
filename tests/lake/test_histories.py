"""Histories that Hypothesis makes, in lanes: silver is the reference's fold at any time.

What an increment contains decides which of the fold's ways it takes. So each lane has a
table of its own, in the same builds: plain updates; deletes and key changes; TOASTed
columns; snapshot reads; late and repeated records; no offsets; several partitions; a key
of two columns; values that their types cannot hold; restored sources, recreated topics and
clocks that go back; truncates; complete snapshots with their markers; a column that is
added; a merge-on-read table; everything at once (the project's own orders, with their
lines). The stories of the contract are among them, each in the lane that has no more than
it needs. After every batch each row is compared with the reference fold in plain Python
(tests/support/reference.py) over the events that have arrived. Here in a first build and
one increment, of the three widest lanes; ``tests/servers/test_history_seeds.py`` has the
others, takes all batches, with a rebuild between two of them and a full refresh after the
last. Among the others are lanes with the positions of MariaDB and of SQL Server.
"""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import NewLake
from tests.support.histories import (
    BATCHES,
    COLUMNS,
    LANES,
    NOTE,
    Lane,
    Outcome,
    drawn,
    play,
)
from tests.support.lanes import Difference, draw_all, run_lanes, smallest, write_project
from tests.support.reference import Event
from tests.support.stories import BY_LANE, FORMS, SHARED, STORIES, Batches, parse_story

SEED = 20_261_121
COUNT = 120
BY_NAME = {lane.name: lane for lane in LANES}
# The lanes with the most ways of the fold; the others are left to
# tests/servers/test_history_seeds.py.
WIDEST = tuple(BY_NAME[name] for name in ("everything", "mixed", "truncated"))

Lanes = tuple[Lane, ...]


@dataclass
class Built:
    """What building some lanes led to."""

    differences: dict[str, list[Difference]]  # from the reference, by lane
    split: set[str]  # the lanes whose table has several file groups


def stories() -> dict[Lane, list[Outcome]]:
    """The contract's stories, by lane; that of everything has them all."""
    found: dict[Lane, list[Outcome]] = {lane: [] for lane in LANES}
    for lane, names in BY_LANE.items():
        for name in names:
            batches = parse_story((STORIES | SHARED)[name])
            # The last batch is one of the last increment.
            events: Batches = [[]] * (BATCHES - len(batches))
            events += [[*map(_narrowed, batch)] for batch in batches]
            form = FORMS.get(name, "flattened")
            found[BY_NAME[lane]].append(Outcome(BY_NAME[lane], events, form=form))
    return found


def _narrowed(event: Event) -> Event:
    """An event with the columns that every lane has."""
    values = {name: event.values[name] for name in COLUMNS if name in event.values}
    return replace(event, values=values, missing=event.missing & {*COLUMNS})


def fixed_outcomes() -> dict[Lane, list[Outcome]]:
    """The stories and the histories of a fixed seed, by lane."""
    of_stories, of_histories = stories(), draw_all(COUNT, SEED)
    return {
        lane: [*of_stories[lane], *filter(is_short_of_key_changes, of_histories[lane])]
        for lane in LANES
    }


def is_short_of_key_changes(outcome: Outcome) -> bool:
    """Whether no more than one key change left a value out.

    One more in any history is one more fold of the replay in every build. The contract has
    chains of them, and so have fresh seeds (``tests/servers/test_history_seeds.py``).
    """
    events = [event for batch in outcome.batches for event in batch]
    changes = {event.lsn for event in events if event.op == "c" and event.missing}
    return len(changes) <= 1


def in_two_batches(outcome: Outcome) -> Outcome:
    """The same events in two batches: before the last, or before a column is added."""
    cut = 1 if NOTE in outcome.lane.columns else BATCHES - 1
    parts = (outcome.batches[:cut], outcome.batches[cut:])
    return replace(
        outcome,
        batches=[[event for batch in part for event in batch] for part in parts],
        snapshots=tuple(
            replace(each, batch=int(each.batch >= cut)) for each in outcome.snapshots
        ),
    )


def build(new_lake: NewLake, folder: Path, lanes: Lanes) -> Built:
    """Builds lanes of the stories and the histories of a fixed seed."""
    project = write_project(folder / "project", lanes)
    lake = new_lake(project=project)
    fixed = fixed_outcomes()
    outcomes = {lane: [*map(in_two_batches, fixed[lane])] for lane in lanes}
    found = run_lanes(lake, outcomes, refreshes=False)
    groups = {
        lane.name: lake.tables.file_groups(f"silver.{lane.silver_table}") for lane in lanes
    }
    return Built(found, {name for name, ids in groups.items() if len(ids) > 1})


@pytest.fixture(scope="module")
def widest(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(new_lake, tmp_path_factory.mktemp("lanes"), WIDEST)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lane", WIDEST, ids=lambda lane: lane.name)
def test_silver_is_the_reference_after_every_batch(lane: Lane, widest: Built) -> None:
    assert smallest(widest.differences[lane.name]) == ""


def test_lanes_hold_what_they_are_to_prove(snapshot: SnapshotAssertion) -> None:
    """The kinds of events of which the histories of a lane have more than a few."""
    found = {}
    for lane in LANES:
        outcomes = [play(history, lane) for history in drawn(lane, COUNT, SEED)]
        kinds: Counter[str] = Counter()
        for event in (event for each in outcomes for event in each.arrived(BATCHES)):
            kinds[event.op] += 1
            kinds["left out"] += bool(event.missing)
            kinds["key change"] += event.op == "c" and bool(event.missing)
            kinds["incremental"] += event.is_read and event.lsn is None
            kinds["no offset"] += event.offset is None
            kinds["odd"] += bool(event.untyped)
            kinds["later epoch"] += event.epoch > 0
            kinds["later generation"] += event.generation > 0
            kinds["added"] += NOTE in event.values
        kinds["complete snapshot"] = sum(
            len(each.applied(BATCHES - 1)) for each in outcomes
        )
        few = 4 if lane.at_most else 40
        found[lane.name] = sorted(kind for kind, count in kinds.items() if count > few)
    assert found == snapshot
