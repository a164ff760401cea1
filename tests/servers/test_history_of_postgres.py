"""A history beside a real PostgreSQL's: the table as it was after each commit.

The test commits and copies the whole table, again and again, while Debezium sends the
changes. Several builds later, the history at each of these moments equals the copy.
"""

import json
import random
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import UNAVAILABLE, Row
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
    grant select on all tables in schema shop to {REPLICATION_ROLE}
"""
UPDATE = "update shop.orders set {} where order_id = {{key}}"
MOVE = "update shop.orders set order_id = {new} where order_id = {key}"
WRITE = "update shop.orders set body = '{body}' where order_id = {key}"
DELETE = "delete from shop.orders where order_id = {key}"
INSERT = "insert into shop.orders values ({key}, {customer}, '{body}', {cents} / 100.0)"
CHANGES = [
    UPDATE.format("amount = amount + 1"),
    UPDATE.format("amount = amount + 1"),
    UPDATE.format("customer = null"),
    WRITE,
    UPDATE.format("body = body"),
]
SNAPSHOT = """
    insert into shop.signals values (gen_random_uuid(), 'execute-snapshot',
        '{"type": "BLOCKING", "data-collections": ["shop.orders"]}')
"""
HISTORY = """
{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ row_history(ref('stg_orders')) }}
"""


@dataclass(frozen=True)
class Moment:
    """The table between two commits.

    Attributes:
        position: above all changes so far; none while a transaction is open.
    """

    at: datetime
    position: str | None
    rows: dict[int, tuple[Any, ...]]


class Shop(SourceDatabase):
    """A table that changes, and what it was after each commit."""

    def __init__(self, stack: NorthwindStack) -> None:
        super().__init__(stack, NAME)
        self.random = random.Random(33)
        self.moments: list[Moment] = []

    def create(self) -> None:
        """Make the table, with rows that the snapshot reads, and have it captured."""
        super().create()
        self.execute(CREATE)
        for key in range(1, 13):
            self.execute(self.filled(INSERT, key))
        config = self.configuration(NAME, "shop.orders")
        self.configure(NAME, config | {"signal.data.collection": "shop.signals"})
        self.wait_for(12)
        self.note()

    def filled(self, statement: str, key: int) -> str:
        """A statement for a key, with values that it may write."""
        return statement.format(
            key=key,
            customer=self.random.choice(["'ALFKI'", "'BONAP'", "null"]),
            body=self.random.randbytes(1_500).hex(),
            cents=self.random.randrange(10**6),
        )

    def end(self) -> int:
        """How many records the topic has."""
        return self.stack.broker.end_offsets(TOPIC).get(f"{TOPIC}/0", 0)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: self.end() >= count, 60, "Debezium does not read", 0.2)

    def note(self, *, is_quiet: bool = True) -> None:
        """Copy the table, at a time that is no commit's."""
        rows = {row[0]: row for row in self.execute("select * from shop.orders")}
        [[end]] = self.execute("select pg_current_wal_insert_lsn() - '0/0'")
        at = datetime.now(UTC) + timedelta(milliseconds=1)
        self.moments.append(Moment(at, f"{int(end):016x}" if is_quiet else None, rows))
        # Debezium sends milliseconds.
        time.sleep(0.003)

    def commit(self, *statements: str) -> None:
        """One statement after another, each in a transaction."""
        for statement in statements:
            self.execute(statement)
            self.note()

    def change(self, key: int) -> str:
        """One statement that changes a row."""
        return self.filled(self.random.choice(CHANGES), key)

    def transaction(self) -> None:
        """One transaction, of any kind."""
        keys = sorted(self.moments[-1].rows)
        new = self.random.choice([key for key in range(1, 25) if key not in keys])
        kinds = ["change", "change", "twice", "both", "move", "delete", "insert", "again"]
        kind = self.random.choice(kinds) if len(keys) > 5 else "insert"
        key, other = self.random.sample(keys, 2) if len(keys) > 1 else (0, 0)
        statements = {
            "twice": [self.change(key), self.change(key)],
            "move": [MOVE.format(new=new, key=key)],
            "delete": [DELETE.format(key=key)],
            "insert": [self.filled(INSERT, new)],
            "again": [
                *(DELETE.format(key=key), self.filled(INSERT, key), self.change(key))
            ],
        }.get(kind, [self.change(key)])
        with closing(self.stack.postgres.connect(dbname=NAME)) as connection:
            for statement in statements:
                connection.cursor().execute(statement)
            if kind == "both":
                # It is written first and not yet committed; another one is.
                self.execute(self.change(other))
                self.note(is_quiet=False)
            connection.commit()
        self.note()

    def truncate(self) -> None:
        self.commit("truncate shop.orders")

    def read_again(self) -> None:
        """Have Debezium read the whole table in the middle of its changes."""
        self.wait_until_caught_up()
        expected = self.end() + len(self.moments[-1].rows)
        self.execute(SNAPSHOT)
        self.wait_for(expected)
        self.note()

    def read_ahead(self) -> None:
        """Have Debezium read the whole table before it sends changes that are in it."""
        self.wait_until_caught_up()
        begun = self.end()
        # A paused one reads on until its queue is full.
        self.stack.connect.halt(NAME)
        self.execute(SNAPSHOT)
        key, moved, *_ = sorted(self.moments[-1].rows)
        for change in (CHANGES[0], WRITE, CHANGES[0]):
            self.commit(self.filled(change, key), self.filled(change, moved))
        # The body of the row that moves is in no event; another takes its key.
        self.commit(
            *(MOVE.format(new=25, key=moved), self.filled(INSERT, moved)),
            *(self.filled(CHANGES[0], key), self.filled(WRITE, key)),
        )
        for _ in range(5):
            self.transaction()
        self.stack.connect.resume(NAME)
        self.wait_for(begun + len(self.moments[-1].rows) + 10)
        self.note()


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

    def build(self) -> None:
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
        self.lake.dbt("run", "--vars", variables, project=self.project)

    def assert_equal(self) -> None:
        """The history, at the time of each moment and at its position, is the table."""
        history = self.lake.rows("silver.orders_history")
        for moment in self.shop.moments:
            assert moment.rows == {
                row["order_id"]: values(row)
                for row in history
                if row["valid_from"] <= moment.at
                and (row["valid_to"] is None or moment.at < row["valid_to"])
            }, moment.at
            assert moment.position is None or moment.rows == {
                row["order_id"]: values(row)
                for row in history
                if row["from_position"] < moment.position
                and (row["to_position"] is None or moment.position <= row["to_position"])
            }, moment.position


def values(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS)


def is_ahead(events: list[Row], read: Row) -> bool:
    """Whether a read came before a change of its key that it had seen."""
    return read["op"] == "r" and any(
        event["key"] == read["key"]
        and event["op"] != "r"
        and event["kafka_offset"] > read["kafka_offset"]
        and event["source_ts"] < read["source_ts"]
        for event in events
    )


def test_history_at_each_commit_is_the_table_then(
    stack: NorthwindStack, new_lake: NewLake, tmp_path: Path
) -> None:
    """After each of four builds; values out of line, moved keys, truncates, reads."""
    shop = Shop(stack)
    copy = Copy(new_lake(), shop, tmp_path)
    others = {
        **{(1, 20): shop.truncate, (2, 30): shop.truncate},
        **{(1, 40): shop.read_again, (3, 25): shop.read_again},
        **{(2, 10): shop.read_ahead, (3, 40): shop.read_ahead},
    }
    try:
        shop.create()
        for cut in range(4):
            for step in range(50):
                others.get((cut, step), shop.transaction)()
            shop.wait_until_caught_up()
            copy.build()
            copy.assert_equal()
    finally:
        shop.remove()
    events = copy.lake.rows("bronze.cdc_events")
    assert {event["op"] for event in events} == {"c", "u", "d", "r", "t"}
    assert any(is_ahead(events, event) for event in events)
    assert any(UNAVAILABLE in (event["value"] or "") for event in events)
    assert len(shop.moments) > 200
    assert sum(moment.position is None for moment in shop.moments) > 10
    silver = [row for row in copy.lake.rows("silver.orders") if not row["is_deleted"]]
    assert {row["order_id"]: values(row) for row in silver} == shop.moments[-1].rows
