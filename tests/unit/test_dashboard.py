"""The dashboard's page as it is written: what it says, and where it cannot be written."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from bs4 import BeautifulSoup
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.cli import main
from cdc_lakehouse.serving.dashboard.content import INPUTS, ORDERS, Content, newer_inputs
from cdc_lakehouse.serving.dashboard.page import page_of
from lab.stack import jars
from tests.support.aws import Aws
from tests.support.dashboard import (
    CATEGORY,
    COMPANY,
    COUNTRY,
    EMPTY,
    RENDERED,
    SHIPPER,
    category,
    customer,
    full_content,
    month,
    shipment,
)
from tests.support.project import parse
from tests.support.tables import Tables

LAKE = Path("tests/support/lakes/hudi-1.2.0.tar.xz")
NOBODY = {"customer_id": "unknown", "company_name": None, "country": None}
CONTENTS = {
    "everything": full_content(),
    "nothing": EMPTY,
    "no revenue": replace(
        EMPTY,
        customers=[customer(1, "0", revenue_share=None), customer(2, None)],
        months=[month(date(2026, 1, 1), None)],
        categories=[category(1, None)],
        shipments=[shipment(1, count_late=0)],
    ),
    "no names": replace(
        EMPTY,
        customers=[customer(1, "60", company_name=None), customer(2, "40", **NOBODY)],
        shipments=[
            shipment(1, shipper_name=None),
            shipment(2, shipper_id=None, shipper_name=None),
        ],
    ),
}


def parsed(content: Content) -> BeautifulSoup:
    """The page before any script runs."""
    return BeautifulSoup(page_of(content, RENDERED), "html.parser")


@pytest.mark.parametrize("name", CONTENTS)
def test_what_a_reader_sees(name: str, snapshot: SnapshotAssertion) -> None:
    """Without a script, each block on a line of its own."""
    blocks = parsed(CONTENTS[name]).select("h1, h2, h3, p, li, dt, dd, tr, .chart")
    said = [" ".join(block.get_text().split()) or "(a chart)" for block in blocks]
    assert "\n".join(said) == snapshot


def test_names_are_never_markup() -> None:
    page = parsed(full_content())
    assert page.select("main img, main b, main script") == []
    assert page.find_all(onmouseover=True) == []
    values = {cell["value"] for cell in page.find_all("data")}
    assert values >= {COMPANY, CATEGORY, COUNTRY, SHIPPER}
    [data] = page.select("#data")
    assert json.loads(str(data.string))["customers"][0]["company_name"] == COMPANY


def test_structure_for_those_who_do_not_see_it() -> None:
    page = parsed(full_content())
    assert page.select_one("html[lang=en]")
    levels = [int(heading.name[1]) for heading in page.find_all(["h1", "h2", "h3"])]
    assert levels.count(1) == levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(page.select(".chart[role=img][aria-label]")) == len(page.select(".chart"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small lake, of which only the tables are read."""
    folder = tmp_path_factory.mktemp("lake")
    jars.unpack(LAKE, folder)
    return folder


@pytest.fixture
def lake(unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """A copy of it, to be changed, which is the one that the command reads."""
    shutil.copytree(unpacked / "warehouse", tmp_path / "warehouse")
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path))
    return Tables(tmp_path)


def commit_later(lake: Tables, name: str, hours: int) -> None:
    """Add a commit without rows after the table's newest."""
    timeline = lake.path(name) / ".hoodie"
    newest = max(lake.instants()[name])
    instant = datetime.strptime(f"{newest[:17]}000", "%Y%m%d%H%M%S%f")
    content = json.loads((timeline / newest).read_text())
    content |= {"partitionToWriteStats": {}, "operationType": "UPSERT"}
    content.pop("partitionToReplaceFileIds", None)
    later = f"{instant + timedelta(hours=hours):%Y%m%d%H%M%S%f}"[:17]
    (timeline / f"{later}.commit").write_text(json.dumps(content))


def test_gold_that_is_older_than_silver_is_reported(lake: Tables) -> None:
    commit_later(lake, "silver.order_items", hours=1)
    # A new column is a commit, and computes nothing.
    commit_later(lake, "gold.revenue_by_month", hours=2)
    # What no gold table reads makes none of them old.
    commit_later(lake, "silver.customers", hours=1)
    assert main(["dashboard"]) == 0
    page = (lake.folder / "dashboard.html").read_text(encoding="utf-8")
    items = BeautifulSoup(page, "html.parser").select("#outdated li")
    assert [item.get_text() for item in items] == [
        f"gold.{name} is older than silver.order_items"
        for name in ("revenue_by_customer", "revenue_by_month", "revenue_by_category")
    ]


def test_gold_is_old_where_what_it_reads_is() -> None:
    early, late, latest = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3))
    category, product = "gold.revenue_by_category", "gold.revenue_by_product"
    written = {"silver.orders": early, "silver.order_items": early}
    assert newer_inputs(category, {**written, product: early, category: late}) == []
    assert newer_inputs(category, {**written, product: latest, category: late}) == [product]
    written["silver.orders"] = late
    # It was computed last, but from products that lack the newest orders.
    assert newer_inputs(category, {**written, product: early, category: latest}) == [
        "silver.orders"
    ]
    assert newer_inputs("gold.late_shipments", {**written, "gold.late_shipments": None})


def test_inputs_are_what_the_models_read(tmp_path: Path) -> None:
    assert parse(tmp_path, "--vars", "{cdc_lakehouse_history: true}").returncode == 0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    names = {
        key: f"{node['schema']}.{node['alias']}" for key, node in manifest["nodes"].items()
    }
    read = {
        names[key]: {names[parent] for parent in node["depends_on"]["nodes"]}
        for key, node in manifest["nodes"].items()
        if names[key] in INPUTS
    }
    assert {name: set(inputs) for name, inputs in INPUTS.items()} == read
    inputs = {name for parents in read.values() for name in parents}
    gold = {name for name in inputs if name.startswith("gold.")}
    assert gold | {f"gold.{name}" for name in ORDERS} == INPUTS.keys()


def lose_properties(table: Path) -> None:
    (table / ".hoodie" / "hoodie.properties").write_text("")


def lose_commits(table: Path) -> None:
    for commit in (table / ".hoodie").glob("*commit"):
        commit.write_text("{")


def rename_column(table: Path) -> None:
    """Files and commits without ``changed_at``."""
    for file in table.rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        names = [name.replace("changed_at", "altered_at") for name in rows.schema.names]
        pq.write_table(rows.rename_columns(names), file)
    for commit in (table / ".hoodie").glob("*commit"):
        commit.write_text(commit.read_text().replace("changed_at", "altered_at"))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("silver.orders", lose_properties),
        ("silver.orders", lose_commits),
        ("silver.orders", rename_column),
        ("gold.revenue_by_month", lose_commits),
        ("bronze.rejected_events", lose_commits),
    ],
)
def test_table_that_cannot_be_read_is_named(
    lake: Tables,
    name: str,
    spoil: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(lake.path(name))
    assert main(["dashboard"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("dashboard: cannot read the Hudi table at ")
    assert str(lake.path(name)) in line
    assert not list(lake.folder.glob("dashboard*"))


@pytest.mark.parametrize(
    ("is_folder", "reason"), [(True, "Is a directory"), (False, "File too large")]
)
def test_page_that_cannot_be_written(
    lake: Tables, is_folder: bool, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page of before stays, and nothing is left beside it."""
    file = lake.folder / "dashboard.html"
    if is_folder:
        file.mkdir()
    else:
        file.write_text("the page of before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not is_folder:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        assert main(["dashboard"]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capsys.readouterr().err == f"dashboard: cannot write {file}: {reason}\n"
    assert list(lake.folder.glob("dashboard*")) == [file]
    assert is_folder or file.read_text() == "the page of before"


def test_page_is_an_object_of_the_lake(
    unpacked: Path,
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where the lake is on S3 (moto's)."""
    aws.upload(unpacked / "warehouse", "lake", "here/warehouse")
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/here")
    assert main(["dashboard"]) == 0
    assert capsys.readouterr().out.startswith("wrote s3://lake/here/dashboard.html (")
    page = aws.client("s3").get_object(Bucket="lake", Key="here/dashboard.html")
    assert page["ContentType"] == "text/html; charset=utf-8"
    assert "Alfreds Futterkiste" in page["Body"].read().decode()


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ("{tmp}", "no gold.revenue_by_customer below {tmp}; build it first: dbt build"),
        ("s3a://lake/typo", "below s3://lake/typo; build it first"),
        ("s3://not-there/lake", "NoSuchBucket"),
        ("hdfs://host/lake", "the dashboard reads a lake in a folder or on S3"),
    ],
    ids=["no gold", "no gold on S3", "no bucket", "neither"],
)
@pytest.mark.usefixtures("aws")
def test_lake_that_has_no_page(
    root: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAKE_ROOT", root.format(tmp=tmp_path))
    assert main(["dashboard"]) == 1
    assert said.format(tmp=tmp_path) in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
