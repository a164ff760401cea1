"""More than tests/lake/test_histories.py: a new seed, three batches, a full refresh.

It needs no server; it is in this tier for its minutes. ``CDC_TEST_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.conftest import NewLake
from tests.lake.test_histories import fixed_outcomes
from tests.support.histories import LANES
from tests.support.lanes import Difference, draw_all, run_lanes, write_project

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


@pytest.mark.timeout(1800)
def test_histories_of_a_new_seed(differences: Differences) -> None:
    texts = [
        f"lane {name}: {len(wrong)} histories differ; the smallest"
        f" {min(wrong, key=lambda difference: difference.size)}"
        for name, wrong in differences.items()
        if wrong
    ]
    if texts:
        pytest.fail("\n\n".join([f"CDC_TEST_SEED={SEED}", *texts]), pytrace=False)
