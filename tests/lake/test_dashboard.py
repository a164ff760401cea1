"""The dashboard of a lake that was built now: what the page has is what gold has."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest
from bs4 import BeautifulSoup

from cdc_lakehouse.serving.dashboard.content import ORDERS
from lab.demo.landing import land
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.records import Row
from tests.support.scenario import order

pytestmark = pytest.mark.thorough

# Each table of the page: gold's, and the columns that it has.
TABLES = {
    "revenue-by-customer": (
        "revenue_by_customer",
        *("revenue_rank", "company_name", "country", "count_orders", "count_items"),
        *("total_quantity", "revenue", "revenue_share"),
    ),
    "averages-by-customer": (
        "revenue_by_customer",
        *("company_name", "count_orders", "avg_order_quantity", "avg_order_revenue"),
    ),
    "revenue-by-month": (
        "revenue_by_month",
        *("order_month", "count_orders", "count_items", "revenue"),
    ),
    "revenue-by-category": (
        "revenue_by_category",
        *("revenue_rank", "category_name", "count_products", "total_quantity"),
        *("revenue", "revenue_share"),
    ),
    "late-shipments": (
        "late_shipments",
        *("ship_country", "shipper_name", "count_shipped", "count_late"),
        *("late_share", "avg_days_late"),
    ),
    "from-placed-to-shipped": (
        "order_waits",
        *("order_month", "count_orders", "count_placed", "count_shipped"),
        *("avg_hours_to_ship", "count_changed", "count_line_changes"),
    ),
}
# The page is written by a process that must not load these.
WRITE = (
    "import sys; from cdc_lakehouse.cli import main;"
    "assert main(['dashboard']) == 0;"
    "assert not {'pyspark', 'dbt', 'pandas'} & sys.modules.keys()"
)


@pytest.fixture(scope="module")
def lake(new_lake: NewLake) -> Lake:
    """The demonstration's events, an order without a date, and two bad records."""
    lake = new_lake()
    land(lake.landing)
    shipper = '{"shipper_id": 9, "company_name": "Slow Boats"}'
    columns: dict[str, Any] = {"partition": 1, "shipper": shipper}
    lake.land(
        [
            order("c", 90_001, 99_000_000, 0, order_date=None, **columns),
            order("c", "x9", 99_000_001, 1, **columns),
            "no JSON",
        ]
    )
    assert lake.ingest().code == 0
    lake.dbt("run", "--vars", "{cdc_lakehouse_history: true}")
    return lake


@pytest.fixture(scope="module")
def page(lake: Lake) -> BeautifulSoup:
    """The page, written without Spark."""
    done = subprocess.run(
        [sys.executable, "-c", WRITE],
        cwd=PROJECT,
        env=lake.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    file = lake.root / "dashboard.html"
    assert done.stdout.startswith(f"wrote {file} (")
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


def cells(page: BeautifulSoup, table: str) -> list[list[Any]]:
    """The values in a table's cells, with all their digits."""
    rows = page.select(f"#table-{table} tbody tr")
    return [[cell["value"] for cell in row.select("data")] for row in rows]


@pytest.mark.parametrize("table", TABLES)
def test_table_has_all_that_gold_has(table: str, lake: Lake, page: BeautifulSoup) -> None:
    name, *columns = TABLES[table]
    rows = sorted(lake.rows(f"gold.{name}"), key=ORDERS[name])
    assert len(rows) > 1
    assert cells(page, table) == [texts(row, columns) for row in rows]


def texts(row: Row, columns: list[str]) -> list[str]:
    return ["" if row[name] is None else str(row[name]) for name in columns]


def test_totals(lake: Lake, page: BeautifulSoup) -> None:
    customers = lake.rows("gold.revenue_by_customer")
    revenue = sum(row["revenue"] for row in customers)
    orders = sum(row["count_orders"] for row in customers)
    assert [total["value"] for total in page.select("#totals data")] == [
        str(value) for value in (revenue, orders, len(customers), revenue / orders)
    ]


def began(lake: Lake, table: str) -> str:
    """When the newest commit of a table began, by its file's name."""
    newest = max(lake.tables.instants()[table]).partition(".")[0]
    return str(datetime.strptime(f"{newest}000+0000", "%Y%m%d%H%M%S%f%z"))


def test_freshness(lake: Lake, page: BeautifulSoup) -> None:
    expected = {f"gold.{name}": ["", "", began(lake, f"gold.{name}")] for name in ORDERS}
    for name in ("customers", "order_items", "orders", "products"):
        rows = lake.rows(f"silver.{name}")
        newest = [str(max(row[at] for row in rows)) for at in ("changed_at", "ingested_at")]
        expected[f"silver.{name}"] = [*newest, began(lake, f"silver.{name}")]
    assert {name: values for name, *values in cells(page, "freshness")} == expected
    silver = [values for name, values in expected.items() if name.startswith("silver.")]
    gold = [values for name, values in expected.items() if name.startswith("gold.")]
    said = [str(time["datetime"]) for time in page.select("#freshness time")]
    assert [str(datetime.fromisoformat(moment)) for moment in said[:3]] == [
        max(values[0] for values in silver),
        max(values[1] for values in silver),
        min(values[2] for values in gold),
    ]
    assert page.select("#outdated") == []


def test_what_was_rejected(lake: Lake, page: BeautifulSoup) -> None:
    assert [title.get_text() for title in page.select("#rejected h3")] == [
        "Records that are no change event: 1",
        "Changes without a usable key: 1",
    ]
    [no_event] = lake.rows("bronze.rejected_events")
    [without_key] = lake.rows("silver.rejected_rows")
    assert [reason.get_text() for reason in page.select("#rejected li")] == [
        f"1 {no_event['reason']}",
        f"1 {without_key['reason']}",
    ]
