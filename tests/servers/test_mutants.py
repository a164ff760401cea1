"""Small wrong changes of the macros and of the ingest: a test fails for each of them.

It needs no server, and takes many minutes: ``make nightly``. A wrong macro meets the
stories of the contract and histories of a fixed seed, in three batches and a full refresh,
which the reference fold judges; a wrong ingest, and what those histories do not have, meets
the tests that its entry names.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.lake.test_histories import stories
from tests.support.histories import LANES
from tests.support.lanes import differences, draw_all, write_project
from tests.support.project import PROJECT
from tests.support.written_histories import written

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

SEED = 20_261_123
COUNT = 400
NOT_COPIED = shutil.ignore_patterns(".*", "target", "logs", "__pycache__")


@dataclass(frozen=True)
class Mutant:
    """A wrong change.

    Attributes:
        file: what it changes.
        text: what it replaces, which is there once.
        wrong: what it puts there.
        lanes: the tables whose histories show it.
        alone: whether written histories show it, where no others share their builds.
        tests: the modules that show it, in place of histories.
        equal: why nothing can show it.
    """

    file: str
    text: str
    wrong: str
    lanes: Sequence[str] = ("everything",)
    alone: bool = False
    tests: Sequence[str] = ()
    equal: str = ""

    def apply(self, project: Path) -> None:
        """Make the change in a copy of the project."""
        file = project / self.file
        right = file.read_text()
        assert right.count(self.text) == 1, f"{self.file} has no such text: {self.text}"
        file.write_text(right.replace(self.text, self.wrong))


def mutants(*, of_histories: bool) -> list[Any]:
    """What histories show, or tests; of what nothing can show, that it is not seen."""
    listed = tomllib.loads((PROJECT / "tests/support/mutants.toml").read_text())["mutant"]
    found = []
    for number, each in enumerate(listed, 1):
        mutant = Mutant(**each)
        if of_histories != bool(mutant.tests):
            known = pytest.mark.xfail(strict=True, reason=mutant.equal)
            marks = [known] if mutant.equal else []
            name = f"{number}-{Path(mutant.file).stem}"
            found.append(pytest.param(mutant, marks=marks, id=name))
    return found


@pytest.mark.parametrize("mutant", mutants(of_histories=True))
def test_histories_show_a_wrong_change(
    mutant: Mutant, new_lake: NewLake, tmp_path: Path
) -> None:
    lanes = [lane for lane in LANES if lane.name in mutant.lanes]
    assert len(lanes) == len(mutant.lanes)
    project = write_project(tmp_path / "project", lanes)
    mutant.apply(project)
    if mutant.alone:
        outcomes = {lane: written()[lane] for lane in lanes}
    else:
        told, drawn = stories(), draw_all(COUNT, SEED)
        outcomes = {lane: [*told[lane], *drawn[lane]] for lane in lanes}
    lake = new_lake(project / "topics.toml")
    try:
        found = next(differences(lake, project, outcomes), None)
    except AssertionError:
        return  # a build failed
    finally:
        lake.remove()
    assert found is not None, f"{mutant} changes no row"


@pytest.mark.parametrize("mutant", mutants(of_histories=False))
def test_a_test_shows_a_wrong_change(mutant: Mutant, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project, ignore=NOT_COPIED)
    (project / ".venv").symlink_to(PROJECT / ".venv")
    mutant.apply(project)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-m", "", *mutant.tests],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout[-2000:]
