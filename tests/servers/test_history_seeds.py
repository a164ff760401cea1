"""Histories of all lanes, and what new seeds draw of them and of the parser's records.

It needs no server; it is in this tier for its minutes. ``CDC_TEST_SEED`` repeats a run.
"""

import os
import random
from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.lake.test_histories import WIDEST, Built, build, fixed_outcomes, stories
from tests.support.bad_records import generated, problems, texts
from tests.support.histories import LANES, Lane
from tests.support.lake import Lake
from tests.support.lanes import Difference, draw_all, run_lanes, write_project
from tests.support.parser import KafkaRecord, classify, decode
from tests.support.stories import ALONE

COUNT = 100
OTHERS = tuple(lane for lane in LANES if lane not in WIDEST)


def new_seeds(count: int) -> list[int]:
    """Seeds that no run had, or the one that is to be repeated."""
    if given := os.environ.get("CDC_TEST_SEED"):
        return [int(given)]
    return [random.SystemRandom().randrange(10**9) for _ in range(count)]


def play_seeds(new_lake: NewLake, folder: Path, seeds: list[int]) -> list[str]:
    """The smallest difference of each lane that has one.

    The fixed histories and those of all seeds share their builds: a build costs seconds,
    however many histories it holds.
    """
    project = write_project(folder / "project", LANES)
    fixed = fixed_outcomes()
    outcomes = {lane: list(fixed[lane]) for lane in LANES}
    for seed in seeds:
        for lane, drawn in draw_all(COUNT, seed).items():
            if lane.at_most is None:
                outcomes[lane] += drawn
            else:
                # No more than there are topics for, and of the newest seed.
                outcomes[lane] = drawn
    found = run_lanes(new_lake(project=project), outcomes)

    def seed_of(lane: Lane, difference: Difference) -> str:
        if lane.at_most is not None:
            return f"CDC_TEST_SEED={seeds[-1]}"
        number = difference.outcome.number - len(fixed[lane])
        return f"CDC_TEST_SEED={seeds[number // COUNT]}" if number >= 0 else "fixed"

    return [
        f"lane {lane.name}: {len(wrong)} histories differ; the smallest"
        f" ({seed_of(lane, least)}) {least}"
        for lane in LANES
        if (wrong := found[lane.name])
        for least in [min(wrong, key=lambda difference: difference.size)]
    ]


@pytest.fixture(scope="module")
def others(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(new_lake, tmp_path_factory.mktemp("lanes"), OTHERS)


@pytest.mark.smoke
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("lane", OTHERS, ids=lambda lane: lane.name)
def test_silver_is_the_reference_in_every_lane(lane: Lane, others: Built) -> None:
    others.expect_equal(lane)


@pytest.mark.smoke
def test_tables_are_of_several_file_groups(others: Built) -> None:
    """Those whose last batch brings a key: their rows are looked for in several files."""
    assert others.split >= {"plain", "deletes", "toast", "reads", "late"}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.nightly)])
def test_histories_of_new_seeds(new_lake: NewLake, tmp_path: Path, count: int) -> None:
    if wrong := play_seeds(new_lake, tmp_path, new_seeds(count)):
        pytest.fail("\n\n".join(wrong), pytrace=False)


def test_stories_alone(new_lake: NewLake, tmp_path: Path) -> None:
    """No other key's late event has their rows folded again."""
    (lane,) = [lane for lane in LANES if lane.name == "everything"]
    outcomes = {lane: stories()[lane][: len(ALONE)]}
    project = write_project(tmp_path / "project", [lane])
    found = run_lanes(new_lake(project=project), outcomes)
    assert not [str(wrong[0]) for wrong in found.values() if wrong]


def test_every_record_of_a_fresh_seed_has_one_place(lake: Lake) -> None:
    """Of the parser, 2,000 of each kind; a failure prints the seed."""
    [seed] = new_seeds(1)
    print(f"CDC_TEST_SEED={seed}")
    cases = generated(2_000, seed)
    assert problems(cases, classify(lake, texts(cases))) == ""
    values = decode(lake, [KafkaRecord(each.text) for each in cases], None)
    assert problems(cases, values, is_kafka=True) == ""
