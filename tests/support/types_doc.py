"""The matrix of types as the documentation shows it, from what a run has found."""

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from cdc_lakehouse.sources.types import PAGES
from tests.support.project import PROJECT
from tests.support.types_matrix import COMPARED, DATES, Matrix, Type, Value, Way
from tests.support.types_outcomes import Outcome, Outcomes, is_right

LONGEST = 44
NAMES = {"postgresql": "PostgreSQL", "mariadb": "MariaDB"}
# The line behind which a page has its matrix.
BEGIN = "<!-- matrix: made by "


def check(matrix: Matrix, outcomes: Outcomes, unchanged: Mapping[str, str | None]) -> None:
    """Compare a page of the documentation with what a run found.

    Args:
        matrix: the types of the page.
        outcomes: what became of every value, by key.
        unchanged: what an update of another column brings of a long value, by type; of the
            others it brings the value.

    With WRITE_TYPES_DOC=1 in the environment, write the page instead.
    """
    file = PROJECT / PAGES[matrix.database]
    text = file.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    head = f"| {NAMES[matrix.database]} | Debezium sends | declare | silver holds |"
    tables = [
        f"\n## {title}\n\n{head} unchanged |\n|---|---|---|---|---|\n"
        + "".join(_line(row, outcomes, unchanged) for row in rows)
        for title, rows in matrix.sections.items()
    ]
    found = "".join([before, begin, rest.partition("\n")[0], "\n", *tables])
    if os.environ.get("WRITE_TYPES_DOC"):
        file.write_text(found, encoding="utf-8")
    else:
        assert text == found, f"{file} is out of date: run with WRITE_TYPES_DOC=1"


def _line(row: Type, outcomes: Outcomes, unchanged: Mapping[str, str | None]) -> str:
    first = row.values[0]
    outcome = outcomes[row.key(first, Way.INSERT)]
    sent = "no such field"
    if outcome.sent is not None:
        sent = f"{_code(outcome.sent)} for {_code(first.text)}"
    cells = (
        row.name or _code(row.sql),
        sent,
        _code(row.declared),
        "; ".join(_held(row, outcomes)),
        _code(unchanged[row.sql]) if row.sql in unchanged else "the value",
    )
    return f"| {' | '.join(cells)} |\n"


def _held(row: Type, outcomes: Outcomes) -> list[str]:
    """What silver holds of a row's values, and what it does not."""
    is_held = False
    untyped: list[Value] = []
    faults: dict[str, dict[str, list[Value]]] = {}
    for value in row.all_values:
        found = [outcomes[row.key(value, way)] for way in Way]
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
        silver = outcome.silver
        if silver is not None and row.form.kind in DATES:
            silver = COMPARED[row.form.kind][0](silver)
        fates[way] = _code(silver)
        if outcome.is_untyped:
            fates[way] = "untyped"
        elif not outcome.is_stored:
            fates[way] = "no row"
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
