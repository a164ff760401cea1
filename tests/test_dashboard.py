"""The dashboard in a real browser: what it shows is what gold has, and it loads nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from demo.landing import land
from serving.dashboard.content import Content
from serving.dashboard.page import page_of
from tests.conftest import PROJECT, Lake, NewLake, Row, flattened, record

DESKTOP, PHONE = 1280, 360
# Names are input; each of these would do harm somewhere if it were taken for markup.
COMPANY = "</script><script>alert(1)</script>"
SHIPPER = "<img src=x onerror=alert(2)>"
CATEGORY = '" onmouseover="alert(3)'
COUNTRY = "<b>Bold &amp; co</b>"
RENDERED = datetime(2026, 1, 1, tzinfo=UTC)

OpenPage = Callable[..., Page]


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


def write(root: str) -> subprocess.CompletedProcess[str]:
    """``python -m serving.dashboard``."""
    return subprocess.run(
        [sys.executable, "-m", "serving.dashboard"],
        cwd=PROJECT,
        env={**os.environ, "LAKE_ROOT": root},
        capture_output=True,
        text=True,
        timeout=60,
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
def browser() -> Iterator[Browser]:
    """Chromium; in CI it must be there."""
    chromium = shutil.which("chromium")
    if chromium is None:
        said = "the dashboard's tests need Chromium: apt-get install chromium"
        if os.environ.get("CI") == "true":
            raise AssertionError(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages; in the end each has loaded nothing but itself and was silent."""
    said: list[str] = []
    asked: list[str] = []
    files: list[str] = []

    def open_(file: Path, width: int = DESKTOP) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        files.append(file.as_uri())
        return page

    yield open_
    for context in browser.contexts:
        context.close()
    assert said == []
    assert asked == files


def table(page: Page, name: str) -> list[list[str]]:
    """The values in a table's cells, with all their digits."""
    found: list[list[str]] = page.evaluate(
        """name => [...document.querySelectorAll(`#table-${name} tbody tr`)].map(
            row => [...row.querySelectorAll("data")].map(cell => cell.value))""",
        name,
    )
    return found


def texts(page: Page, selector: str) -> list[str]:
    """What elements say to a reader."""
    return [" ".join(text.split()) for text in page.locator(selector).all_text_contents()]


def drawn(page: Page, chart: str) -> list[dict[str, Any]]:
    """What a chart was given, series by series."""
    found: list[dict[str, Any]] = page.evaluate(
        "id => document.getElementById(id).data", f"chart-{chart}"
    )
    return found


def values(rows: list[Row], *columns: str) -> list[list[str]]:
    """Columns of gold's rows, as the page's cells have their values."""
    return [
        ["" if row[name] is None else str(row[name]) for name in columns] for row in rows
    ]


def ranked(lake: Lake, name: str) -> list[Row]:
    """Gold's rows by rank; no two of these have the same."""
    return sorted(lake.rows(f"gold.{name}"), key=lambda row: int(row["revenue_rank"]))


def test_tables_have_all_that_gold_has(lake: Lake, file: Path, open_page: OpenPage) -> None:
    page = open_page(file)
    customers = ranked(lake, "revenue_by_customer")
    named = [{**row, "name": row["company_name"]} for row in customers]
    assert table(page, "revenue-by-customer") == values(
        named,
        *("revenue_rank", "name", "country", "count_orders", "count_items"),
        *("total_quantity", "revenue", "revenue_share"),
    )
    assert table(page, "averages-by-customer") == values(
        named, "name", "count_orders", "avg_order_quantity", "avg_order_revenue"
    )
    months = sorted(lake.rows("gold.revenue_by_month"), key=lambda row: row["order_month"])
    assert table(page, "revenue-by-month") == values(
        months, "order_month", "count_orders", "count_items", "revenue"
    )
    assert table(page, "revenue-by-category") == values(
        ranked(lake, "revenue_by_category"),
        *("revenue_rank", "category_name", "count_products", "total_quantity"),
        *("revenue", "revenue_share"),
    )
    shipments = sorted(
        lake.rows("gold.late_shipments"),
        key=lambda row: (row["ship_country"], row["shipper_id"]),
    )
    assert table(page, "late-shipments") == values(
        shipments,
        *("ship_country", "shipper_name", "count_shipped", "count_late"),
        *("late_share", "avg_days_late"),
    )


def test_totals_shares_and_summaries(lake: Lake, file: Path, open_page: OpenPage) -> None:
    page = open_page(file)
    customers = ranked(lake, "revenue_by_customer")
    revenue = sum(row["revenue"] for row in customers)
    orders = sum(row["count_orders"] for row in customers)
    assert texts(page, "#totals dd") == [
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
    assert texts(page, "#bars-shares li") == shares
    assert texts(page, "#bars-categories li") == [
        f"{row['revenue_rank']} {row['category_name']} {row['revenue']:,.2f} "
        f"{row['revenue_share']:.1%}"
        for row in ranked(lake, "revenue_by_category")
    ]
    shipments = lake.rows("gold.late_shipments")
    late = sum(row["count_late"] for row in shipments)
    shipped = sum(row["count_shipped"] for row in shipments)
    assert f"{late} of {shipped} shipped orders" in texts(page, "#late > p")[0]
    [undated] = [
        row
        for row in lake.rows("gold.revenue_by_month")
        if row["order_month"] == date(1900, 1, 1)
    ]
    assert f"without a date, {undated['revenue']:,.2f}," in texts(page, "#months > p")[0]


def test_charts_draw_what_gold_has(lake: Lake, file: Path, open_page: OpenPage) -> None:
    page = open_page(file)
    customers = ranked(lake, "revenue_by_customer")
    [ring] = drawn(page, "shares")
    rest = sum(row["revenue_share"] for row in customers[20:])
    named = [float(row["revenue_share"]) for row in customers[:20]]
    assert ring["values"] == [*named, float(rest)]

    [bubbles] = drawn(page, "averages")
    assert bubbles["x"] == [float(row["avg_order_quantity"]) for row in customers]
    assert bubbles["y"] == [float(row["avg_order_revenue"]) for row in customers]
    by_area = [size**2 for size in bubbles["marker"]["size"]]
    most = max(row["count_orders"] for row in customers)
    for row, area in zip(customers, by_area, strict=True):
        # The smallest are drawn larger than they are, to be seen at all.
        assert area == pytest.approx(max(36, max(by_area) * row["count_orders"] / most))

    [columns] = drawn(page, "months")
    months = {str(row["order_month"]): row for row in lake.rows("gold.revenue_by_month")}
    assert dict(zip(columns["x"], columns["y"], strict=True)) == {
        month: float(row["revenue"])
        for month, row in months.items()
        if month != "1900-01-01"
    }

    countries = [
        label.rpartition(" (")[0]
        for label in page.evaluate(
            "document.getElementById('chart-late').layout.yaxis.ticktext"
        )
    ]
    parts = {
        (series["name"], countries[at]): late
        for series in drawn(page, "late")
        for at, late in zip(series["y"], series["x"], strict=True)
    }
    assert parts == {
        (escaped(row["shipper_name"]), escaped(row["ship_country"])): row["count_late"]
        for row in lake.rows("gold.late_shipments")
        if row["count_late"]
    }


def escaped(name: str) -> str:
    """A name as the chart library must get it, which reads some markup."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_names_are_never_markup(file: Path, open_page: OpenPage) -> None:
    """In the tables, in the lists, and in what the charts show under the pointer."""
    page = open_page(file)
    assert any(COMPANY in text for text in texts(page, "#bars-shares li"))
    assert any(CATEGORY in text for text in texts(page, "#bars-categories li"))
    assert page.locator("main img, main b, main script").count() == 0
    assert SHIPPER in texts(page, "#chart-late .legendtext")
    assert any(text.startswith(f"{COUNTRY} (") for text in texts(page, "#late .ytick"))
    assert COMPANY in texts(page, "#chart-averages .textpoint")
    page.locator("#chart-late").scroll_into_view_if_needed()
    box = page.locator("#chart-late .trace:last-child .point path").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("#chart-late .hovertext").wait_for()
    assert f"{SHIPPER}, {COUNTRY}" in texts(page, "#chart-late .hovertext")[0]


def test_freshness_and_what_was_rejected(
    lake: Lake, file: Path, open_page: OpenPage
) -> None:
    page = open_page(file)
    newest = {}
    for name in ("customers", "order_items", "orders", "products"):
        rows = lake.rows(f"silver.{name}")
        newest[name] = [
            str(max(row[instant] for row in rows))
            for instant in ("changed_at", "ingested_at")
        ]
    shown = {name: instants for name, *instants in table(page, "freshness")}
    assert shown == newest
    changed_at, ingested_at = (
        max(instants) for instants in zip(*newest.values(), strict=True)
    )
    times = page.locator("#freshness time")
    for at, instant in enumerate((changed_at, ingested_at)):
        moment = datetime.fromisoformat(times.nth(at).get_attribute("datetime") or "")
        assert str(moment) == instant
    assert texts(page, "#rejected h3") == [
        "Records that are no change event: 1",
        "Changes that could not be typed: 1",
    ]
    reasons = [
        lake.rows(place)[0]["reason"]
        for place in ("bronze.rejected_events", "silver.rejected_rows")
    ]
    assert texts(page, "#rejected li") == [f"1 {reason}" for reason in reasons]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the screen."""
    wider: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return wider


def test_phone_needs_no_sideways_scrolling(file: Path, open_page: OpenPage) -> None:
    """With every table open, too; and after the phone is turned, and turned back."""
    page = open_page(file, PHONE)
    assert overflow(page) == 0
    page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
    assert overflow(page) == 0
    for width in (740, PHONE):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(
            """[...document.querySelectorAll(".chart")].every(
                chart => chart._fullLayout.width === chart.clientWidth)"""
        )
        assert overflow(page) == 0


def test_keyboard_opens_every_table(file: Path, open_page: OpenPage) -> None:
    page = open_page(file)
    tables = page.locator("details").count()
    # Each has one more stop: the table, which scrolls.
    for _ in range(2 * tables):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            style = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(style) == "solid"
            page.keyboard.press("Enter")
    assert page.locator("table:visible").count() == tables == 6


def test_print_is_light_and_as_wide_as_the_paper(file: Path, open_page: OpenPage) -> None:
    page = open_page(file, PHONE)
    page.emulate_media(color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    widths = page.evaluate(
        "[...document.querySelectorAll('.chart')].map(it => it._fullLayout.width)"
    )
    assert min(widths) > PHONE - 100
    assert max(widths) == pytest.approx(180 / 25.4 * 96, abs=1)
    paper = "getComputedStyle(document.documentElement).getPropertyValue('--card')"
    assert page.evaluate(paper) == "#ffffff"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(paper) != "#ffffff"
    assert overflow(page) == 0
    assert page.pdf().startswith(b"%PDF")


def test_structure_for_those_who_do_not_see_it(file: Path, open_page: OpenPage) -> None:
    page = open_page(file)
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").count() == page.locator("main").count() == 1
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map(it => Number(it.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    charts = page.locator(".chart")
    assert charts.count() == 4
    for chart in charts.all():
        assert chart.get_attribute("role") == "img"
        assert chart.get_attribute("aria-label")


def customer(rank: int, revenue: str | None, **columns: Any) -> Row:
    """A row of gold.revenue_by_customer with one order."""
    amount = None if revenue is None else Decimal(revenue)
    return {
        "customer_id": f"C{rank}",
        "company_name": f"Company {rank}",
        "country": "Germany",
        "count_orders": 1,
        "count_items": 1,
        "total_quantity": Decimal("1.00"),
        "revenue": amount,
        "revenue_share": amount and amount / 100,
        "revenue_rank": rank,
        "avg_order_quantity": Decimal("1.0000"),
        "avg_order_revenue": amount,
        **columns,
    }


NOTHING = Content([], [], [], [], [], {}, {})


@pytest.fixture
def open_content(tmp_path: Path, open_page: OpenPage) -> Callable[..., Page]:
    """Opens the page of rows of one's own."""

    def open_(**rows: Any) -> Page:
        file = tmp_path / "dashboard.html"
        file.write_text(page_of(replace(NOTHING, **rows), RENDERED), encoding="utf-8")
        return open_page(file)

    return open_


def test_empty_gold_is_said_so(open_content: Callable[..., Page]) -> None:
    page = open_content()
    assert texts(page, "#totals dd") == ["0.00", "0", "0", "-"]
    assert texts(page, ".empty") == ["Nothing has been sold yet."] * 4 + [
        "Nothing has been shipped yet."
    ]
    assert texts(page, "#freshness")[0].startswith("No change has arrived yet;")
    assert page.locator(".chart, #rejected, details").count() == 0


def test_single_customer_has_all_revenue(open_content: Callable[..., Page]) -> None:
    page = open_content(customers=[customer(1, "100")])
    assert texts(page, "#bars-shares li") == ["1 Company 1 100.00 100.0%"]
    [ring] = drawn(page, "shares")
    assert ring["values"] == [1]
    assert page.locator("#chart-shares").is_visible()


def test_customers_without_a_name(open_content: Callable[..., Page]) -> None:
    """The key stands for it; orders of nobody are no customer, and count."""
    nobody = customer(2, "40", customer_id="unknown", company_name=None, country=None)
    page = open_content(customers=[customer(1, "60", company_name=None), nobody])
    assert texts(page, "#bars-shares li") == [
        "1 C1 60.00 60.0%",
        "2 No customer 40.00 40.0%",
    ]
    assert texts(page, "#totals dd") == ["100.00", "2", "1", "50.00"]


def test_two_companies_of_one_name_are_two(open_content: Callable[..., Page]) -> None:
    twins = [customer(rank, "50", company_name="Twin") for rank in (1, 2)]
    page = open_content(customers=twins)
    assert page.locator("#chart-shares .slice").count() == 2
    assert len(texts(page, "#bars-shares li")) == 2


@pytest.mark.parametrize("share", ["-0.2", None], ids=["negative", "no revenue at all"])
def test_shares_that_a_ring_cannot_show(
    open_content: Callable[..., Page], share: str | None
) -> None:
    """The list has them, and the ring makes room for it."""
    part = share and Decimal(share)
    page = open_content(
        customers=[
            customer(1, "0", revenue_share=part),
            customer(2, "-20", revenue_share=part),
            customer(3, None, revenue_share=None),
        ]
    )
    shown = "-" if share is None else "-20.0%"
    assert texts(page, "#bars-shares li") == [
        f"1 Company 1 0.00 {shown}",
        f"2 Company 2 -20.00 {shown}",
        "3 Company 3 - -",
    ]
    assert page.locator("#bars-shares .below").count() == 1
    assert page.locator("#chart-shares").is_hidden()
    assert texts(page, "#totals dd")[0] == "-20.00"


def test_many_reasons_are_cut_short(open_content: Callable[..., Page]) -> None:
    page = open_content(rejected={f"reason {number}": 9 - number for number in range(7)})
    assert texts(page, "#rejected h3") == ["Records that are no change event: 42"]
    assert len(texts(page, "#rejected li")) == 5
    assert "2 more reasons are there." in texts(page, "#rejected > p")[0]


def test_page_is_written_without_spark(lake: Lake) -> None:
    code = (
        "import sys; from serving.dashboard.__main__ import main; assert main() == 0;"
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
        ("s3a://bucket/lake", "LAKE_ROOT is s3a://bucket/lake; the dashboard reads a lake"),
    ],
    ids=["no gold", "not a folder"],
)
def test_lake_that_has_no_page(tmp_path: Path, root: str, said: str) -> None:
    done = write(root.format(tmp=tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("dashboard: " + said.format(tmp=tmp_path))
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
