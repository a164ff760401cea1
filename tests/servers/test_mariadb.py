"""A real MariaDB and Debezium's connector for it: positions, a storm, its types."""

import io
import json
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from datetime import date
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import TRY_AGAIN
from cdc_lakehouse.sources.types import declared_type
from lab.stack.mariadb import statements
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.servers.test_connectors import unread, validated
from tests.support import types_doc
from tests.support.lake import Lake
from tests.support.mariadb import MariaDBStack, Visits, plain
from tests.support.ports import free_port
from tests.support.project import PROJECT, copy_project, new_project, replace_once
from tests.support.records import Row
from tests.support.required import required
from tests.support.storm import FOLDER, Storm, Values, read_statements
from tests.support.types_matrix import MARIADB, Type, Value
from tests.support.types_outcomes import Outcomes, cases, outcomes_of, wrong_ways
from tests.support.types_source import TypesTables, declare

pytestmark = pytest.mark.timeout(900)

SEED = 20_261_122
TRANSACTIONS = 400
FAULTS = ("connect", "mariadb", "spark", "broker")
# The shop's tables, each with its key.
TABLES = {
    "customers": ["customer_id"],
    "orders": ["order_id"],
    "order_lines": ["order_id", "product_id"],
    "visits": ["visit_id"],
    "offers": ["offer_id", "part"],
}
TOPICS = [f"shop.shop.{table}" for table in TABLES]
VALUES: Values = {
    "order": range(1, 400),
    "new": range(301, 700),
    "product": range(1, 40),
    "number": range(1, 61),
    "another": range(1, 100),
    "customer": ("null", "'C1'", "'C2'", "'C3'"),
    "day": ("null", "'1998-05-20'", "'2026-02-28'"),
    "moment": ("null", "'2026-05-20 23:59:59.123456'"),
    "state": ("'new'", "'packed'", "'sent'"),
    "flags": ("null", "''", "'gift'", "'gift,express'"),
    "reference": ("null", 1, 2**63, 2**64 - 1),
}
HISTORY = """
{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ cdc_lakehouse.row_history(ref('stg_visits')) }}
"""
OFFERS = """\
{{ config(meta={
    'key': 'offers_key',
    'key_columns': ['part', 'offer_id'],
    'columns': {
        'offer_id': 'bigint',
        'part': 'int',
        'customer_id': 'string',
        'size': 'decimal(10,2)',
    },
    'ignored_fields': ['twice'],
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'offers')) }}
"""


@pytest.fixture(scope="module")
def mariadb(open_folder: Path) -> Iterator[MariaDBStack]:
    """Skips where the machine lacks what it needs; in CI that is a failure."""
    stack = MariaDBStack(open_folder)
    with required():
        stack.require_programs()
    try:
        # Each port stays free when its server is killed.
        stack.start({name: free_port() for name in stack.PORTS})
        yield stack
    finally:
        stack.remove()


def test_every_setting_of_the_connector_is_read(mariadb: MariaDBStack) -> None:
    """Validate lists none of those of the schema history; the shop's test has its topic."""
    config = mariadb.configuration("shop")
    history = "schema.history.internal.kafka."
    found = unread(mariadb.connect, "shop", config)
    assert {name for name in found if not name.startswith(history)} == set()
    entries = validated(mariadb.connect, "shop", config)
    assert [each for each in entries.values() if each["value"]["errors"]] == []


@pytest.mark.parametrize("image", ["minimal", "noblob"])
def test_row_of_which_the_log_has_a_part_stops_the_connector(
    mariadb: MariaDBStack, image: str
) -> None:
    """So no value is taken for a null; it does not start at a server that logs them."""
    server = mariadb.server
    mariadb.create(
        image,
        "create table parts (id int primary key, body text, amount int)",
        "insert into parts values (1, 'a body', 1)",
    )
    server.execute(f"set global binlog_row_image = {image}")
    with pytest.raises(AssertionError, match="configured to use a FULL binlog_row_image"):
        mariadb.follow(image)
    server.execute("set global binlog_row_image = FULL")
    mariadb.connect.remove(image)
    mariadb.follow(image)
    change = (f"set session binlog_row_image = {image}", "update parts set amount = 2")
    server.execute(*change, database=image)

    def trace() -> str:
        return mariadb.connect.states()[image].trace

    wait_until(lambda: bool(trace()), 60, "the connector has not stopped", 0.2)
    assert re.search("row in parts, internal schema size 3, but row size [12]", trace())
    mariadb.connect.remove(image)


# The shop: a storm, and a server whose binary log starts again.


class Shop:
    """The shop's database, and a lake that follows it, whose project `add` wrote."""

    def __init__(self, stack: MariaDBStack, lake: Lake, project: Path, said: str) -> None:
        self.stack = stack
        self.lake = lake
        self.project = project
        self.said_by_add = said
        self.said: list[str] = []
        self.topics = project / "topics.toml"
        self.topics_text = self.topics.read_text()
        self.visits = Visits(stack.server)

    def execute(self, *listed: str) -> list[tuple[Any, ...]]:
        return self.stack.server.execute(*listed, database="shop")

    def set_epoch(self, epoch: int) -> None:
        lines = "".join(f'"{topic}" = {epoch}\n' for topic in TOPICS)
        self.topics.write_text(f"{self.topics_text}\n[epochs]\n{lines}")

    def ingest(self) -> int:
        """Bring what Kafka has to bronze; the exit code."""
        ingested = self.lake.ingest_kafka(
            *("--bootstrap-servers", self.stack.bootstrap_servers),
            *("--topics", str(self.topics), "--topic", *TOPICS),
        )
        assert ingested.code in (0, TRY_AGAIN), ingested.err
        return ingested.code

    def build(self, *arguments: str) -> None:
        self.said = self.lake.dbt("run", *arguments, project=self.project)["said"]

    def catch_up(self, *arguments: str) -> None:
        """Bring what is committed to silver."""
        self.stack.wait_until_caught_up()
        assert self.ingest() == 0
        self.build(*arguments)

    def storm(self, transactions: int) -> Storm:
        """Transactions that run from now on."""
        storm = Storm(
            lambda: self.stack.server.connect(database="shop"),
            seed=SEED,
            transactions=transactions,
            statements=read_statements("shop/changes.sql"),
            values=VALUES,
            driver_error=pymysql.err.Error,
        )
        storm.start()
        return storm

    def differences(self) -> dict[str, list[Any]]:
        """Rows of which silver and the source differ, by table."""
        found: dict[str, list[Any]] = {}
        for table, key in TABLES.items():
            connection = self.stack.server.connect(database="shop")
            with closing(connection), connection.cursor() as cursor:
                cursor.execute(f"select * from {table}")
                names = [column[0] for column in cursor.description]
                rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            live = [
                row for row in self.lake.rows(f"silver.{table}") if not row["is_deleted"]
            ]
            expected, silver = (
                {
                    tuple(row[name] for name in key): {
                        name: plain(row[name]) for name in names if name != "twice"
                    }
                    for row in each
                }
                for each in (rows, live)
            )
            assert len(expected) > 20 or table == "offers"
            if wrong := [
                (its, expected.get(its), silver.get(its))
                for its in expected.keys() | silver.keys()
                if expected.get(its) != silver.get(its)
            ]:
                found[table] = wrong
        return found

    def bronze(self, table: str) -> list[Row]:
        rows = self.lake.rows(f"bronze.{table}")
        return sorted(rows, key=lambda row: row["kafka_offset"])


@pytest.fixture(scope="module")
def new_shop(
    mariadb: MariaDBStack, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> Shop:
    """After a snapshot."""
    server = mariadb.server
    mariadb.create("shop", *statements((FOLDER / "shop/tables.sql").read_text()))
    project = new_project(tmp_path_factory.mktemp("project") / "shop")
    config = json.loads((PROJECT / "connectors/source-mariadb.json").read_text())
    connector = project / "connector.json"
    connector.write_text(json.dumps(config | {"database.include.list": "shop"}))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "MYSQL_HOST": "127.0.0.1",
            "MYSQL_TCP_PORT": str(server.port),
            "MYSQL_USER": "root",
            "MYSQL_PWD": server.password,
        }.items():
            patch.setenv(name, value)
        server.execute("set global binlog_format = MIXED")
        places = ("--project-dir", str(project), "--connector", str(connector))
        with redirect_stdout(io.StringIO()) as printed:
            assert main(["add", "shop", *places]) == 0
        server.execute("set global binlog_format = ROW")
    (project / "models/silver/visits_history.sql").write_text(HISTORY)
    # The log's files are short, so that the storm's positions are of many.
    server.execute("set global max_binlog_size = 65536")
    mariadb.follow("shop")
    shop = Shop(mariadb, new_lake(), project, printed.getvalue())
    assert shop.ingest() == 0
    shop.build()
    return shop


@pytest.mark.smoke
def test_snapshot_and_changes_reach_silver(new_shop: Shop) -> None:
    shop = new_shop
    assert shop.differences() == {}
    history = shop.stack.configuration("shop")["schema.history.internal.kafka.topic"]
    assert max(shop.stack.broker.end_offsets(re.escape(history)).values()) > 0
    shop.storm(80).wait()
    shop.catch_up()
    assert shop.differences() == {}
    assert {row["op"] for row in shop.bronze("orders")} == {"r", "c", "u", "d"}


def test_catalogue_gives_the_models(new_shop: Shop) -> None:
    """Keys, comments, computed columns, types, cascades and the log of a MariaDB."""
    assert new_shop.said_by_add.endswith(
        "-- binary log: changes not logged (source binlog_format is MIXED, not ROW)\n"
        "-- shop.offers: cascades not logged (source foreign key offers_customer)\n"
    )
    models = new_shop.project / "models"
    assert (models / "staging/stg_offers.sql").read_text() == OFFERS
    assert "description: Who asked" in (models / "silver/offers.yml").read_text()


@pytest.fixture(scope="module")
def shop(new_shop: Shop) -> Shop:
    """After a storm with faults."""
    shop = new_shop
    draw = random.Random(SEED)
    shop.visits.change(200)
    storm = shop.storm(TRANSACTIONS)
    for fault in FAULTS:
        time.sleep(draw.uniform(0.5, 2))
        if fault == "spark":
            kill_during_build(shop, draw)
        else:
            shop.stack.crash(fault)
            assert shop.ingest() in (0, TRY_AGAIN)  # Kafka may be on its way up
    storm.wait()
    assert storm.committed == TRANSACTIONS
    shop.visits.change(200)
    shop.catch_up()
    return shop


def kill_during_build(shop: Shop, draw: random.Random) -> None:
    """Kill the ingest's and the build's process at a random moment of a build."""
    assert shop.ingest() == 0
    killed = threading.Event()

    def kill() -> None:
        killed.set()
        shop.lake.spark.kill()

    killer = threading.Timer(draw.uniform(1, 4), kill)
    killer.start()
    try:
        shop.build()
    except (AssertionError, OSError, ValueError):
        assert killed.is_set()
    killer.join()


def test_silver_is_equal_to_the_source_after_a_storm(shop: Shop) -> None:
    assert shop.differences() == {}
    assert shop.lake.rows("bronze.rejected_events") == []


def test_history_has_the_second_of_each_statement(shop: Shop) -> None:
    """Order and values are exact, whatever the clock and however long a transaction."""
    expected = shop.visits.versions()
    history: dict[int, list[Row]] = {}
    for row in shop.lake.rows("silver.visits_history"):
        if row["op"] != "r":
            history.setdefault(row["visit_id"], []).append(row)
    assert history.keys() == expected.keys()
    assert sum(len(versions) > 2 for versions in expected.values()) > 20
    for visit, rows in history.items():
        rows.sort(key=lambda row: row["version_number"])
        found = [(row["note"], row["valid_from"], row["valid_to"]) for row in rows]
        assert found == expected[visit], visit
        assert [row["is_current"] for row in rows] == [
            end is None for _, _, end in expected[visit]
        ]


def test_positions_are_of_the_binary_log(shop: Shop) -> None:
    """A key's rise, but for what was delivered twice; many files and rows take part.

    A changed key is a delete and a create of one position.
    """
    places: set[str] = set()
    for table in TABLES:
        newest: dict[str, str] = {}
        delivered: dict[str, set[tuple[str, str]]] = {}
        for event in shop.bronze(table):
            source = json.loads(event["value"])["source"]
            number = int(source["file"].rpartition(".")[2])
            position = f"{number:010d}/{source['pos']:010d}/{source['row']:010d}"
            assert (event["source_position"], event["source_lsn"]) == (position, None)
            places.add(position)
            if event["op"] == "r":
                assert (source["row"], source["ts_ms"] % 1000) == (0, 0)
                continue
            event_of = (position, event["op"])
            if event_of in delivered.setdefault(event["key"], set()):
                continue
            delivered[event["key"]].add(event_of)
            assert position > newest.get(event["key"], ""), event
            newest[event["key"]] = position
    assert len({place.partition("/")[0] for place in places}) > 3
    assert max(int(place.rpartition("/")[2]) for place in places) > 5
    deleted, created = (
        {
            row["source_position"]: row["key"]
            for row in shop.bronze("orders")
            if row["op"] == op
        }
        for op in "dc"
    )
    changes = deleted.keys() & created.keys()
    assert len(changes) > 10
    assert all(deleted[place] != created[place] for place in changes)


def test_binary_log_that_starts_again_needs_a_higher_epoch(shop: Shop) -> None:
    """New events lose, and a warning says so; in a new epoch, with the reads of a complete
    snapshot, silver equals the source again."""
    shop.stack.connect.remove("shop")
    shop.execute(
        "reset master",
        "delete from orders where order_id % 5 = 0",
        "update orders set freight = 7 where order_id % 3 = 0",
    )
    shop.set_epoch(1)
    # The history of the tables' schemas starts again as well.
    history = {"schema.history.internal.kafka.topic": "schema-history.again"}
    shop.stack.follow("shop", **history)
    shop.execute("update orders set freight = 8 where order_id % 7 = 0")
    shop.stack.wait_until_caught_up()
    assert shop.ingest() == 0
    snapshots = {
        table: max(
            row["source_position"]
            for row in shop.bronze(table)
            if row["op"] == "r" and row["source_epoch"] == 1
        )
        for table in TABLES
    }
    assert set(snapshots.values()) == {min(snapshots.values())}
    assert snapshots["orders"].startswith("0000000001/")
    shop.build("--vars", json.dumps({"cdc_lakehouse_complete_snapshots": snapshots}))
    assert shop.differences() == {}

    shop.set_epoch(0)
    shop.execute("update customers set name = 'of an older epoch'")
    shop.catch_up()
    assert any("new events of bronze.customers arrived" in text for text in shop.said)
    assert shop.differences()["customers"]


# The types.


# A value that the server's strict mode refuses is a type's value, too.
NOT_STRICT = "set session sql_mode = ''"
ZERO_DATES = """
    create table zero_dates (
        id int primary key,
        day date not null default '2020-01-02',
        month date not null
    )
"""
ZERO_DATES_CHANGES = (
    "insert into zero_dates values (1, '0000-00-00', '0000-00-00')",
    "set session binlog_format = STATEMENT",
    "insert into zero_dates values (2, '2026-01-01', '2026-01-01')",
    "set session binlog_format = ROW",
    "truncate table zero_dates",
)


@pytest.fixture(scope="module")
def types_cursor(mariadb: MariaDBStack) -> Iterator[Any]:
    mariadb.create("types", NOT_STRICT, ZERO_DATES)
    connection = mariadb.server.connect(
        database="types", autocommit=True, init_command=NOT_STRICT
    )
    with closing(connection), connection.cursor() as cursor:
        yield cursor


@pytest.fixture(scope="module")
def types_lake(
    mariadb: MariaDBStack,
    types_cursor: Any,
    new_lake: NewLake,
    tmp_path_factory: pytest.TempPathFactory,
) -> Lake:
    """After the snapshot's build and an increment."""
    tables = TypesTables(MARIADB.types)
    tables.create(types_cursor)
    tables.create_each(types_cursor)
    topics = {f"types.types.{row.table}": row.group for row in MARIADB.types}
    others = {f"types.types.{name}": name for name in ("zero_dates", "unchanged")}
    project = copy_project(tmp_path_factory.mktemp("types") / "project")
    selected = declare(project, MARIADB.types, topics)
    lines = "".join(f'"{topic}" = "{table}"\n' for topic, table in others.items())
    replace_once(project / "topics.toml", "[topics]\n", f"[topics]\n{lines}")
    mariadb.follow("types")
    lake = new_lake()
    topics |= {"types.types.unchanged": ""}
    # Of every value: two rows in the snapshot; then an insert and an update.
    count = 2 * sum(len(row.all_values) for row in MARIADB.types) + 1
    for has_snapshot in (False, True):
        if has_snapshot:
            tables.change(types_cursor)
            types_cursor.execute("update unchanged set n = 2")
            for statement in ZERO_DATES_CHANGES:
                types_cursor.execute(statement)
            topics |= others
            count += 2
        mariadb.wait_until_caught_up()
        ingested = lake.ingest_kafka(
            *("--bootstrap-servers", mariadb.bootstrap_servers),
            *("--topics", str(project / "topics.toml"), "--topic", *topics),
        )
        assert (ingested.code, ingested.counts[2]) == (0, 0), ingested.err
        # An update to the value that a row has is no event.
        assert ingested.counts[0] <= count
        lake.dbt("run", *selected, project=project)
    return lake


@pytest.fixture(scope="module")
def outcomes(types_lake: Lake, types_cursor: Any) -> Outcomes:
    """What became of every value, by key."""
    texts = TypesTables(MARIADB.types).texts(types_cursor)
    return outcomes_of(MARIADB.types, texts, types_lake)


@pytest.mark.parametrize(("row", "value"), cases(MARIADB.types))
def test_silver_has_the_value_or_names_its_column(
    outcomes: Outcomes, row: Type, value: Value
) -> None:
    """By a snapshot, an insert and an update."""
    assert wrong_ways(row, value, outcomes) == {}


def events_of(lake: Lake, table: str) -> list[Row]:
    return sorted(lake.rows(f"bronze.{table}"), key=lambda row: row["kafka_offset"])


def test_zero_date_takes_the_default_of_a_column_that_is_not_null(types_lake: Lake) -> None:
    """Or the first day of 1970: nothing can tell it from the value."""
    after = json.loads(events_of(types_lake, "zero_dates")[0]["value"])["after"]
    days = (date(2020, 1, 2) - date(1970, 1, 1)).days
    assert (after["day"], after["month"]) == (days, 0)


def test_truncate_is_an_event(types_lake: Lake) -> None:
    """As the shipped connector sends it: without a key, with a position.

    A statement that the log has as such is none.
    """
    _, event = events_of(types_lake, "zero_dates")
    assert (event["op"], event["key"]) == ("t", None)
    assert re.fullmatch(r"\d{10}/\d{10}/\d{10}", event["source_position"])


def test_update_of_another_column_brings_every_value(types_lake: Lake) -> None:
    read, update = (
        json.loads(event["value"])["after"] for event in events_of(types_lake, "unchanged")
    )
    assert len(read) == len(MARIADB.types) + 2
    assert update == read | {"n": 2}


def test_types_are_named_as_by_the_catalogue(types_lake: Lake, types_cursor: Any) -> None:
    """But for ``json``, which is a ``longtext`` there."""
    named = TypesTables(MARIADB.types).named(
        types_cursor,
        "select table_name, column_name, column_type from information_schema.columns"
        " where table_schema = 'types'",
    )
    found = {
        row.sql: declared_type("mariadb", name)
        for row, name in zip(MARIADB.types, named, strict=True)
    }
    expected = {row.sql: declared_type("mariadb", row.catalogue) for row in MARIADB.types}
    assert found == expected | {"json": "string"}


def test_documentation_shows_what_this_run_found(outcomes: Outcomes) -> None:
    types_doc.check(MARIADB, outcomes, {})
