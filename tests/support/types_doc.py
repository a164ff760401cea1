"""The matrix of types as the documentation shows it, from what a run has found."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.mariadb_types import SECTIONS as MARIADB_SECTIONS
from tests.support.project import PROJECT
from tests.support.types_matrix import (
    DATE,
    OWN_TYPES,
    SECTIONS,
    TIMESTAMP,
    TIMESTAMPTZ,
    Type,
    Value,
)
from tests.support.types_outcomes import Outcome, is_right
from tests.support.types_tables import Way, row_id

LONGEST = 44


@dataclass(frozen=True)
class Page:
    """A page of the documentation that ends with a matrix.

    Attributes:
        file: the page.
        database: whose types they are.
        module: the tests that make the matrix.
        sections: its rows, by title.
    """

    file: Path
    database: str
    module: str
    sections: Mapping[str, Sequence[Type]]

    @property
    def begin(self) -> str:
        """The line behind which the matrix stands."""
        return f"<!-- matrix: made by tests/servers/{self.module}.py -->\n"

    @property
    def types(self) -> list[Type]:
        """The rows of all sections."""
        return [row for rows in self.sections.values() for row in rows]


POSTGRESQL = Page(PROJECT / "docs/types.md", "PostgreSQL", "test_types", SECTIONS)
MARIADB = Page(PROJECT / "docs/types-mysql.md", "MariaDB", "test_mariadb", MARIADB_SECTIONS)


def check(
    page: Page, outcomes: dict[int, Outcome], unchanged: Mapping[str, str | None]
) -> None:
    """Compare a page with what a run found.

    Args:
        page: the page.
        outcomes: what became of every value, by key.
        unchanged: what an update of another column brings of a long value, by type; of the
            others it brings the value.

    With WRITE_TYPES_DOC=1 in the environment, write the page instead.
    """
    text = page.file.read_text(encoding="utf-8")
    found = text.partition(page.begin)[0] + page.begin + matrix(page, outcomes, unchanged)
    if os.environ.get("WRITE_TYPES_DOC"):
        page.file.write_text(found, encoding="utf-8")
    else:
        assert text == found, f"{page.file} is out of date: run with WRITE_TYPES_DOC=1"


def matrix(
    page: Page, outcomes: dict[int, Outcome], unchanged: Mapping[str, str | None]
) -> str:
    """A Markdown table for each section."""
    head = f"| {page.database} | Debezium sends | declare | silver holds | unchanged |\n"
    head += "|---|---|---|---|---|\n"
    return "".join(
        f"\n## {title}\n\n{head}"
        + "".join(_line(page.types, row, outcomes, unchanged) for row in rows)
        for title, rows in page.sections.items()
    )


def _line(
    types: Sequence[Type],
    row: Type,
    outcomes: dict[int, Outcome],
    unchanged: Mapping[str, str | None],
) -> str:
    first = row.values[0]
    outcome = outcomes[row_id(types, row, first, Way.INSERT)]
    sent = "no such field"
    if outcome.sent is not None:
        sent = f"{_code(outcome.sent)} for {_code(first.text)}"
    name = OWN_TYPES.get(row.sql, _code(row.sql))
    held = "; ".join(_held(types, row, outcomes))
    cell = _code(unchanged[row.sql]) if row.sql in unchanged else "the value"
    cells = (name, sent, _code(row.declared), held, cell)
    return f"| {' | '.join(cells)} |\n"


def _held(types: Sequence[Type], row: Type, outcomes: dict[int, Outcome]) -> list[str]:
    """What silver holds of a row's values, and what it does not."""
    is_held = False
    untyped: list[Value] = []
    faults: dict[str, dict[str, list[Value]]] = {}
    for value in row.all_values:
        found = [outcomes[row_id(types, row, value, way)] for way in Way]
        if not all(is_right(row, value, outcome) for outcome in found):
            fates = faults.setdefault(value.wrong_today, {})
            fates.setdefault(_fate(row, found), []).append(value)
        elif value.is_untyped:
            untyped.append(value)
        elif value.text is not None:
            is_held = True
    cells = [row.form.description] if is_held else []
    if untyped:
        cells.append(f"untyped: {_codes(untyped)}")
    for reason, fates in faults.items():
        texts = [f"{_codes(values)}: {fate}" for fate, values in fates.items()]
        cells.append(f"**wrong today:** {', '.join(texts)} ({reason})")
    return cells


def _fate(row: Type, found: Sequence[Outcome]) -> str:
    """What became of a value that is wrong, where the ways differ, in each."""
    fates = {}
    for way, outcome in zip(Way, found, strict=True):
        if outcome.is_untyped:
            fates[way] = "untyped"
        elif not outcome.is_stored:
            fates[way] = "no row"
        elif outcome.silver is not None and row.form.silver in (
            DATE.silver,
            TIMESTAMP.silver,
            TIMESTAMPTZ.silver,
        ):
            fates[way] = _code(row.form.silver(outcome.silver))
        else:
            fates[way] = _code(outcome.silver)
    if len(set(fates.values())) == 1:
        return fates[Way.SNAPSHOT]
    return ", ".join(f"{fate} by {way.name.lower()}" for way, fate in fates.items())


def _codes(values: Sequence[Value]) -> str:
    return ", ".join(_code(value.text) for value in values)


def _code(value: Any) -> str:
    """A value as Markdown's code, short and without characters that a table cannot have."""
    if value is None:
        return "null"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if not text.isprintable():
        text = ascii(text)[1:-1]
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    text = text.replace("|", "\\|")
    return f"`{text}`" if text else "an empty text"
