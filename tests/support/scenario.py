"""Scenarios: change events of the project's tables, and what silver has after each step.

One lake goes through the steps of several scenarios at once, each with keys or a table
of its own, because a build costs seconds however few its events are. The rows of every
step are kept, so that a test reads the step that it is about and needs no other test.
"""

from __future__ import annotations

from typing import Any

from tests.support.lake import Lake
from tests.support.records import Record, Row, flattened, record
from tests.support.stories import ORDER

# The column that tells a table's rows apart; the lines of an order are told by the order.
KEYS = {
    "orders": "order_id",
    "order_items": "order_id",
    "customers": "customer_id",
    "products": "product_id",
}


def order(
    op: str, key: Any, lsn: int, offset: int, *, partition: int = 0, **columns: Any
) -> Record:
    """A flattened change of an order, with all its columns."""
    row = {**ORDER, "order_id": key, **columns}
    return record({"order_id": key}, flattened(op, row, lsn), offset, partition=partition)


def customer(op: str, key: str, lsn: int, offset: int, **columns: Any) -> Record:
    """A flattened change of a customer."""
    return _base_change("customers", op, {"customer_id": key}, lsn, offset, columns)


def product(op: str, key: int, lsn: int, offset: int, **columns: Any) -> Record:
    """A flattened change of a product."""
    return _base_change("products", op, {"product_id": key}, lsn, offset, columns)


def _base_change(
    table: str, op: str, key: Row, lsn: int, offset: int, columns: Row
) -> Record:
    value = flattened(op, {**key, **columns}, lsn, table=table)
    return record(key, value, offset, topic=f"demo.datalake.{table}")


def live(rows: list[Row], table: str) -> set[Any]:
    """The keys of a silver table's rows that are not deleted."""
    return {row[KEYS[table]] for row in rows if not row["is_deleted"]}


class Scenario:
    """A lake, and what its silver tables held after each step.

    Args:
        lake: what the steps are done to.
    """

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._steps: dict[str, dict[str, list[Row]]] = {}

    def keep(self, step: str, *tables: str) -> None:
        """Keep what silver tables hold now, after ``step``."""
        self._steps[step] = {table: self.lake.rows(f"silver.{table}") for table in tables}

    def kept(self, step: str, table: str) -> list[Row]:
        """The rows of a silver table after a step."""
        return self._steps[step][table]

    def rows(self, step: str, table: str) -> dict[Any, Row]:
        """The rows of a silver table after a step, by key; not for ``order_items``."""
        assert table != "order_items"
        return {row[KEYS[table]]: row for row in self.kept(step, table)}

    def live(self, step: str, table: str) -> set[Any]:
        """The keys that a silver table had after a step and that were not deleted."""
        return live(self.kept(step, table), table)
