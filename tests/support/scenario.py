"""Change events of the project's tables."""

from typing import Any

from tests.support.records import START_MS, Record, Row, flattened, record
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


def customer(
    op: str, key: str, lsn: int, offset: int, *, at: int = START_MS, **columns: Any
) -> Record:
    """A flattened change of a customer."""
    row = {"customer_id": key}
    value = flattened(op, row | columns, lsn, at, table="customers")
    return record(row, value, offset, topic="demo.datalake.customers")


def product(
    op: str, key: int, lsn: int, offset: int, *, source: str = "demo", **columns: Any
) -> Record:
    """A flattened change of a product, in the topic of a source."""
    row = {"product_id": key}
    value = flattened(op, row | columns, lsn, table="products")
    return record(row, value, offset, topic=f"{source}.datalake.products")


def live(rows: list[Row], table: str) -> set[Any]:
    """The keys of a silver table's rows that are not deleted."""
    return {row[KEYS[table]] for row in rows if not row["is_deleted"]}
