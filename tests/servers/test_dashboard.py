"""The dashboard in Chromium: its charts draw its rows, and it loads nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from serving.dashboard.content import Content
from serving.dashboard.page import page_of
from tests.support.dashboard import (
    CATEGORY,
    COMPANY,
    COUNTRY,
    EMPTY,
    RENDERED,
    SHIPPER,
    customer,
    full_content,
    shipment,
)
from tests.support.required import require_program

DESKTOP, PHONE = 1280, 360

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def rows() -> Content:
    return full_content()


@pytest.fixture(scope="module")
def file(rows: Content, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of these rows."""
    file = tmp_path_factory.mktemp("page") / "dashboard.html"
    file.write_text(page_of(rows, RENDERED), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; in CI it must be there."""
    chromium = require_program("chromium", "chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages; at the end, each has loaded nothing but itself and logged nothing."""
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


def texts(page: Page, selector: str) -> list[str]:
    """What elements say to a reader."""
    return [" ".join(text.split()) for text in page.locator(selector).all_text_contents()]


def drawn(page: Page, chart: str) -> list[dict[str, Any]]:
    """What a chart was given, series by series."""
    found: list[dict[str, Any]] = page.evaluate(
        "id => document.getElementById(id).data", f"chart-{chart}"
    )
    return found


def test_charts_draw_the_rows(rows: Content, file: Path, open_page: OpenPage) -> None:
    page = open_page(file)
    customers = rows.customers
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
    months = {str(row["order_month"]): row for row in rows.months}
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
        for row in rows.shipments
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


@pytest.fixture
def open_content(tmp_path: Path, open_page: OpenPage) -> Callable[..., Page]:
    """Opens the page of rows of one's own."""

    def open_(**rows: Any) -> Page:
        file = tmp_path / "dashboard.html"
        file.write_text(page_of(replace(EMPTY, **rows), RENDERED), encoding="utf-8")
        return open_page(file)

    return open_


def test_empty_gold_draws_nothing(open_content: Callable[..., Page]) -> None:
    assert open_content().locator(".chart, #rejected, details").count() == 0


def test_single_customer_has_all_revenue(open_content: Callable[..., Page]) -> None:
    page = open_content(customers=[customer(1, "100")])
    assert texts(page, "#bars-shares li") == ["1 Company 1 100.00 100.0%"]
    [ring] = drawn(page, "shares")
    assert ring["values"] == [1]
    assert page.locator("#chart-shares").is_visible()


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
