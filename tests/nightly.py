"""``make nightly``: its parts, one after another; the outcome of each part counts.

``python -m tests.nightly`` runs all parts, ``python -m tests.nightly PART…`` some of them:
the Makefile has each as ``nightly-PART``. A run of all is noted in ``docs/testing.md``.
"""

import re
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from datetime import date
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "docs/testing.md"
LINE = "Last whole run of `make nightly`: "
LAST_RUN = re.compile(rf"^{LINE}.*(\d{{4}}-\d\d-\d\d).*$", re.MULTILINE)
PARTS = ("storms", "mutants", "python", "hudi")


def note(minutes: Mapping[str, float], failed: Collection[str]) -> None:
    """Write into ``docs/testing.md`` when all ran, of which commit, and which failed."""
    commit = subprocess.check_output(
        ("git", "describe", "--always", "--dirty", "--exclude=*"), cwd=PROJECT, text=True
    ).strip()
    named = {part: f"{part}{' (failed)' * (part in failed)}" for part in minutes}
    took = ", ".join(f"{named[part]} {its:.0f}" for part, its in minutes.items())
    line = f"{LINE}{date.today()} of {commit}, in minutes: {took}."
    text = LAST_RUN.sub(line, PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


def main(names: list[str]) -> int:
    """Run parts; print how each of them ended and how to run it again."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"unknown parts: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
        return 2
    codes, minutes = {}, {}
    for part in names or PARTS:
        begin = time.monotonic()
        command = ("make", "--no-print-directory", f"nightly-{part}")
        codes[part] = subprocess.run(command, cwd=PROJECT).returncode
        minutes[part] = (time.monotonic() - begin) / 60
    for part, code in codes.items():
        is_passed = f"FAILED; run it again: make nightly-{part}" if code else "passed"
        print(f"{part:8} after {minutes[part]:.0f} min: {is_passed}")
    failed = [part for part, code in codes.items() if code]
    if not names:
        note(minutes, failed)
        print(f"commit {PAGE.relative_to(PROJECT)}, which has the date of this run")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
