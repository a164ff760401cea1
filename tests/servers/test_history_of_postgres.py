"""A history beside a real PostgreSQL's: the table as it was after each commit.

The test commits and copies the whole table, again and again, while Debezium sends the
changes. Several builds later, the history at each of these moments equals the copy.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Row
from tests.support.small_project import set_columns, small_project
from tests.support.source_database import SourceDatabase

pytestmark = pytest.mark.timeout(900)

NAME = "histories"
TOPIC = f"{NAME}.shop.orders"
COLUMNS = {
    "order_id": "int",
    "customer": "string",
    "body": "string",
    "amount": "decimal(10,2)",
}
# What is stored out of line is not in the log again when another column changes.
CREATE = f"""
    create schema shop;
    create table shop.orders (
        order_id int primary key, customer text, body text, amount numeric(10, 2)
    );
    alter table shop.orders alter column body set storage external;
    create table shop.signals (id text primary key, type text, data text);
    create publication {NAME} for all tables;
    grant usage on schema shop to {REPLICATION_ROLE};
    grant select on all tables in schema shop to {REPLICATION_ROLE};
"""
INSERT = "insert into shop.orders values (%s, %s, %s, %s)"
SNAPSHOT = json.dumps({"type": "BLOCKING", "data-collections": ["shop.orders"]})
HISTORY = """
{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ row_history(ref('stg_orders')) }}
"""
Rows = dict[int, tuple[Any, ...]]


@dataclass(frozen=True)
class Moment:
    """The table between two commits.

    Attributes:
        position: above all changes so far; none while a transaction is open.
    """

    at: datetime
    position: str | None
    rows: Rows


class Shop(SourceDatabase):
    """A table that changes, and what it was after each commit."""

    def __init__(self, stack: NorthwindStack) -> None:
        super().__init__(stack, NAME)
        self.random = random.Random(33)
        self.moments: list[Moment] = []

    def create(self) -> None:
        """Make the table, with rows that the snapshot reads, and have it captured."""
        super().create()
        with self.cursor() as cursor:
            cursor.execute(CREATE)
            for key in range(1, 13):
                cursor.execute(INSERT, self.row(key))
        config = self.stack.configuration("source-tables") | {
            "custom.metric.tags": f"connector={NAME}",
            "database.dbname": NAME,
            "publication.name": NAME,
            "signal.data.collection": "shop.signals",
            "slot.name": NAME,
            "table.include.list": "shop.orders",
            "topic.prefix": NAME,
        }
        self.configure(NAME, config)
        wait_until(lambda: self.end() == 12, 60, "Debezium does not read the table", 0.2)
        self.note()

    def end(self) -> int:
        """How many records the topic has."""
        return self.stack.broker.end_offsets(TOPIC).get(f"{TOPIC}/0", 0)

    def row(self, key: int) -> tuple[Any, ...]:
        """A row whose body is stored out of line."""
        customer = self.random.choice(["ALFKI", "BONAP", None])
        return (key, customer, self.body(), Decimal(self.random.randrange(10**6)) / 100)

    def body(self) -> str:
        return self.random.randbytes(1_500).hex()

    def note(self, *, is_quiet: bool = True) -> None:
        """Copy the table, at a time that is no commit's."""
        with self.cursor() as cursor:
            cursor.execute("select * from shop.orders")
            rows = {row[0]: row for row in cursor.fetchall()}
            cursor.execute("select pg_current_wal_insert_lsn() - '0/0'")
            position = f"{int(cursor.fetchone()[0]):016x}" if is_quiet else None
        at = datetime.now(UTC) + timedelta(milliseconds=1)
        self.moments.append(Moment(at, position, rows))
        # Debezium sends milliseconds.
        time.sleep(0.003)

    def keys(self) -> list[int]:
        return sorted(self.moments[-1].rows)

    def change(self, cursor: Any, key: int) -> None:
        """One statement that changes a row."""
        match self.random.choice(["amount", "amount", "customer", "body", "none"]):
            case "amount":
                cursor.execute(
                    "update shop.orders set amount = amount + 1 where order_id = %s", (key,)
                )
            case "customer":
                cursor.execute(
                    "update shop.orders set customer = null where order_id = %s", (key,)
                )
            case "body":
                cursor.execute(
                    "update shop.orders set body = %s where order_id = %s",
                    (self.body(), key),
                )
            case "none":
                cursor.execute(
                    "update shop.orders set body = body where order_id = %s", (key,)
                )

    def transaction(self) -> None:
        """One transaction, of any kind."""
        keys = self.keys()
        free = [key for key in range(1, 25) if key not in keys]
        kinds = ["change", "change", "twice", "both", "move", "delete", "insert", "again"]
        kind = self.random.choice(kinds) if len(keys) > 5 else "insert"
        with closing(self.stack.postgres.connect(dbname=NAME)) as connection:
            cursor = connection.cursor()
            key, other = self.random.sample(keys, 2) if len(keys) > 1 else (0, 0)
            match kind:
                case "change":
                    self.change(cursor, key)
                case "twice":
                    self.change(cursor, key)
                    self.change(cursor, key)
                case "both":
                    self.two_side_by_side(cursor, key, other)
                case "move":
                    cursor.execute(
                        "update shop.orders set order_id = %s where order_id = %s",
                        (self.random.choice(free), key),
                    )
                case "delete":
                    cursor.execute("delete from shop.orders where order_id = %s", (key,))
                case "insert":
                    cursor.execute(INSERT, self.row(self.random.choice(free)))
                case "again":
                    cursor.execute("delete from shop.orders where order_id = %s", (key,))
                    cursor.execute(INSERT, self.row(key))
                    self.change(cursor, key)
            connection.commit()
        self.note()

    def two_side_by_side(self, cursor: Any, key: int, other: int) -> None:
        """A change that is written first and not yet committed, and one that is."""
        self.change(cursor, key)
        with self.cursor() as of_other:
            self.change(of_other, other)
        self.note(is_quiet=False)

    def truncate(self) -> None:
        with self.cursor() as cursor:
            cursor.execute("truncate shop.orders")
        self.note()

    def read_again(self) -> None:
        """Have Debezium read the whole table in the middle of its changes."""
        self.wait_until_caught_up()
        expected = self.end() + len(self.keys())
        self.signal()
        wait_until(lambda: self.end() >= expected, 60, "Debezium does not read", 0.2)
        self.note()

    def read_ahead(self) -> None:
        """Have Debezium read the whole table before it sends changes that are in it."""
        self.wait_until_caught_up()
        begun = self.end()
        # A paused one reads on until its queue is full.
        self.stack.connect.halt(NAME)
        self.signal()
        key, moved, *_ = self.keys()
        for column, value in (("amount", 1), ("body", self.body()), ("amount", 2)):
            for each in (key, moved):
                self.set(each, column, value)
        # The body of the row that moves is in no event; another takes its key.
        self.set(moved, "order_id", 25)
        with self.cursor() as cursor:
            cursor.execute(INSERT, self.row(moved))
        self.note()
        self.set(key, "amount", 3)
        self.set(key, "body", self.body())
        for _ in range(5):
            self.transaction()
        expected = begun + len(self.keys()) + 10
        self.stack.connect.resume(NAME)
        wait_until(lambda: self.end() >= expected, 60, "Debezium does not read", 0.2)
        self.note()

    def set(self, key: int, column: str, value: Any) -> None:
        with self.cursor() as cursor:
            cursor.execute(
                f"update shop.orders set {column} = %s where order_id = %s", (value, key)
            )
        self.note()

    def signal(self) -> None:
        """Ask for a blocking snapshot."""
        with self.cursor() as cursor:
            cursor.execute(
                "insert into shop.signals"
                " values (gen_random_uuid(), 'execute-snapshot', %s)",
                (SNAPSHOT,),
            )


class Copy:
    """The lake that follows the shop."""

    def __init__(self, lake: Lake, shop: Shop, folder: Path) -> None:
        self.lake = lake
        self.shop = shop
        self.topics = folder / "topics.toml"
        self.topics.write_text(f'[topics]\n"{TOPIC}" = "cdc_events"\n')
        self.project = small_project(folder / "project")
        set_columns(self.project, COLUMNS)
        (self.project / "models/silver/orders_history.sql").write_text(HISTORY)

    def build(self, *arguments: str) -> None:
        """Bring everything that Kafka has to the history, every truncate applied."""
        ingested = self.lake.ingest_kafka(
            *("--bootstrap-servers", self.shop.stack.bootstrap_servers),
            *("--topics", str(self.topics), "--topic", TOPIC),
        )
        assert ingested.code == 0, ingested.err
        truncates = {
            event["source_position"]: "apply"
            for event in self.lake.rows("bronze.cdc_events")
            if event["op"] == "t"
        }
        variables = json.dumps({"cdc_lakehouse_truncates": truncates})
        self.lake.dbt("run", "--vars", variables, *arguments, project=self.project)

    def history(self) -> list[Row]:
        return self.lake.rows("silver.orders_history")


@pytest.fixture(scope="module")
def shop(stack: NorthwindStack) -> Iterator[Shop]:
    shop = Shop(stack)
    try:
        shop.create()
        yield shop
    finally:
        shop.remove()


@pytest.fixture(scope="module")
def copy(shop: Shop, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A lake after four builds; the history equals the shop's after each."""
    copy = Copy(new_lake(), shop, tmp_path_factory.mktemp("histories"))
    for cut in range(4):
        for step in range(50):
            if (cut, step) in ((1, 20), (2, 30)):
                shop.truncate()
            elif (cut, step) in ((1, 40), (3, 25)):
                shop.read_again()
            elif (cut, step) in ((2, 10), (3, 40)):
                shop.read_ahead()
            else:
                shop.transaction()
        shop.wait_until_caught_up()
        copy.build()
        assert_equal(copy.history(), shop.moments)
    return copy


def values(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS)


def assert_equal(history: list[Row], moments: list[Moment]) -> None:
    """At the time of each moment, and at its position."""
    for moment in moments:
        found = [
            values(row)
            for row in history
            if row["valid_from"] <= moment.at
            and (row["valid_to"] is None or moment.at < row["valid_to"])
        ]
        assert sorted(found) == sorted(moment.rows.values()), moment.at
        if moment.position is not None:
            found = [
                values(row)
                for row in history
                if row["from_position"] < moment.position
                and (row["to_position"] is None or moment.position <= row["to_position"])
            ]
            assert sorted(found) == sorted(moment.rows.values()), moment.position


def is_ahead(events: list[Row], read: Row) -> bool:
    """Whether a read came before a change of its key that it had seen."""
    return any(
        event["key"] == read["key"]
        and event["op"] != "r"
        and event["kafka_offset"] > read["kafka_offset"]
        and event["source_ts"] < read["source_ts"]
        for event in events
    )


def test_history_at_each_commit_is_the_table_then(copy: Copy) -> None:
    """And what happened is in it: values out of line, moved keys, truncates, reads."""
    events = copy.lake.rows("bronze.cdc_events")
    assert {event["op"] for event in events} == {"c", "u", "d", "r", "t"}
    assert any(is_ahead(events, event) for event in events if event["op"] == "r")
    assert any("__debezium_unavailable_value" in (event["value"] or "") for event in events)
    assert len(copy.shop.moments) > 200
    assert sum(moment.position is None for moment in copy.shop.moments) > 10
    current = {row["order_id"]: values(row) for row in copy.history() if row["is_current"]}
    silver = {
        row["order_id"]: values(row)
        for row in copy.lake.rows("silver.orders")
        if not row["is_deleted"]
    }
    assert current == silver == copy.shop.moments[-1].rows


def test_full_refresh_has_the_same_versions(copy: Copy) -> None:
    before = copy.history()
    copy.build("--full-refresh", "-s", "orders_history")
    arrival = ("ingest_batch", "cdc_state")
    compared = [
        [{name: row[name] for name in row if name not in arrival} for row in rows]
        for rows in (before, copy.history())
    ]
    assert compared[0] == compared[1]
