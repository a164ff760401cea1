"""``docs/promises.md`` says which command runs which test, and leaves no module out."""

import subprocess
import sys

from tests.promises import FOLDERS, NAME, PAGE
from tests.support.project import PROJECT

HEADS = ("| promise | tests | held by |", "| module | reason |")
# A promise with its tests, or at the end of the page a module with why it holds none.
ROWS = [
    line
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and line not in HEADS
]
NAMES = {name for row in ROWS for name in NAME.findall(row)}


def test_every_row_names_a_test() -> None:
    assert len(ROWS) > 100
    assert [row for row in ROWS if not NAME.search(row)] == []


def test_every_module_is_named() -> None:
    modules = {
        str(path.relative_to(PROJECT))
        for folder in FOLDERS
        for path in (PROJECT / folder).rglob("test_*.py")
    }
    assert modules <= {name.partition("::")[0] for name in NAMES}


def test_page_says_which_command_holds_each_promise() -> None:
    command = [sys.executable, "-m", "tests.promises", "--check"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: python -m tests.promises"
