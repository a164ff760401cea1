"""Which command holds which promise: ``docs/promises.md``, by the markers of the tests.

``python -m tests.promises`` writes it into the page; ``--check`` prints the difference.
"""

import difflib
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "docs/promises.md"
FOLDERS = ("tests", "examples")
# From the first that runs to the last.
COMMANDS = ("CI", "test-all", "nightly")
# A test or a case of it, and the commands that run it where that is not CI alone.
NAME = re.compile(r"`((?:tests|examples)/[^`]+\.[^`]+)`(?: \([^)]+\))?")
ROW = re.compile(r"\| (?P<promise>.+?) \| (?P<tests>.+?) \|(?: (?P<by>[^|]+) \|)?")
COUNT = re.compile(r"^Of \d+ promises,[^.]+\.$", re.MULTILINE)


class Collected:
    """A plugin of pytest: the commands that run each test, its cases and each module."""

    def __init__(self) -> None:
        self.commands: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            module = str(item.path.relative_to(PROJECT))
            case = f"{module}::{item.nodeid.partition('::')[2]}"
            for name in {module, case, case.partition("[")[0]}:
                self.commands[name].add(_command(module, item))


def _command(module: str, item: pytest.Item) -> str:
    """The first of the commands that runs a test; ``.ci/run`` and the Makefile say so."""
    marks = {mark.name for mark in item.iter_markers()}
    if "nightly" in marks:
        return "nightly"
    is_server = module.startswith("tests/servers/")
    is_in_ci = "smoke" in marks if is_server else "thorough" not in marks
    return "CI" if is_in_ci else "test-all"


def _collect() -> dict[str, set[str]]:
    collected = Collected()
    options = ["--collect-only", "-pno:terminal", "-pno:syrupy", "-oaddopts="]
    folders = [str(PROJECT / name) for name in FOLDERS]
    if pytest.main([*options, *folders], [collected]) != 0:
        sys.exit("tests.promises: tests are not collected: pytest --collect-only")
    # dbt's own tests run with every build.
    for path in (PROJECT / "tests/dbt").glob("*.sql"):
        collected.commands[str(path.relative_to(PROJECT))] = {"CI"}
    # All of tests/lake, with a variable that no marker knows.
    collected.commands["tests/nightly.py"] = {"nightly"}
    return dict(collected.commands)


def write(text: str, commands: dict[str, set[str]]) -> str:
    """The page with the commands of each test and of each promise, and their count."""
    counts: Counter[tuple[str, ...]] = Counter()

    def named(commands_of: set[str]) -> tuple[str, ...]:
        return tuple(command for command in COMMANDS if command in commands_of)

    def name(match: re.Match[str]) -> str:
        by = named(commands[match[1]])
        return f"`{match[1]}`" + ("" if by == ("CI",) else f" ({', '.join(by)})")

    def row(line: str) -> str:
        match = ROW.fullmatch(line)
        if not match or not NAME.search(match["tests"]):
            return line
        by = named(set().union(*(commands[each] for each in NAME.findall(match["tests"]))))
        counts[by] += 1
        tests = NAME.sub(name, match["tests"])
        return f"| {match['promise']} | {tests} | {', '.join(by)} |"

    page = "\n".join(map(row, text.splitlines())) + "\n"
    whole = counts["CI",]
    part = sum(count for by, count in counts.items() if by[0] == "CI") - whole
    later = sum(count for by, count in counts.items() if by[0] == "test-all")
    return COUNT.sub(
        f"Of {counts.total()} promises, CI holds {whole} with all of their tests and {part}"
        f" with some, `make test-all` is the first to hold {later},"
        f" `make nightly` {counts['nightly',]}.",
        page,
    )


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    text = PAGE.read_text(encoding="utf-8")
    commands = _collect()
    if unknown := set(NAME.findall(text)) - commands.keys():
        sys.exit(f"tests.promises: {PAGE.name} names no test: {', '.join(unknown)}")
    page = write(text, commands)
    if arguments != ["--check"]:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(text.splitlines(True), page.splitlines(True), n=0)
    )
    return int(page != text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
