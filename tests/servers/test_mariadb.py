"""A real MariaDB and Debezium's connector for it: a storm, and a log that starts again."""

import io
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, redirect_stdout, suppress
from functools import partial
from typing import Any

import pymysql
import pytest

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import TRY_AGAIN
from lab.stack.mariadb import statements
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from tests.conftest import NewLake
from tests.servers.test_stack import unread, validated
from tests.support.lake import Lake, SparkDiedError
from tests.support.mariadb import MariaDBSource
from tests.support.project import PROJECT, new_project
from tests.support.source import differences, versions
from tests.support.storm import FOLDER, Storm, read_statements, read_values

pytestmark = pytest.mark.timeout(900)

SEED = 20_261_122
TRANSACTIONS = 400
FAULTS = ("connect", "mariadb", "spark", "broker")
# The shop's tables, each with what silver has of it and its key.
TABLES = {
    "customers": ("*", "customer_id"),
    "orders": ("*", "order_id"),
    "order_lines": ("*", "order_id", "product_id"),
    "visits": ("*", "visit_id"),
    "offers": ("offer_id, part, customer_id, size", "offer_id", "part"),
}
TOPICS = [f"shop.shop.{table}" for table in TABLES]
HISTORY = """
{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ cdc_lakehouse.row_history(ref('stg_visits')) }}
"""


@pytest.fixture(scope="module")
def stack(own_stack: NorthwindStack) -> NorthwindStack:
    """Its broker and its Connect are killed."""
    return own_stack


def test_every_setting_of_the_connector_is_read(mariadb_source: MariaDBSource) -> None:
    """Validate lists none of those of the schema history; the shop's test has its topic."""
    config = mariadb_source.configuration("shop")
    history = "schema.history.internal.kafka."
    found = unread(mariadb_source.connect, "shop", config)
    assert {name for name in found if not name.startswith(history)} == set()
    entries = validated(mariadb_source.connect, "shop", config)
    assert [each for each in entries.values() if each["value"]["errors"]] == []


@pytest.mark.parametrize("image", ["minimal", "noblob"])
def test_row_of_which_the_log_has_a_part_stops_the_connector(
    mariadb_source: MariaDBSource, image: str
) -> None:
    """So no value is taken for a null; it does not start at a server that logs them."""
    server = mariadb_source.server
    mariadb_source.create(
        image,
        "create table parts (id int primary key, body text, amount int)",
        "insert into parts values (1, 'a body', 1)",
    )
    server.execute(f"set global binlog_row_image = {image}")
    with pytest.raises(AssertionError, match="configured to use a FULL binlog_row_image"):
        mariadb_source.follow(image)
    server.execute("set global binlog_row_image = FULL")
    mariadb_source.connect.remove(image)
    mariadb_source.follow(image)
    change = (f"set session binlog_row_image = {image}", "update parts set amount = 2")
    server.execute(*change, database=image)

    def trace() -> str:
        return mariadb_source.connect.states()[image].trace

    wait_until(lambda: bool(trace()), 60, "the connector has not stopped", 0.2)
    assert re.search("row in parts, internal schema size 3, but row size [12]", trace())
    mariadb_source.connect.remove(image)


# The shop: a storm, and a server whose binary log starts again.


class Shop:
    """The shop's database, and a lake that follows it, whose project `add` wrote."""

    def __init__(self, source: MariaDBSource, lake: Lake, said_by_add: str) -> None:
        self.source = source
        self.servers = source.stack.bootstrap_servers
        self.lake = lake
        self.said_by_add = said_by_add
        self.said: list[str] = []

    def ingest(self) -> None:
        """Bring what Kafka has to bronze; it may be on its way up."""
        done = self.lake.ingest_kafka(
            *("--bootstrap-servers", self.servers, "--topic", *TOPICS)
        )
        assert done.code in (0, TRY_AGAIN), done.err

    def build(self, *arguments: str) -> None:
        self.said = self.lake.dbt("run", *arguments)["said"]

    def catch_up(self, *arguments: str) -> None:
        """Bring what is committed to silver."""
        self.source.wait_until_caught_up()
        self.lake.follow(self.servers, *TOPICS)
        self.build(*arguments)

    def storm(self, transactions: int) -> Storm:
        """Transactions that run from now on."""
        storm = Storm(
            lambda: self.source.server.connect(database="shop"),
            seed=SEED,
            transactions=transactions,
            statements=read_statements("shop/changes.sql"),
            values=read_values("shop/values.toml"),
            driver_error=pymysql.err.Error,
        )
        storm.start()
        return storm

    def differences(self) -> dict[str, list[Any]]:
        """Rows of which silver and the source differ, by table."""
        found: dict[str, list[Any]] = {}
        for table, (columns, *key) in TABLES.items():
            with closing(self.source.server.connect(database="shop")) as connection:
                [[count]] = self.source.server.execute(f"select count(*) from shop.{table}")
                assert count > 20 or table == "offers"
                question = f"select {columns} from {table}"
                rows = self.lake.rows(f"silver.{table}")
                found[table] = differences(connection, question, rows, *key)
        return {table: wrong for table, wrong in found.items() if wrong}


@pytest.fixture(scope="module")
def new_shop(
    mariadb_source: MariaDBSource,
    new_lake: NewLake,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shop]:
    """After a snapshot."""
    server = mariadb_source.server
    mariadb_source.create("shop", *statements((FOLDER / "shop/tables.sql").read_text()))
    project = new_project(tmp_path_factory.mktemp("project") / "shop")
    config = json.loads((PROJECT / "connectors/source-mariadb.json").read_text())
    connector = project / "connector.json"
    connector.write_text(json.dumps(config | {"database.include.list": "shop"}))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in mariadb_source.environment().items():
            patch.setenv(name, value)
        server.execute("set global binlog_format = MIXED")
        places = ("--project-dir", str(project), "--connector", str(connector))
        with redirect_stdout(io.StringIO()) as printed:
            assert main(["add", "shop", *places]) == 0
        server.execute("set global binlog_format = ROW")
    (project / "models/silver/visits_history.sql").write_text(HISTORY)
    # The log's files are short, so that the storm's positions are of many.
    server.execute("set global max_binlog_size = 65536")
    mariadb_source.follow("shop")
    shop = Shop(mariadb_source, new_lake(project=project), printed.getvalue())
    shop.catch_up()
    yield shop
    mariadb_source.connect.remove("shop")


@pytest.mark.smoke
def test_snapshot_and_changes_reach_silver(new_shop: Shop) -> None:
    shop = new_shop
    assert shop.differences() == {}
    history = shop.source.configuration("shop")["schema.history.internal.kafka.topic"]
    assert max(shop.source.stack.broker.end_offsets(re.escape(history)).values()) > 0
    shop.storm(80).wait()
    shop.catch_up()
    assert shop.differences() == {}
    assert {row["op"] for row in shop.lake.rows("bronze.orders")} == {"r", "c", "u", "d"}


def test_catalogue_gives_the_models(new_shop: Shop) -> None:
    """Keys, comments, computed columns, types, cascades and the log of a MariaDB."""
    assert new_shop.said_by_add.endswith(
        "-- binary log: changes not logged (source binlog_format is MIXED, not ROW)\n"
        "-- shop.offers: cascades not logged (source foreign key offers_customer)\n"
    )
    models = new_shop.lake.project / "models"
    offers = (FOLDER / "shop/stg_offers.sql").read_text()
    assert (models / "staging/stg_offers.sql").read_text() == offers
    assert "description: Who asked" in (models / "silver/offers.yml").read_text()


@pytest.fixture(scope="module")
def shop(new_shop: Shop) -> Shop:
    """After a storm with faults."""
    shop = new_shop
    draw = random.Random(SEED)
    storm = shop.storm(TRANSACTIONS)
    for fault in FAULTS:
        time.sleep(draw.uniform(0.5, 2))
        if fault != "spark":
            shop.source.crash(fault)
        shop.ingest()
        if fault == "spark":
            # The ingest's and the build's process, at a random moment of a build.
            killer = threading.Timer(draw.uniform(1, 4), shop.lake.spark.kill)
            killer.start()
            with suppress(SparkDiedError, OSError, ValueError):
                shop.build()
            killer.join()
    storm.wait()
    shop.catch_up()
    return shop


def test_silver_is_equal_to_the_source_after_a_storm(shop: Shop) -> None:
    """Its positions are of many files of the binary log, and of many rows."""
    assert shop.differences() == {}
    assert shop.lake.rows("bronze.rejected_events") == []
    orders = shop.lake.rows("bronze.orders")
    found = [row["source_position"].split("/") for row in orders]
    assert len({file for file, _, _ in found}) > 3
    assert max(int(number) for _, _, number in found) > 5


def test_history_has_the_second_of_each_statement(shop: Shop) -> None:
    """Order and values are exact, whatever the clock and however long a transaction."""
    columns = "visit_id, note, valid_from, valid_to"
    kept = shop.source.server.execute(
        f"select {columns} from kept.versions order by visit_id, number"
    )
    history = shop.lake.rows("silver.visits_history")
    assert versions(history, "visit_id", "note") == kept
    of_each = Counter(visit for visit, *_ in kept)
    assert sum(count > 2 for count in of_each.values()) > 20
    assert any(begin == end for _, _, begin, end in kept)


def test_binary_log_that_starts_again_needs_a_higher_epoch(shop: Shop) -> None:
    """New events lose, and a warning says so; in a new epoch, with the reads of a complete
    snapshot, silver equals the source again."""
    topics = shop.lake.topics
    text = topics.read_text()
    execute = partial(shop.source.server.execute, database="shop")
    shop.source.connect.remove("shop")
    execute(
        "reset master",
        "delete from orders where order_id % 5 = 0",
        "update orders set freight = 7 where order_id % 3 = 0",
    )
    epochs = "".join(f'"{topic}" = 1\n' for topic in TOPICS)
    topics.write_text(f"{text}\n[epochs]\n{epochs}")
    # The history of the tables' schemas starts again as well.
    history = {"schema.history.internal.kafka.topic": "schema-history.again"}
    shop.source.follow("shop", **history)
    execute("update orders set freight = 8 where order_id % 7 = 0")
    shop.source.wait_until_caught_up()
    shop.lake.follow(shop.servers, *TOPICS)
    snapshots = {
        table: max(
            row["source_position"]
            for row in shop.lake.rows(f"bronze.{table}")
            if row["op"] == "r" and row["source_epoch"] == 1
        )
        for table in TABLES
    }
    assert set(snapshots.values()) == {min(snapshots.values())}
    assert snapshots["orders"].startswith("0000000001/")
    shop.build("--vars", json.dumps({"cdc_lakehouse_complete_snapshots": snapshots}))
    assert shop.differences() == {}

    topics.write_text(text)
    execute("update customers set name = 'of an older epoch'")
    shop.catch_up()
    assert any("new events of bronze.customers arrived" in text for text in shop.said)
    assert shop.differences()["customers"]
