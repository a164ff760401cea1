"""Gold as it was and as it is, which the walk-throughs show after each change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdc_lakehouse.serving.gold import Row, find_table
from cdc_lakehouse.storage.tables import read_columns

KEYS = {
    "revenue_by_customer": "customer_id",
    "revenue_by_product": "product_id",
    "revenue_by_category": "category_name",
    "revenue_by_month": "order_month",
    "revenue_by_employee": "employee_id",
    "late_shipments": "late_shipment_id",
}


class Gold:
    """The gold tables below a lake's folder.

    Args:
        lake: the folder.
        keys: the tables, and the key of each.
    """

    def __init__(self, lake: Path, keys: Mapping[str, str] = KEYS) -> None:
        self.lake = lake
        self.keys = keys

    def rows(self, table: str) -> dict[Any, Row]:
        """A table's rows by their key; none where there is no table yet."""
        found = find_table(self.lake, f"gold.{table}")
        if found is None:
            return {}
        return {row[self.keys[table]]: row for row in read_columns(found).to_pylist()}

    def everything(self) -> dict[str, dict[Any, Row]]:
        """The rows of every gold table."""
        return {table: self.rows(table) for table in self.keys}

    def committed_at(self, table: str) -> float:
        """When the newest commit of a table was completed, in seconds since 1970."""
        timeline = self.lake / "warehouse" / "gold.db" / table / ".hoodie"
        commits = [*timeline.glob("*.replacecommit"), *timeline.glob("*.commit")]
        return max((commit.stat().st_mtime for commit in commits), default=0.0)


def differences(
    before: dict[str, dict[Any, Row]], after: dict[str, dict[Any, Row]]
) -> dict[str, list[tuple[Row | None, Row | None]]]:
    """By table, the rows that are not the same: as they were and as they are."""
    found: dict[str, list[tuple[Row | None, Row | None]]] = {}
    for table, rows in after.items():
        keys = sorted({*before.get(table, {}), *rows}, key=str)
        for key in keys:
            old, new = before.get(table, {}).get(key), rows.get(key)
            if old != new:
                found.setdefault(table, []).append((old, new))
    return found
