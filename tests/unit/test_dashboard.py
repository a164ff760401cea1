"""The dashboard's page as it is written: what it says, and where it cannot be written."""

import json
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.cli import main
from cdc_lakehouse.serving.dashboard.content import INPUTS, ORDERS, Content
from cdc_lakehouse.serving.dashboard.page import page_of
from lab.stack import jars
from tests.support.aws import Aws
from tests.support.dashboard import FULL, RENDERED
from tests.support.project import parse
from tests.support.tables import SMALL_LAKE, Tables


def content_with(**columns: Any) -> Content:
    """A row of each table with other values in some columns."""
    tables = (FULL.customers, FULL.months, FULL.categories, FULL.shipments, FULL.waits)
    changed: list[Any] = [[{**rows[-1], **columns}] for rows in tables]
    return Content(*[*changed, [], {}, {}, {}])


CONTENTS = {
    "everything": FULL,
    "nothing": Content([], [], [], [], [], [], {}, {}, {}),
    "no names, no revenue": content_with(
        **dict.fromkeys(("company_name", "shipper_name", "revenue", "revenue_share")),
        **{"avg_hours_to_ship": None, "count_late": 0},
    ),
    "nobody, and less than nothing": content_with(
        customer_id="unknown", shipper_id=None, shipper_name=None, revenue_share=-1
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_what_the_page_says(name: str, snapshot: SnapshotAssertion) -> None:
    """Without a script, block by block; then what each chart draws. Names are text."""
    page = BeautifulSoup(page_of(CONTENTS[name], RENDERED), "html.parser")
    assert page.find_all(onmouseover=True) == []
    blocks = page.select("h1, h2, h3, p, li, dt, dd, tr")
    said = [f"{block.name} {' '.join(block.get_text().split())}" for block in blocks]
    said += [f"{it['id']} {it['role']} {it['aria-label']}" for it in page.select(".chart")]
    [charts] = page.select("#charts")
    for chart, specification in json.loads(str(charts.string)).items():
        for part in [specification, *specification.get("layer", [])]:
            rows = part.get("data", {}).get("values", [])
            said += [f"{chart} {json.dumps(list(row.values()))}" for row in rows]
    assert "\n".join(said) == snapshot


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """A small lake, which is the one that the command reads."""
    jars.unpack(SMALL_LAKE, tmp_path)
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path))
    return Tables(tmp_path)


def test_gold_that_is_older_than_silver_is_reported(lake: Tables) -> None:
    """Or was made of such gold; a new column is a commit, and computes nothing."""
    for name, later in (
        ("silver.customers", "29991231235959000.commit"),  # no gold table reads it
        ("silver.order_items", "29990101000000000.commit"),
        ("gold.revenue_by_month", "29991231235959000.commit"),
        ("gold.revenue_by_category", "29991231235959000.replacecommit"),
    ):
        timeline = lake.path(name) / ".hoodie"
        content = json.loads((timeline / max(lake.instants()[name])).read_text())
        content |= {"partitionToWriteStats": {}, "operationType": "UPSERT"}
        (timeline / later).write_text(json.dumps(content))
    assert main(["dashboard"]) == 0
    page = (lake.folder / "dashboard.html").read_text(encoding="utf-8")
    items = BeautifulSoup(page, "html.parser").select("#outdated li")
    assert [item.get_text() for item in items] == [
        f"gold.{name} is older than silver.order_items"
        for name in ("revenue_by_customer", "revenue_by_month", "revenue_by_category")
    ]


def test_inputs_are_what_the_models_read(tmp_path: Path) -> None:
    assert parse(tmp_path, "--vars", "{cdc_lakehouse_history: true}").returncode == 0
    nodes = json.loads((tmp_path / "manifest.json").read_text())["nodes"]
    names = {key: f"{node['schema']}.{node['alias']}" for key, node in nodes.items()}
    assert {
        name: sorted(names[parent] for parent in nodes[key]["depends_on"]["nodes"])
        for key, name in names.items()
        if name in INPUTS
    } == INPUTS
    inputs = {name for parents in INPUTS.values() for name in parents}
    gold = {name for name in inputs if name.startswith("gold.")}
    assert gold | {f"gold.{name}" for name in ORDERS} == INPUTS.keys()


def test_page_is_an_object_of_the_lake(
    lake: Tables,
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where the lake is on S3 (moto's)."""
    aws.upload(lake.folder / "warehouse", "lake", "here/warehouse")
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/here")
    assert main(["dashboard"]) == 0
    page = aws.client("s3").get_object(Bucket="lake", Key="here/dashboard.html")
    assert page["ContentType"] == "text/html; charset=utf-8"
    assert "Alfreds Futterkiste" in page["Body"].read().decode()
    for root, reason in (
        ("s3a://lake/typo", "no gold.revenue_by_customer below s3://lake/typo; build it"),
        ("s3://not-there/lake", "NoSuchBucket"),
        ("hdfs://host/lake", "the dashboard reads a lake in a folder or on S3"),
    ):
        monkeypatch.setenv("LAKE_ROOT", root)
        assert main(["dashboard"]) == 1
        assert reason in capsys.readouterr().err
