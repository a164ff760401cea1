"""``docs/promises.md`` names tests that exist, and leaves no module out."""

from __future__ import annotations

import re

import pytest

from tests.support.project import PROJECT

NAME = re.compile(r"`(tests/[^`]+)`")
# A promise with its tests, or at the end of the page a module with why it holds none.
ROWS = [
    line
    for line in (PROJECT / "docs/promises.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and line not in ("| promise | tests |", "| module | reason |")
]
NAMES = {name for row in ROWS for name in NAME.findall(row)}


def test_every_row_names_a_test() -> None:
    assert len(ROWS) > 100
    assert [row for row in ROWS if not NAME.search(row)] == []


@pytest.mark.parametrize("name", sorted(NAMES))
def test_named_test_exists(name: str) -> None:
    module, _, function = name.partition("::")
    text = (PROJECT / module).read_text(encoding="utf-8")
    wanted = f"\ndef {function}(" if function else "\ndef test_"
    assert wanted in text or module.endswith(".sql")


def test_every_module_is_named() -> None:
    found = (PROJECT / "tests").rglob("test_*.py")
    modules = {str(path.relative_to(PROJECT)) for path in found}
    assert modules <= {name.partition("::")[0] for name in NAMES}
