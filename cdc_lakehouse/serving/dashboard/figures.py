"""The dashboard's numbers: sums of rows that it shows, and digits as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from cdc_lakehouse.serving.dashboard.content import NO_MONTH
from cdc_lakehouse.serving.gold import Row


def total(rows: Sequence[Row], column: str) -> Any:
    """The sum of a column over rows that are shown; None where all of them lack it."""
    values = [row[column] for row in rows if row[column] is not None]
    return sum(values) if values or not rows else None


def part(amount: Any, whole: Any) -> Decimal | None:
    """An amount by a whole; None where there is no such number."""
    if amount is None or not whole:
        return None
    return Decimal(amount) / Decimal(whole)


def shown(value: Any, kind: str) -> str:
    """A value as people read it.

    Args:
        value: what gold has.
        kind: ``money``, ``number``, ``count``, ``share``, ``month``, ``instant`` or
            ``text``.
    """
    if value is None or value == "":
        return "-"
    if kind == "month":
        return "No date" if value == NO_MONTH else f"{value:%B %Y}"
    if kind == "instant":
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    formats = {"money": ",.2f", "number": ",.1f", "count": ",", "share": ".1%"}
    return format(value, formats[kind]) if kind in formats else str(value)
