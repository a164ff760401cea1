"""Random histories, delivered in random disorder: silver ends up as the source table.

Every family of keys has a life of its own: a snapshot or none, inserts, updates that
leave TOASTed columns out, deletes, key changes, transactions that are open while a
snapshot is taken, more snapshots, incremental ones, and stretches of the stream that
are delivered again. Two things are as Debezium and Kafka keep them: the first
deliveries of a key's streamed events have rising offsets and rising LSNs, and a stretch
is sent again up to where the stream was. Then the records are cut into batches that
arrive in any order.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import (
    TOPIC,
    UNAVAILABLE,
    Record,
    Row,
    envelope,
    flattened,
    record,
)

SEEDS = (20_261_121, 7, 1996)
FAMILIES = 600  # of about three keys, for each seed
BATCHES = 5
KEYS = 3
START_MS = 1_767_225_600_000
TOASTED = ("employee", "customer", "order_items")


@dataclass
class Event:
    """A record of one partition's log."""

    op: str
    key: int
    lsn: int | None
    time: int
    row: Row
    unavailable: tuple[str, ...] = ()

    def __str__(self) -> str:
        left_out = f" without {', '.join(self.unavailable)}" if self.unavailable else ""
        values = " ".join(
            f"{name}={self.row[name]}" for name in sorted(self.row) if self.op != "d"
        )
        return f"{self.op} key {self.key} lsn {self.lsn} t {self.time}{left_out} {values}"


@dataclass
class Family:
    """A few keys of one table, their history, and how it is delivered."""

    number: int
    chance: random.Random
    form: str = "flattened"
    rows: dict[int, Row] = field(default_factory=dict)
    logs: dict[int, list[Event]] = field(default_factory=dict)
    lsn: int = 10
    time: int = 0
    batches: dict[int, list[tuple[int, int, Event]]] = field(default_factory=dict)

    @property
    def first_key(self) -> int:
        return 1_000_000 + self.number * 10

    def live(self) -> None:
        """Make up a history."""
        chance = self.chance
        self.form = chance.choice(("flattened", "flattened", "envelope"))
        for key in range(KEYS):
            if chance.random() < 0.3:
                self.rows[key] = self._new_row()
        if chance.random() < 0.5:
            self._snapshot()
        elif chance.random() < 0.7:
            self.rows = {}
        else:
            self._incremental_snapshot(share=1)
        for _ in range(chance.randrange(2, 18)):
            dice = chance.random()
            if dice < 0.08:
                self._snapshot()
            elif dice < 0.18:
                self._incremental_snapshot()
            elif dice < 0.30:
                self._send_again()
            else:
                for event in self._change():
                    self._emit(event)

    def _emit(self, event: Event) -> None:
        self.logs.setdefault(event.key % 2, []).append(event)

    def _tick(self) -> int:
        self.time += self.chance.choice((1, 1, 2, 5))
        return self.time

    def _next_lsn(self) -> int:
        self.lsn += self.chance.randrange(1, 9)
        return self.lsn

    def _new_row(self) -> Row:
        return {
            "customer_id": self.chance.choice(("ALFKI", "ANATR", "VINET")),
            "order_date": 10_000 + self.chance.randrange(50),
            "shipped_date": None,
            "order_items": self._items(),
            "customer": self._text(),
            "employee": self._text(),
        }

    def _text(self) -> str | None:
        return self.chance.choice((None, *(f'{{"v": {n}}}' for n in range(5))))

    def _items(self) -> str | None:
        if self.chance.random() < 0.05:
            return None
        return json.dumps(
            [
                {
                    "product_id": product,
                    "unit_price": self.chance.randrange(1, 99) / 4,
                    "quantity": self.chance.randrange(1, 30),
                    "discount": self.chance.choice((0, 0.05, 0.25)),
                }
                for product in self.chance.sample(
                    (11, 42, 72, 14), self.chance.randrange(4)
                )
            ]
        )

    def _change(self) -> list[Event]:
        """Change a row of the source; returns the events that say so."""
        key = self.chance.randrange(KEYS)
        row = self.rows.get(key)
        time, lsn = self._tick(), self._next_lsn()
        if row is None:
            self.rows[key] = self._new_row()
            return [Event("c", key, lsn, time, dict(self.rows[key]))]
        dice = self.chance.random()
        if dice < 0.15:
            del self.rows[key]
            return [Event("d", key, lsn, time, {})]
        free = [other for other in range(KEYS) if other not in self.rows]
        if dice < 0.35 and free:
            return self._change_key(key, self.chance.choice(free), lsn, time)
        changed = dict(row)
        changed["shipped_date"] = self.chance.choice((None, 10_100, 10_101, 10_102))
        for name in TOASTED:
            if self.chance.random() < 0.25:
                changed[name] = self._items() if name == "order_items" else self._text()
        self.rows[key] = changed
        return [Event("u", key, lsn, time, dict(changed), self._left_out(row, changed))]

    def _change_key(self, old: int, new: int, lsn: int, time: int) -> list[Event]:
        row = self.rows.pop(old)
        changed = {**row, "shipped_date": 10_103}
        self.rows[new] = changed
        left_out = self._left_out(row, changed)
        return [
            Event("d", old, lsn, time, {}),
            Event("c", new, lsn, time, dict(changed), left_out),
        ]

    def _left_out(self, before: Row, after: Row) -> tuple[str, ...]:
        """TOASTed values that did not change; by chance, for small ones are not."""
        return tuple(
            name
            for name in TOASTED
            if before[name] == after[name]
            and before[name] is not None
            and self.chance.random() < (0.25 if name == "order_items" else 0.7)
        )

    def _snapshot(self) -> None:
        """Read all rows, at one LSN, while a transaction may be open.

        What that has changed is not read; its changes come later, with lower LSNs.
        """
        seen = {key: dict(row) for key, row in self.rows.items()}
        open_changes: list[Event] = []
        if self.chance.random() < 0.5:
            for _ in range(self.chance.randrange(1, 4)):
                open_changes += self._change()
        lsn = self._next_lsn()
        self._read(seen, lsn)
        for event in open_changes:
            event.time = self._tick()
            self._emit(event)

    def _incremental_snapshot(self, share: float = 0.7) -> None:
        """Read some rows, without an LSN, between two events of the stream."""
        some = [key for key in self.rows if self.chance.random() < share]
        self._read({key: dict(self.rows[key]) for key in some}, None)

    def _read(self, rows: dict[int, Row], lsn: int | None) -> None:
        self.time += 10
        for key, row in rows.items():
            self._emit(Event("r", key, lsn, self.time, row))
        self.time += 10

    def _send_again(self) -> None:
        """The last stretch of a partition, once more, up to where the stream is."""
        if self.logs:
            log = self.logs[self.chance.choice(sorted(self.logs))]
            log += log[self.chance.randrange(len(log)) :]

    def deliver(self) -> None:
        """Spread the records over the batches."""
        if self.chance.random() < 0.5:
            cuts = sorted(self.chance.randrange(BATCHES) for _ in range(200))
        else:
            cuts = []
        for partition, log in self.logs.items():
            for offset, event in enumerate(log):
                place = len(cuts) * offset // len(log)
                batch = cuts[place] if cuts else self.chance.randrange(BATCHES)
                delivered = [batch]
                if self.chance.random() < 0.05:  # the same record, in another file
                    delivered.append(self.chance.randrange(BATCHES))
                for number in delivered:
                    self.batches.setdefault(number, []).append((partition, offset, event))

    def records(self, batch: int) -> Iterator[Record]:
        """The Kafka records of a batch."""
        base = self.number * 1000
        for partition, offset, event in self.batches.get(batch, []):
            key = {"order_id": self.first_key + event.key}
            lsn = None if event.lsn is None else event.lsn + base
            row = {**key, **event.row} | dict.fromkeys(event.unavailable, UNAVAILABLE)
            time = START_MS + event.time
            value: dict[str, Any] = (
                flattened(event.op, row, lsn, time)
                if self.form == "flattened"
                else envelope(event.op, row, lsn, time)
            )
            yield record(key, value, base + offset, TOPIC, partition, time)

    def size(self) -> int:
        return sum(len(log) for log in self.logs.values())

    def __str__(self) -> str:
        lines = [f"family {self.number}, keys from {self.first_key}, {self.form}"]
        for partition, log in self.logs.items():
            lines.append(f"  the log of partition {partition}:")
            lines += [f"    offset {offset}: {event}" for offset, event in enumerate(log)]
        lines.append("  delivered as partition:offset")
        for batch, parts in sorted(self.batches.items()):
            places = " ".join(f"{partition}:{offset}" for partition, offset, _ in parts)
            lines.append(f"    batch {batch}: {places}")
        lines.append("  the source ended as")
        for key in range(KEYS):
            lines.append(f"    key {key}: {self.rows.get(key)}")
        return "\n".join(lines)


@dataclass
class World:
    """All families, delivered, and the silver rows before and after a full refresh."""

    families: dict[int, list[Family]]
    orders: dict[int, Row]
    items: dict[int, dict[int, Row]]
    rebuilt_orders: dict[int, Row]
    rebuilt_items: dict[int, dict[int, Row]]


def families_of(seed: int, first: int) -> list[Family]:
    found = []
    for number in range(first, first + FAMILIES):
        family = Family(number, random.Random(seed * 1_000_003 + number))
        family.live()
        family.deliver()
        found.append(family)
    return found


def orders_of(lake: Lake) -> dict[int, Row]:
    rows = lake.rows("silver.orders")
    by_key = {row["order_id"]: row for row in rows}
    assert len(by_key) == len(rows), "an order has two rows"
    return by_key


def live_items_of(lake: Lake) -> dict[int, dict[int, Row]]:
    found: dict[int, dict[int, Row]] = {}
    for row in lake.rows("silver.order_items"):
        if not row["is_deleted"]:
            lines = found.setdefault(row["order_id"], {})
            assert row["product_id"] not in lines, "an order line has two rows"
            lines[row["product_id"]] = row
    return found


@pytest.fixture(scope="module")
def world(new_lake: NewLake) -> World:
    lake = new_lake()
    families = {
        seed: families_of(seed, index * FAMILIES) for index, seed in enumerate(SEEDS)
    }
    everyone = [family for group in families.values() for family in group]
    for batch in range(BATCHES):
        records = [line for family in everyone for line in family.records(batch)]
        random.Random(batch).shuffle(records)
        lake.land(records)
        assert lake.ingest().code == 0
        lake.dbt("run", "-s", "stg_orders", "orders", "order_items")
    orders, items = orders_of(lake), live_items_of(lake)
    lake.dbt("run", "--full-refresh", "-s", "stg_orders", "orders", "order_items")
    return World(families, orders, items, orders_of(lake), live_items_of(lake))


def difference(
    family: Family, orders: dict[int, Row], items: dict[int, dict[int, Row]]
) -> list[str]:
    """What silver has wrong of a family, compared with the source table."""
    wrong = []
    seen = {event.key for log in family.logs.values() for event in log}
    for key in range(KEYS):
        order_id = family.first_key + key
        row, source = orders.get(order_id), family.rows.get(key)
        if row is None:
            if key in seen:
                wrong.append(f"key {key} is missing")
        elif source is None:
            if not row["is_deleted"]:
                wrong.append(f"key {key} is live, and the source has no such row: {row}")
        elif row["is_deleted"]:
            wrong.append(f"key {key} is deleted, and the source has it: {row}")
        else:
            expected = {
                name: _date(value) if name.endswith("_date") else value
                for name, value in source.items()
            }
            wrong += [
                f"key {key}: {name} is {row[name]}, in the source {value};"
                f" op {row['op']} lsn {_less(row['source_lsn'], family)}"
                f" offset {_less(row['kafka_offset'], family)}"
                f" carried {row['carried_columns']}"
                for name, value in expected.items()
                if row[name] != value
            ]
        wrong += _difference_of_lines(key, source, items.get(order_id, {}))
    return wrong


def _difference_of_lines(key: int, source: Row | None, lines: dict[int, Row]) -> list[str]:
    wanted = {
        line["product_id"]: line
        for line in json.loads((source or {}).get("order_items") or "[]")
    }
    if set(wanted) != set(lines):
        return [f"key {key} has the lines {sorted(lines)}, not {sorted(wanted)}"]
    return [
        f"key {key}, {product}: {name} is {lines[product][name]}, not {line[name]}"
        for product, line in wanted.items()
        for name in ("unit_price", "quantity", "discount")
        if float(lines[product][name]) != line[name]
    ] + [
        f"key {key}, product {product} is of {lines[product]['customer_id']}"
        for product in wanted
        if source is not None and lines[product]["customer_id"] != source["customer_id"]
    ]


def _less(number: int | None, family: Family) -> int | None:
    return None if number is None else number - family.number * 1000


def _date(days: int | None) -> dt.date | None:
    return None if days is None else dt.date(1970, 1, 1) + dt.timedelta(days=days)


def assert_none(failing: list[tuple[Family, list[str]]], count: int) -> None:
    """Nothing failed; if it did, print the smallest family that did."""
    if failing:
        family, wrong = min(failing, key=lambda pair: pair[0].size())
        text = "\n  ".join(wrong)
        pytest.fail(
            f"{len(failing)} of {count} families differ; the smallest:\n  {text}\n{family}",
            pytrace=False,
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_increments_end_as_the_source(seed: int, world: World) -> None:
    families = world.families[seed]
    failing = [
        (family, wrong)
        for family in families
        if (wrong := difference(family, world.orders, world.items))
    ]
    assert_none(failing, len(families))


@pytest.mark.parametrize("seed", SEEDS)
def test_full_refresh_ends_as_the_source(seed: int, world: World) -> None:
    families = world.families[seed]
    failing = [
        (family, wrong)
        for family in families
        if (wrong := difference(family, world.rebuilt_orders, world.rebuilt_items))
    ]
    assert_none(failing, len(families))


@pytest.mark.parametrize("seed", SEEDS)
def test_full_refresh_gives_what_the_increments_gave(seed: int, world: World) -> None:
    """Live rows in full; of deleted ones the key, ``is_deleted`` and ``source_lsn``."""
    failing = []
    for family in world.families[seed]:
        wrong = []
        for key in range(KEYS):
            before = world.orders.get(family.first_key + key)
            after = world.rebuilt_orders.get(family.first_key + key)
            if before is None or after is None:
                if before is not after:
                    wrong.append(f"key {key}: {before}, rebuilt {after}")
                continue
            names = (
                ("is_deleted", "source_lsn")
                if after["is_deleted"]
                else [n for n in after if n not in ("ingested_at", "ingest_batch")]
            )
            wrong += [
                f"key {key}: {name} is {before[name]}, rebuilt {after[name]}"
                f" (base {family.number * 1000})"
                for name in names
                if before[name] != after[name]
            ]
        if wrong:
            failing.append((family, wrong))
    assert_none(failing, FAMILIES)


def test_histories_hold_what_they_are_to_prove(world: World) -> None:
    """There are thousands of keys, and every kind of event among them."""
    events = [
        event
        for group in world.families.values()
        for family in group
        for log in family.logs.values()
        for event in log
    ]
    assert len(world.orders) > 2_000
    assert {event.op for event in events} == {"c", "u", "d", "r"}
    assert sum(event.op == "r" and event.lsn is None for event in events) > 500
    assert sum(event.op == "c" and bool(event.unavailable) for event in events) > 300
    assert sum(row["is_deleted"] for row in world.orders.values()) > 500
