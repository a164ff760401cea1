"""Debezium writes Avro by Apicurio's converter and registry: silver is PostgreSQL's."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from ingest.topics import read_topics
from lab.stack import jars
from lab.stack.northwind import NorthwindStack
from lab.stack.processes import wait_until
from lab.stack.registry import SchemaRegistry
from tests.conftest import NewLake
from tests.servers.conftest import start_stack
from tests.support.lake import Ingested, Lake
from tests.support.ports import free_port
from tests.support.records import Row
from tests.support.registry import FakeRegistry
from tests.support.required import required
from tests.support.source import TOPICS_FILE, silver_rows, table_rows
from tests.support.types_matrix import PRECISE, TYPES
from tests.support.types_source import DATABASE, TypesSource

pytestmark = pytest.mark.timeout(900)

BASE_TABLES = ("--vars", json.dumps({"cdc_lakehouse_base_tables": True}))
MODELS = ("orders", "categories", "customers", "employees", "products", "regions")
CAPTURED = ("cdc_events", "categories", "customers", "employees", "products", "region")
# A row is inserted, changed, deleted, and given another key; a type is widened, and a
# column added and dropped, between changes of its table.
CHANGES = """
    insert into datalake.customers (customer_id, company_name) values ('AVROA', 'Käse "x"');
    insert into datalake.customers (customer_id, company_name) values ('AVROB', 'B');
    update datalake.customers set company_name = 'C', phone = '1'
    where customer_id = 'AVROB';
    delete from datalake.customers where customer_id = 'AVROA';
    update datalake.customers set customer_id = 'AVROC' where customer_id = 'AVROB';
    update datalake.products set unit_price = 18.05 where product_id = 1;
    update datalake.orders set shipped_date = '1999-12-31' where order_id = 10248;
    delete from datalake.orders where order_id = 10250;
    update datalake.employees set birth_date = '0001-01-01', photo = '\\x00ff'
    where employee_id = 1;
    insert into datalake.region values (5, 'before');
    alter table datalake.region add column size smallint;
    update datalake.region set size = 1 where region_id = 1;
    alter table datalake.region alter column size type integer;
    insert into datalake.region values (6, 'widened', 70000);
    alter table datalake.region drop column size;
    insert into datalake.region values (7, 'dropped');
    delete from datalake.region where region_id = 5;
"""


@dataclass(frozen=True)
class Framing:
    """How a converter writes a schema's id, and the interface that looks it up.

    Attributes:
        settings: of the converter.
        is_confluent: whether it is Confluent's.
    """

    settings: dict[str, str]
    is_confluent: bool = False


HEADERS = Framing({})  # the converter's default
IN_BYTES = {"apicurio.registry.headers.enabled": "false"}
EIGHT_BYTES = Framing(IN_BYTES)
FOUR_BYTES = Framing(
    {
        **IN_BYTES,
        "apicurio.registry.as-confluent": "true",
        "apicurio.registry.use-id": "contentId",
    },
    is_confluent=True,
)

# Avro has no decimal of a negative scale, or of a scale above its precision: the converter
# fails.
AVRO_TYPES = [row for row in TYPES if row.sql not in ("numeric(3,-2)", "numeric(3,5)")]
# The types of PostgreSQL, three times: what a connector says and how it frames.
OTHER_TYPES = rf"types\.(?!{PRECISE}_).*"
UNWRAP = "transforms.unwrap"
WAYS: dict[str, tuple[str, dict[str, str | None], Framing]] = {
    "string": (OTHER_TYPES, {}, EIGHT_BYTES),
    "precise": (rf"types\.{PRECISE}_.*", {"decimal.handling.mode": None}, FOUR_BYTES),
    "flattened": (
        r"types\..*",
        {
            "decimal.handling.mode": None,
            # Connect's own types, which are logical types in Avro.
            "time.precision.mode": "connect",
            "transforms": "unwrap",
            f"{UNWRAP}.add.fields": "op,db,table,schema,lsn,source.ts_ms",
            f"{UNWRAP}.delete.tombstone.handling.mode": "rewrite",
            f"{UNWRAP}.type": "io.debezium.transforms.ExtractNewRecordState",
        },
        HEADERS,
    ),
}


def run_sql(stack: NorthwindStack, script: str) -> None:
    """Run the statements of a script, each in a transaction of its own."""
    with closing(stack.connect_to_source()) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in script.split(";\n"):
                if statement.strip():
                    cursor.execute(statement)


@pytest.fixture(scope="module")
def stack(servers: None, fast_stack: None, stack_root: Path) -> Iterator[NorthwindStack]:
    """A stack of this module's own, as it changes tables and connectors."""
    root = stack_root / "avro"
    root.mkdir()
    stack = NorthwindStack(root)
    try:
        start_stack(stack)
        yield stack
    finally:
        stack.remove()


@pytest.fixture(scope="module")
def registry(stack: NorthwindStack) -> Iterator[SchemaRegistry]:
    with required():
        jars.fetch("registry")
    registry = SchemaRegistry(stack.folder, free_port())
    registry.start()
    registry.wait_until_ready()
    # From then on the global id of a schema is not its content's.
    for name in ("first", "second"):
        requests.post(
            f"{registry.url}/groups/equal/artifacts",
            data='"string"',
            headers={
                "Content-Type": "application/json",
                "X-Registry-ArtifactId": name,
                "X-Registry-ArtifactType": "AVRO",
            },
            timeout=30,
        ).raise_for_status()
    yield registry
    registry.kill()


def configuration(
    stack: NorthwindStack,
    registry: SchemaRegistry,
    name: str,
    prefix: str,
    framing: Framing,
) -> dict[str, str]:
    """A source's file in Avro, as another connector beside the one in JSON."""
    settings = {"apicurio.registry.url": registry.url, **framing.settings}
    converters = {
        f"{part}.converter.{key}": value
        for part in ("key", "value")
        for key, value in settings.items()
    }
    return {
        **stack.configuration(f"{name}-avro"),
        **converters,
        "custom.metric.tags": f"connector={prefix}_{name}",
        "slot.name": f"{prefix}_{name}".replace("-", "_"),
        "topic.prefix": prefix,
    }


def register(stack: NorthwindStack, configs: dict[str, dict[str, str]]) -> None:
    """Register connectors, and wait until Kafka has what they read first.

    One after another: the registry's database in memory fails where two register their
    schemas at once.
    """
    for name, config in configs.items():
        stack.connect.ask("PUT", f"/connectors/{name}/config", config)
        _wait_until_caught_up(stack, name, config["slot.name"])


def _wait_until_caught_up(stack: NorthwindStack, name: str, slot: str) -> None:
    """Wait until a connector streams, and with that until its snapshot has ended.

    PostgreSQL shows a table that ALTER TABLE rewrites as empty to a snapshot that began
    before. A slot is there, and confirmed up to where it was made, from then on.
    """
    with closing(stack.postgres.connect()) as connection:
        connection.autocommit = True
        cursor = connection.cursor()

        def is_confirmed(position: str) -> bool:
            states = stack.connect.states()
            assert name not in states or not states[name].trace, states[name].trace
            cursor.execute(
                "select active and confirmed_flush_lsn >= %s"
                " from pg_replication_slots where slot_name = %s",
                (position, slot),
            )
            row = cursor.fetchone()
            return bool(row and row[0])

        wait_until(lambda: is_confirmed("0/0"), 120, f"{name} has no slot", 0.2)
        cursor.execute("select pg_current_wal_insert_lsn()")
        (end,) = cursor.fetchone()
        wait_until(lambda: is_confirmed(end), 120, f"{name} has not caught up", 0.2)


def ingest(stack: NorthwindStack, lake: Lake, topics: list[str], *options: str) -> Ingested:
    servers = ("--bootstrap-servers", stack.bootstrap_servers)
    return lake.ingest_kafka(*servers, "--topic", *topics, *options)


def topics_file(folder: Path, tables: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = "".join(f'"{topic}" = "{table}"\n' for topic, table in tables.items())
    (folder / "topics.toml").write_text(f"[topics]\n{lines}")
    return folder / "topics.toml"


# Northwind


@dataclass
class Northwind:
    """Two lakes after the snapshot and the changes, one by JSON and one by Avro."""

    json_lake: Lake
    avro_lake: Lake
    avro: Ingested
    topics: Path


AVRO_TOPICS = [f"avro.datalake.{table}" for table in CAPTURED]


@pytest.fixture(scope="module")
def topics(
    stack: NorthwindStack,
    registry: SchemaRegistry,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The file of the topics that two connectors write in Avro, whose snapshots ended."""
    register(
        stack,
        {
            f"avro-{name}": configuration(stack, registry, name, "avro", EIGHT_BYTES)
            for name in ("source-outbox", "source-tables")
        },
    )
    # All of the models' tables, as dbt asks for each of them.
    tables = {
        topic.replace("demo.", "avro.", 1): table
        for topic, table in read_topics(TOPICS_FILE).tables.items()
    }
    return topics_file(tmp_path_factory.mktemp("topics"), tables)


@pytest.mark.smoke
def test_snapshot_and_changes_in_avro_reach_silver(
    stack: NorthwindStack, registry: SchemaRegistry, topics: Path, new_lake: NewLake
) -> None:
    run_sql(
        stack,
        "insert into datalake.products (product_id, product_name, discontinued)"
        " values (900, 'Käse \"x\"', 1);\n"
        "update datalake.products set unit_price = 19.05 where product_id = 900;\n"
        "insert into datalake.products (product_id, product_name, discontinued)"
        " values (901, 'gone', 0);\n"
        "delete from datalake.products where product_id = 901;\n",
    )
    stack.wait_until_caught_up()
    lake = new_lake()
    options = ("--topics", str(topics), "--registry", registry.url)
    done = ingest(stack, lake, ["avro.datalake.products"], *options)
    assert (done.code, done.counts[2]) == (0, 0), done.err
    lake.dbt("run", "-s", "+products", *BASE_TABLES)
    with closing(stack.connect_to_source()) as connection:
        source = table_rows(connection, "products")
    columns = list(next(iter(source.values())))
    assert silver_rows(lake.rows("silver.products"), "products", columns) == source
    assert (900,) in source


@pytest.fixture(scope="module")
def northwind(
    stack: NorthwindStack, registry: SchemaRegistry, topics: Path, new_lake: NewLake
) -> Northwind:
    run_sql(stack, CHANGES)
    stack.wait_until_caught_up()
    json_lake, avro_lake = new_lake(), new_lake()
    done = ingest(
        stack,
        json_lake,
        [f"demo.datalake.{table}" for table in CAPTURED],
        *("--topics", str(TOPICS_FILE)),
    )
    assert (done.code, done.counts[2]) == (0, 0), done.err
    avro = ingest(
        stack,
        avro_lake,
        AVRO_TOPICS,
        *("--topics", str(topics), "--registry", registry.url),
    )
    for lake in (json_lake, avro_lake):
        lake.dbt("run", "-s", *(f"+{model}" for model in MODELS), *BASE_TABLES)
    return Northwind(json_lake, avro_lake, avro, topics)


def test_schema_evolves_in_the_middle_of_a_topic_in_one_run(northwind: Northwind) -> None:
    read, written, rejected, skipped = northwind.avro.counts
    assert (northwind.avro.code, rejected, read) == (0, 0, written + skipped)
    rows = [row for row in northwind.avro_lake.rows("bronze.region") if row["op"] != "r"]
    rows.sort(key=lambda row: row["kafka_offset"])
    # What it was before and after is the same schema to the registry.
    assert len({row["schema_id"] for row in rows}) == 3
    values = [json.loads(row["value"]) for row in rows]
    assert ["size" in (value["after"] or value["before"]) for value in values] == [
        *(False, True, True, False, False)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_silver_is_postgresqls_and_the_same_by_json(
    northwind: Northwind, stack: NorthwindStack, model: str
) -> None:
    with closing(stack.connect_to_source()) as connection:
        source = table_rows(connection, model)
    columns = list(next(iter(source.values())))
    by_json, by_avro = (
        lake.rows(f"silver.{model}") for lake in (northwind.json_lake, northwind.avro_lake)
    )
    assert silver_rows(by_avro, model, columns) == source
    # Where a snapshot was taken, and when a row came, is each connector's own.
    own = {
        *("source_lsn", "source_position", "cdc_state"),
        *("kafka_offset", "ingested_at", "ingest_batch"),
    }

    def same(rows: list[Row]) -> list[Row]:
        kept = [
            {
                name: value
                for name, value in row.items()
                if name not in own and not name.startswith("_hoodie_")
            }
            for row in rows
        ]
        return sorted(kept, key=lambda row: json.dumps(row, default=str, sort_keys=True))

    for row in [*by_json, *by_avro]:
        if row["op"] == "r":
            row["changed_at"] = None
    assert same(by_avro) == same(by_json)


def test_registry_that_is_down_delays_and_loses_nothing(
    northwind: Northwind, stack: NorthwindStack, registry: SchemaRegistry
) -> None:
    lake, options = northwind.avro_lake, ("--topics", str(northwind.topics))
    run_sql(stack, "update datalake.products set unit_price = 19 where product_id = 1;\n")
    stack.wait_until_caught_up()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/apis/registry/v2"
        down = ingest(stack, lake, AVRO_TOPICS, *options, "--registry", url)
    assert down.code == 75
    assert f"the registry at {url} does not answer" in down.err
    assert "Traceback" not in down.err
    up = ingest(stack, lake, AVRO_TOPICS, *options, "--registry", registry.url)
    # The product, and the orders that show it.
    read, written, rejected, _ = up.counts
    assert (up.code, written > 1, rejected) == (0, True, 0), up.err
    assert written == read


def test_records_of_a_lost_registry_wait_in_the_quarantine(
    northwind: Northwind, stack: NorthwindStack, registry: SchemaRegistry
) -> None:
    """An empty one knows no id; with the right one, they are what they would have been."""
    lake, options = northwind.avro_lake, ("--topics", str(northwind.topics))
    run_sql(stack, "update datalake.products set unit_price = 20 where product_id = 2;\n")
    stack.wait_until_caught_up()
    empty = FakeRegistry()
    try:
        url = f"{empty.url}/apis/registry/v2"
        lost = ingest(stack, lake, AVRO_TOPICS, *options, "--registry", url)
    finally:
        empty.stop()
    rejected = lake.rows("bronze.rejected_events")
    count = len(rejected)
    assert (lost.code, lost.counts) == (3, (count, 0, count, 0)), lost.err
    assert all("the registry has no schema" in row["reason"] for row in rejected)
    assert {row["topic"] for row in rejected} == set(AVRO_TOPICS[:1] + AVRO_TOPICS[4:5])
    for row in rejected:
        assert base64.b64decode(json.loads(row["value"])["undecoded"]["value"])[:1] == b"\0"
        assert row["schema_id"] > 0
    without = lake.retry_rejected(*options)
    assert without.counts == (count, 0, count, 0), without.err
    again = lake.retry_rejected(*options, "--registry", registry.url)
    assert (again.code, again.counts) == (0, (count, count, 0, 0)), again.err
    assert lake.rows("bronze.rejected_events") == []
    newest = max(lake.rows("bronze.products"), key=lambda row: row["kafka_offset"])
    assert json.loads(newest["value"])["after"]["unit_price"] == 20.0
    assert json.loads(newest["key"]) == {"product_id": 2}


def test_source_may_change_from_json_to_avro(
    northwind: Northwind, stack: NorthwindStack, registry: SchemaRegistry
) -> None:
    """The file of the project, under the same name: its topics have both then."""
    with stack.placeholders.open("a") as file:
        file.write(f"registry={registry.url}\n")
    topics = ["demo.datalake.products", "demo.datalake.customers"]
    options = ("--topics", str(TOPICS_FILE), "--registry", registry.url)
    lake = northwind.json_lake
    assert ingest(stack, lake, topics, *options).code == 0
    before = len(lake.rows("bronze.products"))
    run_sql(stack, "update datalake.products set unit_price = 21 where product_id = 3;\n")
    stack.wait_until_caught_up()
    config = stack.configuration("source-tables-avro")
    stack.connect.halt("source-tables")
    stack.connect.ask("PUT", "/connectors/source-tables/config", config)
    stack.connect.ask("PUT", "/connectors/source-tables/resume")
    stack.wait_until_streaming()
    run_sql(stack, "update datalake.products set unit_price = 22 where product_id = 3;\n")
    stack.wait_until_caught_up()
    done = ingest(stack, lake, topics, *options)
    assert (done.code, done.counts[2]) == (0, 0), done.err
    rows = sorted(lake.rows("bronze.products"), key=lambda row: row["kafka_offset"])
    old, new = rows[before:]
    assert (old["schema_id"], new["schema_id"] > 0) == (None, True)
    values = [json.loads(row["value"])["after"] for row in (old, new)]
    assert [value["unit_price"] for value in values] == [21.0, 22.0]
    assert values[0].keys() == values[1].keys()
    assert old["key"] == new["key"]


# Every type


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def types(
    stack: NorthwindStack, registry: SchemaRegistry, way: str
) -> Iterator[TypesSource]:
    """The types written in one way, in JSON and in Avro, from snapshot to update."""
    source = TypesSource(stack, AVRO_TYPES)
    configs: dict[str, dict[str, str]] = {}
    tables, changed, framing = WAYS[way]
    own = {
        "database.dbname": DATABASE,
        "publication.name": "types",
        "table.include.list": tables,
    }
    for form in ("json", "avro"):
        prefix = f"{form}_{way}"
        config = configuration(stack, registry, "source-tables", prefix, framing) | own
        if form == "json":
            plain = stack.configuration("source-tables")
            for key in list(config):
                if "converter" in key or key.endswith("adjustment.mode"):
                    del config[key]
            config |= {key: plain[key] for key in plain if "converter" in key}
        config |= {key: value for key, value in changed.items() if value is not None}
        for key in [key for key, value in changed.items() if value is None]:
            del config[key]
        configs[prefix] = config
    try:
        source.create()
        register(stack, configs)
        source.change()
        try:
            source.wait_until_caught_up()
        finally:
            states = stack.connect.states()
            traces = {name: states[name].trace for name in configs if states[name].trace}
            assert not traces, "\n".join(traces.values())
        yield source
    finally:
        for name in configs.keys() & stack.connect.states().keys():
            stack.connect.remove(name)
        source.remove()


def test_json_of_every_type_is_what_connect_writes(
    types: TypesSource,
    stack: NorthwindStack,
    registry: SchemaRegistry,
    new_lake: NewLake,
    tmp_path: Path,
    way: str,
) -> None:
    """Key and value, digit by digit, of every record; but where each log was read."""
    tables = {
        types.tables.table(row)
        for row in AVRO_TYPES
        if way == "flattened" or (row.group == PRECISE) == (way == "precise")
    }
    topics = {
        f"{form}_{way}.{table}": form for form in ("json", "avro") for table in tables
    }
    framing = WAYS[way][2]
    url = registry.confluent_url if framing.is_confluent else registry.url
    lake = new_lake()
    done = ingest(
        stack,
        lake,
        list(topics),
        *("--topics", str(topics_file(tmp_path, topics)), "--registry", url),
    )
    assert (done.code, done.counts[2]) == (0, 0), done.err
    by_json, by_avro = (records(lake.rows(f"bronze.{form}")) for form in ("json", "avro"))
    assert len(by_json) > len(tables)
    assert by_avro == by_json


def records(rows: list[Row]) -> dict[tuple[str, int], Any]:
    """Keys and values by table and offset; numbers as their text."""
    found = {}
    for row in rows:
        is_avro = row["topic"].startswith("avro")
        assert (row["schema_id"] is not None) == is_avro
        value = json.loads(row["value"], parse_float=str, parse_int=str)
        for name in ("__lsn", "__source_ts_ms", "ts_ms", "ts_us", "ts_ns"):
            value.pop(name, None)
        if "source" in value:
            value["source"] = list(value["source"])
        table = row["topic"].rpartition(".")[2]
        found[table, row["kafka_offset"]] = (list(value), value, json.loads(row["key"]))
    return found
