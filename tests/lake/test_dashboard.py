"""The dashboard's content: what the page has is what gold has. No browser."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from demo.landing import land
from serving.dashboard import __main__ as command
from serving.dashboard.content import INPUTS, ORDERS, newer_inputs
from serving.dashboard.page import page_of
from tests.conftest import NewLake
from tests.support.dashboard import (
    CATEGORY,
    COMPANY,
    COUNTRY,
    EMPTY,
    RENDERED,
    SHIPPER,
    ParsedPage,
    began,
    commit_later,
    customer,
    newest_commit,
)
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.records import Row, flattened, record


def order(number: int, offset: int, **columns: Any) -> Row:
    """An order with markup in every name; it is late, and large."""
    row = {
        "order_id": number,
        "customer_id": "EVIL",
        "order_date": 10_000,
        "required_date": 10_010,
        "shipped_date": 10_020,
        "order_items": json.dumps(
            [{"product_id": 901, "unit_price": 400, "quantity": 100, "discount": 0}]
        ),
        "products": json.dumps([{"product_id": 901, "category_name": CATEGORY}]),
        "customer": json.dumps({"company_name": COMPANY, "country": COUNTRY}),
        "employee": None,
        "shipper": json.dumps({"shipper_id": 9, "company_name": SHIPPER}),
        "shipment": json.dumps({"ship_country": COUNTRY}),
        "updated_at": "2026-01-01T00:00:00Z",
        **columns,
    }
    value = flattened("c", row, 99_000_000 + offset)
    return record({"order_id": number}, value, offset, partition=1)


@pytest.fixture(scope="module")
def lake(new_lake: NewLake) -> Lake:
    """The demonstration's events, an order with markup, one without a date, two bad."""
    lake = new_lake()
    land(lake.landing)
    lake.land(
        [
            order(90_001, 0),
            order(90_002, 1, order_date=None),
            order(90_003, 2, order_date="soon"),
            "no JSON",
        ]
    )
    assert lake.ingest().code == 0
    lake.dbt("run")
    return lake


def write(
    root: str, largest_file: int = resource.RLIM_INFINITY
) -> subprocess.CompletedProcess[str]:
    """``python -m serving.dashboard``."""
    limits = (largest_file, resource.RLIM_INFINITY)
    return subprocess.run(
        [sys.executable, "-m", "serving.dashboard"],
        cwd=PROJECT,
        env={**os.environ, "LAKE_ROOT": root},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )


@pytest.fixture(scope="module")
def file(lake: Lake) -> Path:
    """The page of the lake."""
    done = write(str(lake.root))
    file = lake.root / "dashboard.html"
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"wrote {file} (")
    return file


@pytest.fixture(scope="module")
def page(file: Path) -> ParsedPage:
    return ParsedPage.read(file.read_text(encoding="utf-8"))


def values(rows: list[Row], *columns: str) -> list[list[str]]:
    """Columns of gold's rows, as the page's cells have their values."""
    return [
        ["" if row[name] is None else str(row[name]) for name in columns] for row in rows
    ]


def ranked(lake: Lake, name: str) -> list[Row]:
    """Gold's rows by rank; no two of these have the same."""
    return sorted(lake.rows(f"gold.{name}"), key=lambda row: int(row["revenue_rank"]))


def test_tables_have_all_that_gold_has(lake: Lake, page: ParsedPage) -> None:
    customers = ranked(lake, "revenue_by_customer")
    named = [{**row, "name": row["company_name"]} for row in customers]
    assert page.table("revenue-by-customer") == values(
        named,
        *("revenue_rank", "name", "country", "count_orders", "count_items"),
        *("total_quantity", "revenue", "revenue_share"),
    )
    assert page.table("averages-by-customer") == values(
        named, "name", "count_orders", "avg_order_quantity", "avg_order_revenue"
    )
    months = sorted(lake.rows("gold.revenue_by_month"), key=lambda row: row["order_month"])
    assert page.table("revenue-by-month") == values(
        months, "order_month", "count_orders", "count_items", "revenue"
    )
    assert page.table("revenue-by-category") == values(
        ranked(lake, "revenue_by_category"),
        *("revenue_rank", "category_name", "count_products", "total_quantity"),
        *("revenue", "revenue_share"),
    )
    shipments = sorted(
        lake.rows("gold.late_shipments"),
        key=lambda row: (row["ship_country"], row["shipper_id"]),
    )
    assert page.table("late-shipments") == values(
        shipments,
        *("ship_country", "shipper_name", "count_shipped", "count_late"),
        *("late_share", "avg_days_late"),
    )


def test_totals_shares_and_summaries(lake: Lake, page: ParsedPage) -> None:
    customers = ranked(lake, "revenue_by_customer")
    revenue = sum(row["revenue"] for row in customers)
    orders = sum(row["count_orders"] for row in customers)
    assert page["totals"].texts("dd") == [
        f"{revenue:,.2f}",
        f"{orders:,}",
        f"{len(customers):,}",
        f"{revenue / orders:,.2f}",
    ]
    rest = customers[20:]
    shares = [
        f"{rank} {row['company_name']} {row['revenue']:,.2f} {row['revenue_share']:.1%}"
        for rank, row in enumerate(customers[:20], 1)
    ]
    shares.append(
        f"The other {len(rest)} {sum(row['revenue'] for row in rest):,.2f} "
        f"{sum(row['revenue_share'] for row in rest):.1%}"
    )
    assert page["bars-shares"].texts("li") == shares
    assert page["bars-categories"].texts("li") == [
        f"{row['revenue_rank']} {row['category_name']} {row['revenue']:,.2f} "
        f"{row['revenue_share']:.1%}"
        for row in ranked(lake, "revenue_by_category")
    ]
    shipments = lake.rows("gold.late_shipments")
    late = sum(row["count_late"] for row in shipments)
    shipped = sum(row["count_shipped"] for row in shipments)
    assert f"{late} of {shipped} shipped orders" in page["late"].texts("p")[0]
    [undated] = [
        row
        for row in lake.rows("gold.revenue_by_month")
        if row["order_month"] == date(1900, 1, 1)
    ]
    assert f"without a date, {undated['revenue']:,.2f}," in page["months"].texts("p")[0]


def test_charts_have_the_rows_of_gold(lake: Lake, page: ParsedPage) -> None:
    """What the scripts draw; a browser's test compares the drawing with it."""
    customers = ranked(lake, "revenue_by_customer")
    assert drawn(page, "customers", "name", "revenue") == [
        [row["company_name"], float(row["revenue"])] for row in customers
    ]
    for name in ("count_orders", "avg_order_quantity", "avg_order_revenue"):
        assert drawn(page, "customers", name) == [[float(row[name])] for row in customers]
    rest = customers[20:]
    assert drawn(page, "shares", "revenue_share") == [
        *([float(row["revenue_share"])] for row in customers[:20]),
        [float(sum(row["revenue_share"] for row in rest))],
    ]
    months = sorted(lake.rows("gold.revenue_by_month"), key=lambda row: row["order_month"])
    assert months[0]["order_month"] == date(1900, 1, 1)
    assert drawn(page, "months", "order_month", "revenue") == [
        [str(row["order_month"]), float(row["revenue"])] for row in months[1:]
    ]
    shipments = sorted(
        lake.rows("gold.late_shipments"),
        key=lambda row: (row["ship_country"], row["shipper_id"]),
    )
    assert drawn(page, "shipments", "ship_country", "shipper", "count_late") == [
        [row["ship_country"], row["shipper_name"], row["count_late"]] for row in shipments
    ]


def drawn(page: ParsedPage, name: str, *columns: str) -> list[list[Any]]:
    """Columns of the rows that a chart is drawn from."""
    return [[row[column] for column in columns] for row in page.data[name]]


def test_names_are_never_markup(page: ParsedPage) -> None:
    """Neither in the tables and the lists, nor in the charts' data."""
    assert any(COMPANY in text for text in page["bars-shares"].texts("li"))
    assert any(CATEGORY in text for text in page["bars-categories"].texts("li"))
    assert any(row[1] == COMPANY and row[2] == COUNTRY for row in all_customers(page))
    assert any(row["shipper"] == SHIPPER for row in page.data["shipments"])
    [main] = page.root.all("main")
    assert not any(main.all(tag) for tag in ("img", "b", "script"))
    assert not any("onmouseover" in one.attributes for one in page.root.everything())


def all_customers(page: ParsedPage) -> list[list[str]]:
    return page.table("revenue-by-customer")


def test_freshness_and_what_was_rejected(lake: Lake, page: ParsedPage) -> None:
    freshness = {}
    for name in ("customers", "order_items", "orders", "products"):
        rows = lake.rows(f"silver.{name}")
        freshness[f"silver.{name}"] = [
            *(
                str(max(row[instant] for row in rows))
                for instant in ("changed_at", "ingested_at")
            ),
            str(began(newest_commit(lake.root, f"silver.{name}"))),
        ]
    changed_at, ingested_at, _ = (
        max(instants) for instants in zip(*freshness.values(), strict=True)
    )
    gold = {f"gold.{name}": newest_commit(lake.root, f"gold.{name}") for name in ORDERS}
    for name, commit in gold.items():
        freshness[name] = ["", "", str(began(commit))]
    shown = {name: instants for name, *instants in page.table("freshness")}
    assert shown == freshness
    computed_at = str(began(min(gold.values(), key=lambda commit: commit.name)))
    times = page["freshness"].all("time")
    for at, instant in enumerate((changed_at, ingested_at, computed_at)):
        moment = datetime.fromisoformat(times[at].attributes["datetime"])
        assert str(moment) == instant
    assert page.find("outdated") is None
    assert page["rejected"].texts("h3") == [
        "Records that are no change event: 1",
        "Changes that could not be typed: 1",
    ]
    reasons = [
        lake.rows(place)[0]["reason"]
        for place in ("bronze.rejected_events", "silver.rejected_rows")
    ]
    assert page["rejected"].texts("li") == [f"1 {reason}" for reason in reasons]


@pytest.fixture
def copy(lake: Lake, tmp_path: Path) -> Path:
    """A copy of the lake, to be changed."""
    shutil.copytree(lake.root / "warehouse", tmp_path / "lake" / "warehouse")
    return tmp_path / "lake"


def test_gold_that_is_older_than_silver_is_reported(copy: Path) -> None:
    commit_later(copy, "silver.order_items", hours=1)
    # A new column is a commit, and computes nothing.
    commit_later(copy, "gold.revenue_by_month", hours=2)
    # What no gold table reads makes none of them old.
    commit_later(copy, "silver.customers", hours=1)
    assert write(str(copy)).returncode == 0
    page = ParsedPage.read((copy / "dashboard.html").read_text(encoding="utf-8"))
    assert page["outdated"].texts("li") == [
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


def test_inputs_are_what_the_models_read(manifest: dict[str, Any]) -> None:
    nodes = manifest["nodes"]

    def inputs(name: str) -> set[str]:
        [node] = [
            node
            for node in nodes.values()
            if node["resource_type"] == "model"
            and f"{node['schema']}.{node['alias']}" == name
        ]
        parents = [nodes[parent] for parent in node["depends_on"]["nodes"]]
        return {f"{parent['schema']}.{parent['alias']}" for parent in parents}

    assert {name: set(read) for name, read in INPUTS.items()} == {
        name: inputs(name) for name in INPUTS
    }
    read = {name for names in INPUTS.values() for name in names}
    gold = {f"gold.{name}" for name in ORDERS}
    assert gold | {name for name in read if name.startswith("gold.")} == INPUTS.keys()


def page_with(**rows: Any) -> ParsedPage:
    """The page of rows of one's own."""
    return ParsedPage.read(page_of(replace(EMPTY, **rows), RENDERED))


def test_empty_gold_is_reported() -> None:
    page = page_with()
    assert page["totals"].texts("dd") == ["0.00", "0", "0", "-"]
    assert [one.text for one in page.of_class("empty")] == [
        "Nothing has been sold yet."
    ] * 4 + ["Nothing has been shipped yet."]
    assert page["freshness"].text.startswith("No change has arrived yet;")
    assert page.of_class("chart") == page.root.all("details") == []
    assert page.find("rejected") is None


def test_single_customer_has_all_revenue() -> None:
    page = page_with(customers=[customer(1, "100")])
    assert page["bars-shares"].texts("li") == ["1 Company 1 100.00 100.0%"]
    assert drawn(page, "shares", "revenue_share") == [[1]]


def test_customers_without_a_name() -> None:
    """The key stands for it; orders of nobody are no customer, and count."""
    nobody = customer(2, "40", customer_id="unknown", company_name=None, country=None)
    page = page_with(customers=[customer(1, "60", company_name=None), nobody])
    assert page["bars-shares"].texts("li") == [
        "1 C1 60.00 60.0%",
        "2 No customer 40.00 40.0%",
    ]
    assert page["totals"].texts("dd") == ["100.00", "2", "1", "50.00"]


@pytest.mark.parametrize("revenue", [None, "0"])
def test_no_revenue_is_not_drawn(revenue: str | None) -> None:
    """Nobody brings the most of nothing; the tables and the lists still have the rows."""
    amount = revenue and Decimal(revenue)
    sold = {"count_orders": 1, "count_items": 1, "revenue": amount}
    page = page_with(
        customers=[
            customer(rank, revenue, revenue_share=None, revenue_rank=1)
            for rank in range(1, 23)
        ],
        months=[{"order_month": date(2026, 1, 1), **sold}],
        categories=[
            {
                "category_name": "Tea",
                "count_products": 1,
                "total_quantity": Decimal("1.00"),
                "revenue_share": None,
                "revenue_rank": 1,
                **sold,
            }
        ],
    )
    assert page.of_class("chart") == []
    assert "most" not in page.root.all("main")[0].text
    assert len(page["bars-shares"].texts("li")) == 21
    assert page["bars-categories"].texts("li") == [f"1 Tea {'0.00' if revenue else '-'} -"]
    assert len(page.table("averages-by-customer")) == 22


def test_many_reasons_are_cut_short() -> None:
    page = page_with(rejected={f"reason {number}": 9 - number for number in range(7)})
    assert page["rejected"].texts("h3") == ["Records that are no change event: 42"]
    assert len(page["rejected"].texts("li")) == 5
    assert "2 more reasons are there." in page["rejected"].texts("p")[0]


def test_page_is_written_without_spark(lake: Lake) -> None:
    code = (
        "import sys; from serving.dashboard.__main__ import main; assert main([]) == 0;"
        "assert not {'pyspark', 'dbt', 'pandas'} & sys.modules.keys()"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env=lake.environment(), cwd=PROJECT
    )


@pytest.mark.parametrize(
    ("root", "said"),
    [
        (
            "{tmp}",
            "there is no gold.revenue_by_customer below {tmp}; build it first: dbt b",
        ),
        ("hdfs://host/lake", "LAKE_ROOT is hdfs://host/lake; the dashboard reads a lake"),
    ],
    ids=["no gold", "not a folder"],
)
def test_lake_that_has_no_page(tmp_path: Path, root: str, said: str) -> None:
    done = write(root.format(tmp=tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("serving.dashboard: " + said.format(tmp=tmp_path))
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


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
    copy: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    layer, _, folder = name.partition(".")
    table = copy / "warehouse" / f"{layer}.db" / folder
    spoil(table)
    done = write(str(copy))
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("serving.dashboard: cannot read the Hudi table at ")
    assert str(table) in line
    assert not list(copy.glob("dashboard*"))


def test_two_runs_at_once_do_not_share_a_file(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second runs, from start to end, just before the first puts its page in place."""
    monkeypatch.setenv("LAKE_ROOT", str(copy))
    put = Path.replace
    codes = []

    def replace_after_another_run(part: Path, file: Path) -> Path:
        monkeypatch.setattr(Path, "replace", put)
        codes.append(command.main([]))
        return put(part, file)

    monkeypatch.setattr(Path, "replace", replace_after_another_run)
    codes.append(command.main([]))
    assert codes == [0, 0]
    assert [file.name for file in copy.glob("dashboard*")] == ["dashboard.html"]


def test_page_that_cannot_be_written(copy: Path) -> None:
    """Neither where a folder has its name, nor on a full disk; nothing is left behind."""
    file = copy / "dashboard.html"
    file.mkdir()
    done = write(str(copy))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"serving.dashboard: cannot write {file}: Is a directory\n"
    assert list(copy.glob("dashboard*")) == [file]
    file.rmdir()
    done = write(str(copy), largest_file=1_000_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"serving.dashboard: cannot write {file}: File too large\n"
    assert not list(copy.glob("dashboard*"))
