"""Short histories of an order or a few, told as change events in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.support.records import TOPIC, Record, Row, envelope, flattened, record

START_MS = 1_767_225_600_000
ITEMS = '[{"product_id": 11, "unit_price": 14, "quantity": 12, "discount": 0}]'
EMPLOYEE = json.dumps({"employee_id": 5, "notes": "x" * 40})
ORDER: Row = {
    "customer_id": "ALFKI",
    "order_date": 10_000,
    "required_date": 10_028,
    "shipped_date": None,
    "order_items": ITEMS,
    "products": '[{"product_id": 11}]',
    "customer": '{"company_name": "Alfreds Futterkiste", "country": "Germany"}',
    "employee": EMPLOYEE,
    "shipper": '{"shipper_id": 2}',
    "shipment": '{"freight": 58.17}',
    "updated_at": "2026-01-01T00:00:00.5Z",
}


@dataclass(frozen=True)
class Change:
    """One change event; LSN, offset and time count from the story's own beginning."""

    op: str
    key: int
    lsn: int | None
    row: tuple[tuple[str, Any], ...]
    time: int
    offset: int | None = None
    topic: str = TOPIC
    form: str = "flattened"


def _change(op: str, lsn: int | None, columns: dict[str, Any]) -> Change:
    known = {
        name: columns.pop(name)
        for name in ("key", "offset", "time", "topic", "form")
        if name in columns
    }
    row = {**ORDER, **columns}
    if op == "d":
        row = {name: "" if name == "customer_id" else None for name in ORDER}
    return Change(
        op=op,
        key=known.pop("key", 0),
        lsn=lsn,
        row=tuple(row.items()),
        time=known.pop("time", lsn),
        **known,
    )


def create(lsn: int, **columns: Any) -> Change:
    return _change("c", lsn, columns)


def update(lsn: int, **columns: Any) -> Change:
    return _change("u", lsn, columns)


def delete(lsn: int, **columns: Any) -> Change:
    return _change("d", lsn, columns)


def read(lsn: int | None, **columns: Any) -> Change:
    """A snapshot's read; an incremental snapshot's has no LSN, and needs a ``time``."""
    return _change("r", lsn, columns)


def again(change: Change, offset: int) -> Change:
    """The same event, delivered once more."""
    return replace(change, offset=offset)


Batches = list[list[Change]]


def with_offsets(batches: Batches) -> Batches:
    """The batches, each event with its own offset, or one above the highest so far."""
    highest = -1
    placed: Batches = []
    for batch in batches:
        placed.append([])
        for change in batch:
            offset = highest + 1 if change.offset is None else change.offset
            highest = max(highest, offset)
            placed[-1].append(replace(change, offset=offset))
    return placed


def records(batch: list[Change], first_key: int) -> Iterator[Record]:
    """The Kafka records of a batch, of a story whose keys start at ``first_key``.

    Every story has LSNs and offsets of its own, so that stories do not meet.
    """
    for change in batch:
        key = {"order_id": first_key + change.key}
        lsn = None if change.lsn is None else change.lsn + first_key * 1000
        row = {**key, **dict(change.row)}
        time = START_MS + change.time * 1000
        value: Any
        if change.form == "flattened":
            value = flattened(change.op, row, lsn, time)
        elif change.form == "flattened key":
            value = flattened(change.op, key, lsn, time)
        elif change.form == "envelope":
            value = envelope(change.op, row, lsn, time)
        else:
            assert change.form == "envelope key"
            value = envelope(change.op, None, lsn, time)
        assert change.offset is not None
        offset = change.offset + first_key * 1000
        # As in a partition of Kafka, later records have higher offsets.
        yield record(key, value, offset, change.topic, timestamp=START_MS + offset)
