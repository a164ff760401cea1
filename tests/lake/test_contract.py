"""The silver contract: whatever the change stream does, silver equals the source.

A test's story happens in four ways, each to keys of its own: over several builds from
the first one on, over several builds after the first, all of it within the first build,
and all of it within one increment. All stories share one lake and its builds. A fifth
way looks at the first again after a full refresh.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import UNAVAILABLE, Record, Row
from tests.support.stories import (
    EMPLOYEE,
    ORDER,
    Batches,
    again,
    create,
    delete,
    read,
    records,
    update,
    with_offsets,
)

RESTORED = "restored.datalake.cdc_events"
REBUILT_TOPIC = "rebuilt.datalake.cdc_events"
ACROSS, LATER, FIRST, INCREMENT, REFRESH = (
    "across_builds",
    "across_increments",
    "in_the_first_build",
    "in_one_increment",
    "after_a_full_refresh",
)
WAYS = (ACROSS, LATER, FIRST, INCREMENT, REFRESH)
# The ways in which each batch of a story has a build of its own.
STEPWISE = (ACROSS, LATER)
FIRST_KEY = 100_000
KEYS_A_STORY = 10
EPOCH_RAISED_BEFORE = 1  # of REBUILT_TOPIC, before this build, counted from 0

STORIES: list[Batches] = []


def story(*batches: Any) -> Callable[[Any], Any]:
    """Gives a test its story, the batches in the order in which they are delivered."""
    STORIES.append(with_offsets([list(batch) for batch in batches]))
    number = len(STORIES) - 1

    def mark(test: Any) -> Any:
        ways = [
            pytest.param(
                (number, way),
                id=way,
                marks=[pytest.mark.thorough] if way == REFRESH else [],
            )
            for way in WAYS
        ]
        return pytest.mark.parametrize("after", ways, indirect=True)(test)

    return mark


def first_key(number: int, way: str) -> int:
    """Where the keys of a story that happens in a way begin."""
    way = ACROSS if way == REFRESH else way
    return FIRST_KEY + (number * len(WAYS) + WAYS.index(way)) * KEYS_A_STORY


@dataclass
class Build:
    """Silver as a build left it, by order."""

    orders: dict[int, Row]
    items: dict[int, list[Row]]

    @classmethod
    def of(cls, lake: Lake) -> Build:
        items: dict[int, list[Row]] = {}
        for item in lake.rows("silver.order_items"):
            items.setdefault(item["order_id"], []).append(item)
        rows = lake.rows("silver.orders")
        orders = {row["order_id"]: row for row in rows}
        assert len(orders) == len(rows), "an order has two rows"
        return cls(orders, items)


@dataclass
class After:
    """What a story led to, with LSNs and offsets as the story counts them."""

    way: str
    first_key: int
    builds: list[Build]

    def order(self, key: int = 0, build: int = -1) -> Row:
        row = dict(self.builds[build].orders[self.first_key + key])
        assert row["source_epoch"] is not None
        position = row["source_position"]
        row["position"] = None if position is None else int(position, 16)
        for name in ("position", "source_lsn", "kafka_offset"):
            if row[name] is not None:
                row[name] -= self.first_key * 1000
        row["carried_columns"] = [
            entry["column_name"] + "?" * (not entry["is_known"])
            for entry in row["carried_columns"]
        ]
        return row

    def lines(self, key: int = 0, build: int = -1) -> dict[int, Row]:
        """The order's lines that are not deleted, by product."""
        lines = self._lines(key, build)
        return {line["product_id"]: line for line in lines if not line["is_deleted"]}

    def removed(self, key: int = 0, build: int = -1) -> dict[int, Row]:
        """The order's lines that are marked as deleted, by product."""
        lines = self._lines(key, build)
        return {line["product_id"]: line for line in lines if line["is_deleted"]}

    def _lines(self, key: int, build: int) -> list[Row]:
        lines = self.builds[build].items.get(self.first_key + key, [])
        ids = [line["order_item_id"] for line in lines]
        assert len(ids) == len(set(ids)), "an order line has two rows"
        assert all(
            line["order_item_id"] == f"{line['order_id']}-{line['product_id']}"
            for line in lines
        )
        return lines


@dataclass
class Outcome:
    """The lake in which all stories happened."""

    lake: Lake
    builds: list[Build]


@pytest.fixture(scope="module")
def everything(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    topics = tmp_path_factory.mktemp("topics") / "topics.toml"
    lake = new_lake(topics)
    builds = []
    for step in range(max(len(batches) for batches in STORIES)):
        epoch = 1 if step >= EPOCH_RAISED_BEFORE else 0
        topics.write_text(
            "[topics]\n"
            '"demo.datalake.cdc_events" = "cdc_events"\n'
            '"demo.datalake.customers" = "customers"\n'
            '"demo.datalake.products" = "products"\n'
            f'"{RESTORED}" = "cdc_events"\n'
            f'"{REBUILT_TOPIC}" = "cdc_events"\n'
            f'[epochs]\n"{RESTORED}" = 1\n"{REBUILT_TOPIC}" = {epoch}\n'
        )
        lines: list[Record] = []
        for number, batches in enumerate(STORIES):
            whole = [change for batch in batches for change in batch]
            # A build less: where there are four batches, the first two in one.
            later = batches
            if len(batches) > 3:
                later = [[*chain.from_iterable(batches[:-2])], *batches[-2:]]
            arriving = {
                ACROSS: batches[step] if step < len(batches) else [],
                LATER: later[step - 1] if 0 < step <= len(later) else [],
                FIRST: whole if step == 0 else [],
                INCREMENT: whole if step == 1 else [],
            }
            for way, changes in arriving.items():
                lines += records(changes, first_key(number, way))
        lake.land(lines)
        ingested = lake.ingest()
        assert ingested.code == 0, ingested.err
        lake.dbt("run", "-s", "stg_orders", "orders", "order_items")
        builds.append(Build.of(lake))
    return Outcome(lake, builds)


@pytest.fixture(scope="module")
def refreshed(everything: Outcome) -> Build:
    """The same lake, built from scratch."""
    lake = everything.lake
    lake.dbt("run", "--full-refresh", "-s", "stg_orders", "orders", "order_items")
    return Build.of(lake)


@pytest.fixture
def after(request: pytest.FixtureRequest, everything: Outcome) -> After:
    number, way = request.param
    builds = everything.builds
    if way == LATER:
        builds = builds[1:]
    if way == REFRESH:
        builds = [request.getfixturevalue("refreshed")]
    return After(way, first_key(number, way), builds)


def items(*lines: tuple[int, str, str, str]) -> str:
    """The JSON text of order lines: product, unit price, quantity, discount."""
    return json.dumps(
        [
            {
                "product_id": product,
                "unit_price": float(price),
                "quantity": float(quantity),
                "discount": float(discount),
            }
            for product, price, quantity, discount in lines
        ]
    )


def date(days: int) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=days)


def assert_row(row: Row, **expected: Any) -> None:
    """The columns have these values; the row is live unless it says otherwise."""
    expected = {
        "is_deleted": False,
        "source_epoch": 0,
        "carried_columns": [],
    } | expected
    assert {name: row[name] for name in expected} == expected


def assert_deleted(row: Row, **expected: Any) -> None:
    """The row is marked as deleted, and holds no data."""
    assert_row(row, is_deleted=True, op="d", **dict.fromkeys(ORDER), **expected)


# These stories have the lowest LSNs: no other's late event or delete has them replayed.
@story(
    [create(10)],
    [delete(20), create(20, key=1, employee=UNAVAILABLE)],
    [delete(30, key=1), create(30, key=2, employee=UNAVAILABLE)],
    [update(40, key=2, employee=UNAVAILABLE, shipped_date=10_010)],
)
def test_toasted_key_changes_one_after_another(after: After) -> None:
    assert_deleted(after.order(key=1), source_lsn=30)
    assert_row(
        after.order(key=2),
        employee=EMPLOYEE,
        shipped_date=date(10_010),
        carried_columns=["employee"],
    )


@story(
    [create(10)],
    [delete(20), create(20, key=1, employee=UNAVAILABLE)],
    [delete(30, key=1), create(30, employee=UNAVAILABLE)],
)
def test_toasted_key_changes_back_and_forth(after: After) -> None:
    assert_deleted(after.order(key=1), source_lsn=30)
    assert_row(after.order(), employee=EMPLOYEE, carried_columns=["employee"])


@story([delete(20), create(20, key=1, employee=UNAVAILABLE)], [create(10)])
def test_toasted_key_change_before_the_old_row(after: After) -> None:
    assert_deleted(after.order(key=0), source_lsn=20)
    assert_row(after.order(key=1), employee=EMPLOYEE, carried_columns=["employee"])


@story([create(10)])
def test_insert(after: After) -> None:
    assert_row(
        after.order(),
        op="c",
        source_lsn=10,
        kafka_offset=0,
        customer_id="ALFKI",
        order_date=dt.date(1997, 5, 19),
        required_date=dt.date(1997, 6, 16),
        shipped_date=None,
        employee=EMPLOYEE,
        shipment='{"freight": 58.17}',
        updated_at=dt.datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=dt.UTC),
    )
    line = after.lines()[11]
    assert_row(
        line,
        customer_id="ALFKI",
        unit_price=Decimal(14),
        quantity=Decimal(12),
        discount=Decimal(0),
        revenue=Decimal(168),
    )
    assert after.removed() == {}


@story([create(10)], [update(20, shipped_date=10_010)])
def test_update(after: After) -> None:
    assert_row(after.order(), op="u", source_lsn=20, shipped_date=date(10_010))
    assert set(after.lines()) == {11}


@story([create(10), update(20, shipped_date=10_010)], [update(30, shipped_date=None)])
def test_update_to_null(after: After) -> None:
    assert_row(after.order(), source_lsn=30, shipped_date=None)


@story([create(10)], [delete(20)])
def test_delete(after: After) -> None:
    assert_deleted(after.order(), source_lsn=20)
    assert after.lines() == {}
    if after.way in STEPWISE:
        assert_row(
            after.removed()[11],
            is_deleted=True,
            customer_id=None,
            quantity=None,
            revenue=None,
        )
    else:  # the table has never held the line
        assert after.removed() == {}


@story([create(10)], [delete(20)], [create(30, customer_id="ANATR")])
def test_delete_then_insert_again(after: After) -> None:
    assert_row(after.order(), op="c", source_lsn=30, customer_id="ANATR")
    assert after.lines()[11]["customer_id"] == "ANATR"
    if after.way in STEPWISE:
        assert_deleted(after.order(build=1), source_lsn=20)


@story([delete(20, offset=1)], [create(10, offset=0)])
def test_delete_before_insert(after: After) -> None:
    assert_deleted(after.order(), source_lsn=20)
    assert after.lines() == {}


@story([delete(20, offset=1)], [create(10, offset=0)], [create(30, offset=2)])
def test_delete_before_insert_before_insert_again(after: After) -> None:
    assert_row(after.order(), source_lsn=30, customer_id="ALFKI")
    assert set(after.lines()) == {11}


TWICE = update(20, shipped_date=10_010)


@story([create(10), TWICE], [again(TWICE, 2)])
def test_same_event_twice(after: After) -> None:
    assert_row(after.order(), source_lsn=20, kafka_offset=1, shipped_date=date(10_010))


TWICE_DELETED = delete(20)


@story([create(10), TWICE_DELETED], [create(30)], [again(TWICE_DELETED, 3)])
def test_delete_twice_around_an_insert(after: After) -> None:
    assert_row(after.order(), source_lsn=30, customer_id="ALFKI")
    assert set(after.lines()) == {11}


@story(
    [create(10, offset=0), update(30, offset=2, shipped_date=10_020)],
    [update(20, offset=1, shipped_date=10_010, customer_id="ANATR")],
)
def test_older_after_newer(after: After) -> None:
    assert_row(after.order(), source_lsn=30, shipped_date=date(10_020), customer_id="ALFKI")


REPLAYED = (
    create(10),
    update(20, shipped_date=10_010),
    update(30, shipped_date=10_020),
)


@story(
    list(REPLAYED),
    [again(REPLAYED[0], 3), again(REPLAYED[1], 4)],
    [again(REPLAYED[2], 5), update(40, offset=6, shipped_date=10_030)],
)
def test_range_delivered_again(after: After) -> None:
    assert_row(after.order(), source_lsn=40, shipped_date=date(10_030))
    if after.way in STEPWISE:
        assert_row(after.order(build=1), source_lsn=30, shipped_date=date(10_020))


@story(
    [create(1, key=0), create(2, key=1), update(20, key=1, shipped_date=10_001)],
    [update(10, key=0, shipped_date=10_002), update(40, key=1, shipped_date=10_003)],
)
def test_two_interleaved_transactions(after: After) -> None:
    """The transaction that commits last has the lowest LSN.

    Order by LSN within a key, never watermark on it:
    https://github.com/MaterializeInc/materialize/issues/5262
    """
    assert_row(after.order(key=0), source_lsn=10, shipped_date=date(10_002))
    assert_row(after.order(key=1), source_lsn=40, shipped_date=date(10_003))


@story([read(100)], [update(90, time=110, shipped_date=10_010)])
def test_transaction_open_during_the_snapshot_wins(after: After) -> None:
    assert_row(after.order(), op="u", source_lsn=90, shipped_date=date(10_010))


@story([read(100)], [delete(90, time=110)])
def test_delete_open_during_the_snapshot_wins(after: After) -> None:
    assert_deleted(after.order(), source_lsn=90)
    assert after.lines() == {}


@story(
    [read(100)],
    [update(90, time=110, shipped_date=10_010, employee=UNAVAILABLE)],
    [update(120, shipped_date=10_020, employee=UNAVAILABLE)],
)
def test_transaction_open_during_the_snapshot_keeps_its_values(after: After) -> None:
    assert_row(
        after.order(),
        source_lsn=120,
        shipped_date=date(10_020),
        employee=EMPLOYEE,
        carried_columns=["employee"],
    )


@story(
    [again(read(100), 7)],
    [again(update(200, shipped_date=10_010), 3)],
    [again(delete(90), 2)],
)
def test_change_above_a_read_wins_at_any_offset(after: After) -> None:
    """A topic that was recreated starts its offsets again; the read's position is below."""
    assert_row(after.order(), op="u", source_lsn=200, shipped_date=date(10_010))


OLD = update(20, shipped_date=10_010)


@story(
    [create(10), OLD],
    [update(30, shipped_date=10_020), read(100, shipped_date=10_020)],
    [again(OLD, 9)],
)
def test_replay_of_an_old_event_after_a_second_snapshot_loses(after: After) -> None:
    assert_row(after.order(), op="r", shipped_date=date(10_020))


OLD_DELETE = delete(20)


@story(
    [create(10), OLD_DELETE, create(30, customer_id="ANATR")],
    [read(100, customer_id="ANATR")],
    [again(OLD_DELETE, 9)],
)
def test_replay_of_an_old_delete_after_a_second_snapshot_loses(after: After) -> None:
    assert_row(after.order(), op="r", customer_id="ANATR")
    assert set(after.lines()) == {11}


@story(
    [create(10)],
    [read(100, shipped_date=10_020)],
    [update(40, time=40, shipped_date=10_010)],
    [update(50, time=50, shipped_date=10_020)],
)
def test_changes_missed_before_a_second_snapshot_end_where_it_was(after: After) -> None:
    assert_row(after.order(), shipped_date=date(10_020))


@story([create(10)], [read(None, time=50, shipped_date=10_010)])
def test_incremental_read_after_an_insert(after: After) -> None:
    assert_row(after.order(), op="r", position=10, shipped_date=date(10_010))


@story([read(None, time=5)], [update(20, shipped_date=10_010)])
def test_incremental_read_before_an_update(after: After) -> None:
    assert_row(after.order(), op="u", source_lsn=20, shipped_date=date(10_010))


@story([read(None, time=5)], [delete(20)])
def test_incremental_read_before_a_delete(after: After) -> None:
    assert_deleted(after.order(), source_lsn=20)


@story(
    [read(None, time=15, offset=1, shipped_date=10_010)],
    [create(10, offset=0)],
)
def test_incremental_read_before_a_late_insert(after: After) -> None:
    assert_row(after.order(), op="r", shipped_date=date(10_010))


@story(
    [create(10, offset=0), update(20, offset=2, shipped_date=10_020)],
    [read(None, time=15, offset=1, shipped_date=10_010)],
)
def test_late_incremental_read_loses(after: After) -> None:
    assert_row(after.order(), op="u", source_lsn=20, shipped_date=date(10_020))


@story([create(10), delete(20)], [create(30)], [read(None, time=40, shipped_date=10_010)])
def test_incremental_read_after_an_insert_again(after: After) -> None:
    assert_row(after.order(), op="r", shipped_date=date(10_010))


READ_OVER = update(20, shipped_date=10_010)


@story(
    [create(10), READ_OVER],
    [update(30, shipped_date=10_020)],
    [read(None, time=40, shipped_date=10_020)],
    [again(READ_OVER, 9)],
)
def test_replay_of_an_old_event_after_an_incremental_read_loses(after: After) -> None:
    assert_row(after.order(), op="r", shipped_date=date(10_020))


@story(
    [create(10)],
    [read(None, time=15)],
    [update(20, shipped_date=10_010)],
    [read(None, time=25, shipped_date=10_010)],
)
def test_incremental_reads_around_an_update(after: After) -> None:
    assert_row(after.order(), op="r", position=20, shipped_date=date(10_010))


READ_TWICE = read(None, time=15)


@story(
    [create(10), READ_TWICE],
    [update(20, shipped_date=10_010)],
    [again(READ_TWICE, 9)],
)
def test_incremental_read_delivered_again_loses(after: After) -> None:
    assert_row(after.order(), op="u", source_lsn=20, shipped_date=date(10_010))


@story([create(10), READ_TWICE], [again(READ_TWICE, 9)])
def test_incremental_read_twice(after: After) -> None:
    assert_row(after.order(), op="r", position=10, kafka_offset=1)


@story(
    [create(10), READ_TWICE, update(20, shipped_date=10_010)],
    [read(None, time=25, shipped_date=10_010)],
    [again(READ_TWICE, 9)],
)
def test_incremental_read_delivered_again_after_a_later_one_loses(after: After) -> None:
    assert_row(after.order(), op="r", kafka_offset=3, shipped_date=date(10_010))


@story([create(10), again(READ_TWICE, 9)], [again(READ_TWICE, 1)])
def test_incremental_read_twice_the_first_delivery_late(after: After) -> None:
    assert_row(after.order(), op="r", position=10, kafka_offset=1)


SNAPSHOT = read(100)


@story(
    [again(SNAPSHOT, 5)],
    [update(90, time=110, offset=1, shipped_date=10_010)],
    [again(SNAPSHOT, 0)],
)
def test_snapshot_delivered_again_before_the_open_transaction(after: After) -> None:
    assert_row(after.order(), op="u", source_lsn=90, shipped_date=date(10_010))


@story([read(None, time=15)], [read(100, shipped_date=10_010)])
def test_snapshot_after_an_incremental_one(after: After) -> None:
    assert_row(after.order(), op="r", position=100, shipped_date=date(10_010))


@story(
    [create(5000), update(6000, shipped_date=10_010)],
    [read(30, topic=RESTORED, offset=0, shipped_date=10_020)],
    [update(40, topic=RESTORED, offset=1, customer_id="ANATR")],
)
def test_new_source_epoch(after: After) -> None:
    assert_row(
        after.order(),
        source_epoch=1,
        source_lsn=40,
        customer_id="ANATR",
        shipped_date=None,
    )
    if after.way in STEPWISE:
        assert_row(
            after.order(build=1),
            source_epoch=1,
            source_lsn=30,
            shipped_date=date(10_020),
        )


@story(
    [update(40, topic=RESTORED, offset=1, customer_id="ANATR")],
    [update(6000, shipped_date=10_010)],
)
def test_late_event_of_an_older_epoch_loses(after: After) -> None:
    assert_row(
        after.order(),
        source_epoch=1,
        source_lsn=40,
        customer_id="ANATR",
        shipped_date=None,
    )


@story(
    [create(5000, topic=REBUILT_TOPIC), update(6000, topic=REBUILT_TOPIC)],
    [read(30, topic=REBUILT_TOPIC, shipped_date=10_020)],
)
def test_raised_epoch_of_a_topic(after: After) -> None:
    if after.way in (ACROSS, REFRESH):
        assert_row(after.order(), source_epoch=1, position=30, shipped_date=date(10_020))
    else:  # all of it is of one epoch, where the update's position is above the read's
        epoch = 0 if after.way == FIRST else 1
        assert_row(
            after.order(), op="u", source_epoch=epoch, position=6000, shipped_date=None
        )


TWO_LINES = items((11, "14", "12", "0"), (42, "9.8", "10", "0.15"))
ONE_LINE = items((42, "9.8", "10", "0.15"))


@story([create(10, order_items=TWO_LINES)], [update(20, order_items=ONE_LINE)])
def test_item_removed(after: After) -> None:
    assert set(after.lines()) == {42}
    assert_row(
        after.lines()[42],
        unit_price=Decimal("9.8"),
        discount=Decimal("0.15"),
        revenue=Decimal("83.3"),
    )
    if after.way in STEPWISE:
        assert_row(
            after.removed()[11],
            is_deleted=True,
            customer_id=None,
            unit_price=None,
            quantity=None,
            discount=None,
            revenue=None,
        )
    else:
        assert after.removed() == {}


@story(
    [create(10, order_items=TWO_LINES)],
    [update(20, order_items="[]")],
    [update(30, order_items=TWO_LINES)],
)
def test_all_items_removed_and_back(after: After) -> None:
    assert set(after.lines()) == {11, 42}
    assert after.removed() == {}
    assert after.lines()[42]["revenue"] == Decimal("83.3")
    if after.way in STEPWISE:
        assert after.lines(build=1) == {}
        assert set(after.removed(build=1)) == {11, 42}


@story([create(10, order_items="[]")])
def test_empty_array(after: After) -> None:
    assert_row(after.order(), order_items="[]")
    assert after.lines() == {}


@story([create(10, order_items=None)])
def test_null_array(after: After) -> None:
    assert_row(after.order(), order_items=None)
    assert after.lines() == {}


@story([create(10)], [update(20, order_items=None)])
def test_array_becomes_null(after: After) -> None:
    assert_row(after.order(), order_items=None)
    assert after.lines() == {}
    assert set(after.removed()) == ({11} if after.way in STEPWISE else set())


@story([create(10)], [update(20, order_items="null")])
def test_array_becomes_json_null(after: After) -> None:
    assert_row(after.order(), order_items="null")
    assert after.lines() == {}
    assert set(after.removed()) == ({11} if after.way in STEPWISE else set())


@story(
    [create(10, order_items=items((11, "14", "12", "0")))],
    [update(20, order_items=items((11, "15.5", "3", "0.25")))],
)
def test_item_changed(after: After) -> None:
    assert_row(
        after.lines()[11],
        unit_price=Decimal("15.5"),
        quantity=Decimal(3),
        revenue=Decimal("34.875"),
    )


@story([create(10)], [delete(20), create(20, key=1)])
def test_key_change(after: After) -> None:
    assert_deleted(after.order(key=0), source_lsn=20)
    assert_row(after.order(key=1), source_lsn=20, customer_id="ALFKI", employee=EMPLOYEE)
    assert after.lines(key=0) == {}
    assert set(after.lines(key=1)) == {11}


@story([create(10)], [update(20, customer_id="ANATR")])
def test_customer_change(after: After) -> None:
    assert_row(after.order(), customer_id="ANATR")
    assert after.lines()[11]["customer_id"] == "ANATR"


@story([create(10, customer_id="ALF  ")])
def test_padding_of_bpchar_is_trimmed(after: After) -> None:
    assert_row(after.order(), customer_id="ALF")


@story([create(10)], [delete(20, form="flattened key")])
def test_delete_with_only_the_key(after: After) -> None:
    assert_deleted(after.order(), source_lsn=20)
    assert after.lines() == {}


@story([create(10, form="envelope")], [delete(20, form="envelope key")])
def test_delete_with_the_key_in_kafka_only(after: After) -> None:
    assert_deleted(after.order(), source_lsn=20)


@story(
    [create(10, form="envelope")],
    [update(20, form="envelope", shipped_date=10_010, employee=UNAVAILABLE)],
    [delete(30, form="envelope"), create(40, form="envelope", customer_id="ANATR")],
)
def test_envelopes(after: After) -> None:
    assert_row(after.order(), source_lsn=40, customer_id="ANATR", shipped_date=None)
    if after.way in STEPWISE:
        assert_row(after.order(build=1), employee=EMPLOYEE, carried_columns=["employee"])


@story([create(10)], [update(20, shipped_date=10_010, employee=UNAVAILABLE)])
def test_toasted_column_in_an_update(after: After) -> None:
    assert_row(
        after.order(),
        source_lsn=20,
        shipped_date=date(10_010),
        employee=EMPLOYEE,
        carried_columns=["employee"],
    )


@story(
    [create(10)],
    [update(20, employee="new"), update(30, employee=UNAVAILABLE, shipped_date=10_010)],
    [update(40, employee=UNAVAILABLE, customer_id="ANATR")],
)
def test_toasted_column_takes_the_last_real_value(after: After) -> None:
    assert_row(
        after.order(), employee="new", customer_id="ANATR", carried_columns=["employee"]
    )


@story([create(10)], [update(20, employee=UNAVAILABLE)], [update(30, employee="new")])
def test_real_value_ends_the_carrying(after: After) -> None:
    assert_row(after.order(), employee="new")


@story([create(10, employee=None)], [update(20, employee=UNAVAILABLE)])
def test_toasted_column_that_was_null(after: After) -> None:
    assert_row(after.order(), employee=None, carried_columns=["employee"])


@story(
    [create(10)],
    [update(20, order_items=UNAVAILABLE, products=UNAVAILABLE, customer_id="ANATR")],
)
def test_toasted_items_keep_their_lines(after: After) -> None:
    assert_row(
        after.order(), customer_id="ANATR", carried_columns=["order_items", "products"]
    )
    assert set(after.lines()) == {11}
    assert after.lines()[11]["customer_id"] == "ANATR"


@story([create(10)], [update(20, employee=UNAVAILABLE)], [delete(30)])
def test_delete_after_a_toasted_column(after: After) -> None:
    assert_deleted(after.order(), source_lsn=30)


@story(
    [create(10, employee="old")],
    [delete(20)],
    [create(30, employee="new")],
    [update(40, employee=UNAVAILABLE)],
)
def test_toasted_column_is_of_the_present_life(after: After) -> None:
    assert_row(after.order(), employee="new", carried_columns=["employee"])


@story([create(10)], [delete(20)], [create(20, key=1, employee=UNAVAILABLE)])
def test_toasted_key_change_the_delete_before(after: After) -> None:
    assert_deleted(after.order(key=0), source_lsn=20)
    assert_row(after.order(key=1), employee=EMPLOYEE, carried_columns=["employee"])


@story([create(10)], [delete(20), create(20, key=1, employee=UNAVAILABLE)])
def test_toasted_key_change_in_the_same_batch(after: After) -> None:
    assert_deleted(after.order(key=0), source_lsn=20)
    assert_row(after.order(key=1), employee=EMPLOYEE, carried_columns=["employee"])


@story([create(10)], [create(20, key=1, employee=UNAVAILABLE)], [delete(20)])
def test_toasted_key_change_the_delete_after(after: After) -> None:
    assert_deleted(after.order(key=0), source_lsn=20)
    assert_row(after.order(key=1), employee=EMPLOYEE, carried_columns=["employee"])


@story(
    [
        create(10, offset=0),
        delete(30, offset=2),
        create(30, key=1, employee=UNAVAILABLE),
    ],
    [update(20, offset=1, employee="new")],
)
def test_late_event_holds_the_value_a_key_change_left_out(after: After) -> None:
    assert_deleted(after.order(key=0), source_lsn=30)
    assert_row(after.order(key=1), employee="new", carried_columns=["employee"])


@story([create(10)], [create(20, key=1, order_items=UNAVAILABLE)], [delete(20)])
def test_toasted_items_in_a_key_change_the_delete_after(after: After) -> None:
    assert after.lines(key=0) == {}
    assert set(after.lines(key=1)) == {11}
    if after.way in STEPWISE:
        assert after.order(key=1, build=1)["carried_columns"] == ["order_items?"]
        assert after.lines(key=1, build=1) == {}


@story(
    [create(10)],
    [delete(20), create(20, key=1, order_items=UNAVAILABLE)],
)
def test_toasted_items_in_a_key_change(after: After) -> None:
    assert after.lines(key=0) == {}
    assert set(after.lines(key=1)) == {11}
    assert after.lines(key=1)[11]["revenue"] == Decimal(168)


@story(
    [create(10, offset=0)],
    [update(30, offset=2, employee=UNAVAILABLE, shipped_date=10_010)],
    [update(20, offset=1, employee="new")],
)
def test_late_event_holds_the_value_a_newer_one_left_out(after: After) -> None:
    assert_row(
        after.order(),
        source_lsn=30,
        shipped_date=date(10_010),
        employee="new",
        carried_columns=["employee"],
    )
    if after.way in STEPWISE:
        assert_row(after.order(build=1), employee=EMPLOYEE, carried_columns=["employee"])


@story(
    [update(30, offset=2, employee=UNAVAILABLE, shipped_date=10_010)],
    [create(10, offset=0)],
)
def test_late_insert_holds_the_value_an_update_left_out(after: After) -> None:
    assert_row(
        after.order(),
        source_lsn=30,
        shipped_date=date(10_010),
        employee=EMPLOYEE,
        carried_columns=["employee"],
    )


@story(
    [create(10, offset=0), update(30, offset=2, employee=UNAVAILABLE)],
    [delete(15, offset=1)],
    [create(20, offset=1, employee="new")],
)
def test_late_life_holds_the_value_a_newer_event_left_out(after: After) -> None:
    assert_row(after.order(), source_lsn=30, employee="new", carried_columns=["employee"])


@pytest.mark.thorough
def test_full_refresh_gives_what_the_increments_gave(
    everything: Outcome, refreshed: Build
) -> None:
    """Live rows in full; of deleted ones the key, ``is_deleted`` and ``source_lsn``."""
    before, rebuilt = everything.builds[-1].orders, refreshed.orders
    assert before.keys() == rebuilt.keys()
    assert _differences(_comparable(before), _comparable(rebuilt)) == []


@pytest.mark.thorough
def test_full_refresh_gives_the_lines_that_the_increments_gave(
    everything: Outcome, refreshed: Build
) -> None:
    def live(build: Build) -> dict[str, Row]:
        return {
            line["order_item_id"]: _without_arrival(line)
            for lines in build.items.values()
            for line in lines
            if not line["is_deleted"]
        }

    before, rebuilt = live(everything.builds[-1]), live(refreshed)
    assert before.keys() == rebuilt.keys()
    assert _differences(before, rebuilt) == []


def _differences(before: dict[Any, Row], rebuilt: dict[Any, Row]) -> list[str]:
    return [
        f"{key}: {name} is {value}, rebuilt {rebuilt[key][name]}"
        for key, row in before.items()
        for name, value in row.items()
        if value != rebuilt[key][name]
    ]


def _without_arrival(row: Row) -> Row:
    return {k: v for k, v in row.items() if k not in ("ingested_at", "ingest_batch")}


def _comparable(orders: dict[int, Row]) -> dict[int, Row]:
    return {
        key: {name: row[name] for name in ("order_id", "is_deleted", "source_lsn")}
        if row["is_deleted"]
        else _without_arrival(row)
        for key, row in orders.items()
    }


def test_hudi_is_the_version_that_was_asked_for(everything: Outcome) -> None:
    """``HUDI_VERSION`` switches the jar: this file runs on what EMR ships, too."""
    wanted = os.environ.get("HUDI_VERSION", "1.2.0")
    [[classes]] = everything.lake.sql(
        "select java_method('java.lang.System', 'getProperty', 'java.class.path')"
    )
    jars = re.findall(r"hudi-spark[^/:]*-([0-9.]+)\.jar", classes)
    assert jars == [wanted]


@pytest.mark.parametrize("table", ["bronze.cdc_events", "silver.orders"])
def test_files_are_compressed_by_zstd(everything: Outcome, table: str) -> None:
    """By gzip, Hudi's default, an upsert of a large table takes twice as long."""
    files = everything.lake.tables.path(table).rglob("*.parquet")
    columns = [pq.ParquetFile(file).metadata.row_group(0).column(0) for file in files]
    assert {column.compression for column in columns} == {"ZSTD"}
