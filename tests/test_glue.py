"""What is written to Glue, and what is not (moto's)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from ingest.errors import UserError
from serving.glue import Catalogue, Lake, Table, glue_type, main
from tests.aws import Aws
from tests.conftest import PROJECT

pytest_plugins = ["tests.servers"]


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
            "Parameters": {"registered_by": "cdc-lakehouse"},
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
    catalogue = Catalogue(is_dry=False)
    assert catalogue.create_database("once")
    assert not catalogue.create_database("once")
    first = table("once", order_id="int", note="string")
    assert catalogue.put(first) == ["new table"]
    assert catalogue.put(first) == []

    wider = table("once", order_id="bigint", note="string", paid="boolean")
    said = ["new column paid boolean", "column order_id is bigint, was int"]
    assert Catalogue(is_dry=True).put(wider) == said
    assert stored(aws, "once")["StorageDescriptor"]["Columns"][0]["Type"] == "int"
    assert catalogue.put(wider) == said
    assert catalogue.put(wider) == []
    assert catalogue.put(first) == [
        "no column paid any more",
        "column order_id is int, was bigint",
    ]


def test_description_and_place_follow(aws: Aws) -> None:
    catalogue = Catalogue(is_dry=False)
    catalogue.create_database("described")
    catalogue.put(table("described", order_id="int"))
    other = copy.deepcopy(table("described", order_id="int"))
    other.definition["Description"] = "An order."
    other.definition["StorageDescriptor"]["Columns"][0]["Comment"] = "Its number."
    other.definition["StorageDescriptor"]["Location"] = "s3://elsewhere/orders"
    assert catalogue.put(other) == [
        "column order_id is described anew",
        "described anew",
        "Location is s3://elsewhere/orders",
    ]
    assert catalogue.put(other) == []


def test_parameters_of_others_stay(aws: Aws) -> None:
    catalogue = Catalogue(is_dry=False)
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
    catalogue = Catalogue(is_dry=False)
    catalogue.create_database("taken")
    foreign = {**table("taken", order_id="int").definition, "Parameters": {}}
    aws.client("glue").create_table(DatabaseName="taken", TableInput=foreign)
    with pytest.raises(UserError, match=r"taken\.orders that this command did not make"):
        catalogue.put(table("taken", order_id="bigint"))
    assert stored(aws, "taken")["StorageDescriptor"]["Columns"][0]["Type"] == "int"
    assert catalogue.leftovers("taken", set()) == []


def test_leftovers_are_named(aws: Aws) -> None:
    catalogue = Catalogue(is_dry=False)
    catalogue.create_database("old")
    catalogue.put(table("old", order_id="int"))
    assert catalogue.leftovers("old", {"orders"}) == []
    assert catalogue.leftovers("old", set()) == ["old.orders"]
    assert catalogue.leftovers("not_there", set()) == []


def test_partitions_are_added(aws: Aws) -> None:
    catalogue = Catalogue(is_dry=False)
    catalogue.create_database("days")
    days = [
        f"2026-{month:02}-{day:02}" for month in (1, 2, 3, 4, 5) for day in range(1, 29)
    ]
    assert catalogue.put(table("days", *days, order_id="int")) == [
        "new table",
        "140 new partitions",
    ]
    assert catalogue.put(table("days", *days, order_id="int")) == []
    more = [*days, "2026-06-01"]
    assert catalogue.put(table("days", *more, order_id="int")) == ["1 new partitions"]
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
    assert len(places) == 141
    assert places["2026-06-01"] == "s3://lake/orders/ingest_date=2026-06-01"


def test_documented_policy_allows_what_is_called_and_no_more(aws: Aws) -> None:
    catalogue = Catalogue(is_dry=False)
    called: set[str] = set()
    catalogue.client.meta.events.register(
        "before-call.glue", lambda model, **_: called.add(f"glue:{model.name}")
    )
    catalogue.create_database("allowed")
    for _ in range(2):
        catalogue.put(table("allowed", "2026-01-01", order_id="int"))
    catalogue.put(table("allowed", "2026-01-01", order_id="bigint"))
    catalogue.leftovers("allowed", {"orders"})

    text = (PROJECT / "docs/serving.md").read_text(encoding="utf-8")
    policy = json.loads(text.partition("```json\n")[2].partition("```")[0])
    assert set(policy["Statement"][0]["Action"]) == called


def test_lake_that_is_not_on_s3_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match="Glue is for a lake on S3"):
        Lake("/data/lake")
    monkeypatch.setenv("LAKE_ROOT", "/data/lake")
    assert main(["--manifest", "nowhere.json"]) == 1
    assert "no nowhere.json here: run `dbt build`" in capsys.readouterr().err
