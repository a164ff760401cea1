"""The reference fold itself, on histories of every lane; Hypothesis shortens what fails."""

import random
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import HypothesisProvider

from tests.support.histories import (
    COLUMNS,
    LANES,
    History,
    Lane,
    Outcome,
    Step,
    histories,
    play,
)
from tests.support.mutants import generated
from tests.support.project import PROJECT
from tests.support.reference import Event, Period, Version, decided, fold, periods

BY_NAME = {lane.name: lane for lane in LANES}


@pytest.fixture(autouse=True)
def same_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of the modules that other tests have loaded are not drawn."""
    monkeypatch.setattr(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None)


def live_rows(rows: dict[int, Version]) -> dict[int, dict[str, object]]:
    return {key: dict(row.values) for key, row in rows.items() if not row.is_deleted}


def rows_at(
    found: dict[int, list[Period]], now: int, begin: str, end: str
) -> dict[int, dict[str, object]]:
    """The rows whose period has begun by now, and has not ended."""
    return {
        key: dict(period.values)
        for key, of_key in found.items()
        for period in of_key
        if getattr(period, begin) <= now
        and (getattr(period, end) is None or getattr(period, end) > now)
    }


def events_of(outcome: Outcome) -> list[Event]:
    """All events, with what truncates and complete snapshots among them come to."""
    last = len(outcome.batches) - 1
    return decided(outcome.arrived(last), outcome.snapshots)


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_fold_ends_as_the_source(lane: Lane) -> None:
    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(histories(lane))
    def check(history: History) -> None:
        outcome = play(history, lane)
        assert live_rows(fold(events_of(outcome), lane.columns)) == outcome.rows

    check()


def test_row_of_a_gap_behind_a_complete_snapshot() -> None:
    """In a partition in which the snapshot has no read."""
    steps = (Step("write"), Step("rekey"), Step("complete snapshot"), Step("gap"))
    outcome = play(History(steps), BY_NAME["resynced"])
    assert live_rows(fold(events_of(outcome), COLUMNS)) == outcome.rows


@pytest.mark.parametrize("name", ["late", "partitions", "odd_values", "everything"])
def test_order_and_repetition_of_arrival_do_not_matter(name: str) -> None:
    lane = BY_NAME[name]

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(histories(lane), st.randoms(use_true_random=False))
    def check(history: History, chance: random.Random) -> None:
        events = events_of(play(history, lane))
        shuffled = events + events[: len(events) // 2]
        chance.shuffle(shuffled)
        assert fold(shuffled, COLUMNS) == fold(events, COLUMNS)
        assert periods(shuffled, COLUMNS) == periods(events, COLUMNS)

    check()


# Of a clock that is set back no number tells a moment, nor of a log that starts again.
@pytest.mark.parametrize(
    "lane", [lane for lane in LANES if not lane.has_clock], ids=lambda lane: lane.name
)
def test_history_is_the_source_at_any_position_and_time(lane: Lane) -> None:
    """Where all changes were captured: what nobody saw, a history cannot have."""

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(histories(lane))
    def check(history: History) -> None:
        unseen = ("gap", "restore", "complete snapshot")
        captured = tuple(step for step in history.steps if step.kind not in unseen)
        outcome = play(replace(history, steps=captured), lane)
        found = periods(events_of(outcome), lane.columns)
        for lsn, time, rows in outcome.past:
            assert rows_at(found, lsn, "from_lsn", "to_lsn") == rows
            assert rows_at(found, time, "valid_from", "valid_to") == rows

    check()


def test_wrong_changes_are_of_texts_that_are_there() -> None:
    """Those of ``tests/servers/test_mutants.py``, which takes hours to say so."""
    listed = tomllib.loads((PROJECT / "tests/support/mutants.toml").read_text())
    made = {(each.file, each.change) for each in generated(PROJECT)}
    assert [
        each
        for each in listed["mutant"]
        if (PROJECT / each["file"]).read_text().count(each["text"]) != 1
    ] == []
    equal = [(each["file"], each["change"]) for each in listed.get("equal", ())]
    assert [each for each in equal if each not in made] == []
