"""More than tests/lake/test_histories.py: a new seed, three batches, a full refresh.

It needs no server; it is in this tier for its minutes. ``CDC_TEST_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.conftest import NewLake
from tests.lake.test_histories import fixed_outcomes
from tests.support.histories import LANES
from tests.support.lanes import Difference, draw_all, run_lanes, write_project
from tests.support.written_histories import written

COUNT = 100
SEED = int(os.environ.get("CDC_TEST_SEED") or random.SystemRandom().randrange(10**9))

Differences = dict[str, list[Difference]]


@pytest.fixture(scope="module")
def differences(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Differences:
    """What differs, by lane, of the fixed histories and those of the new seed."""
    project = write_project(tmp_path_factory.mktemp("lanes") / "project", LANES)
    fixed, of_seed = fixed_outcomes(), draw_all(COUNT, SEED)
    outcomes = {lane: fixed[lane] + of_seed[lane] for lane in LANES}
    return run_lanes(new_lake(project / "topics.toml"), project, outcomes)


def smallest(differences: Differences) -> list[str]:
    """The smallest difference of each lane that has one."""
    return [
        f"lane {name}: {len(wrong)} histories differ; the smallest"
        f" {min(wrong, key=lambda difference: difference.size)}"
        for name, wrong in differences.items()
        if wrong
    ]


@pytest.mark.timeout(1800)
def test_histories_of_a_new_seed(differences: Differences) -> None:
    if texts := smallest(differences):
        pytest.fail("\n\n".join([f"CDC_TEST_SEED={SEED}", *texts]), pytrace=False)


def test_written_histories_alone(new_lake: NewLake, tmp_path: Path) -> None:
    """No other key's late event has their rows folded again."""
    outcomes = {lane: told for lane, told in written().items() if lane.name == "everything"}
    project = write_project(tmp_path / "project", list(outcomes))
    found = run_lanes(new_lake(project / "topics.toml"), project, outcomes)
    assert not smallest(found)
