"""``docs/promises.md`` names tests that exist, and leaves no module out."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.support.project import PROJECT

PAGE = PROJECT / "docs/promises.md"
NAME = re.compile(r"`(tests/[^`]+)`")
# The heading of the modules that hold no promise of their own, each with a reason.
EXEMPT = "## Modules without a promise"


def rows(text: str) -> list[list[str]]:
    """The cells of a page's tables, without their headings."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return [
        cells
        for cells, below in zip(lines, [*lines[1:], [""]], strict=True)
        if not is_rule(cells) and not is_rule(below)
    ]


def is_rule(cells: list[str]) -> bool:
    """Whether it is the line below a table's heading."""
    return set("".join(cells)) == {"-"}


def promises() -> list[tuple[str, list[str]]]:
    """Every promise of the page, with the tests named beside it."""
    text = PAGE.read_text(encoding="utf-8").partition(EXEMPT)[0]
    return [(cells[0], NAME.findall(cells[-1])) for cells in rows(text)]


def exempt() -> dict[str, str]:
    """The modules without a promise, each with its reason."""
    text = PAGE.read_text(encoding="utf-8").partition(EXEMPT)[2]
    return {NAME.findall(cells[0])[0]: cells[1] for cells in rows(text)}


@cache
def functions_of(module: str) -> frozenset[str]:
    """The test functions of a module."""
    tree = ast.parse((PROJECT / module).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def modules() -> set[str]:
    """Every module of tests."""
    found = (PROJECT / "tests").rglob("test_*.py")
    return {str(path.relative_to(PROJECT)) for path in found}


def named() -> set[str]:
    """Every module that a promise names, by itself or by one of its tests."""
    return {name.partition("::")[0] for _, names in promises() for name in names}


def test_page_has_promises() -> None:
    assert len(promises()) > 30


@pytest.mark.parametrize(("promise", "names"), promises())
def test_promise_is_held_by_tests_that_exist(promise: str, names: list[str]) -> None:
    assert names, f"no test holds: {promise}"
    for name in names:
        module, _, function = name.partition("::")
        assert (PROJECT / module).is_file(), f"{promise}: no file {module}"
        if module.endswith(".py"):
            known = functions_of(module)
            assert known, f"{promise}: no test in {module}"
            assert not function or function in known, f"{promise}: no test {name}"


def test_every_module_is_named() -> None:
    assert modules() - named() - exempt().keys() == set()


def test_exempt_modules_exist_and_have_a_reason() -> None:
    for module, reason in exempt().items():
        assert module in modules()
        assert module not in named()
        assert reason, module
