"""Tables of a PostgreSQL in silver: partitions, masked columns, histories."""

import json
import random
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.cli import main
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import copy_project, replace_once, write_topics
from tests.support.records import UNAVAILABLE, Row
from tests.support.small_project import set_columns, small_project
from tests.support.source_database import SourceDatabase, source_database
from tests.support.storm import FOLDER

pytestmark = pytest.mark.timeout(900)


# Tables whose rows are in other tables, and a truncate.

PARTITIONED = {"parts": "id, at, n, v", "parent": "id, v", "plain": "id, v"}
ITS_TOPICS = [f"partitions.public.{name}" for name in (*PARTITIONED, "complete_snapshots")]
OVERRIDES = "snapshot.select.statement.overrides"


class Copy:
    """The database, and a lake whose models `add` wrote."""

    def __init__(self, source: SourceDatabase, lake: Lake) -> None:
        self.source = source
        self.lake = lake
        self.connector = lake.project / "partitions.json"

    def execute(self, file: str) -> None:
        self.source.execute((FOLDER / "partitions" / f"{file}.sql").read_text())

    def command(self, *arguments: str) -> int:
        places = ("--connector", str(self.connector))
        return main([*arguments, *places, "--project-dir", str(self.lake.project)])

    def build(self, **variables: Any) -> dict[str, Any]:
        """Bring what Kafka has to silver."""
        self.source.wait_until_caught_up()
        self.lake.follow(self.source.stack.bootstrap_servers, *ITS_TOPICS)
        given = json.dumps({"cdc_lakehouse_resync": True} | variables)
        models = (f"+{name}" for name in PARTITIONED)
        return self.lake.try_dbt("run", "--vars", given, "-s", *models)

    def different(self) -> set[str]:
        """The tables whose live rows are not the source's."""
        found = set()
        for table, columns in PARTITIONED.items():
            live = sorted(
                tuple(row[name] for name in columns.split(", "))
                for row in self.lake.rows(f"silver.{table}")
                if not row["is_deleted"]
            )
            only = "only " if table == "parent" else ""
            if live != sorted(self.source.execute(f"select {columns} from {only}{table}")):
                found.add(table)
        return found


@pytest.fixture(scope="module")
def copy(
    stack: NorthwindStack, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Copy]:
    """Before a connector reads the database."""
    project = copy_project(tmp_path_factory.mktemp("partitions") / "project")
    line = f'"{ITS_TOPICS[-1]}" = "complete_snapshots"\n'
    replace_once(project / "topics.toml", "[topics]\n", f"[topics]\n{line}")
    with (
        source_database(stack, "partitions") as source,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in source.environment().items():
            patch.setenv(name, value)
        copy = Copy(source, new_lake(project=project))
        config = source.configuration(source.name, "public.complete_snapshots") | {
            "signal.data.collection": "public.signals",
            OVERRIDES: "public.parent",
            f"{OVERRIDES}.public.parent": "select * from only public.parent",
        }
        copy.connector.write_text(json.dumps(config, indent=2))
        yield copy


def test_rows_of_partitions_arrive_by_what_add_prints(
    copy: Copy, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of partitions with either identity, of a new one, and of rows that move."""
    copy.execute("create")
    assert copy.command("add", *(f"public.{name}" for name in PARTITIONED)) == 0
    printed = re.findall(r"(?:create|alter|grant) [^;]*;", capsys.readouterr().out)
    wanted = ["alter table public.parts_1 replica identity full;"]
    assert [each for each in printed if "public.parts_" in each] == wanted
    copy.source.execute("".join(each for each in printed if "identity full" not in each))
    copy.source.configure(copy.source.name, json.loads(copy.connector.read_text()))
    copy.execute("changes")
    assert copy.build()["success"]
    assert copy.different() == set()
    events = copy.lake.rows("bronze.parts")
    assert UNAVAILABLE in "".join(event["value"] for event in events)


def test_rows_without_an_event_come_with_resync(copy: Copy) -> None:
    copy.execute("unseen")
    assert copy.build()["success"]
    assert copy.different() == {"parts"}
    for table in ("parts", "parent"):
        assert copy.command("resync", f"public.{table}") == 0
    assert copy.build()["success"]
    assert copy.different() == set()


def test_truncate_stops_the_build_until_it_is_decided_on(copy: Copy) -> None:
    """As the shipped connector sends it."""
    copy.source.execute("truncate plain, parts; insert into plain values (2, 'again')")
    assert "holds a TRUNCATE at position " in str(copy.build()["error"])
    truncates = {
        event["source_position"]: "apply"
        for table in ("plain", "parts")
        for event in copy.lake.rows(f"bronze.{table}")
        if event["op"] == "t"
    }
    assert copy.build(cdc_lakehouse_truncates=truncates)["success"]
    assert copy.different() == set()
    assert copy.command("diff") == 0


# Columns that Debezium leaves out or hashes, so that Kafka and bronze never have them.

SALT = "CzQMA0cB5K"
HASH = "column.mask.hash.v2.SHA-256.with.salt"
BIOGRAPHY = "a life " * 3_000
MASKED_CHANGES = """
    insert into app.people (person_id, email, passport) values (2, 'b@example.org', 'X2');
    update app.people set phone = '555-0199' where person_id = 1;
    update app.authors set rank = 2;
    insert into app.logins values ('ann', 'a@example.org')
"""
MASKED = {f"masking.app.{table}": table for table in ("people", "authors", "logins")}


def hashed(text: str, salt: str = SALT) -> str:
    return sha256((salt + text).encode()).hexdigest()


def test_columns_are_left_out_or_hashed(
    stack: NorthwindStack, new_lake: NewLake, tmp_path: Path
) -> None:
    """Three tables, changed while a connector masks their columns."""
    # A placeholder of Connect's FileConfigProvider.
    salt_in_a_file = f"${{file:{stack.connect.placeholders}:password}}"
    columns = "email|phone|biography|details"
    masks = {
        "column.exclude.list": r"app\.people\.passport",
        f"{HASH}.{SALT}": rf"app\.\w+\.({columns})",
        f"{HASH}.{salt_in_a_file}": r"app\.logins\.login",
    }
    with source_database(stack, "masking") as source:
        source.execute((FOLDER / "masking.sql").read_text())
        source.publish("app")
        config = source.configuration("masking", r"app\..*")
        source.configure("masking", config | masks)
        source.execute(MASKED_CHANGES)
        source.wait_until_caught_up()
        # Connect shows the salt to whoever may ask it.
        assert f"{HASH}.{SALT}" in stack.connect.ask("GET", "/connectors/masking/config")
    lake = new_lake(write_topics(tmp_path, MASKED))
    assert lake.follow(stack.bootstrap_servers, *MASKED) == (6, 6, 0, 0)

    def rows(table: str) -> list[Row]:
        """What Kafka has of a table, in its order."""
        events = lake.rows(f"bronze.{table}")
        events.sort(key=lambda event: event["kafka_offset"])
        return [json.loads(event["value"])["after"] for event in events]

    read, inserted, updated = rows("people")
    assert not any("passport" in row for row in (read, inserted, updated))
    assert (read["email"], read["biography"]) == (
        *(hashed("a@example.org"), hashed(BIOGRAPHY)),
    )
    assert (inserted["email"], inserted["phone"]) == (hashed("b@example.org"), None)
    # It is cut to the length of the column.
    assert updated["phone"] == hashed("555-0199")[:20]
    # A column that is no text is not hashed, and Debezium says nothing of it.
    assert json.loads(read["details"]) == {"a": 1}
    # Nothing shows that a value was not sent, unless the replica identity is full.
    assert updated["biography"] == hashed(UNAVAILABLE)
    assert [row["biography"] for row in rows("authors")] == [hashed(BIOGRAPHY)] * 2
    # The placeholder is the salt itself, as it is in a setting's name. A key is not hashed.
    assert rows("logins")[0]["login"] == hashed("ann", salt_in_a_file)
    [login] = lake.rows("bronze.logins")
    assert json.loads(login["key"]) == {"login": "ann"}


# The test commits and copies the whole table, again and again, while Debezium sends the
# changes. Several builds later, the history at each of these moments equals the copy.

TOPIC = "histories.shop.orders"
COLUMNS = {
    "order_id": "int",
    "customer": "string",
    "body": "string",
    "amount": "decimal(10,2)",
}
INSERT = "insert into shop.orders values ({key}, {customer}, '{body}', {cents} / 100.0)"
DELETE = "delete from shop.orders where order_id = {key}"
ADD, CLEAR, WRITE, KEEP, MOVE = (
    f"update shop.orders set {change} where order_id = {{key}}"
    for change in (
        "amount = amount + 1",
        "customer = null",
        "body = '{body}'",
        "body = body",
        "order_id = {new}",
    )
)
CHANGES = [ADD, ADD, CLEAR, WRITE, KEEP]
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


class Shop:
    """A table that changes, and what it was after each commit."""

    def __init__(self, source: SourceDatabase) -> None:
        """Make it, with rows that the snapshot reads, and have it captured."""
        self.source = source
        self.random = random.Random(33)
        self.moments: list[Moment] = []
        source.execute((FOLDER / "history.sql").read_text())
        source.publish("shop")
        for key in range(1, 13):
            source.execute(self.filled(INSERT, key))
        config = source.configuration(source.name, "shop.orders")
        source.configure(source.name, config | {"signal.data.collection": "shop.signals"})
        self.wait_for(12)
        self.note()

    def filled(self, statement: str, key: int, new: int = 0) -> str:
        """A statement for a key, with values that it may write."""
        return statement.format(
            key=key,
            new=new,
            customer=self.random.choice(["'ALFKI'", "'BONAP'", "null"]),
            body=self.random.randbytes(1_500).hex(),
            cents=self.random.randrange(10**6),
        )

    def end(self) -> int:
        """How many records the topic has."""
        return self.source.stack.broker.end_offsets(TOPIC).get(f"{TOPIC}/0", 0)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: self.end() >= count, 60, "Debezium does not read", 0.2)

    def note(self, *, is_quiet: bool = True) -> None:
        """Copy the table, at a time that is no commit's."""
        rows = {row[0]: row for row in self.source.execute("select * from shop.orders")}
        [[end]] = self.source.execute("select pg_current_wal_insert_lsn() - '0/0'")
        at = datetime.now(UTC) + timedelta(milliseconds=1)
        self.moments.append(Moment(at, f"{int(end):016x}" if is_quiet else None, rows))
        # Debezium sends milliseconds.
        time.sleep(0.003)

    def commit(self, *statements: str) -> None:
        """One statement after another, each in a transaction."""
        for statement in statements:
            self.source.execute(statement)
            self.note()

    def transaction(self) -> None:
        """One transaction, of any kind."""
        keys = sorted(self.moments[-1].rows)
        new = self.random.choice([key for key in range(1, 25) if key not in keys])
        kinds = ["change", "change", "twice", "both", "move", "delete", "insert", "again"]
        kind = self.random.choice(kinds) if len(keys) > 5 else "insert"
        key, other = self.random.sample(keys, 2) if len(keys) > 1 else (0, 0)
        change, again = self.random.choices(CHANGES, k=2)
        templates = {
            "twice": [change, again],
            "move": [MOVE],
            "delete": [DELETE],
            "insert": [INSERT],
            "again": [DELETE, INSERT, change],
        }.get(kind, [change])
        place = new if kind == "insert" else key
        source = self.source
        with closing(source.postgres.connect(dbname=source.name)) as connection:
            for template in templates:
                connection.cursor().execute(self.filled(template, place, new))
            if kind == "both":
                # It is written first and not yet committed; another one is.
                source.execute(self.filled(again, other))
                self.note(is_quiet=False)
            connection.commit()
        self.note()

    def truncate(self) -> None:
        self.commit("truncate shop.orders")

    def read_again(self) -> None:
        """Have Debezium read the whole table in the middle of its changes."""
        self.source.wait_until_caught_up()
        expected = self.end() + len(self.moments[-1].rows)
        self.source.execute(SNAPSHOT)
        self.wait_for(expected)
        self.note()

    def read_ahead(self) -> None:
        """Have Debezium read the whole table before it sends changes that are in it."""
        self.source.wait_until_caught_up()
        begun = self.end()
        # A paused one reads on until its queue is full.
        self.source.stack.connect.halt(self.source.name)
        self.source.execute(SNAPSHOT)
        key, moved, *_ = sorted(self.moments[-1].rows)
        for change in (ADD, WRITE, ADD):
            self.commit(self.filled(change, key), self.filled(change, moved))
        # The body of the row that moves is in no event; another takes its key.
        self.commit(
            *(self.filled(MOVE, moved, new=25), self.filled(INSERT, moved)),
            *(self.filled(ADD, key), self.filled(WRITE, key)),
        )
        for _ in range(5):
            self.transaction()
        self.source.stack.connect.resume(self.source.name)
        self.wait_for(begun + len(self.moments[-1].rows) + 10)
        self.note()


def build(shop: Shop, lake: Lake) -> None:
    """Bring everything to the history, every truncate applied, and compare.

    At the time of each moment and at its position, it is the table.
    """
    shop.source.wait_until_caught_up()
    lake.follow(shop.source.stack.bootstrap_servers, TOPIC)
    truncates = {
        event["source_position"]: "apply"
        for event in lake.rows("bronze.cdc_events")
        if event["op"] == "t"
    }
    lake.dbt("run", "--vars", json.dumps({"cdc_lakehouse_truncates": truncates}))
    history = lake.rows("silver.orders_history")
    for moment in shop.moments:
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
    project = small_project(tmp_path / "project")
    write_topics(project, {TOPIC: "cdc_events"})
    set_columns(project, COLUMNS)
    (project / "models/silver/orders_history.sql").write_text(HISTORY)
    lake = new_lake(project=project)
    with source_database(stack, "histories") as source:
        shop = Shop(source)
        others = {
            **{(1, 20): shop.truncate, (2, 30): shop.truncate},
            **{(1, 40): shop.read_again, (3, 25): shop.read_again},
            **{(2, 10): shop.read_ahead, (3, 40): shop.read_ahead},
        }
        for cut in range(4):
            for step in range(50):
                others.get((cut, step), shop.transaction)()
            build(shop, lake)
    events = lake.rows("bronze.cdc_events")
    assert {event["op"] for event in events} == {"c", "u", "d", "r", "t"}
    assert any(is_ahead(events, event) for event in events)
    assert any(UNAVAILABLE in (event["value"] or "") for event in events)
    assert len(shop.moments) > 200
    assert sum(moment.position is None for moment in shop.moments) > 10
    silver = [row for row in lake.rows("silver.orders") if not row["is_deleted"]]
    assert {row["order_id"]: values(row) for row in silver} == shop.moments[-1].rows
