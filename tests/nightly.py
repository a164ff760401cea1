"""``make nightly``: what takes hours, in parts; the outcome of each part counts.

``python -m tests.nightly`` runs all parts, ``python -m tests.nightly PART…`` some of them.
A run of all that passed is noted in ``docs/testing.md``.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[1]
REPORTS = PROJECT / "reports"
PAGE = PROJECT / "docs/testing.md"
LINE = "Last whole run of `make nightly`: "
LAST_RUN = re.compile(rf"^{LINE}.*(\d{{4}}-\d\d-\d\d).*$", re.MULTILINE)
PYTEST = (sys.executable, "-m", "pytest")
# The oldest Python is the one that every other run has.
NEWEST_PYTHON = "python3.12"
HUDI_OF_EMR = "1.0.2"


class Outcome(NamedTuple):
    """How a part ended: with the exit code of the command that failed, or 0."""

    part: str
    code: int
    minutes: float


def run(
    *command: str, folder: Path = PROJECT, variables: Mapping[str, str] | None = None
) -> int:
    """Run a command, with everything it prints; its exit code."""
    print("+", *command, flush=True)
    environment = {**os.environ, **(variables or {})}
    return subprocess.run(command, cwd=folder, env=environment).returncode


def report(part: str) -> str:
    """pytest's option that writes the duration of each test."""
    return f"--junitxml={REPORTS / f'nightly-{part}.xml'}"


MUTANTS = "tests/servers/test_mutants.py"


def storms() -> int:
    """Storms with faults, crashes at every point, and ten new seeds."""
    others = ("tests/servers", "--ignore", MUTANTS, "-m", "nightly")
    return run(*PYTEST, *others, report("storms"))


def mutants() -> int:
    """Wrong changes, each of which a test notices: one for each process at a time."""
    seed = os.environ.get("CDC_TEST_SEED") or str(random.SystemRandom().randrange(10**9))
    print(f"CDC_TEST_SEED={seed} repeats the sample; CDC_TEST_MUTANTS is its size")
    words = (MUTANTS, "-m", "nightly", "--dist", "load", report("mutants"))
    return run(*PYTEST, *words, variables={"CDC_TEST_SEED": seed})


def newest_python() -> int:
    """``make test`` by the newest Python that is supported, in a clone."""
    if shutil.which(NEWEST_PYTHON) is None:
        print(f"there is no {NEWEST_PYTHON} on the path", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="cdc-lakehouse-") as name:
        clone = Path(name) / "clone"
        code = run("git", "clone", "--quiet", str(PROJECT), str(clone)) or run(
            "make", "test", f"PYTHON={NEWEST_PYTHON}", folder=clone
        )
        if (report := clone / "reports" / "test.xml").exists():
            REPORTS.mkdir(exist_ok=True)
            shutil.copy(report, REPORTS / "nightly-python.xml")
        return code


def hudi_of_emr() -> int:
    """The tests of lakes on the Hudi that EMR ships."""
    version = {"HUDI_VERSION": HUDI_OF_EMR}
    return run(sys.executable, "-m", "cdc_lakehouse", "setup", variables=version) or run(
        *PYTEST, "tests/lake", report("hudi"), variables=version
    )


PARTS: dict[str, Callable[[], int]] = {
    "storms": storms,
    "mutants": mutants,
    "python": newest_python,
    "hudi": hudi_of_emr,
}


def note(outcomes: list[Outcome]) -> None:
    """Write into ``docs/testing.md`` that every part passed, when and of which commit."""
    commit = subprocess.check_output(
        ("git", "describe", "--always", "--dirty", "--exclude=*"), cwd=PROJECT, text=True
    ).strip()
    minutes = ", ".join(f"{each.part} {each.minutes:.0f}" for each in outcomes)
    line = f"{LINE}{date.today()} of {commit}, in minutes: {minutes}."
    text = LAST_RUN.sub(line, PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


def main(names: list[str]) -> int:
    """Run parts; print how each of them ended and how to run it again."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"unknown parts: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
        return 2
    outcomes = []
    for name in names or PARTS:
        begin = time.monotonic()
        code = PARTS[name]()
        outcomes.append(Outcome(name, code, (time.monotonic() - begin) / 60))
    for each in outcomes:
        is_passed = "passed" if each.code == 0 else f"FAILED ({each.code})"
        again = "" if each.code == 0 else f"; run it again: make nightly PARTS={each.part}"
        print(f"{each.part:8} {is_passed} in {each.minutes:.0f} min{again}")
    has_failed = any(each.code for each in outcomes)
    if not names and not has_failed:
        note(outcomes)
        print(f"commit {PAGE.relative_to(PROJECT)}, which has the date of this run")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
