"""Histories that chance hardly draws: each is what a wrong change of the fold lives on.

They come first in their lanes, so that their positions are the lowest of a build. Some show
nothing where others share their builds, whose late events have rows folded again anyway
(``tests/servers/test_history_seeds.py`` builds them alone).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.support.histories import BATCHES, LANES, Lane, Outcome
from tests.support.records import START_MS
from tests.support.reference import Event

EMPLOYEE = frozenset({"employee"})
LINES = '[{"product_id": 11, "unit_price": 14, "quantity": %d, "discount": 0}]'


def written() -> dict[Lane, list[Outcome]]:
    """The histories, by lane."""
    by_name = {
        "late": [_first_delivery_behind_another()],
        "no_offsets": [_older_value_behind_a_read()],
        "partitions": [_read_in_another_partition()],
        "everything": [
            _key_change_that_is_known_late(),
            _value_of_a_previous_key_that_comes_late(),
            _first_delivery_behind_another(),
            _change_that_a_lost_read_is_behind_of(),
            _lines_that_a_key_change_brings_late(),
            _read_that_a_late_event_puts_ahead(),
        ],
    }
    lanes = {lane.name: lane for lane in LANES}
    return {
        lanes[name]: [Outcome(_in_all(batches), {}, lanes[name]) for batches in histories]
        for name, histories in by_name.items()
    }


def _in_all(batches: Iterable[list[Event]]) -> list[list[Event]]:
    return [*batches, *([] for _ in range(BATCHES))][:BATCHES]


def _event(
    op: str,
    lsn: int | None,
    offset: int | None,
    employee: str | None = "first",
    *,
    key: int = 0,
    partition: int | None = 0,
) -> Event:
    """One of a key's events; the source made it at the time that its LSN says."""
    row = {
        "customer_id": "ALFKI",
        "shipped_date": 10_000,
        "order_items": None,
        "employee": employee and f'"{employee}"',
    }
    missing = EMPLOYEE if employee is None else frozenset()
    values = {} if op == "d" else {n: v for n, v in row.items() if n not in missing}
    return Event(
        *(key, op, lsn, START_MS + (lsn or 40), values, missing),
        partition=partition,
        offset=offset,
        event_id=f"{offset or 0:06d}",
    )


def _first_delivery_behind_another() -> list[list[Event]]:
    """An event counts at the offset of its first delivery, whichever arrives first."""
    return [[_event("c", 10, 9)], [_event("c", 10, 3)]]


def _older_value_behind_a_read() -> list[list[Event]]:
    """A value that a read brought keeps its place, also where offsets are unknown."""
    read = _event("r", 100, None, partition=None)
    update = _event("u", 200, None, None, partition=None)
    return [[read, update], [_event("u", 50, None, "older", partition=None)]]


def _read_in_another_partition() -> list[list[Event]]:
    """The offsets of two partitions say nothing of which event came first."""
    change = _event("c", 10, 0, partition=0)
    return [[change], [_event("r", None, 9, "read", partition=1)]]


def _read_that_a_late_event_puts_ahead() -> list[list[Event]]:
    """A read that lost stands behind what was sent before it in its partition, and wins."""
    read = _event("r", None, 2, "read")
    update = _event("u", 200, 3, None, partition=1)
    return [[_event("c", 100, 0), read, update], [_event("u", 300, 1)]]


def _key_change_that_is_known_late() -> list[list[Event]]:
    """A row waits for its previous key, also after a change that left the value out."""
    begun = [_event("c", 20, 5, None, key=1)]
    changed = [_event("u", 30, 6, None, key=1)]
    return [begun, changed, [_event("c", 10, 0), _event("d", 20, 4)]]


def _value_of_a_previous_key_that_comes_late() -> list[list[Event]]:
    """A key change takes over what a late event brings to the key before it."""
    first = [_event("c", 10, 0), _event("d", 30, 3), _event("c", 30, 4, None, key=1)]
    return [first, [], [_event("u", 20, 1, "second")]]


def _change_that_a_lost_read_is_behind_of() -> list[list[Event]]:
    """A read lost to a change of a higher offset; a newer one has a lower offset."""
    read = _event("r", None, 5, "read")
    return [[_event("c", 10, 0), read, _event("u", 50, 9)], [_event("u", 60, 3, "new")]]


def _lines_that_a_key_change_brings_late() -> list[list[Event]]:
    """The lines of the row that the key had before are not those of the row that came."""
    first = _with_lines(_event("c", 10, 0, key=1), LINES % 3)
    came = _with_lines(_event("c", 30, 3, key=1), None)
    former = _with_lines(_event("c", 20, 2), LINES % 5)
    return [[first], [_event("d", 15, 1, key=1), came], [former, _event("d", 30, 4)]]


def _with_lines(event: Event, lines: str | None) -> Event:
    if lines is not None:
        return replace(event, values={**event.values, "order_items": lines})
    left = {name: value for name, value in event.values.items() if name != "order_items"}
    return replace(event, values=left, missing=event.missing | {"order_items"})
