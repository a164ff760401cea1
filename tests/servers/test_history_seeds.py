"""Histories of a new seed: more of what tests/lake/test_histories.py does.

It needs no server; it is in this tier for its minutes. ``CDC_TEST_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.conftest import NewLake
from tests.support.histories import LANES
from tests.support.lanes import draw_all, run_lanes, write_project

COUNT = 100


@pytest.mark.timeout(900)
def test_histories_of_a_new_seed(
    new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seed = int(os.environ.get("CDC_TEST_SEED") or random.SystemRandom().randrange(10**9))
    project = write_project(tmp_path_factory.mktemp("lanes") / "project", LANES)
    lake = new_lake(project / "topics.toml")
    found = {
        name: [each for each in wrong if not each.is_redelivered_read]
        for name, wrong in run_lanes(lake, project, draw_all(COUNT, seed)).items()
    }
    texts = [
        f"lane {name}: {len(wrong)} histories differ; the smallest"
        f" {min(wrong, key=lambda difference: difference.size)}"
        for name, wrong in found.items()
        if wrong
    ]
    if texts:
        pytest.fail("\n\n".join([f"CDC_TEST_SEED={seed}", *texts]), pytrace=False)
