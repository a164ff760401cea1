"""The documents' links lead somewhere, and `make nightly` ran lately."""

import re
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests import nightly
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


def git(*words: str) -> str:
    done = subprocess.run(("git", *words), cwd=PROJECT, capture_output=True, text=True)
    return done.stdout.strip()


def test_nightly_ran_since_the_sql_or_the_ingest_changed() -> None:
    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("no git history says when macros/ and ingest/ changed")
    changed = date.fromisoformat(git("log", "-1", "--format=%cs", "--", "macros", "ingest"))
    [ran] = nightly.LAST_RUN.findall(nightly.PAGE.read_text(encoding="utf-8"))
    late = changed - date.fromisoformat(ran)
    assert late <= timedelta(days=14), "run `make nightly` and commit docs/testing.md"


def test_whole_run_of_nightly_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not git("rev-parse", "HEAD"):
        pytest.skip("there is no git history")
    page = tmp_path / "testing.md"
    page.write_text(nightly.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(nightly, "PAGE", page)
    for _ in range(2):
        nightly.note({"storms": 29.4, "hudi": 18}, ["hudi"])
        text = page.read_text(encoding="utf-8")
        assert nightly.LAST_RUN.findall(text) == [date.today().isoformat()]
    assert "in minutes: storms 29, hudi (failed) 18." in text
