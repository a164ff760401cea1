"""The dashboard's page, from what it shows.

What a number means is decided in ``models/gold``. Here is only how it is shown: the order
of rows, the twenty customers with a name, sums of the rows shown, and digits.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cdc_lakehouse.serving.dashboard.charts import (
    RARE,
    averages_chart,
    late_chart,
    months_chart,
    shares_chart,
    waits_chart,
)
from cdc_lakehouse.serving.dashboard.content import NO_MONTH, Content
from cdc_lakehouse.serving.dashboard.figures import part, shown, total
from cdc_lakehouse.serving.gold import Row

FOLDER = Path(__file__).parent
NAMED_CUSTOMERS = 20
ADDED = ("avg_item_quantity", "avg_item_revenue", "buys")
SCRIPTS = (
    *("vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-embed.min.js"),
    "page.js",
)


def page_of(content: Content, written_at: datetime) -> str:
    """The page, with its styles, its scripts and its data inside."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    scripts = [(FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS]
    # Gold that an earlier version built has these columns after its next build only.
    customers = [
        {**dict.fromkeys(ADDED), **row, "name": _customer_name(row)}
        for row in content.customers
    ]
    largest = shares(customers)
    rare = [row for row in customers if row["buys"] == RARE]
    dated = [row for row in content.months if row["order_month"] != NO_MONTH]
    waits = [row for row in content.waits if row["order_month"] != NO_MONTH]
    shipments = [{**row, "shipper": _shipper_name(row)} for row in content.shipments]
    charts = {
        "shares": shares_chart(largest),
        "averages": averages_chart(customers, "order"),
        "lines": averages_chart(customers, "line"),
        "months": months_chart(dated),
        "late": late_chart(shipments),
        "waits": waits_chart(waits),
    }
    return environment.get_template("page.html.jinja").render(
        content=content,
        written_at=written_at,
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        hashes=[_hash(script) for script in scripts],
        customers=customers,
        rare=rare,
        shares=largest,
        dated=dated,
        undated=[row for row in content.months if row["order_month"] == NO_MONTH],
        waits=waits,
        shipments=shipments,
        charts={name: chart for name, chart in charts.items() if chart},
        lengths=lengths,
        part=part,
        total=total,
    )


def shares(customers: list[Row]) -> list[Row]:
    """The customers with the highest revenue, then the rest together, without a rank."""
    rest = customers[NAMED_CUSTOMERS:]
    named = customers[:NAMED_CUSTOMERS]
    steps = max(len(named) - 1, 1)
    largest = [
        {**row, "colour": f"color-mix(in srgb, var(--last) {at / steps:.0%}, var(--first))"}
        for at, row in enumerate(named)
    ]
    if not rest:
        return largest
    together = {
        "name": f"The other {len(rest):,}",
        "revenue": total(rest, "revenue"),
        "revenue_rank": None,
        "revenue_share": total(rest, "revenue_share"),
        "colour": "var(--rest)",
    }
    return [*largest, together]


def _customer_name(row: Row) -> str:
    """The company's name; its key where no order shows one."""
    if row["customer_id"] == "unknown":
        return "No customer"
    return str(row["company_name"] or row["customer_id"])


def _shipper_name(row: Row) -> str:
    if row["shipper_name"]:
        return str(row["shipper_name"])
    return f"Shipper {row['shipper_id']}" if row["shipper_id"] else "No shipper"


def lengths(rows: Sequence[Row]) -> list[float]:
    """How long the bars of revenue are, the longest being 1."""
    sizes = [abs(row["revenue"] or 0) for row in rows]
    return [float(part(size, max(sizes)) or 0) for size in sizes]


def _hash(script: str) -> str:
    """A script's name in a content security policy, which lets nothing else run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
