"""Histories of all lanes, and what new seeds draw of them and of the parser's records.

It needs no server; it is in this tier for its minutes. ``CDC_TEST_SEED`` repeats a run.
"""

import os
import random
from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.lake.test_histories import WIDEST, Built, build, fixed_outcomes, stories
from tests.support.bad_records import generated, problems
from tests.support.histories import LANES, Lane
from tests.support.lake import Lake
from tests.support.lanes import draw_all, run_lanes, smallest, write_project
from tests.support.parser import KafkaRecord, classify, decode
from tests.support.stories import ALONE

OTHERS = tuple(lane for lane in LANES if lane not in WIDEST)


@pytest.fixture
def seed() -> int:
    """One that no run had, or the one that is to be repeated; a failure prints it."""
    seed = int(os.environ.get("CDC_TEST_SEED") or random.SystemRandom().randrange(10**9))
    print(f"CDC_TEST_SEED={seed}")
    return seed


@pytest.fixture(scope="module")
def others(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(new_lake, tmp_path_factory.mktemp("lanes"), OTHERS)


@pytest.mark.smoke
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("lane", OTHERS, ids=lambda lane: lane.name)
def test_silver_is_the_reference_in_every_lane(lane: Lane, others: Built) -> None:
    assert smallest(others.differences[lane.name]) == ""


@pytest.mark.smoke
def test_tables_are_of_several_file_groups(others: Built) -> None:
    """Those whose last batch brings a key: their rows are looked for in several files."""
    assert others.split >= {"plain", "deletes", "toast", "reads", "late"}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("half", (0, 1))
@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_histories_of_a_fresh_seed(
    new_lake: NewLake, tmp_path: Path, count: int, half: int, seed: int
) -> None:
    """And the fixed ones; a build costs seconds, however many histories it holds."""
    lanes, fixed = LANES[half::2], fixed_outcomes()
    outcomes = {
        # Some lanes have no more than there are topics for.
        lane: drawn if lane.at_most else [*fixed[lane], *drawn]
        for lane, drawn in draw_all(count, seed, lanes).items()
    }
    project = write_project(tmp_path / "project", lanes)
    found = run_lanes(new_lake(project=project), outcomes)
    assert [text for wrong in found.values() if (text := smallest(wrong))] == []


def test_stories_alone(new_lake: NewLake, tmp_path: Path) -> None:
    """No other key's late event has their rows folded again."""
    (lane,) = [lane for lane in LANES if lane.name == "everything"]
    outcomes = {lane: stories()[lane][: len(ALONE)]}
    project = write_project(tmp_path / "project", [lane])
    found = run_lanes(new_lake(project=project), outcomes)
    assert smallest(found[lane.name]) == ""


def test_every_record_of_a_fresh_seed_has_one_place(lake: Lake, seed: int) -> None:
    """Of the parser, 2,000 of each kind."""
    cases = generated(2_000, seed)
    texts = [case.text for case in cases]
    assert problems(cases, classify(lake, texts)) == ""
    values = decode(lake, [*map(KafkaRecord, texts)], None)
    assert problems(cases, values, is_kafka=True) == ""
