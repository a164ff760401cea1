"""Short histories of an order or a few, as change events in the batches that bring them.

A story is a text: batches are parted by ``|``, their events by commas. An event is an
operation and its LSN (``r-`` is an incremental snapshot's read, which has none), and what
it differs in from the usual one: its ``key``, ``time`` in seconds (else its LSN),
``offset`` (else the next), ``epoch`` and ``partition``, and the row's columns: ``shipped``
in days, ``customer``, ``employee``, ``items`` and ``products``. ``?`` is a value that the
event leaves out. An event that is there twice was delivered twice.

``tests/lake/test_contract.py`` delivers each story in several ways, and
``tests/lake/test_histories.py`` puts it into the lane that has no more than it needs. The
first come first there: their positions are the lowest of a build, so that no other story's
late event has their rows folded again (``tests/servers/test_history_seeds.py`` builds those
of ``ALONE`` without others).
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.support.records import START_MS, UNAVAILABLE, Record, Row, flattened, record
from tests.support.reference import Event

EMPLOYEE = json.dumps({"employee_id": 5, "notes": "x" * 40})
LINE = '[{"product_id": 11, "unit_price": %s, "quantity": %d, "discount": %s}]'
LINES = [
    {"product_id": 11, "unit_price": 14.0, "quantity": 12, "discount": 0.0},
    {"product_id": 42, "unit_price": 9.8, "quantity": 10, "discount": 0.15},
]
ORDER: Row = {
    "customer_id": "ALFKI",
    "order_date": 10_000,
    "required_date": 10_028,
    "shipped_date": None,
    "order_items": LINE % (14, 12, 0),
    "products": '[{"product_id": 11}]',
    "customer": '{"company_name": "Alfreds Futterkiste", "country": "Germany"}',
    "employee": EMPLOYEE,
    "shipper": '{"shipper_id": 2}',
    "shipment": '{"freight": 58.17}',
    "updated_at": "2026-01-01T00:00:00.5Z",
}
# What the unwrap transform makes of a deleted row whose other columns are unknown.
DELETED = dict.fromkeys(ORDER) | {"customer_id": ""}
PLACE = {"key", "time", "offset", "epoch", "partition", "topic"}
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


def _event(
    op: str,
    lsn: int | None,
    row: Row,
    *,
    key: int = 0,
    time: int | None = None,
    **place: Any,
) -> Event:
    missing = frozenset(name for name, value in row.items() if value == UNAVAILABLE)
    values = {name: value for name, value in row.items() if name not in missing}
    at = START_MS + 1_000 * (lsn or 0 if time is None else time)
    return Event(key, op, lsn, at, values, missing, **place)


def _change(op: str, lsn: int | None, columns: dict[str, Any]) -> Event:
    place = {name: columns.pop(name) for name in {*columns} & PLACE}
    return _event(op, lsn, ORDER | columns, **place)


def create(lsn: int, **columns: Any) -> Event:
    return _change("c", lsn, columns)


def update(lsn: int, **columns: Any) -> Event:
    return _change("u", lsn, columns)


def delete(lsn: int, row: Row = DELETED, **place: Any) -> Event:
    return _event("d", lsn, row, **place)


def told(story: str) -> Batches:
    """The batches of a story's text."""
    batches = [batch.split(",") for batch in story.split("|")]
    return with_offsets(
        [[_told(text) for text in batch if text.strip()] for batch in batches]
    )


def _told(text: str) -> Event:
    head, *given = text.split()
    op, lsn = head[0], None if head[1:] == "-" else int(head[1:])
    columns: dict[str, Any] = {}
    for name, _, value in (each.partition("=") for each in given):
        if name in PLACE:
            columns[name] = (
                None if value == "none" else value if name == "topic" else int(value)
            )
        elif name == "shipped":
            columns["shipped_date"] = 10_000 + int(value)
        else:
            named = VALUES.get(value, json.dumps(value) if name == "employee" else value)
            columns[COLUMNS.get(name, name)] = named
    return delete(lsn or 0, **columns) if op == "d" else _change(op, lsn, columns)


def with_offsets(batches: Batches) -> Batches:
    """The batches, each event with its own offset, or one above the highest so far."""
    highest = -1
    placed: Batches = []
    for batch in batches:
        placed.append([])
        for event in batch:
            if event.partition is not None:
                offset = highest + 1 if event.offset is None else event.offset
                highest = max(highest, offset)
                event = replace(event, offset=offset, event_id=f"{offset:06d}")
            placed[-1].append(event)
    return placed


def records(batch: list[Event], first_key: int) -> Iterator[Record]:
    """The Kafka records of a batch, of a story whose keys start at ``first_key``."""
    for event in batch:
        key = {"order_id": first_key + event.key}
        value = flattened(event.op, key | {**event.values}, event.lsn, event.time)
        yield record(key, value, event.offset)


# Those of which another key's late event would hide what is wrong.
ALONE = {
    # A row waits for its previous key, also after a change that left the value out.
    "key_change_that_is_known_late": "c20 key=1 offset=5 employee=?"
    " | u30 key=1 offset=6 employee=? | c10 offset=0, d20 offset=4",
    # A key change takes over what a late event brings to the key before it.
    "value_of_a_previous_key_that_comes_late": "c10, d30 offset=3, c30 key=1 employee=?"
    " | | u20 offset=1 employee=second",
    # An event counts at the offset of its first delivery, whichever arrives first.
    "first_delivery_behind_another": "c10 offset=9 | c10 offset=3",
    # A read lost to a change of a higher offset; a newer one has a lower offset.
    "change_that_a_lost_read_is_behind_of": "c10, r- time=40 offset=5, u50 offset=9"
    " | u60 offset=3 employee=new",
    # The lines of the row that the key had before are not those of the row that came.
    "lines_that_a_key_change_brings_late": "c10 key=1 items=second"
    " | d15 key=1, c30 key=1 offset=3 items=? | c20 offset=2 items=another, d30 offset=4",
    # A read that lost stands behind what was sent before it in its partition, and wins.
    "read_that_a_late_event_puts_ahead": "c100, r- time=40 offset=2 employee=read,"
    " u200 partition=1 offset=3 employee=? | u300 offset=1",
}
STORIES = ALONE | {
    # A value that a read brought keeps its place, also where offsets are unknown.
    "older_value_behind_a_read": "r100 partition=none, u200 partition=none employee=?"
    " | u50 partition=none employee=older",
    # The offsets of two partitions say nothing of which event came first.
    "read_in_another_partition": "c10 | r- time=40 offset=9 partition=1 employee=read",
    "toasted_key_changes_one_after_another": "c10 | d20, c20 key=1 employee=?"
    " | d30 key=1, c30 key=2 employee=? | u40 key=2 employee=? shipped=1",
    "toasted_key_changes_back_and_forth": "c10 | d20, c20 key=1 employee=?"
    " | d30 key=1, c30 employee=?",
    # What is stored came along another chain of key changes, whose new link lacks its past.
    "toasted_key_change_whose_old_row_had_one_itself": "c10, d30, c30 key=1 employee=?"
    " | d15, c20 employee=?",
    # A read behind a change that its row does not remember any more.
    "read_of_a_left_out_value_from_before_the_row": "u25 offset=1 employee=?,"
    " u31 offset=3 employee=? | r34 offset=2 time=20 employee=read"
    " | u22 offset=0 employee=late",
    "toasted_key_change_before_the_old_row": "d20, c20 key=1 employee=? | c10",
    "insert": "c10",
    "update": "c10 | u20 shipped=1",
    "update_to_null": "c10, u20 shipped=1 | u30",
    "delete": "c10 | d20",
    "delete_then_insert_again": "c10 | d20 | c30 customer=ANATR",
    "delete_before_insert_before_insert_again": "d20 offset=1 | c10 offset=0"
    " | c30 offset=2",
    "delete_twice_around_an_insert": "c10, d20 | c30 | d20",
    "older_after_newer": "c10, u30 offset=2 shipped=2"
    " | u20 offset=1 customer=ANATR shipped=1",
    "range_delivered_again": "c10, u20 shipped=1, u30 shipped=2 | c10, u20 shipped=1"
    " | u30 shipped=2, u40 shipped=3",
    # The transaction that commits last has the lowest LSN: order by LSN within a key, never
    # watermark on it (https://github.com/MaterializeInc/materialize/issues/5262).
    "two_interleaved_transactions": "c1, c2 key=1, u20 key=1 shipped=1"
    " | u10 shipped=2, u40 key=1 shipped=3",
    "transaction_open_during_the_snapshot_wins": "r100 | u90 time=110 shipped=1",
    "delete_open_during_the_snapshot_wins": "r100 | d90 time=110",
    "transaction_open_during_the_snapshot_keeps_its_values": "r100"
    " | u90 time=110 employee=? shipped=1 | u120 employee=? shipped=2",
    # A topic that was recreated starts its offsets again; the read's position is below.
    "change_above_a_read_wins_at_any_offset": "r100 offset=7 | u200 offset=3 shipped=1"
    " | d90 offset=2",
    "replay_of_an_old_event_after_a_second_snapshot_loses": "c10, u20 shipped=1"
    " | u30 shipped=2, r100 shipped=2 | u20 offset=9 shipped=1",
    "replay_of_an_old_delete_after_a_second_snapshot_loses": "c10, d20, c30 customer=ANATR"
    " | r100 customer=ANATR | d20 offset=9",
    "changes_missed_before_a_second_snapshot_end_where_it_was": "c10 | r100 shipped=2"
    " | u40 shipped=1 | u50 shipped=2",
    "incremental_read_after_an_insert": "c10 | r- time=50 shipped=1",
    "incremental_read_before_an_update": "r- time=5 | u20 shipped=1",
    "incremental_read_before_a_delete": "r- time=5 | d20",
    "incremental_read_before_a_late_insert": "r- time=15 offset=1 shipped=1 | c10 offset=0",
    "late_incremental_read_loses": "c10, u20 offset=2 shipped=2"
    " | r- time=15 offset=1 shipped=1",
    "incremental_read_after_an_insert_again": "c10, d20 | c30 | r- time=40 shipped=1",
    "replay_of_an_old_event_after_an_incremental_read_loses": "c10, u20 shipped=1"
    " | u30 shipped=2 | r- time=40 shipped=2 | u20 offset=9 shipped=1",
    "incremental_reads_around_an_update": "c10 | r- time=15 | u20 shipped=1"
    " | r- time=25 shipped=1",
    "incremental_read_delivered_again_loses": "c10, r- time=15 | u20 shipped=1"
    " | r- time=15 offset=9",
    "incremental_read_twice": "c10, r- time=15 | r- time=15 offset=9",
    "incremental_read_delivered_again_after_a_later_one_loses": "c10, r- time=15,"
    " u20 shipped=1 | r- time=25 shipped=1 | r- time=15 offset=9",
    "incremental_read_twice_the_first_delivery_late": "c10, r- time=15 offset=9"
    " | r- time=15 offset=1",
    "snapshot_delivered_again_before_the_open_transaction": "r100 offset=5"
    " | u90 time=110 offset=1 shipped=1 | r100 offset=0",
    "snapshot_after_an_incremental_one": "r- time=15 | r100 shipped=1",
    # A blocking snapshot read before the changes that it had seen were sent.
    "read_that_overtook_a_change": "c10, r10 time=30 customer=ANATR"
    " | u20 customer=ANATR employee=? | u40 customer=VINET",
    "clock_that_is_set_back": "c10 | u20 time=5 shipped=1",
    "versions_that_a_late_value_makes_one": "c20 key=1 employee=?, u30 key=1 | c10, d20",
    # Another row takes over the key of one whose key had changed, and which was deleted.
    "key_that_is_taken_over_twice": "c10, d20, c20 key=1 employee=?, d30 key=1"
    " | c40 key=2 employee=new, d50 key=2 | c50 key=1 employee=?",
    "new_source_epoch": "c500, u600 shipped=1 | r30 epoch=1 offset=0 shipped=2"
    " | u40 epoch=1 offset=1 customer=ANATR",
    "late_event_of_an_older_epoch_loses": "u40 epoch=1 offset=1 customer=ANATR"
    " | u600 shipped=1",
    "item_removed": "c10 items=two | u20 items=second",
    "all_items_removed_and_back": "c10 items=two | u20 items=[] | u30 items=two",
    "empty_array": "c10 items=[]",
    "null_array": "c10 items=none",
    "array_becomes_null": "c10 | u20 items=none",
    "array_becomes_json_null": "c10 | u20 items=null",
    "item_changed": "c10 | u20 items=another",
    "key_change": "c10 | d20, c20 key=1",
    "customer_change": "c10 | u20 customer=ANATR",
    "padding_of_bpchar_is_trimmed": "c10 customer=padded",
    "delete_with_only_the_key": "c10 | d20",
    "delete_with_the_key_in_kafka_only": "c10 | d20",
    "envelopes": "c10 | u20 employee=? shipped=1 | d30, c40 customer=ANATR",
    "toasted_column_in_an_update": "c10 | u20 employee=? shipped=1",
    "toasted_column_takes_the_last_real_value": "c10"
    " | u20 employee=new, u30 employee=? shipped=1 | u40 employee=? customer=ANATR",
    "real_value_ends_the_carrying": "c10 | u20 employee=? | u30 employee=new",
    "toasted_column_that_was_null": "c10 employee=none | u20 employee=?",
    "toasted_items_keep_their_lines": "c10 | u20 items=? products=? customer=ANATR",
    "delete_after_a_toasted_column": "c10 | u20 employee=? | d30",
    "toasted_column_is_of_the_present_life": "c10 employee=old | d20 | c30 employee=new"
    " | u40 employee=?",
    "toasted_key_change_the_delete_before": "c10 | d20 | c20 key=1 employee=?",
    "toasted_key_change_in_the_same_batch": "c10 | d20, c20 key=1 employee=?",
    "toasted_key_change_the_delete_after": "c10 | c20 key=1 employee=? | d20",
    "late_event_holds_the_value_a_key_change_left_out": "c10, d30 offset=2,"
    " c30 key=1 employee=? | u20 offset=1 employee=new",
    "toasted_items_in_a_key_change_the_delete_after": "c10 | c20 key=1 items=? | d20",
    "toasted_items_in_a_key_change": "c10 | d20, c20 key=1 items=?",
    "toasted_items_of_an_unknown_row": "c20 key=1 items=?",
    "late_event_holds_the_value_a_newer_one_left_out": "c10"
    " | u30 offset=2 employee=? shipped=1 | u20 offset=1 employee=new",
    "late_insert_holds_the_value_an_update_left_out": "u30 offset=2 employee=? shipped=1"
    " | c10 offset=0",
    "late_life_holds_the_value_a_newer_event_left_out": "c10, u30 offset=3 employee=?"
    " | d15 offset=1 | c20 offset=2 employee=new",
}
# How the records of a story are written; flattened where it is not listed.
FORMS = {
    "delete_with_only_the_key": "flattened, bare",
    "delete_with_the_key_in_kafka_only": "envelope, bare",
    "envelopes": "envelope",
}
