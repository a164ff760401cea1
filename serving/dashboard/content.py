"""What the dashboard shows: gold's rows, how fresh they are, and what was rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc  # type: ignore[import-untyped]

from ingest.errors import UserError
from serving.gold import Row, find_table
from serving.storage import read_columns

# What gold.revenue_by_month calls the month of orders without a date.
NO_MONTH = date(1900, 1, 1)
INSTANTS = ["changed_at", "ingested_at"]
# In the order in which the page shows the rows.
ORDERS: dict[str, Callable[[Row], Any]] = {
    "revenue_by_customer": lambda row: (row["revenue_rank"], row["customer_id"]),
    "revenue_by_month": lambda row: row["order_month"],
    "revenue_by_category": lambda row: (row["revenue_rank"], row["category_name"]),
    "late_shipments": lambda row: (row["ship_country"], row["shipper_id"]),
}


@dataclass(frozen=True)
class Newest:
    """The newest change that a silver table holds."""

    table: str
    changed_at: datetime | None
    ingested_at: datetime | None


@dataclass(frozen=True)
class Content:
    """Everything that the page shows."""

    customers: list[Row]
    months: list[Row]
    categories: list[Row]
    shipments: list[Row]
    newest: list[Newest]
    rejected: dict[str, int]
    untyped: dict[str, int]


def read_content(lake: Path) -> Content:
    """Read what the page shows from the lake in a folder.

    Raises:
        UserError: a gold table is not there.
    """
    rows = {name: _gold_rows(lake, name) for name in ORDERS}
    return Content(
        customers=rows["revenue_by_customer"],
        months=rows["revenue_by_month"],
        categories=rows["revenue_by_category"],
        shipments=rows["late_shipments"],
        newest=_newest(lake),
        rejected=_reasons(lake, "bronze.rejected_events"),
        untyped=_reasons(lake, "silver.rejected_rows"),
    )


def _gold_rows(lake: Path, name: str) -> list[Row]:
    table = find_table(lake, f"gold.{name}")
    if table is None:
        raise UserError(
            f"there is no gold.{name} below {lake}; build it first: "
            "dbt build --profiles-dir profiles"
        )
    return sorted(read_columns(table).to_pylist(), key=ORDERS[name])


def _newest(lake: Path) -> list[Newest]:
    """The newest change of each silver table; deletes are changes, too."""
    found = []
    for folder in sorted((lake / "warehouse" / "silver.db").glob("*/")):
        table = find_table(lake, f"silver.{folder.name}")
        if table is None or folder.name == "rejected_rows":
            continue
        rows = read_columns(table, INSTANTS)
        found.append(
            Newest(folder.name, *(pc.max(rows[name]).as_py() for name in INSTANTS))
        )
    return found


def _reasons(lake: Path, name: str) -> dict[str, int]:
    """How many rows of a quarantine have which reason, the most frequent first."""
    table = find_table(lake, name)
    if table is None:
        return {}
    counts = read_columns(table, ["reason"])["reason"].value_counts().to_pylist()
    counts.sort(key=lambda count: (-count["counts"], str(count["values"])))
    return {str(count["values"]): count["counts"] for count in counts}
