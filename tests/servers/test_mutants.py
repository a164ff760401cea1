"""Small wrong changes of the macros and of the ingest: a test fails for each of them.

It needs no server: ``make nightly``. They are a sample, by a seed; those of the macros of
what operators make (``tests/support/mutants.py``). Each meets the stories of the contract
and drawn histories, which the reference fold judges; what no history shows meets the tests
of its macro's folder. Those of the ingest meet the tests that their entry names.
"""

import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.errors import UserError
from tests.conftest import NewLake
from tests.lake.test_histories import stories
from tests.support.histories import LANES
from tests.support.lake import SparkDiedError
from tests.support.lanes import Difference, differences, draw_all, write_project
from tests.support.mutants import Generated, generated, sample
from tests.support.project import PROJECT

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

# A run of another seed has other changes, and the same seed the same.
SEED = int(os.environ.get("CDC_TEST_SEED", "20261127"))
COUNT = int(os.environ.get("CDC_TEST_MUTANTS", "6"))  # of each kind
HISTORIES = 120
JUDGES = [lane for lane in LANES if lane.name in ("everything", "mixed", "composite")]
NOT_COPIED = shutil.ignore_patterns(".*", "target", "logs", "__pycache__")
LISTED = tomllib.loads((PROJECT / "tests/support/mutants.toml").read_text())
LISTED_TESTS = chain(*LISTED["tests"].values())  # CI collects this, and sees a lost one
assert all((PROJECT / name.partition("::")[0]).is_file() for name in LISTED_TESTS)
OF_INGEST = random.Random(SEED).sample(LISTED["mutant"], len(LISTED["mutant"]))[:COUNT]


def sampled() -> list[Generated]:
    """Wrong changes of the macros, but those that nothing can see."""
    equal = {(each["file"], each["change"]) for each in LISTED.get("equal", ())}
    all_of_them = [
        each for each in generated(PROJECT) if (each.file, each.change) not in equal
    ]
    return sample(all_of_them, COUNT, SEED)


def first_difference(
    new_lake: NewLake, folder: Path, mutant: Generated | None
) -> Difference | str | None:
    """What histories show of a wrong change: a difference, or a build that failed."""
    project = write_project(folder / "project", JUDGES)
    if mutant is not None:
        mutant.apply(project)
    told, drawn = stories(), draw_all(HISTORIES, SEED, JUDGES)
    lake = new_lake(project=project)
    outcomes = {lane: [*told[lane], *drawn[lane]] for lane in JUDGES}
    try:
        return next((found for _, found in differences(lake, outcomes)), None)
    except SparkDiedError:
        raise
    except (AssertionError, UserError) as failed:  # a build, or a table that is elsewhere
        return str(failed)
    finally:
        lake.remove()


def are_failing(project: Path, tests: Sequence[str]) -> bool:
    """Whether a test of these fails in a copy of the project."""
    words = ("-m", "pytest", "-x", "-q", "-n0", "-m", "not nightly", *tests)
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
    )
    said = ended.stdout[-4000:]
    assert SparkDiedError.TEXT not in ended.stdout, said
    assert ended.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), said
    return ended.returncode == pytest.ExitCode.TESTS_FAILED


def copy_of_project(folder: Path) -> Path:
    """A copy with its tests."""
    project = folder / "copy"
    shutil.copytree(PROJECT, project, ignore=NOT_COPIED)
    (project / ".venv").symlink_to(PROJECT / ".venv")
    return project


@pytest.mark.parametrize("mutant", [None, *sampled()], ids=str)
def test_a_wrong_macro_is_seen(
    mutant: Generated | None, new_lake: NewLake, tmp_path: Path
) -> None:
    """And nothing where none is wrong."""
    found = first_difference(new_lake, tmp_path, mutant)
    if mutant is None:
        assert found is None, "they differ without a wrong change"
        return
    if found is not None:
        return
    project = copy_of_project(tmp_path)
    mutant.apply(project)
    tests = LISTED["tests"][Path(mutant.file).parts[1]]
    assert are_failing(project, tests), f"no test sees {mutant} (CDC_TEST_SEED={SEED})"


@pytest.mark.parametrize("entry", OF_INGEST, ids=lambda each: Path(each["file"]).stem)
def test_a_wrong_ingest_is_seen(entry: dict[str, Any], tmp_path: Path) -> None:
    project = copy_of_project(tmp_path)
    file = project / entry["file"]
    right = file.read_text()
    assert right.count(entry["text"]) == 1
    file.write_text(right.replace(entry["text"], entry["wrong"]))
    assert are_failing(project, entry["tests"])
