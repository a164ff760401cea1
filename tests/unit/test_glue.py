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

from lake.errors import UserError
from serving.glue import Catalogue, Lake, Table, glue_type, main
from tests.support.aws import Aws
from tests.support.project import PROJECT

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


def table(database: str, *partitions: str, **columns: str) -> Table:
    """A table of these columns, with their types."""
    return Table(
        database,
        {
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
        },
        partitions,
    )


def stored(aws: Aws, database: str) -> dict[str, Any]:
    found: dict[str, Any] = aws.client("glue").get_table(
        DatabaseName=database, Name="orders"
    )["Table"]
    return found


@pytest.mark.parametrize(
    ("arrow", "hive"),
    [
        (pa.string(), "string"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.bool_(), "boolean"),
        (pa.float64(), "double"),
        (pa.decimal128(20, 4), "decimal(20,4)"),
        (pa.date32(), "date"),
        (pa.timestamp("us", tz="UTC"), "timestamp"),
        (pa.list_(pa.string()), "array<string>"),
        (pa.map_(pa.string(), pa.int32()), "map<string,int>"),
        (pa.struct([("a", pa.int32()), ("b", pa.date32())]), "struct<a:int,b:date>"),
    ],
)
def test_types(arrow: pa.DataType, hive: str) -> None:
    assert glue_type(arrow) == hive


def test_type_that_hive_lacks_is_an_error() -> None:
    with pytest.raises(UserError, match="no type for duration"):
        glue_type(pa.duration("s"))


def test_only_what_differs_is_written(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    assert catalogue.create_database("once")
    assert not catalogue.create_database("once")
    first = table("once", order_id="int", note="string")
    assert catalogue.put(first) == ["new table"]
    assert catalogue.put(first) == []

    wider = table("once", order_id="bigint", note="string", paid="boolean")
    said = ["column order_id is bigint, was int", "new column paid boolean"]
    assert Catalogue(LAKE, is_dry=True).put(wider) == said
    assert stored(aws, "once")["StorageDescriptor"]["Columns"][0]["Type"] == "int"
    assert catalogue.put(wider) == said
    assert catalogue.put(wider) == []
    assert catalogue.put(first) == [
        "column order_id is int, was bigint",
        "column paid: removed",
    ]


def test_description_and_place_follow(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    catalogue.create_database("described")
    catalogue.put(table("described", order_id="int"))
    other = copy.deepcopy(table("described", order_id="int"))
    other.definition["Description"] = "An order."
    other.definition["StorageDescriptor"]["Columns"][0]["Comment"] = "Its number."
    other.definition["StorageDescriptor"]["Location"] = "s3://elsewhere/orders"
    other.definition["StorageDescriptor"]["SerdeInfo"] = {"SerializationLibrary": "other"}
    assert catalogue.put(other) == [
        "column order_id: description changed",
        "another Description",
        "another Location",
        "another SerdeInfo",
    ]
    assert catalogue.put(other) == []


def test_parameters_of_others_stay(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    catalogue.create_database("shared")
    catalogue.put(table("shared", order_id="int"))
    own = table("shared", order_id="int").definition
    aws.client("glue").update_table(
        DatabaseName="shared",
        TableInput={**own, "Parameters": {**own["Parameters"], "owner": "sales"}},
    )
    assert catalogue.put(table("shared", order_id="int")) == []
    assert catalogue.put(table("shared", order_id="bigint")) != []
    assert stored(aws, "shared")["Parameters"]["owner"] == "sales"


def test_table_of_somebody_else_is_left_alone(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    catalogue.create_database("taken")
    foreign = {**table("taken", order_id="int").definition, "Parameters": {}}
    aws.client("glue").create_table(DatabaseName="taken", TableInput=foreign)
    with pytest.raises(UserError, match="a table of this name, that something else made"):
        catalogue.put(table("taken", order_id="bigint"))
    assert stored(aws, "taken")["StorageDescriptor"]["Columns"][0]["Type"] == "int"
    assert catalogue.leftovers("taken", set()) == []


def test_table_of_another_lake_is_left_alone(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    catalogue.create_database("ours")
    catalogue.put(table("ours", order_id="int"))
    other = Catalogue("s3://lake/there", is_dry=False)
    with pytest.raises(UserError, match="of the lake at s3://lake/here: drop it there"):
        other.put(table("ours", order_id="bigint"))
    assert stored(aws, "ours")["StorageDescriptor"]["Columns"][0]["Type"] == "int"
    assert other.leftovers("ours", set()) == []


def test_leftovers_are_named(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    catalogue.create_database("old")
    catalogue.put(table("old", order_id="int"))
    assert catalogue.leftovers("old", {"orders"}) == []
    assert catalogue.leftovers("old", set()) == ["old.orders"]
    assert catalogue.leftovers("not_there", set()) == []


def test_partitions_are_added(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    catalogue.create_database("days")
    days = [
        f"ingest_date=2026-{month:02}-{day:02}"
        for month in (1, 2, 3, 4, 5)
        for day in range(1, 29)
    ]
    assert catalogue.put(table("days", *days, order_id="int")) == [
        "new table",
        "140 new partitions",
    ]
    assert catalogue.put(table("days", *days, order_id="int")) == []
    more = [*days, "ingest_date=2026-06-01", "ingest_date=100 %25 %2F%3D"]
    assert catalogue.put(table("days", *more, order_id="int")) == ["2 new partitions"]
    assert catalogue.put(table("days", *more, order_id="int")) == []
    pages = (
        aws.client("glue")
        .get_paginator("get_partitions")
        .paginate(DatabaseName="days", TableName="orders")
    )
    places = {
        part["Values"][0]: part["StorageDescriptor"]["Location"]
        for page in pages
        for part in page["Partitions"]
    }
    assert len(places) == 142
    assert places["2026-06-01"] == "s3://lake/orders/ingest_date=2026-06-01"
    assert places["100 % /="] == "s3://lake/orders/ingest_date=100 %25 %2F%3D"


def test_merge_on_read_is_registered_as_hudis_own_sync_does(
    aws: Aws,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With partitions, each in every table that it makes."""
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/merged")
    place = "merged/warehouse/gold.db/sales"
    for name, body in (
        (".hoodie/hoodie.properties", MERGE_ON_READ),
        ("nation=A%2FB/.hoodie_partition_metadata", "x"),
        ("nation=__HIVE_DEFAULT_PARTITION__/.hoodie_partition_metadata", "x"),
    ):
        aws.client("s3").put_object(
            Bucket="lake", Key=f"{place}/{name}", Body=body.encode()
        )
    arguments = ["--prefix", "merged", "--manifest", manifest(tmp_path, "sales")]
    assert main(arguments) == 0
    names = ("sales", "sales_ro", "sales_rt")
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"changed          merged_gold.{name}: new table, 2 new partitions"
        for name in names
    ]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"unchanged        merged_gold.{name}" for name in names
    ]
    found = {
        table["Name"]: table
        for table in aws.client("glue").get_tables(DatabaseName="merged_gold")["TableList"]
    }
    formats = {
        name: (
            table["StorageDescriptor"]["InputFormat"].removeprefix(
                "org.apache.hudi.hadoop."
            ),
            table["StorageDescriptor"]["SerdeInfo"]["Parameters"][
                "hoodie.query.as.ro.table"
            ],
        )
        for name, table in found.items()
    }
    realtime = ("realtime.HoodieParquetRealtimeInputFormat", "false")
    assert formats == {
        "sales": realtime,
        "sales_ro": ("HoodieParquetInputFormat", "true"),
        "sales_rt": realtime,
    }
    for name in names:
        columns = [column["Name"] for column in found[name]["StorageDescriptor"]["Columns"]]
        assert columns == ["id"]
        assert [key["Name"] for key in found[name]["PartitionKeys"]] == ["nation"]
        parts = aws.client("glue").get_partitions(
            DatabaseName="merged_gold", TableName=name
        )["Partitions"]
        assert {part["Values"][0] for part in parts} == {
            *("A/B", "__HIVE_DEFAULT_PARTITION__")
        }


def test_documented_policy_allows_what_is_called_and_no_more(aws: Aws) -> None:
    catalogue = Catalogue(LAKE, is_dry=False)
    called: set[str] = set()
    catalogue.client.meta.events.register(
        "before-call.glue", lambda model, **_: called.add(f"glue:{model.name}")
    )
    catalogue.create_database("allowed")
    for _ in range(2):
        catalogue.put(table("allowed", "day=2026-01-01", order_id="int"))
    catalogue.put(table("allowed", "day=2026-01-01", order_id="bigint"))
    catalogue.leftovers("allowed", {"orders"})

    text = (PROJECT / "docs/serving.md").read_text(encoding="utf-8")
    policy = json.loads(text.partition("```json\n")[2].partition("```")[0])
    in_glue, listing, reading = policy["Statement"]
    assert set(in_glue["Action"]) == called
    # The lake's own calls are these two: boto3's listing, and what Hudi's reader does.
    assert (listing["Action"], reading["Action"]) == ("s3:ListBucket", "s3:GetObject")


@pytest.mark.parametrize("root", ["/data/lake", ".lake", "s3a://", "gs://lake/here"])
def test_lake_that_is_not_on_s3_is_refused(root: str) -> None:
    with pytest.raises(UserError, match="Glue is for a lake on S3"):
        Lake(root)


@pytest.mark.parametrize("root", ["s3a://lake//here/", "s3://lake/here"])
def test_location_is_written_as_athena_reads_it(root: str) -> None:
    assert Lake(root).location == LAKE


def manifest(folder: Path, *models: str, **changes: Any) -> str:
    """A manifest with gold models of these names."""
    nodes = {
        f"model.x.{name}": {
            "resource_type": "model",
            "config": {"materialized": "incremental"},
            "fqn": ["x", "gold", name],
            "schema": "gold",
            "name": name,
            "alias": name,
            "description": "",
            "columns": {},
        }
        for name in models
    }
    file = folder / "manifest.json"
    file.write_text(json.dumps({"nodes": nodes, "sources": {}, **changes}))
    return str(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "run `dbt build`"),
        ("{", "cannot read"),
        ("{}", "this is no manifest"),
        ("[]", "this is no manifest"),
    ],
)
def test_manifest_that_cannot_be_read(
    text: str | None,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "manifest.json"
    if text is not None:
        file.write_text(text)
    assert main(["--manifest", str(file)]) == 1
    assert said in capsys.readouterr().err


def test_lake_without_a_table_is_an_error(
    aws: Aws,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/typo")
    assert main(["--manifest", manifest(tmp_path, "sales")]) == 1
    heard = capsys.readouterr()
    assert heard.out == "not written yet  gold.sales\n"
    assert "there is no table below s3://lake/typo/warehouse" in heard.err


def test_table_that_cannot_be_read_stops_no_other(
    aws: Aws,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/broken")
    place = "broken/warehouse/gold.db/sales/.hoodie/hoodie.properties"
    aws.client("s3").put_object(Bucket="lake", Key=place, Body=b"x")
    assert main(["--manifest", manifest(tmp_path, "sales", "zeal")]) == 1
    heard = capsys.readouterr()
    said = "serving.glue: lake_gold.sales: cannot read the Hudi table at s3://lake/"
    assert said in heard.err
    assert heard.out == "not written yet  gold.zeal\n"

    assert main(["--json", "--manifest", manifest(tmp_path, "sales", "zeal")]) == 1
    heard = capsys.readouterr()
    assert said in heard.err
    assert json.loads(heard.out) == [
        {"state": "not written yet", "name": "gold.zeal", "details": []}
    ]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["ThrottlingException", "ThrottlingException"], 75),
        (["ThrottlingException", "AccessDeniedException"], 1),
    ],
)
def test_it_is_worth_another_try_only_if_that_may_mend_every_table(
    codes: list[str],
    expected: int,
    tmp_path: Path,
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/busy")

    def refuse(*_: object) -> NoReturn:
        raise ClientError({"Error": {"Code": codes.pop(0)}}, "GetTable")

    monkeypatch.setattr(Lake, "tables", refuse)
    assert main(["--manifest", manifest(tmp_path, "sales", "zeal")]) == expected


def test_server_that_does_not_answer_is_worth_another_try(
    tmp_path: Path,
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/away")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
    assert main(["--manifest", manifest(tmp_path, "sales")]) == 75
    assert f'serving.glue: Could not connect to the endpoint URL: "{url}' in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("prefix", ["my-shop", "Shop", "", "a b", "x;y"])
def test_prefix_that_is_no_name_is_refused(prefix: str) -> None:
    assert main(["--prefix", prefix]) == 2
