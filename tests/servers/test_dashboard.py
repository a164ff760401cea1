"""The dashboard in a real browser: what it shows is what gold has, and it loads nothing."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from demo.landing import land
from serving.dashboard import __main__ as command
from serving.dashboard.content import INPUTS, ORDERS, Content, newer_inputs
from serving.dashboard.page import page_of
from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.project import PROJECT
from tests.support.records import Row, flattened, record

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


def newest_commit(root: Path, name: str) -> Path:
    """The newest commit of a table: its name is when it began."""
    layer, _, folder = name.partition(".")
    timeline = root / "warehouse" / f"{layer}.db" / folder / ".hoodie"
    return max(timeline.glob("*commit"), key=lambda file: file.name)


def began(commit: Path) -> datetime:
    """When a commit began."""
    return datetime.strptime(f"{commit.stem}000+0000", "%Y%m%d%H%M%S%f%z")


def commit_later(root: Path, name: str, hours: int) -> None:
    """A commit without rows after the table's newest, as a change of nothing makes it."""
    commit = newest_commit(root, name)
    instant = f"{began(commit) + timedelta(hours=hours):%Y%m%d%H%M%S%f}"[:17]
    content = json.loads(commit.read_text())
    content |= {"partitionToWriteStats": {}, "operationType": "UPSERT"}
    content.pop("partitionToReplaceFileIds", None)
    commit.with_name(f"{instant}.commit").write_text(json.dumps(content))


def test_freshness_and_what_was_rejected(
    lake: Lake, file: Path, open_page: OpenPage
) -> None:
    page = open_page(file)
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
    shown = {name: instants for name, *instants in table(page, "freshness")}
    assert shown == freshness
    computed_at = str(began(min(gold.values(), key=lambda commit: commit.name)))
    times = page.locator("#freshness time")
    for at, instant in enumerate((changed_at, ingested_at, computed_at)):
        moment = datetime.fromisoformat(times.nth(at).get_attribute("datetime") or "")
        assert str(moment) == instant
    assert page.locator("#outdated").count() == 0
    assert texts(page, "#rejected h3") == [
        "Records that are no change event: 1",
        "Changes that could not be typed: 1",
    ]
    reasons = [
        lake.rows(place)[0]["reason"]
        for place in ("bronze.rejected_events", "silver.rejected_rows")
    ]
    assert texts(page, "#rejected li") == [f"1 {reason}" for reason in reasons]


@pytest.fixture
def copy(lake: Lake, tmp_path: Path) -> Path:
    """A copy of the lake, to be changed."""
    shutil.copytree(lake.root / "warehouse", tmp_path / "lake" / "warehouse")
    return tmp_path / "lake"


def test_gold_that_is_older_than_silver_is_said_so(copy: Path, open_page: OpenPage) -> None:
    commit_later(copy, "silver.order_items", hours=1)
    # A new column is a commit, and computes nothing.
    commit_later(copy, "gold.revenue_by_month", hours=2)
    # What no gold table reads makes none of them old.
    commit_later(copy, "silver.customers", hours=1)
    assert write(str(copy)).returncode == 0
    page = open_page(copy / "dashboard.html")
    assert texts(page, "#outdated li") == [
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


NOTHING = Content([], [], [], [], [], {}, {}, {})


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


@pytest.mark.parametrize("revenue", [None, "0"])
def test_no_revenue_is_not_drawn(
    open_content: Callable[..., Page], revenue: str | None
) -> None:
    """Nobody brings the most of nothing; the tables and the lists still have the rows."""
    amount = revenue and Decimal(revenue)
    sold = {"count_orders": 1, "count_items": 1, "revenue": amount}
    page = open_content(
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
    assert page.locator(".chart").count() == 0
    assert "most" not in page.locator("main").inner_text()
    assert len(texts(page, "#bars-shares li")) == 21
    assert texts(page, "#bars-categories li") == [f"1 Tea {'0.00' if revenue else '-'} -"]
    assert len(table(page, "averages-by-customer")) == 22


def shipment(shipper: int, **columns: Any) -> Row:
    """A row of gold.late_shipments: one was late."""
    return {
        "ship_country": "Germany",
        "shipper_id": shipper,
        "shipper_name": f"Shipper {shipper}",
        "count_shipped": 2,
        "count_late": 1,
        "late_share": Decimal("0.5"),
        "avg_days_late": Decimal("3.0"),
        **columns,
    }


def test_thirty_shippers_look_different(open_content: Callable[..., Page]) -> None:
    page = open_content(shipments=[shipment(number) for number in range(1, 31)])
    looks = {
        (series["marker"]["color"], series["marker"]["pattern"]["shape"])
        for series in drawn(page, "late")
    }
    assert len(looks) == 30


def test_dollars_in_a_name_are_no_formula(open_content: Callable[..., Page]) -> None:
    """They are shown as they are, and the console is silent."""
    name = "$x^2$ & $5 for $6"
    page = open_content(
        customers=[customer(1, "100", company_name=name)],
        shipments=[shipment(1, shipper_name=name, ship_country=name)],
    )
    assert name in texts(page, "#chart-averages .textpoint")
    assert name in texts(page, "#chart-late .legendtext")
    assert f"{name} (1 of 2)" in texts(page, "#chart-late .ytick")
    page.locator("#chart-late .point path").first.hover(force=True)
    page.locator("#chart-late .hovertext").wait_for()
    assert f"{name}, {name}" in texts(page, "#chart-late .hovertext")[0]


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
    assert line.startswith("dashboard: cannot read the Hudi table at ")
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
        codes.append(command.main())
        return put(part, file)

    monkeypatch.setattr(Path, "replace", replace_after_another_run)
    codes.append(command.main())
    assert codes == [0, 0]
    assert [file.name for file in copy.glob("dashboard*")] == ["dashboard.html"]


def test_page_that_cannot_be_written(copy: Path) -> None:
    """Neither where a folder has its name, nor on a full disk; nothing is left behind."""
    file = copy / "dashboard.html"
    file.mkdir()
    done = write(str(copy))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"dashboard: cannot write {file}: Is a directory\n"
    assert list(copy.glob("dashboard*")) == [file]
    file.rmdir()
    done = write(str(copy), largest_file=1_000_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"dashboard: cannot write {file}: File too large\n"
    assert not list(copy.glob("dashboard*"))
