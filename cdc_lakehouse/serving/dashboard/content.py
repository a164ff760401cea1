"""What the dashboard shows: gold's rows, how fresh they are, and what was rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.gold import Row, find_table, table_names, written_at
from cdc_lakehouse.storage.tables import read_columns, schema_of

# What gold.revenue_by_month calls the month of orders without a date.
NO_MONTH = date(1900, 1, 1)
INSTANTS = ["changed_at", "ingested_at"]
# In the order in which the page shows the rows.
ORDERS: dict[str, Callable[[Row], Any]] = {
    "revenue_by_customer": lambda row: (row["revenue_rank"], row["customer_id"]),
    "revenue_by_month": lambda row: row["order_month"],
    "revenue_by_category": lambda row: (row["revenue_rank"], row["category_name"]),
    "late_shipments": lambda row: (row["ship_country"], row["shipper_id"]),
    "order_waits": lambda row: row["order_month"],
}
# What is built only where a variable asks for it (docs/history.md).
OPTIONAL = {"order_waits"}
# What gold is computed from, as the models say: the tables shown, and what they read.
INPUTS = {
    "gold.revenue_by_customer": ["silver.order_items", "silver.orders"],
    "gold.revenue_by_month": ["silver.order_items", "silver.orders"],
    "gold.revenue_by_category": ["gold.revenue_by_product"],
    "gold.revenue_by_product": ["silver.order_items", "silver.orders"],
    "gold.late_shipments": ["silver.orders"],
    "gold.order_waits": ["silver.orders_history"],
}


@dataclass(frozen=True)
class Freshness:
    """When a table was written, and the newest change that it holds, if it is silver's."""

    table: str
    changed_at: datetime | None
    ingested_at: datetime | None
    written_at: datetime | None


@dataclass(frozen=True)
class Content:
    """Everything that the page shows."""

    customers: list[Row]
    months: list[Row]
    categories: list[Row]
    shipments: list[Row]
    waits: list[Row]
    freshness: list[Freshness]
    outdated: dict[str, list[str]]
    rejected: dict[str, int]
    without_key: dict[str, int]

    @property
    def computed_at(self) -> datetime | None:
        """When the oldest of gold's numbers was computed."""
        gold = [table for table in self.freshness if table.table.startswith("gold.")]
        return min((table.written_at for table in gold if table.written_at), default=None)


def read_content(lake: Path | str) -> Content:
    """Read what the page shows from the lake in a folder, or at an ``s3://`` URL.

    Raises:
        UserError: a gold table is not there, or a table cannot be read.
    """
    rows = {name: _gold_rows(lake, name) for name in ORDERS}
    written = _written(lake)
    shown = [name for name in (f"gold.{name}" for name in ORDERS) if name in written]
    return Content(
        customers=rows["revenue_by_customer"],
        months=rows["revenue_by_month"],
        categories=rows["revenue_by_category"],
        shipments=rows["late_shipments"],
        waits=rows["order_waits"],
        freshness=[
            *_silver_freshness(lake),
            *(Freshness(name, None, None, written[name]) for name in shown),
        ],
        outdated={
            name: inputs for name in shown if (inputs := newer_inputs(name, written))
        },
        rejected=_reasons(lake, "bronze.rejected_events"),
        without_key=_reasons(lake, "silver.rejected_rows"),
    )


def newer_inputs(table: str, written: dict[str, datetime | None]) -> list[str]:
    """The tables that were written after what is computed from them, up to this table.

    Gold is computed anew whenever an input has a new commit, whatever is in it, and begins
    after that. So a commit that is newer than gold's own has not been computed.

    Args:
        table: a table of gold, or what it reads.
        written: when each table was written.
    """
    found = set()
    own = written.get(table)
    for name in INPUTS.get(table, []):
        at = written.get(name)
        if at is not None and (own is None or at > own):
            found.add(name)
        found.update(newer_inputs(name, written))
    return sorted(found)


def _gold_rows(lake: Path | str, name: str) -> list[Row]:
    table = find_table(lake, f"gold.{name}")
    if table is None and name in OPTIONAL:
        return []
    if table is None:
        raise UserError(
            f"there is no gold.{name} below {lake}; build it first: "
            "dbt build --profiles-dir profiles"
        )
    return sorted(read_columns(table).to_pylist(), key=ORDERS[name])


def _written(lake: Path | str) -> dict[str, datetime | None]:
    """When gold and what it is computed from were written; nothing of what is not there."""
    return {
        name: written_at(table, is_whole=name.startswith("gold."))
        for name in {*INPUTS, *chain(*INPUTS.values())}
        if (table := find_table(lake, name)) is not None
    }


def _silver_freshness(lake: Path | str) -> list[Freshness]:
    """The newest change of each table of current rows; deletes are changes, too."""
    found = []
    for silver in table_names(lake, "silver"):
        name = f"silver.{silver}"
        table = find_table(lake, name)
        if table is None or silver == "rejected_rows":
            continue
        # A history has versions, and no current rows.
        if "history_id" in schema_of(table).names:
            continue
        rows = read_columns(table, INSTANTS)
        changed_at, ingested_at = (pc.max(rows[instant]).as_py() for instant in INSTANTS)
        found.append(Freshness(name, changed_at, ingested_at, written_at(table)))
    return found


def _reasons(lake: Path | str, name: str) -> dict[str, int]:
    """How many rows of a quarantine have which reason, the most frequent first."""
    table = find_table(lake, name)
    if table is None:
        return {}
    counts = read_columns(table, ["reason"])["reason"].value_counts().to_pylist()
    counts.sort(key=lambda count: (-count["counts"], str(count["values"])))
    return {str(count["values"]): count["counts"] for count in counts}
