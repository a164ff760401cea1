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
from tests.support.lanes import Difference, draw_all, run_lanes, write_project
from tests.support.reference import Event
from tests.support.stories import FORMS, STORIES, Batches, told

SEED = 20_261_121
COUNT = 120
BY_NAME = {lane.name: lane for lane in LANES}
# The lanes with the most ways of the fold; the others are left to
# tests/servers/test_history_seeds.py.
WIDEST = tuple(BY_NAME[name] for name in ("everything", "mixed", "truncated"))

Differences = dict[str, list[Difference]]
Lanes = tuple[Lane, ...]


@dataclass
class Built:
    """What building some lanes led to."""

    differences: Differences  # from the reference, by lane
    split: set[str]  # the lanes whose table has several file groups

    def expect_equal(self, lane: Lane) -> None:
        """Fail with the smallest history of a lane that differs."""
        if wrong := self.differences[lane.name]:
            smallest = min(wrong, key=lambda difference: difference.size)
            text = f"{len(wrong)} histories differ; the smallest {smallest}"
            pytest.fail(text, pytrace=False)


def lane_of(batches: Batches) -> Lane:
    """The lane that has no more than a story needs."""
    events = [event for batch in batches for event in batch]
    if None in {event.partition for event in events}:
        return BY_NAME["no_offsets"]
    if len({event.partition for event in events}) > 1:
        return BY_NAME["partitions"]
    offsets = [event.offset or 0 for event in events]
    identities = {event.identity for event in events}
    is_late = offsets != sorted(offsets) or len(identities) < len(events)
    has_reads = any(event.is_read for event in events)
    leaves_out = any(event.missing for event in events)
    if is_late + has_reads + leaves_out > 1 or any(event.epoch for event in events):
        return BY_NAME["everything"]
    if has_reads:
        return BY_NAME["reads"]
    if leaves_out:
        return BY_NAME["toast"]
    if is_late:
        return BY_NAME["late"]
    has_deletes = any(event.op == "d" for event in events)
    return BY_NAME["deletes" if has_deletes else "plain"]


def stories() -> dict[Lane, list[Outcome]]:
    """The contract's stories, by lane; that of everything has them all."""
    found: dict[Lane, list[Outcome]] = {lane: [] for lane in LANES}
    for name, text in STORIES.items():
        batches = told(text)
        for lane in {lane_of(batches), BY_NAME["everything"]}:
            # The last batch is one of the last increment.
            events: Batches = [[]] * (BATCHES - len(batches))
            events += [[*map(_narrowed, batch)] for batch in batches]
            outcome = Outcome(events, {}, lane, form=FORMS.get(name, "flattened"))
            found[lane].append(outcome)
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
    widest.expect_equal(lane)


def test_lanes_hold_what_they_are_to_prove() -> None:
    """The stories are among them, and every kind of event is in the lanes that have it."""
    of_stories = stories()
    assert all(
        of_stories[BY_NAME[n]] for n in ("plain", "deletes", "toast", "reads", "late")
    )
    seen: dict[str, Counter[str]] = {}
    for lane in LANES:
        kinds = seen[lane.name] = Counter()
        for history in drawn(lane, COUNT, SEED):
            for batch in play(history, lane).batches:
                for event in batch:
                    kinds[event.op] += 1
                    kinds["left out"] += bool(event.missing)
                    kinds["key change"] += event.op == "c" and bool(event.missing)
                    kinds["incremental"] += event.is_read and event.lsn is None
                    kinds["no offset"] += event.offset is None
                    kinds["odd"] += bool(event.untyped)
                    kinds["later epoch"] += event.epoch > 0
                    kinds["later generation"] += event.generation > 0
                    kinds["added"] += NOTE in event.values
    assert {kind for kind, count in seen["plain"].items() if count} == {"c", "u"}
    whole = {name for name in seen if not BY_NAME[name].at_most}
    least = {
        "u": (40, whole),
        "d": (40, whole - {"plain"}),
        "t": (50, {"truncated"}),
        "added": (80, {"added"}),
        "odd": (10, {"odd_values"}),
        "later epoch": (80, {"mixed", "truncated"}),
        "later generation": (80, {"mixed"}),
        "r": (80, {"reads", "partitions", "binlog", "transaction_log", "everything"}),
        "incremental": (20, {"reads", "partitions", "binlog", "everything"}),
        "left out": (40, {"toast", "composite", "binlog", "everything"}),
        "key change": (10, {"toast", "composite", "binlog", "everything"}),
    }
    assert [
        (name, kind)
        for kind, (count, names) in least.items()
        for name in names
        if seen[name][kind] <= count
    ] == []
    resynced = [
        play(each, BY_NAME["resynced"]) for each in drawn(BY_NAME["resynced"], COUNT, SEED)
    ]
    assert sum(len(outcome.applied(BATCHES - 1)) for outcome in resynced) > 4
    assert seen["no_offsets"]["no offset"] == sum(seen["no_offsets"][op] for op in "cudr")
