"""Tables of a PostgreSQL in silver: partitions, masked columns, histories."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
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
from tests.support.source import differences, versions
from tests.support.source_database import SourceDatabase, source_database
from tests.support.storm import FOLDER, Storm, read_statements, read_values

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
        source.execute((FOLDER / "masking/tables.sql").read_text())
        source.publish("app")
        config = source.configuration("masking", r"app\..*")
        source.configure("masking", config | masks)
        source.execute((FOLDER / "masking/changes.sql").read_text())
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


# Triggers at the source keep what each row became: that is what the history has.

TOPIC = "histories.shop.orders"
COLUMNS = {
    "order_id": "int",
    "customer": "string",
    "body": "string",
    "amount": "decimal(10,2)",
}
SNAPSHOT = """
    insert into shop.signals values (gen_random_uuid(), 'execute-snapshot',
        '{"type": "BLOCKING", "data-collections": ["shop.orders"]}')
"""
HISTORY = """
{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ row_history(ref('stg_orders')) }}
"""


def count(source: SourceDatabase) -> int:
    """How many records the topic has."""
    return source.stack.broker.end_offsets(TOPIC)[f"{TOPIC}/0"]


def change(source: SourceDatabase, part: int) -> None:
    """Run transactions side by side, and a truncate, a read of all rows, or both."""
    storm = Storm(
        partial(source.postgres.connect, dbname=source.name),
        seed=part,
        transactions=80,
        statements=read_statements("history/changes.sql"),
        values=read_values("history/values.toml"),
    )
    connect, begin = source.stack.connect, count(source)
    [[number]] = source.execute("select max(number) from kept.changes")
    if part == 2:
        # Debezium reads the rows before it sends the changes that are in them. A paused one
        # reads on until its queue is full.
        connect.halt(source.name)
    if part > 1:
        source.execute(SNAPSHOT)
    storm.start()
    if part % 2:
        source.execute("truncate shop.orders")
    storm.wait()
    if part == 2:
        [[due]] = source.execute(
            "select count(*) + (select count(*) from shop.orders) from kept.changes"
            f" where number > {number}"
        )
        connect.resume(source.name)
        wait_until(lambda: count(source) >= begin + due, 120, "the rows are not read", 0.2)
    source.wait_until_caught_up()


def is_ahead(events: list[Row], read: Row) -> bool:
    """Whether a read came before a change of its key that it had seen."""
    return read["op"] == "r" and any(
        event["key"] == read["key"]
        and event["op"] != "r"
        and event["kafka_offset"] > read["kafka_offset"]
        and event["source_ts"] < read["source_ts"]
        for event in events
    )


def test_history_has_each_version_that_triggers_saw(
    stack: NorthwindStack, new_lake: NewLake, tmp_path: Path
) -> None:
    """After each of four builds; values out of line, moved keys, truncates, reads."""
    project = small_project(tmp_path / "project")
    write_topics(project, {TOPIC: "cdc_events"})
    set_columns(project, COLUMNS)
    (project / "models/silver/orders_history.sql").write_text(HISTORY)
    lake = new_lake(project=project)
    with source_database(stack, "histories") as source:
        with source.cursor() as cursor:
            cursor.execute((FOLDER / "history/tables.sql").read_text())
        source.publish("shop")
        config = source.configuration(source.name, "shop.orders")
        source.configure(source.name, config | {"signal.data.collection": "shop.signals"})
        for part in range(4):
            change(source, part)
            lake.follow(stack.bootstrap_servers, TOPIC)
            events = lake.rows("bronze.cdc_events")
            truncates = {
                event["source_position"]: "apply" for event in events if event["op"] == "t"
            }
            lake.dbt("run", "--vars", json.dumps({"cdc_lakehouse_truncates": truncates}))
            history = lake.rows("silver.orders_history")
            kept = source.execute("select * from kept.versions order by order_id, number")
            assert versions(history, *COLUMNS) == [row[: len(COLUMNS) + 2] for row in kept]
            for row, (*_, position, _, _) in zip(history, kept, strict=True):
                assert row["op"] == "r" or row["from_position"] < position
                assert row["to_position"] is None or position <= row["to_position"]
        with closing(stack.postgres.connect(dbname=source.name)) as connection:
            question = "select * from shop.orders"
            silver = lake.rows("silver.orders")
            assert differences(connection, question, silver, "order_id") == []
    assert {event["op"] for event in events} == {"c", "u", "d", "r", "t"}
    assert any(is_ahead(events, event) for event in events)
    assert any(UNAVAILABLE in (event["value"] or "") for event in events)
    assert len(kept) > 200
    # Of transactions side by side, the first to write may be the last to commit.
    history.sort(key=lambda row: row["from_position"])
    begun = [row["valid_from"] for row in history]
    assert begun != sorted(begun)
