"""Short histories of an order or a few, as change events in the batches that bring them.

A story is a text (``stories.toml``): batches are parted by ``|``, their events by commas.
An event is an operation and its LSN (``r-`` is an incremental snapshot's read, which has
none), and what it differs in from the usual one: its ``key``, ``time`` in seconds (else its
LSN, 1,000 later an epoch), ``offset`` (else the next), ``epoch``, ``partition``, ``topic``
and ``table``, and the row's columns: ``shipped`` in days, ``customer``, ``employee``,
``items`` and ``products``. ``?`` is a value that the event leaves out. An event that is
there twice was delivered twice.

``tests/lake/test_contract.py`` delivers each story in several ways, and
``tests/lake/test_histories.py`` puts it into the lane that has no more than it needs. The
first come first there: their positions are the lowest of a build, so that no other story's
late event has their rows folded again (``tests/servers/test_history_seeds.py`` builds those
of ``ALONE`` without others). Those of ``SHARED`` are of a topic that several tables share.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from tests.support.records import START_MS, UNAVAILABLE, Row
from tests.support.reference import Event

_file = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
EMPLOYEE = json.dumps({"employee_id": 5, "notes": "x" * 40})
LINE = '[{"product_id": 11, "unit_price": %s, "quantity": %d, "discount": %s}]'
LINES = [
    {"product_id": 11, "unit_price": 14.0, "quantity": 12, "discount": 0.0},
    {"product_id": 42, "unit_price": 9.8, "quantity": 10, "discount": 0.15},
]
ORDER: Row = _file["order"] | {"shipped_date": None, "employee": EMPLOYEE}
# What the unwrap transform makes of a deleted row whose other columns are unknown.
DELETED = dict.fromkeys(ORDER) | {"customer_id": ""}
# The columns and the values that have other names in a story.
COLUMNS = {"customer": "customer_id", "shipped": "shipped_date", "items": "order_items"}
VALUES = {
    "?": UNAVAILABLE,
    "none": None,
    "two": json.dumps(LINES),
    "second": json.dumps(LINES[1:]),
    "another": LINE % (15.5, 3, 0.25),
    "padded": "ALF  ",
}
Batches = list[list[Event]]
ALONE: dict[str, str] = _file["alone"]
STORIES: dict[str, str] = ALONE | _file["others"]
FORMS: dict[str, str] = _file["forms"]
SHARED: dict[str, str] = _file["truncated"]
BY_LANE: dict[str, list[str]] = {**_file["lanes"], "everything": [*STORIES]}


def parse_story(story: str) -> Batches:
    """The batches of a story's text."""
    next_offset = 0
    batches: Batches = []
    for batch in story.split("|"):
        batches.append([])
        for text in filter(None, map(str.strip, batch.split(","))):
            event = _parse_event(text, next_offset)
            next_offset = max(next_offset, 1 + (event.offset or 0))
            batches[-1].append(event)
    return batches


def _parse_event(text: str, next_offset: int) -> Event:
    head, *given = text.split()
    op, lsn = head[0], None if head[1:] == "-" else int(head[1:])
    place: dict[str, Any] = {"key": 0, "epoch": 0, "partition": 0, "offset": next_offset}
    row = {"c": ORDER, "u": ORDER, "r": ORDER, "d": DELETED, "t": {}}[op].copy()
    for name, _, value in (each.partition("=") for each in given):
        if name in ("topic", "table"):
            place[name] = value
        elif name in ("key", "time", "offset", "epoch", "partition"):
            place[name] = None if value == "none" else int(value)
        elif name == "shipped":
            row["shipped_date"] = 10_000 + int(value)
        else:
            named = VALUES.get(value, json.dumps(value) if name == "employee" else value)
            row[COLUMNS.get(name, name)] = named
    seconds = place.pop("time", 1_000 * place["epoch"] + (lsn or 0))
    missing = frozenset(name for name, value in row.items() if value == UNAVAILABLE)
    if place["partition"] is None:
        place["offset"] = None
    return Event(
        op=op,
        lsn=lsn,
        time=START_MS + 1_000 * seconds,
        values={name: value for name, value in row.items() if name not in missing},
        missing=missing,
        event_id="" if place["offset"] is None else f"{place['offset']:06d}",
        **place,
    )
