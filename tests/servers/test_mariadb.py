"""A real MariaDB and Debezium's connector for it: positions, a storm, its types."""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc_lakehouse.cli import main as connectors
from cdc_lakehouse.errors import TRY_AGAIN
from cdc_lakehouse.sources.types import declared_type
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.servers.test_connectors import unread, validated
from tests.support import types_doc
from tests.support.lake import Lake
from tests.support.mariadb import CONNECTOR, MariaDBStack
from tests.support.mariadb_source import (
    NOT_STRICT,
    SHOP,
    TABLES,
    MariaDBTypes,
    Visits,
    change_shop,
    set_epoch,
    silver_rows,
    source_rows,
    topics_of,
    write_shop,
)
from tests.support.mariadb_types import TYPES
from tests.support.ports import free_port
from tests.support.project import PROJECT, copy_project
from tests.support.records import Row
from tests.support.required import required
from tests.support.storm import Storm
from tests.support.types_matrix import Type, Value
from tests.support.types_outcomes import Outcome, cases, outcomes_of, wrong_ways
from tests.support.types_source import declare

pytestmark = pytest.mark.timeout(900)

SHOP_TOPICS = "shop.datalake"
SEED = 20_261_122
TRANSACTIONS = 400
FAULTS = ("connect", "mariadb", "spark", "broker")


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDBStack]:
    """Skips where the machine lacks what it needs; in CI that is a failure."""
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)  # MariaDB's own user must enter it
    stack = MariaDBStack(root, "datalake")
    with required():
        stack.require_programs()
    try:
        # Each port stays free when its server is killed.
        stack.start({name: free_port() for name in stack.PORTS})
        yield stack
    finally:
        stack.remove()
        shutil.rmtree(root)


def test_every_setting_of_the_connector_is_read(mariadb: MariaDBStack) -> None:
    """Validate lists none of those of the schema history; the shop's test has its topic."""
    config = mariadb.configuration()
    history = "schema.history.internal.kafka."
    assert {
        name
        for name in unread(mariadb.connect, CONNECTOR, config)
        if not name.startswith(history)
    } == set()
    entries = validated(mariadb.connect, CONNECTOR, config)
    errors = {key: entry["value"]["errors"] for key, entry in entries.items()}
    assert {key: error for key, error in errors.items() if error} == {}


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_row_of_which_the_log_has_a_part_stops_the_connector(
    mariadb: MariaDBStack, image: str
) -> None:
    """So no value is taken for a null; it does not start at a server that logs them."""
    server, name = mariadb.server, image.lower()
    server.execute(
        f"create database {name}",
        f"create table {name}.parts (id int primary key, body text, amount int)",
        f"insert into {name}.parts values (1, 'a body', 1)",
        f"grant select on {name}.* to 'debezium'@'%'",
    )
    settings = {
        "database.include.list": name,
        "schema.history.internal.kafka.topic": f"schema-history.{name}",
        "topic.prefix": name,
    }
    server.execute(f"set global binlog_row_image = {image}")
    with pytest.raises(
        AssertionError, match="not configured to use a FULL binlog_row_image"
    ):
        mariadb.register(name, **settings)
    server.execute("set global binlog_row_image = FULL")
    mariadb.connect.remove(name)
    mariadb.register(name, **settings)
    server.execute(
        f"set session binlog_row_image = {image}",
        "update parts set amount = 2",
        database=name,
    )

    def stopped() -> str:
        return mariadb.connect.states()[name].trace

    wait_until(lambda: bool(stopped()), 60, "the connector has not stopped", 0.2)
    assert re.search("row in parts, internal schema size 3, but row size [12]", stopped())
    mariadb.connect.remove(name)


def test_statement_that_the_log_has_as_such_is_no_event(mariadb: MariaDBStack) -> None:
    """Of a session with a format of its own; the connector goes on."""
    settings = {
        "database.include.list": "statements",
        "schema.history.internal.kafka.topic": "schema-history.statements",
        "topic.prefix": "statements",
    }
    server = mariadb.server
    server.execute(
        "create database statements",
        "create table statements.parts (id int primary key, amount int)",
        "create table statements.later (id int primary key)",
        "insert into statements.parts values (1, 1)",
        "grant select on statements.* to 'debezium'@'%'",
    )
    mariadb.register("statements", **settings)
    server.execute(
        "set session binlog_format = STATEMENT",
        "update parts set amount = 2",
        "set session binlog_format = ROW",
        "update parts set amount = 3",
        "insert into later values (1)",
        database="statements",
    )

    def sent(table: str) -> int:
        topic = f"statements.statements.{table}"
        return mariadb.broker.end_offsets(re.escape(topic)).get(f"{topic}/0", 0)

    wait_until(lambda: sent("later") == 1, 60, "the connector does not go on", 0.2)
    assert sent("parts") == 2  # the snapshot's read, and the last update
    mariadb.connect.remove("statements")


# The shop: a storm, and a server whose binary log starts again.


class Shop:
    """The shop's database, its connector, and a lake that follows it."""

    def __init__(self, stack: MariaDBStack, lake: Lake, project: Path) -> None:
        self.stack = stack
        self.lake = lake
        self.project = project
        self.said: list[str] = []
        self.visits = Visits(stack.server, stack.database)

    def ingest(self) -> int:
        """Bring what Kafka has to bronze; the exit code."""
        ingested = self.lake.ingest_kafka(
            *("--bootstrap-servers", self.stack.bootstrap_servers),
            *("--topics", str(self.project / "topics.toml")),
            *("--topic", *topics_of(SHOP_TOPICS)),
        )
        assert ingested.code in (0, TRY_AGAIN), ingested.err
        return ingested.code

    def build(self, *arguments: str) -> None:
        answer = self.lake.dbt("run", *arguments, project=self.project)
        self.said = answer["said"]

    def differences(self) -> dict[str, list[Any]]:
        """Rows of which silver and the source differ, by table."""
        found: dict[str, list[Any]] = {}
        for table in TABLES:
            expected = source_rows(self.stack.server, self.stack.database, table)
            silver = silver_rows(self.lake.rows(f"silver.{table}"), table)
            assert len(expected) > 20
            found[table] = [
                (key, expected.get(key), silver.get(key))
                for key in expected.keys() | silver.keys()
                if expected.get(key) != silver.get(key)
            ]
        return found

    def bronze(self, table: str) -> list[Row]:
        rows = self.lake.rows(f"bronze.{table}")
        return sorted(rows, key=lambda row: row["kafka_offset"])


@pytest.fixture(scope="module")
def new_shop(
    mariadb: MariaDBStack, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> Shop:
    """After a snapshot."""
    project = write_shop(tmp_path_factory.mktemp("shop") / "project", SHOP_TOPICS)
    mariadb.server.execute(*SHOP.split(";"), database=mariadb.database)
    # The log's files are short, so that the storm's positions are of many.
    mariadb.server.execute("set global max_binlog_size = 65536")
    mariadb.register(
        **{"table.include.list": "datalake.(customers|orders|order_lines|visits)"}
    )
    shop = Shop(mariadb, new_lake(), project)
    assert shop.ingest() == 0
    shop.build()
    return shop


def change(shop: Shop, transactions: int) -> Storm:
    """Transactions that run from now on."""
    storm = Storm(
        lambda: shop.stack.server.connect(database=shop.stack.database),
        seed=SEED,
        transactions=transactions,
        transact=change_shop,
        driver_error=pymysql.err.Error,
    )
    storm.start()
    return storm


@pytest.mark.smoke
def test_snapshot_and_changes_reach_silver(new_shop: Shop) -> None:
    shop = new_shop
    assert shop.differences() == {table: [] for table in TABLES}
    history = shop.stack.configuration()["schema.history.internal.kafka.topic"]
    assert max(shop.stack.broker.end_offsets(re.escape(history)).values()) > 0
    change(shop, 80).wait()
    shop.stack.wait_until_caught_up()
    assert shop.ingest() == 0
    shop.build()
    assert shop.differences() == {table: [] for table in TABLES}
    assert {row["op"] for row in shop.bronze("orders")} == {"r", "c", "u", "d"}


@pytest.fixture(scope="module")
def shop(new_shop: Shop) -> Shop:
    """After a storm with faults."""
    shop = new_shop
    draw = random.Random(SEED)
    shop.visits.change(200)
    storm = change(shop, TRANSACTIONS)
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
    shop.stack.wait_until_caught_up()
    assert shop.ingest() == 0
    shop.build()
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
    assert shop.differences() == {table: [] for table in TABLES}
    assert shop.lake.rows("bronze.rejected_events") == []


def test_a_full_refresh_gives_the_same(shop: Shop) -> None:
    before = {table: shop.lake.rows(f"silver.{table}") for table in TABLES}
    shop.build("--full-refresh")
    for table, rows in before.items():
        after = {row[TABLES[table][0][0]]: row for row in shop.lake.rows(f"silver.{table}")}
        live = [row for row in rows if not row["is_deleted"]]
        if len(TABLES[table][0]) == 1:
            for row in live:
                assert _own(after[row[TABLES[table][0][0]]]) == _own(row)
    assert shop.differences() == {table: [] for table in TABLES}


def _own(row: Row) -> Row:
    """A row without what its writing decides."""
    return {
        name: value
        for name, value in row.items()
        if not name.startswith("_hoodie_") and name not in ("ingest_batch", "ingested_at")
    }


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
    """A key's rise, but for what was delivered twice; many files and rows take part."""
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


def test_key_change_is_a_delete_and_a_create_with_one_position(shop: Shop) -> None:
    events = shop.bronze("orders")
    deleted = {row["source_position"]: row["key"] for row in events if row["op"] == "d"}
    created = {row["source_position"]: row["key"] for row in events if row["op"] == "c"}
    changes = deleted.keys() & created.keys()
    assert len(changes) > 10
    assert all(deleted[place] != created[place] for place in changes)


def test_binary_log_that_starts_again_needs_a_higher_epoch(shop: Shop) -> None:
    """New events lose, and a warning says so; in a new epoch, with the reads of a complete
    snapshot, silver equals the source again."""
    stack, server = shop.stack, shop.stack.server
    stack.connect.remove(CONNECTOR)
    server.execute(
        "reset master",
        "delete from orders where order_id % 5 = 0",
        "update orders set freight = 7 where order_id % 3 = 0",
        database=stack.database,
    )
    # The history of the tables' schemas starts again as well.
    history = {"schema.history.internal.kafka.topic": "schema-history.again"}
    tables = {"table.include.list": "datalake.(customers|orders|order_lines|visits)"}
    set_epoch(shop.project, SHOP_TOPICS, 1)
    stack.register(**history, **tables)
    server.execute(
        "update orders set freight = 8 where order_id % 7 = 0", database=stack.database
    )
    stack.wait_until_caught_up()
    assert shop.ingest() == 0
    snapshots = {
        table: max(row["source_position"] for row in shop.bronze(table) if is_new_read(row))
        for table in TABLES
    }
    assert set(snapshots.values()) == {min(snapshots.values())}
    assert snapshots["orders"].startswith("0000000001/")
    variable = {"cdc_lakehouse_complete_snapshots": snapshots}
    shop.build("--vars", json.dumps(variable))
    assert shop.differences() == {table: [] for table in TABLES}

    set_epoch(shop.project, SHOP_TOPICS, 0)
    server.execute(
        "update customers set name = 'of an older epoch'", database=stack.database
    )
    stack.wait_until_caught_up()
    assert shop.ingest() == 0
    shop.build()
    assert any("new events of bronze.customers arrived" in text for text in shop.said)
    assert shop.differences()["customers"]


def is_new_read(row: Row) -> bool:
    return bool(row["op"] == "r" and row["source_epoch"] == 1)


# The types.


ZERO_DATES = """
    create table zero_dates (
        id int primary key,
        day date not null default '2020-01-02',
        month date not null
    )
"""


@dataclass
class TypesRun:
    """What became of the types.

    Attributes:
        outcomes: of every value, by key.
        catalogue: the type of each row of the matrix as MariaDB's catalogue writes it.
        zero_dates: what Debezium sent of a row of zero dates.
        truncate: the event of the truncate that followed.
        unchanged: the events of a row whose other column changed.
    """

    outcomes: dict[int, Outcome]
    catalogue: list[str]
    zero_dates: dict[str, Any]
    truncate: Row
    unchanged: list[Row]


@pytest.fixture(scope="module")
def types_run(
    mariadb: MariaDBStack, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory
) -> TypesRun:
    """After the snapshot's build and an increment."""
    project = copy_project(tmp_path_factory.mktemp("types") / "project")
    database = "types"
    mariadb.server.execute(
        f"create database {database}", f"grant select on {database}.* to 'debezium'@'%'"
    )
    source = MariaDBTypes(mariadb.server, database, TYPES)
    source.create()
    source.create_unchanged()
    mariadb.server.execute(NOT_STRICT, ZERO_DATES, database=database)
    topics = source.topics("types")
    selected = declare(project, TYPES, topics)
    zero_dates = f"types.{database}.zero_dates"
    topics[f"types.{database}.unchanged"] = "unchanged"
    topics_file = project / "topics.toml"
    lines = f'"{zero_dates}" = "zero_dates"\n"types.{database}.unchanged" = "unchanged"\n'
    topics_file.write_text(
        topics_file.read_text().replace("[topics]\n", f"[topics]\n{lines}")
    )
    mariadb.register(
        "types",
        **{
            "database.include.list": database,
            "database.server.id": "5402",
            "schema.history.internal.kafka.topic": "schema-history.types",
            "topic.prefix": "types",
        },
    )
    lake = new_lake()
    # Of every value: two rows in the snapshot; then an insert and an update.
    count = 2 * sum(len(row.all_values) for row in TYPES) + 1
    for has_snapshot in (False, True):
        if has_snapshot:
            source.change()
            source.change_unchanged()
            mariadb.server.execute(
                NOT_STRICT,
                "insert into zero_dates values (1, '0000-00-00', '0000-00-00')",
                "truncate table zero_dates",
                database=database,
            )
            topics[zero_dates] = "zero_dates"
            count += 2
        mariadb.wait_until_caught_up()
        ingested = lake.ingest_kafka(
            *("--bootstrap-servers", mariadb.bootstrap_servers),
            *("--topics", str(topics_file), "--topic", *topics),
        )
        assert (ingested.code, ingested.counts[2]) == (0, 0), ingested.err
        # An update to the value that a row has is no event.
        assert ingested.counts[0] <= count
        lake.dbt("run", *selected, project=project)
    mariadb.connect.remove("types")
    events = lake.rows("bronze.zero_dates")
    event, truncate = sorted(events, key=lambda row: row["kafka_offset"])
    return TypesRun(
        outcomes_of(TYPES, source.texts(), lake),
        catalogue=source.catalogue(),
        zero_dates=json.loads(event["value"])["after"],
        truncate=truncate,
        unchanged=[
            json.loads(row["value"])["after"]
            for row in sorted(
                lake.rows("bronze.unchanged"), key=lambda row: row["kafka_offset"]
            )
        ],
    )


@pytest.fixture(scope="module")
def outcomes(types_run: TypesRun) -> dict[int, Outcome]:
    """What became of every value, by key."""
    return types_run.outcomes


@pytest.mark.parametrize(("row", "value"), cases(TYPES))
def test_silver_has_the_value_or_names_its_column(
    outcomes: dict[int, Outcome], row: Type, value: Value
) -> None:
    """By a snapshot, an insert and an update."""
    assert wrong_ways(TYPES, row, value, outcomes) == {}


def test_zero_date_takes_the_default_of_a_column_that_is_not_null(
    types_run: TypesRun,
) -> None:
    """Or the first day of 1970: nothing can tell it from the value."""
    days = (date(2020, 1, 2) - date(1970, 1, 1)).days
    assert (types_run.zero_dates["day"], types_run.zero_dates["month"]) == (days, 0)


def test_truncate_is_an_event(types_run: TypesRun) -> None:
    """As the shipped connector sends it: without a key, with a position."""
    event = types_run.truncate
    assert (event["op"], event["key"]) == ("t", None)
    assert re.fullmatch(r"\d{10}/\d{10}/\d{10}", event["source_position"])


def test_update_of_another_column_brings_every_value(types_run: TypesRun) -> None:
    read, update = types_run.unchanged
    columns = [name for name in read if re.fullmatch(r"c\d+", name)]
    assert len(columns) == len(TYPES)
    assert {name: update[name] for name in columns} == {
        name: read[name] for name in columns
    }


def test_types_are_named_as_by_the_catalogue(types_run: TypesRun) -> None:
    """But for ``json``, which is a ``longtext`` there."""
    found = {
        row.sql: declared_type("mariadb", name)
        for row, name in zip(TYPES, types_run.catalogue, strict=True)
    }
    expected = {row.sql: declared_type("mariadb", row.catalogue) for row in TYPES}
    assert found == expected | {"json": "string"}


def test_documentation_shows_what_this_run_found(outcomes: dict[int, Outcome]) -> None:
    types_doc.check(types_doc.MARIADB, outcomes, {})


def test_catalogue_gives_the_models(
    mariadb: MariaDBStack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Keys, comments, computed columns, types, cascades and the log of a MariaDB."""
    mariadb.server.execute(
        "create database declared",
        "create table declared.vendors (vendor_id int unsigned, part int, name"
        " varchar(20) comment 'What it is called', size decimal(10,2), twice decimal(11,2)"
        " as (size * 2), mood enum('a', 'b'), at timestamp(6) null,"
        " primary key (part, vendor_id))",
        "create table declared.offers (id int primary key, part int,"
        " vendor_id int unsigned, constraint offers_vendor foreign key (part, vendor_id)"
        " references declared.vendors (part, vendor_id) on delete cascade)",
    )
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: cdc_lakehouse\n")
    config = json.loads((PROJECT / "connectors/source-mariadb.json").read_text())
    config["database.include.list"] = "declared"
    (tmp_path / "connector.json").write_text(json.dumps(config, indent=2))
    for name, value in {
        "MYSQL_HOST": "127.0.0.1",
        "MYSQL_TCP_PORT": str(mariadb.server.port),
        "MYSQL_USER": "root",
        "MYSQL_PWD": mariadb.server.password,
    }.items():
        monkeypatch.setenv(name, value)
    places = ["--project-dir", str(tmp_path)]
    places += ["--connector", str(tmp_path / "connector.json")]
    mariadb.server.execute("set global binlog_format = MIXED")
    assert connectors(["add", "declared", *places]) == 0
    mariadb.server.execute("set global binlog_format = ROW")
    assert capsys.readouterr().out.endswith(
        "-- binary log: changes not logged (source binlog_format is MIXED, not ROW)\n"
        "-- declared.offers: cascades not logged (source foreign key offers_vendor)\n"
    )
    staging = (tmp_path / "models/staging/stg_vendors.sql").read_text()
    assert (
        staging
        == """\
{{ config(meta={
    'key': 'vendors_key',
    'key_columns': ['part', 'vendor_id'],
    'columns': {
        'vendor_id': 'bigint',
        'part': 'int',
        'name': 'string',
        'size': 'decimal(10,2)',
        'mood': 'string',
        'at': 'timestamptz',
    },
    'ignored_fields': ['twice'],
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'vendors')) }}
"""
    )
    described = (tmp_path / "models/silver/vendors.yml").read_text()
    assert "description: What it is called" in described
