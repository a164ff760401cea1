"""What is written to Glue and asked of Athena, as far as moto goes.

It runs no query, and says what it is told: tests/servers/test_trino.py has Athena's engine.
"""

import socket
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
import yaml
from botocore.exceptions import ClientError, NoCredentialsError
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving import athena
from cdc_lakehouse.serving.glue import Catalogue, Lake, Table, glue_type
from cdc_lakehouse.serving.manifest import Relation
from ingest.glue import Glue
from tests.support.aws import Aws, documented_policy
from tests.unit.conftest import Cli

LAKE = "s3://lake/here"
# What dbt knows of a project with two models.
MANIFEST = str(Path(__file__).with_name("manifest.json"))
MERGE_ON_READ = Path(__file__).with_name("merge_on_read.properties").read_bytes()
GLUE = ("glue", "--manifest", MANIFEST)


class Database:
    """A database of Glue with a table ``orders`` that a lake puts there."""

    def __init__(self, aws: Aws, name: str) -> None:
        self.name = name
        self.client = aws.client("glue")
        self.catalogue = Catalogue(LAKE, is_dry=False)
        assert self.catalogue.create_database(name)

    def table(self, *partitions: str, **columns: str) -> Table:
        """A table of these columns, with their types."""
        definition = {
            "Name": "orders",
            "Description": "One row per order.",
            "PartitionKeys": [{"Name": "day", "Type": "string"}] if partitions else [],
            "StorageDescriptor": {
                "Columns": [
                    {"Name": name, "Type": kind, "Comment": f"The {name}."}
                    for name, kind in columns.items()
                ],
                "Location": "s3://lake/orders",
                "InputFormat": "in",
                "OutputFormat": "out",
            },
            "Parameters": {"cdc_lakehouse": LAKE},
        }
        return Table(self.name, definition, partitions)

    def put(self, *partitions: str, **columns: str) -> list[str]:
        return self.catalogue.put(self.table(*partitions, **columns))

    def stored(self) -> str:
        return tables_of(self.client, self.name)


def tables_of(client: Any, database: str) -> str:
    """A database's tables in Glue, but for what changes with each run."""
    found = client.get_tables(DatabaseName=database)["TableList"]
    changing = {"CreateTime", "UpdateTime", "VersionId"}
    tables = [{key: table[key] for key in table.keys() - changing} for table in found]
    return str(yaml.safe_dump(tables))


class Gold:
    """The layer of a lake on S3 that the commands read; it has no table yet."""

    def __init__(self, aws: Aws, name: str) -> None:
        self.client = aws.client("s3")
        self.root = f"s3://lake/{name}"

    def write(self, name: str, body: bytes = MERGE_ON_READ) -> None:
        key = f"{self.root}/warehouse/gold.db/{name}".removeprefix("s3://lake/")
        self.client.put_object(Bucket="lake", Key=key, Body=body)


@pytest.fixture
def gold(aws: Aws, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Gold:
    found = Gold(aws, request.node.originalname)
    monkeypatch.setenv("LAKE_ROOT", found.root.replace("s3:", "s3a:"))
    return found


@pytest.fixture
def database(aws: Aws, request: pytest.FixtureRequest) -> Database:
    return Database(aws, request.node.name)


def test_types() -> None:
    fields = {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "double": pa.float64(),
        "decimal(20,4)": pa.decimal128(20, 4),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "array<string>": pa.list_(pa.string()),
        "map<string,int>": pa.map_(pa.string(), pa.int32()),
        "struct<a:int>": pa.struct([("a", pa.int32())]),
    }
    assert [glue_type(kind) for kind in fields.values()] == [*fields]
    with pytest.raises(UserError, match="no type for duration"):
        glue_type(pa.duration("s"))


def test_only_what_differs_is_written_and_what_others_set_stays(
    database: Database, snapshot: SnapshotAssertion
) -> None:
    assert not database.catalogue.create_database(database.name)
    said = [database.put(order_id="int", note="string") for _ in range(2)]
    wider = {"order_id": "bigint", "note": "string", "paid": "boolean"}
    before = database.stored()
    said.append(Catalogue(LAKE, is_dry=True).put(database.table(**wider)))
    assert database.stored() == before
    said += [database.put(**wider), database.put(**wider)]
    said.append(database.put(order_id="bigint", note="string"))
    own = database.table(order_id="bigint", note="string").definition
    own["Parameters"]["owner"] = "sales"
    database.client.update_table(DatabaseName=database.name, TableInput=own)
    said.append(database.put(order_id="bigint", note="string"))
    other = database.table(order_id="bigint", note="string")
    other.definition["Description"] = "An order."
    storage = other.definition["StorageDescriptor"]
    storage["Columns"][0]["Comment"] = "Its number."
    storage["Location"] = "s3://elsewhere/orders"
    storage["SerdeInfo"] = {"SerializationLibrary": "other"}
    said += [database.catalogue.put(other) for _ in range(2)]
    assert (said, database.stored()) == snapshot
    leftovers = database.catalogue.leftovers
    assert leftovers(database.name, {"orders"}) == leftovers("not_there", set()) == []
    assert leftovers(database.name, set()) == [f"{database.name}.orders"]


def test_what_others_made_is_left_alone(database: Database) -> None:
    """A table of something else, a table and a database of another lake."""
    there = "s3://lake/there"
    for number, (owner, said) in enumerate(
        [
            ({}, "that something else made"),
            ({"cdc_lakehouse": there}, f"of the lake at {there}: drop it"),
        ]
    ):
        foreign = {**database.table(order_id="int").definition, "Parameters": owner}
        database.name += str(number)
        database.catalogue.create_database(database.name)
        database.client.create_table(DatabaseName=database.name, TableInput=foreign)
        before = database.stored()
        with pytest.raises(UserError, match=said):
            database.put(order_id="bigint")
        assert database.stored() == before
        assert database.catalogue.leftovers(database.name, set()) == []
    with pytest.raises(UserError, match=f"of the lake at {LAKE}: choose other"):
        Catalogue(there, is_dry=False).create_database(database.name)


def test_schema_may_be_at_the_folder_of_its_layer(gold: Gold) -> None:
    """As in Glue, where the schemas of all lakes have names of their own."""
    gold.write("sales/.hoodie/hoodie.properties")
    relation = Relation("gold", "shop_spark_gold", "sales", "", {})
    tables = Lake(gold.root).tables(relation, "shop")
    found = {table.definition["StorageDescriptor"]["Location"] for table in tables}
    assert found == {f"{gold.root}/warehouse/gold.db/sales"}


def test_partitions_are_added(database: Database) -> None:
    # More than a call takes.
    days = [
        f"day=2026-{month:02}-{day:02}" for month in range(1, 6) for day in range(1, 29)
    ]
    more = [*days, "day=2026-06-01", "day=100 %25 %2F%3D"]
    said = [database.put(*each, order_id="int") for each in (days, days, more, more)]
    assert said == [["new table", "140 new partitions"], [], ["2 new partitions"], []]
    pages = database.client.get_paginator("get_partitions").paginate(
        DatabaseName=database.name, TableName="orders"
    )
    places = {
        part["Values"][0]: part["StorageDescriptor"]["Location"]
        for page in pages
        for part in page["Partitions"]
    }
    assert len(places) == 142
    assert places["2026-06-01"] == "s3://lake/orders/day=2026-06-01"
    assert places["100 % /="] == "s3://lake/orders/day=100 %25 %2F%3D"


def test_documented_policy_allows_what_is_called_and_no_more(database: Database) -> None:
    called: set[str] = set()
    database.catalogue.client.meta.events.register(
        "before-call.glue", lambda model, **_: called.add(f"glue:{model.name}")
    )
    database.catalogue.create_database("allowed")
    for kind in ("int", "bigint"):
        database.put("day=2026-01-01", order_id=kind)
    database.catalogue.leftovers(database.name, {"orders"})

    in_glue, listing, reading = documented_policy("docs/serving.md")
    assert set(in_glue["Action"]) == called
    # The lake's own calls are these two: boto3's listing, and what Hudi's reader does.
    assert (listing["Action"], reading["Action"]) == ("s3:ListBucket", "s3:GetObject")


def test_lake_must_be_on_s3_and_is_written_as_athena_reads_it() -> None:
    for root in ("/data/lake", ".lake", "s3a://", "gs://lake/here"):
        with pytest.raises(UserError, match="Glue is for a lake on S3"):
            Lake(root)
    for root in ("s3a://lake//here/", "s3://lake/here"):
        assert Lake(root).location == LAKE


# The command


def test_merge_on_read_is_registered_as_hudis_own_sync_does(
    gold: Gold, aws: Aws, cli: Cli, snapshot: SnapshotAssertion
) -> None:
    """With partitions, each in every table that it makes."""
    gold.write("sales/.hoodie/hoodie.properties")
    no_value = "__HIVE_DEFAULT_PARTITION__"
    for nation in ("A%2FB", no_value):
        gold.write(f"sales/nation={nation}/.hoodie_partition_metadata")
    said = [cli(*GLUE, "--prefix", "dry", "--dry-run").out]
    client = aws.client("glue")
    with pytest.raises(ClientError, match="EntityNotFound"):
        client.get_database(Name="dry_gold")
    said += [cli(*GLUE, "--prefix", "merged").out for _ in range(2)]
    assert (said, tables_of(client, "merged_gold")) == snapshot
    for name in ("sales", "sales_ro", "sales_rt"):
        place = {"DatabaseName": "merged_gold", "TableName": name}
        parts = client.get_partitions(**place)["Partitions"]
        assert {part["Values"][0] for part in parts} == {"A/B", no_value}


def test_ingest_registers_what_is_new_after_a_build(
    gold: Gold, caplog: pytest.LogCaptureFixture
) -> None:
    """What it has put is not asked for again; a table that fails stops no other."""
    caplog.set_level("INFO", "ingest")
    gold.write("sales/.hoodie/hoodie.properties")
    gold.write("zeal/.hoodie/hoodie.properties", b"x")
    glue, calls = Glue("then"), []
    events = glue._catalogue.client.meta.events
    events.register("before-call.glue", lambda model, **_: calls.append(model.name))
    said = []
    for _ in range(2):
        assert glue.register(Path(MANIFEST)) == 1
        messages = [each.message for each in caplog.records if each.name == "ingest"]
        said.append([message.partition(": cannot")[0] for message in messages])
        caplog.clear()
    gold.write("zeal/.hoodie/hoodie.properties")
    calls.clear()
    assert glue.register(Path(MANIFEST)) == 0
    names = [f"then_gold.sales{suffix}" for suffix in ("", "_ro", "_rt")]
    new = ["glue: new database     then_gold"]
    new += [f"glue: changed          {name}: new table" for name in names]
    failed = ["glue: then_gold.zeal"]
    assert said == [new + failed, failed]
    assert (calls.count("GetTable"), calls.count("CreateTable")) == (3, 3)


def test_lake_of_which_no_table_can_be_read_is_an_error(
    gold: Gold, cli: Cli, snapshot: SnapshotAssertion
) -> None:
    """There is none; or one that is broken, which stops no other."""
    said = [cli(*GLUE)]
    gold.write("sales/.hoodie/hoodie.properties", b"x")
    assert [*said, cli(*GLUE), cli(*GLUE, "--json")] == snapshot


@pytest.mark.parametrize(
    ("second", "code"), [("ThrottlingException", 75), ("AccessDeniedException", 1)]
)
def test_it_is_worth_another_try_only_if_that_may_mend_every_table(
    second: str, code: int, gold: Gold, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """As where no server answers."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_S3", url)
        said = cli(*GLUE)
    assert said.code == 75
    assert f'glue: Could not connect to the endpoint URL: "{url}' in said.err
    codes = ["ThrottlingException", second]

    def refuse(*_: object) -> NoReturn:
        raise ClientError({"Error": {"Code": codes.pop(0)}}, "GetTable")

    monkeypatch.setattr(Lake, "tables", refuse)
    assert main([*GLUE]) == code


# A query file in Athena


def test_rows_are_printed_as_a_table_or_as_json(
    aws: Aws, tmp_path: Path, cli: Cli, snapshot: SnapshotAssertion
) -> None:
    answer: list[list[str | None]] = [["month", "revenue"], ["1996-07", "27861.90"]]
    answer += [["1996-08", None], ["東京 e\u0301", "7.5"], ["a\nb\x1b[31m", "-2.5"]]
    # As an analysis begins that a variable switches on.
    settings = "{{ config(enabled=var('cdc_lakehouse_history', false)) }}"
    sql = f"{settings}select * from {{{{ ref('x', 'sales') }}}}"
    file = tmp_path / "question.sql"
    file.write_text(sql)
    options = ["--prefix", "shop", "--output-location", "s3://lake/a/"]
    ask = ["athena", str(file), "--manifest", MANIFEST, *options]
    for option in ([], ["--json"]):
        aws.queue(*answer)
        assert cli(*ask, *option) == snapshot
    client = aws.client("athena")
    [query, *_] = client.list_query_executions()["QueryExecutionIds"]
    ran = client.get_query_execution(QueryExecutionId=query)["QueryExecution"]
    assert ran["Query"] == "select * from shop_gold.sales"
    assert ran["WorkGroup"] == "primary"
    assert ran["ResultConfiguration"]["OutputLocation"].startswith("s3://lake/a/")


@pytest.fixture
def group(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> athena.Athena:
    """moto never fails, so a test tells what its client answers."""
    monkeypatch.setattr(athena, "SECONDS_BETWEEN_POLLS", 0)
    group = athena.Athena("primary", None)
    monkeypatch.setattr(group.client, "get_query_execution", MagicMock())
    monkeypatch.setattr(group.client, "stop_query_execution", MagicMock())
    return group


@pytest.mark.parametrize(("may_pass", "code"), [(False, 1), (True, 75)])
def test_reason_of_a_failure_is_given(
    may_pass: bool, code: int, group: athena.Athena
) -> None:
    reason = "TABLE_NOT_FOUND: line 1:15"
    failed = {"StateChangeReason": reason, "AthenaError": {"Retryable": may_pass}}
    group.client.get_query_execution.side_effect = [
        {"QueryExecution": {"Status": status}}
        for status in ({"State": "QUEUED"}, {"State": "FAILED", **failed})
    ]
    with pytest.raises(UserError, match="query failed: TABLE_NOT_FOUND") as error:
        group.run("select 1")
    assert error.value.exit_code == code


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, NoCredentialsError])
def test_query_that_cannot_be_waited_for_is_stopped(
    trouble: type[BaseException], group: athena.Athena
) -> None:
    group.client.get_query_execution.side_effect = trouble
    with pytest.raises(trouble):
        group.run("select 1")
    assert group.client.stop_query_execution.call_count == 1
