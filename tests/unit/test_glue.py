"""What is written to Glue, and what is not (moto's)."""

from __future__ import annotations

import copy
import json
import socket
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.serving.glue import Catalogue, Lake, Table, glue_type
from tests.support.aws import Aws, dbt_manifest, documented_policy

LAKE = "s3://lake/here"
# Of a table that has been created and never written.
MERGE_ON_READ = """
hoodie.table.name=sales
hoodie.table.type=MERGE_ON_READ
hoodie.table.version=6
hoodie.timeline.layout.version=1
hoodie.table.recordkey.fields=id
hoodie.table.partition.fields=nation
hoodie.datasource.write.drop.partition.columns=false
hoodie.table.create.schema={"type":"record","name":"sales","fields":[\
{"name":"id","type":["null","int"]},{"name":"nation","type":["null","string"]}]}
"""


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

    def stored(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get_table(
            DatabaseName=self.name, Name="orders"
        )["Table"]
        return found

    def columns(self) -> dict[str, str]:
        columns = self.stored()["StorageDescriptor"]["Columns"]
        return {column["Name"]: column["Type"] for column in columns}


@pytest.fixture
def database(aws: Aws, request: pytest.FixtureRequest) -> Database:
    return Database(aws, request.node.name)


def test_types() -> None:
    fields = [
        ("a", pa.int32(), "int"),
        ("b", pa.int64(), "bigint"),
        ("c", pa.bool_(), "boolean"),
        ("d", pa.float64(), "double"),
        ("e", pa.decimal128(20, 4), "decimal(20,4)"),
        ("f", pa.date32(), "date"),
        ("g", pa.timestamp("us", tz="UTC"), "timestamp"),
        ("h", pa.list_(pa.string()), "array<string>"),
        ("i", pa.map_(pa.string(), pa.int32()), "map<string,int>"),
    ]
    arrow = pa.struct([(name, kind) for name, kind, _ in fields])
    hive = ",".join(f"{name}:{kind}" for name, _, kind in fields)
    assert glue_type(arrow) == f"struct<{hive}>"
    with pytest.raises(UserError, match="no type for duration"):
        glue_type(pa.duration("s"))


def test_only_what_differs_is_written(database: Database) -> None:
    assert not database.catalogue.create_database(database.name)
    assert database.put(order_id="int", note="string") == ["new table"]
    assert database.put(order_id="int", note="string") == []

    wider = {"order_id": "bigint", "note": "string", "paid": "boolean"}
    said = ["column order_id is bigint, was int", "new column paid boolean"]
    assert Catalogue(LAKE, is_dry=True).put(database.table(**wider)) == said
    assert database.columns() == {"order_id": "int", "note": "string"}
    assert database.put(**wider) == said
    assert database.columns() == wider
    assert database.put(**wider) == []
    assert database.put(order_id="bigint", note="string") == ["column paid: removed"]


def test_description_and_place_follow_and_what_others_set_stays(
    database: Database,
) -> None:
    database.put(order_id="int")
    own = database.table(order_id="int").definition
    parameters = {**own["Parameters"], "owner": "sales"}
    database.client.update_table(
        DatabaseName=database.name, TableInput={**own, "Parameters": parameters}
    )
    assert database.put(order_id="int") == []
    other = copy.deepcopy(database.table(order_id="int"))
    other.definition["Description"] = "An order."
    storage = other.definition["StorageDescriptor"]
    storage["Columns"][0]["Comment"] = "Its number."
    storage["Location"] = "s3://elsewhere/orders"
    storage["SerdeInfo"] = {"SerializationLibrary": "other"}
    assert database.catalogue.put(other) == [
        "column order_id: description changed",
        "another Description",
        "another Location",
        "another SerdeInfo",
    ]
    assert database.catalogue.put(other) == []
    assert database.stored()["Parameters"]["owner"] == "sales"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "a table of this name, that something else made"),
        ({"cdc_lakehouse": "s3://lake/there"}, "of the lake at s3://lake/there: drop it"),
    ],
    ids=["of_something_else", "of_another_lake"],
)
def test_table_is_left_alone(parameters: dict[str, str], said: str, aws: Aws) -> None:
    database = Database(aws, f"foreign_{len(parameters)}")
    foreign = {**database.table(order_id="int").definition, "Parameters": parameters}
    database.client.create_table(DatabaseName=database.name, TableInput=foreign)
    with pytest.raises(UserError, match=said):
        database.put(order_id="bigint")
    assert database.columns() == {"order_id": "int"}
    assert database.catalogue.leftovers(database.name, set()) == []


def test_leftovers_are_named(database: Database) -> None:
    database.put(order_id="int")
    leftovers = database.catalogue.leftovers
    assert leftovers(database.name, {"orders"}) == []
    assert leftovers(database.name, set()) == [f"{database.name}.orders"]
    assert leftovers("not_there", set()) == []


def test_partitions_are_added(database: Database) -> None:
    # More than a call takes.
    days = [
        f"day=2026-{month:02}-{day:02}" for month in range(1, 6) for day in range(1, 29)
    ]
    said = ["new table", "140 new partitions"]
    assert database.put(*days, order_id="int") == said
    assert database.put(*days, order_id="int") == []
    more = [*days, "day=2026-06-01", "day=100 %25 %2F%3D"]
    assert database.put(*more, order_id="int") == ["2 new partitions"]
    assert database.put(*more, order_id="int") == []
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


@pytest.fixture
def arguments(aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of a lake that has no table yet, and of a manifest with two."""
    monkeypatch.setenv("LAKE_ROOT", f"s3a://lake/{tmp_path.name}")
    return ["--manifest", dbt_manifest(tmp_path, ["sales", "zeal"])]


def test_merge_on_read_is_registered_as_hudis_own_sync_does(
    arguments: list[str], aws: Aws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With partitions, each in every table that it makes."""
    for name, body in (
        (".hoodie/hoodie.properties", MERGE_ON_READ),
        ("nation=A%2FB/.hoodie_partition_metadata", "x"),
        ("nation=__HIVE_DEFAULT_PARTITION__/.hoodie_partition_metadata", "x"),
    ):
        key = f"{tmp_path.name}/warehouse/gold.db/sales/{name}"
        aws.client("s3").put_object(Bucket="lake", Key=key, Body=body.encode())
    names = ["sales", "sales_ro", "sales_rt"]
    new, same = (
        [f"{state:<16} merged_gold.{name}{details}" for name in names]
        for state, details in (
            ("changed", ": new table, 2 new partitions"),
            ("unchanged", ""),
        )
    )
    unwritten = "not written yet  gold.zeal"
    assert main(["glue", *arguments, "--prefix", "dry", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "would change     dry_gold.sales: new table, 2 new partitions" in said
    with pytest.raises(ClientError, match="EntityNotFound"):
        aws.client("glue").get_database(Name="dry_gold")
    for lines in (["new database     merged_gold", *new], same):
        assert main(["glue", *arguments, "--prefix", "merged"]) == 0
        assert capsys.readouterr().out.splitlines() == [*lines, unwritten]

    glue = aws.client("glue")
    hudi = "org.apache.hudi.hadoop"
    for name in names:
        place = {"DatabaseName": "merged_gold"}
        table = glue.get_table(**place, Name=name)["Table"]
        storage = table["StorageDescriptor"]
        assert [column["Name"] for column in storage["Columns"]] == ["id"]
        assert [key["Name"] for key in table["PartitionKeys"]] == ["nation"]
        # `_ro` leaves the logs out; the others merge them.
        assert storage["SerdeInfo"]["Parameters"] == {
            "hoodie.query.as.ro.table": str(name == "sales_ro").lower(),
            "serialization.format": "1",
        }
        assert storage["InputFormat"] == (
            f"{hudi}.HoodieParquetInputFormat"
            if name == "sales_ro"
            else f"{hudi}.realtime.HoodieParquetRealtimeInputFormat"
        )
        parts = glue.get_partitions(**place, TableName=name)["Partitions"]
        values = {part["Values"][0] for part in parts}
        assert values == {"A/B", "__HIVE_DEFAULT_PARTITION__"}


def test_manifest_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "manifest.json"
    for text, said in (
        (None, "run `dbt build`"),
        ("{", "cannot read"),
        ("{}", "this is no manifest"),
        ("[]", "this is no manifest"),
    ):
        if text is not None:
            file.write_text(text)
        assert main(["glue", "--manifest", str(file)]) == 1
        assert said in capsys.readouterr().err


def test_lake_without_a_table_is_an_error(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["glue", *arguments]) == 1
    heard = capsys.readouterr()
    assert heard.out == "not written yet  gold.sales\nnot written yet  gold.zeal\n"
    assert f"there is no table below s3://lake/{tmp_path.name}/warehouse" in heard.err


def test_table_that_cannot_be_read_stops_no_other(
    arguments: list[str], aws: Aws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = f"{tmp_path.name}/warehouse/gold.db/sales/.hoodie/hoodie.properties"
    aws.client("s3").put_object(Bucket="lake", Key=key, Body=b"x")
    said = "glue: lake_gold.sales: cannot read the Hudi table at s3://lake/"
    assert main(["glue", *arguments]) == 1
    heard = capsys.readouterr()
    assert said in heard.err
    assert heard.out == "not written yet  gold.zeal\n"

    assert main(["glue", "--json", *arguments]) == 1
    heard = capsys.readouterr()
    assert said in heard.err
    assert json.loads(heard.out) == [
        {"state": "not written yet", "name": "gold.zeal", "details": []}
    ]


@pytest.mark.parametrize(
    ("second", "code"), [("ThrottlingException", 75), ("AccessDeniedException", 1)]
)
def test_it_is_worth_another_try_only_if_that_may_mend_every_table(
    second: str, code: int, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = ["ThrottlingException", second]

    def refuse(*_: object) -> NoReturn:
        raise ClientError({"Error": {"Code": codes.pop(0)}}, "GetTable")

    monkeypatch.setattr(Lake, "tables", refuse)
    assert main(["glue", *arguments]) == code


def test_server_that_does_not_answer_is_worth_another_try(
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
    assert main(["glue", *arguments]) == 75
    said = f'glue: Could not connect to the endpoint URL: "{url}'
    assert said in capsys.readouterr().err


def test_prefix_that_is_no_name_is_refused() -> None:
    for prefix in ("my-shop", "Shop", "", "a b", "x;y"):
        assert main(["glue", "--prefix", prefix]) == 2
