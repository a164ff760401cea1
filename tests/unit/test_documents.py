"""The documents' links lead somewhere, and the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.project import PROJECT

README = PROJECT / "README.md"
PAGES = [
    README,
    *sorted((PROJECT / "docs").rglob("*.md")),
    *(PROJECT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((PROJECT / "connectors").rglob("*.md")),
    *sorted((PROJECT / "examples").glob("*/*.md")),
]
LINK = re.compile(r"\]\(([^()\s]+)\)")


def links(page: Path) -> list[str]:
    """The relative links of a page, without those in blocks of code."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [link for link in LINK.findall(prose) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_decisions_have_a_number_each_and_one_form() -> None:
    pages = sorted((PROJECT / "docs/decisions").glob("*.md"))
    numbers = [page.name[:4] for page in pages]
    assert numbers == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]} "), page
        assert "\n**Context.** " in text, page


def test_readme_is_read_in_ten_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200


def test_readme_links_every_page() -> None:
    linked = {(PROJECT / link.partition("#")[0]).resolve() for link in links(README)}
    pages = {page.resolve() for page in (PROJECT / "docs").glob("*.md")}
    assert pages - linked == set()
