"""The dashboard's page, from what it shows.

What a number means is decided in ``models/gold``. Here is only how it is shown: the order
of rows, the twenty customers with a name, sums of the rows shown, and digits.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cdc_lakehouse.serving.dashboard.content import NO_MONTH, Content
from cdc_lakehouse.serving.gold import Row

FOLDER = Path(__file__).parent
NAMED_CUSTOMERS = 20


def page_of(content: Content, written_at: datetime) -> str:
    """The page, with its styles, its scripts and its data inside."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"default": _json_value}
    environment.filters["shown"] = shown
    scripts = [_plotly(), (FOLDER / "page.js").read_text(encoding="utf-8")]
    customers = [{**row, "name": _customer_name(row)} for row in content.customers]
    dated = [row for row in content.months if row["order_month"] != NO_MONTH]
    return environment.get_template("page.html.jinja").render(
        content=content,
        written_at=written_at,
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        hashes=[_hash(script) for script in scripts],
        customers=customers,
        shares=shares(customers),
        dated=dated,
        undated=[row for row in content.months if row["order_month"] == NO_MONTH],
        waits=[row for row in content.waits if row["order_month"] != NO_MONTH],
        shipments=[{**row, "shipper": _shipper_name(row)} for row in content.shipments],
        lengths=lengths,
        part=part,
        total=total,
    )


def shares(customers: list[Row]) -> list[Row]:
    """The customers with the highest revenue, then the rest together, without a rank."""
    rest = customers[NAMED_CUSTOMERS:]
    if not rest:
        return customers
    together = {
        "name": f"The other {len(rest):,}",
        "revenue": total(rest, "revenue"),
        "revenue_rank": None,
        "revenue_share": total(rest, "revenue_share"),
    }
    return [*customers[:NAMED_CUSTOMERS], together]


def _customer_name(row: Row) -> str:
    """The company's name; its key where no order shows one."""
    if row["customer_id"] == "unknown":
        return "No customer"
    return str(row["company_name"] or row["customer_id"])


def _shipper_name(row: Row) -> str:
    if row["shipper_name"]:
        return str(row["shipper_name"])
    return f"Shipper {row['shipper_id']}" if row["shipper_id"] else "No shipper"


def total(rows: Sequence[Row], column: str) -> Any:
    """The sum of a column over rows that are shown; None where all of them lack it."""
    values = [row[column] for row in rows if row[column] is not None]
    return sum(values) if values or not rows else None


def part(amount: Any, whole: Any) -> Decimal | None:
    """An amount by a whole; None where there is no such number."""
    if amount is None or not whole:
        return None
    return Decimal(amount) / Decimal(whole)


def lengths(rows: Sequence[Row]) -> list[float]:
    """How long the bars of revenue are, the longest being 1."""
    sizes = [abs(row["revenue"] or 0) for row in rows]
    return [float(part(size, max(sizes)) or 0) for size in sizes]


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


def _json_value(value: Any) -> Any:
    """What JSON has no word for: decimals as numbers, days and instants as text."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in the page's data")


def _plotly() -> str:
    script = importlib.resources.files("plotly") / "package_data" / "plotly.min.js"
    return script.read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """A script's name in a content security policy, which lets nothing else run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
