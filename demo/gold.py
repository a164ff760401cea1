"""Gold as a reader sees it that is not Spark, and when it saw it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from hudi import HudiTableBuilder

Row = dict[str, Any]

KEYS = {
    "revenue_by_customer": "customer_id",
    "revenue_by_product": "product_id",
    "revenue_by_category": "category_name",
    "revenue_by_month": "order_month",
    "revenue_by_employee": "employee_id",
    "late_shipments": "late_shipment_id",
}


class Gold:
    """The gold tables below a lake's folder."""

    def __init__(self, lake: Path) -> None:
        self.folder = lake / "warehouse" / "gold.db"

    def rows(self, table: str) -> dict[Any, Row]:
        """A table's rows by their key; none where there is no table yet."""
        path = self.folder / table
        if not (path / ".hoodie" / "hoodie.properties").exists():
            return {}
        batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
        if not batches:
            return {}
        found = pa.Table.from_batches(batches)
        kept = [name for name in found.column_names if not name.startswith("_hoodie_")]
        return {row[KEYS[table]]: row for row in found.select(kept).to_pylist()}

    def everything(self) -> dict[str, dict[Any, Row]]:
        """The rows of every gold table."""
        return {table: self.rows(table) for table in KEYS}

    def committed_at(self, table: str) -> float:
        """When the newest commit of a table was completed, in seconds since 1970."""
        timeline = self.folder / table / ".hoodie"
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
