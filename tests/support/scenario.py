"""Change events of the project's tables."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.support.records import START_MS, Record, Row, envelope, flattened, record
from tests.support.stories import ORDER

MARKERS_TOPIC = "demo.datalake.complete_snapshots"
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


def _change(
    table: str,
    op: str,
    key: Any,
    lsn: int,
    offset: int,
    *,
    source: str = "demo",
    at: int = START_MS,
    **columns: Any,
) -> Record:
    """A flattened change in the topic of a source."""
    row = {KEYS[table]: key}
    value = flattened(op, row | columns, lsn, at, table=table)
    return record(row, value, offset, topic=f"{source}.datalake.{table}")


customer, product = (partial(_change, table) for table in ("customers", "products"))


def keyless_delete(key: int, lsn: int, offset: int) -> Record:
    """An order's delete in Debezium's envelope, whose record has no key."""
    return record(None, envelope("d", {"order_id": key}, lsn), offset)


def truncate(table: str, lsn: int) -> Record:
    """A truncate of a table, which only Debezium's envelope brings."""
    value = envelope("t", None, lsn, table=table)
    return record(None, value, 10, topic=f"demo.datalake.{table}")


def marker(table: str, count: int, lsn: int, offset: int, source: str = "demo") -> Record:
    """What a snapshot reads of the table ``complete_snapshots``."""
    row = {
        "id": f"resync-{offset}",
        "topic": f"{source}.datalake.{table}",
        "bronze_table": table,
        "row_count": count,
    }
    value = flattened("r", row, lsn, table="complete_snapshots")
    return record({"id": row["id"]}, value, offset, topic=MARKERS_TOPIC)


MAKERS: dict[str, Callable[..., Record]] = {
    **{"order": order, "customer": customer, "product": product, "marker": marker},
    **{"truncate": truncate, "keyless_delete": keyless_delete},
}


def made(event: list[Any]) -> Record:
    """An event of a file: what makes it, and what that is given, also by name."""
    kind, *given = event
    named = given.pop() if isinstance(given[-1], dict) else {}
    return MAKERS[kind](*given, **named)


def live(rows: list[Row], table: str) -> set[Any]:
    """The keys of a silver table's rows that are not deleted."""
    return {row[KEYS[table]] for row in rows if not row["is_deleted"]}
