"""The matrix of types as the documentation shows it, from what a run has found."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.support.project import PROJECT
from tests.support.types_matrix import (
    DATE,
    OWN_TYPES,
    SECTIONS,
    TIMESTAMP,
    TIMESTAMPTZ,
    TYPES,
    Type,
    Value,
)
from tests.support.types_source import Outcome, Way, is_right, row_id

FILE = PROJECT / "docs" / "types.md"
BEGIN = "<!-- matrix: made by tests/servers/test_types.py -->\n"
HEAD = "| PostgreSQL | Debezium sends | declare | silver holds |\n|---|---|---|---|\n"
LONGEST = 44


def replace_matrix(text: str, outcomes: dict[int, Outcome]) -> str:
    """The documentation with the matrix of a run in the place of its own."""
    return text.partition(BEGIN)[0] + BEGIN + matrix(outcomes)


def matrix(outcomes: dict[int, Outcome]) -> str:
    """A Markdown table for each section."""
    return "".join(
        f"\n## {title}\n\n{HEAD}" + "".join(_line(row, outcomes) for row in rows)
        for title, rows in SECTIONS.items()
    )


def _line(row: Type, outcomes: dict[int, Outcome]) -> str:
    first = row.values[0]
    outcome = outcomes[row_id(TYPES, row, first, Way.INSERT)]
    sent = "no such field"
    if outcome.sent is not None:
        sent = f"{_code(outcome.sent)} for {_code(first.text)}"
    name = OWN_TYPES.get(row.sql, _code(row.sql))
    cells = (name, sent, _code(row.declared), "; ".join(_held(row, outcomes)))
    return f"| {' | '.join(cells)} |\n"


def _held(row: Type, outcomes: dict[int, Outcome]) -> list[str]:
    """What silver holds of a row's values, and what it does not."""
    is_held = False
    rejections: list[Value] = []
    faults: dict[str, dict[str, list[Value]]] = {}
    for value in row.all_values:
        found = [outcomes[row_id(TYPES, row, value, way)] for way in Way]
        if not all(is_right(row, value, outcome) for outcome in found):
            fates = faults.setdefault(value.wrong_today, {})
            fates.setdefault(_fate(row, found), []).append(value)
        elif value.is_rejected:
            rejections.append(value)
        elif value.text is not None:
            is_held = True
    cells = [row.form.description] if is_held else []
    if rejections:
        cells.append(f"rejected: {_codes(rejections)}")
    for reason, fates in faults.items():
        texts = [f"{_codes(values)}: {fate}" for fate, values in fates.items()]
        cells.append(f"**wrong today:** {', '.join(texts)} ({reason})")
    return cells


def _fate(row: Type, found: Sequence[Outcome]) -> str:
    """What became of a value that is wrong, where the ways differ, in each."""
    fates = {}
    for way, outcome in zip(Way, found, strict=True):
        if outcome.reason is not None:
            fates[way] = "rejected"
        elif not outcome.is_stored:
            fates[way] = "no row"
        elif outcome.silver is not None and row.form in (DATE, TIMESTAMP, TIMESTAMPTZ):
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
