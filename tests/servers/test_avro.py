"""Debezium writes Avro by Apicurio's converter and registry: silver is PostgreSQL's."""

import base64
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from ingest.topics import read_topics
from lab.stack import jars
from lab.stack.northwind import CONNECTORS, DATABASE, NorthwindStack
from lab.stack.registry import SchemaRegistry
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.ports import free_port
from tests.support.project import write_topics
from tests.support.records import Row
from tests.support.registry import FakeRegistry
from tests.support.required import required
from tests.support.source import TOPICS_FILE, silver_differences
from tests.support.source_database import SourceDatabase
from tests.support.storm import FOLDER
from tests.support.types_matrix import POSTGRESQL, PRECISE
from tests.support.types_source import types_source

pytestmark = pytest.mark.timeout(900)

BASE_TABLES = ("--vars", json.dumps({"cdc_lakehouse_base_tables": True}))
MODELS = ("orders", "categories", "customers", "employees", "products", "regions")
CAPTURED = ("cdc_events", "categories", "customers", "employees", "products", "region")
TOPICS = [f"avro.datalake.{table}" for table in CAPTURED]
PRODUCTS = """
    insert into datalake.products (product_id, product_name, discontinued)
    values (900, 'Käse "x"', 1), (901, 'gone', 0);
    update datalake.products set unit_price = 19.05 where product_id = 900;
    delete from datalake.products where product_id = 901
"""
PRICE = "update datalake.products set unit_price = {} where product_id = 3"
# Avro has no decimal of a negative scale, or of a scale above its precision: the converter
# fails.
TYPES = [
    row for row in POSTGRESQL.types if row.sql not in ("numeric(3,-2)", "numeric(3,5)")
]
# How a converter writes a schema's id: in a header, its default, or in the bytes.
IN_BYTES = {"headers.enabled": "false"}
AS_CONFLUENT = {**IN_BYTES, "as-confluent": "true", "use-id": "contentId"}
UNWRAP = "transforms.unwrap"
# What a connector sends of the types, how the id is framed, and its other settings.
Way = tuple[str, Mapping[str, str], Mapping[str, str | None]]
DEFAULT_DECIMALS = {"decimal.handling.mode": None}
WAYS: dict[str, Way] = {
    "string": (rf"types\.(?!{PRECISE}_).*", IN_BYTES, {}),
    "precise": (rf"types\.{PRECISE}_.*", AS_CONFLUENT, DEFAULT_DECIMALS),
    "flattened": (
        r"types\..*",
        {},
        {
            **DEFAULT_DECIMALS,
            # Connect's own types, which are logical types in Avro.
            "time.precision.mode": "connect",
            "transforms": "unwrap",
            f"{UNWRAP}.add.fields": "op,db,table,schema,lsn,source.ts_ms",
            f"{UNWRAP}.delete.tombstone.handling.mode": "rewrite",
            f"{UNWRAP}.type": "io.debezium.transforms.ExtractNewRecordState",
        },
    ),
}


@pytest.fixture(scope="module")
def stack(own_stack: NorthwindStack) -> NorthwindStack:
    """It changes tables and connectors."""
    return own_stack


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


def converters(registry: SchemaRegistry, framing: Mapping[str, str]) -> dict[str, str]:
    """The settings of both converters."""
    return {
        f"{part}.converter.apicurio.registry.{key}": value
        for part in ("key", "value")
        for key, value in {"url": registry.url, **framing}.items()
    }


# Northwind


@pytest.fixture(scope="module")
def northwind(stack: NorthwindStack, registry: SchemaRegistry) -> SourceDatabase:
    """Two connectors write it in Avro, too, and their snapshots have ended."""
    source = SourceDatabase(stack, DATABASE)
    source.connectors = [*CONNECTORS]
    for name in CONNECTORS:
        config = {
            **stack.configuration(f"{name}-avro"),
            **converters(registry, IN_BYTES),
            "custom.metric.tags": f"connector=avro_{name}",
            "slot.name": f"avro_{name}".replace("-", "_"),
            "topic.prefix": "avro",
        }
        # One after another: the registry's database in memory fails where two register
        # their schemas at once.
        source.configure(f"avro-{name}", config)
    return source


@pytest.fixture(scope="module")
def lake(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """It has all of the models' tables, as dbt asks for each of them."""
    tables = read_topics(TOPICS_FILE).tables
    own = {topic.replace("demo.", "avro.", 1): tables[topic] for topic in tables}
    return new_lake(write_topics(tmp_path_factory.mktemp("topics"), own))


def build(northwind: SourceDatabase, lake: Lake, *models: str) -> None:
    """Build models, whose rows are the source's then."""
    lake.dbt("run", "-s", *(f"+{model}" for model in models), *BASE_TABLES)
    with closing(northwind.stack.connect_to_source()) as connection:
        for model in models:
            rows = lake.rows(f"silver.{model}")
            assert silver_differences(connection, model, rows) == [], model


@pytest.mark.smoke
def test_snapshot_and_changes_in_avro_reach_silver(
    northwind: SourceDatabase, registry: SchemaRegistry, lake: Lake
) -> None:
    northwind.execute(PRODUCTS)
    northwind.wait_until_caught_up()
    servers = northwind.stack.bootstrap_servers
    lake.follow(servers, "avro.datalake.products", "--registry", registry.url)
    build(northwind, lake, "products")


def test_schema_evolves_in_the_middle_of_a_topic_in_one_run(
    northwind: SourceDatabase, registry: SchemaRegistry, lake: Lake
) -> None:
    """And silver is PostgreSQL's."""
    northwind.execute((FOLDER / "avro.sql").read_text())
    northwind.wait_until_caught_up()
    lake.follow(northwind.stack.bootstrap_servers, *TOPICS, "--registry", registry.url)
    build(northwind, lake, *MODELS)
    rows = [row for row in lake.rows("bronze.region") if row["op"] != "r"]
    rows.sort(key=lambda row: row["kafka_offset"])
    # What it was before and after is the same schema to the registry.
    assert len({row["schema_id"] for row in rows}) == 3
    values = [json.loads(row["value"]) for row in rows]
    assert ["size" in (value["after"] or value["before"]) for value in values] == [
        *(False, True, True, False, False)
    ]


def test_records_wait_for_a_registry_that_is_down_or_lost(
    northwind: SourceDatabase, registry: SchemaRegistry, lake: Lake
) -> None:
    """An empty one knows no id; with the right one, they are what they would have been."""
    northwind.execute(PRICE.format(20))
    northwind.wait_until_caught_up()
    words = ("--bootstrap-servers", northwind.stack.bootstrap_servers, "--topic", *TOPICS)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/apis/registry/v2"
        down = lake.ingest_kafka(*words, "--registry", url)
    assert down.code == 75
    assert f"the registry at {url} does not answer" in down.err
    empty = FakeRegistry()
    lost = lake.ingest_kafka(*words, "--registry", f"{empty.url}/apis/registry/v2")
    empty.stop()
    rejected = lake.rows("bronze.rejected_events")
    count = len(rejected)
    # The product, and the orders that show it.
    assert {row["topic"] for row in rejected} == {TOPICS[0], TOPICS[4]}
    assert (lost.code, lost.counts) == (3, (count, 0, count, 0)), lost.err
    for row in rejected:
        assert "the registry has no schema" in row["reason"]
        assert base64.b64decode(json.loads(row["value"])["undecoded"]["value"])[:1] == b"\0"
        assert row["schema_id"] > 0
    again = lake.retry_rejected("--registry", registry.url)
    assert (again.code, again.counts) == (0, (count, count, 0, 0)), again.err
    assert lake.rows("bronze.rejected_events") == []
    build(northwind, lake, "products")


def test_source_may_change_from_json_to_avro(
    northwind: SourceDatabase, registry: SchemaRegistry, new_lake: NewLake
) -> None:
    """The file of the project, under the same name: its topics have both then."""
    stack, lake = northwind.stack, new_lake(TOPICS_FILE)
    with stack.placeholders.open("a") as file:
        file.write(f"registry={registry.url}\n")
    northwind.execute(PRICE.format(21))
    northwind.wait_until_caught_up()
    config = stack.configuration("source-tables-avro")
    stack.connect.halt("source-tables")
    stack.connect.ask("PUT", "/connectors/source-tables/config", config)
    stack.connect.ask("PUT", "/connectors/source-tables/resume")
    stack.wait_until_streaming()
    northwind.execute(PRICE.format(22))
    northwind.wait_until_caught_up()
    topic = "demo.datalake.products"
    lake.follow(stack.bootstrap_servers, topic, "--registry", registry.url)
    rows = sorted(lake.rows("bronze.products"), key=lambda row: row["kafka_offset"])
    old, new = rows[-2:]
    assert (old["schema_id"], new["schema_id"] > 0) == (None, True)
    values = [json.loads(row["value"])["after"] for row in (old, new)]
    assert [value["unit_price"] for value in values] == [21.0, 22.0]
    assert values[0].keys() == values[1].keys()
    assert old["key"] == new["key"]


# Every type


@pytest.mark.parametrize("way", WAYS)
def test_json_of_every_type_is_what_connect_writes(
    stack: NorthwindStack,
    registry: SchemaRegistry,
    new_lake: NewLake,
    tmp_path: Path,
    way: str,
) -> None:
    """Key and value, digit by digit, of every record; but where each log was read."""
    captured, framing, settings = WAYS[way]
    with types_source(stack, TYPES) as (source, types):
        for form, file in (("json", "source-tables"), ("avro", "source-tables-avro")):
            config: dict[str, str | None] = {
                **source.configuration(f"{form}_{way}", captured, file),
                **(converters(registry, framing) if form == "avro" else {}),
                **settings,
                "publication.name": source.name,
            }
            kept = {key: value for key, value in config.items() if value is not None}
            source.configure(f"{form}_{way}", kept)
        types.change()
        source.wait_until_caught_up()
    tables = {
        row.table
        for row in TYPES
        if way == "flattened" or (row.group == PRECISE) == (way == "precise")
    }
    topics = {
        f"{form}_{way}.types.{table}": form for form in ("json", "avro") for table in tables
    }
    url = registry.confluent_url if framing is AS_CONFLUENT else registry.url
    lake = new_lake(write_topics(tmp_path, topics))
    lake.follow(stack.bootstrap_servers, *topics, "--registry", url)
    by_json, by_avro = (records(lake.rows(f"bronze.{form}")) for form in ("json", "avro"))
    assert len(by_json) > len(tables)
    assert by_avro == by_json


def records(rows: list[Row]) -> dict[tuple[str, int], Any]:
    """Keys and values by table and offset; numbers as their text."""
    found = {}
    for row in rows:
        assert (row["schema_id"] is not None) == row["topic"].startswith("avro")
        value = json.loads(row["value"], parse_float=str, parse_int=str)
        for name in ("__lsn", "__source_ts_ms", "ts_ms", "ts_us", "ts_ns"):
            value.pop(name, None)
        if "source" in value:
            value["source"] = list(value["source"])
        table = row["topic"].rpartition(".")[2]
        found[table, row["kafka_offset"]] = (list(value), value, json.loads(row["key"]))
    return found
