"""The dashboard in Chromium: its charts draw its rows, and it loads nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from cdc_lakehouse.serving.dashboard.content import NO_MONTH
from cdc_lakehouse.serving.dashboard.page import page_of
from tests.support.dashboard import (
    COMPANY,
    COUNTRY,
    DOLLARS,
    EMPTY,
    RENDERED,
    SHIPPER,
    customer,
    full_content,
    shipment,
)
from tests.support.required import require_program

DESKTOP, PHONE = 1280, 360
ROWS = full_content()

OpenPage = Callable[..., Page]


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
def open_page(browser: Browser, tmp_path: Path) -> Iterator[OpenPage]:
    """Opens pages of some rows; each loads nothing but itself, and logs nothing."""
    file = tmp_path / "dashboard.html"
    said: list[str] = []
    asked: set[str] = set()

    def open_(width: int = DESKTOP, **rows: Any) -> Page:
        content = replace(EMPTY, **rows) if rows else ROWS
        file.write_text(page_of(content, RENDERED), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.add(request.url))
        page.goto(file.as_uri())
        return page

    yield open_
    for context in browser.contexts:
        context.close()
    assert said == []
    assert asked == {file.as_uri()}


def texts(page: Page, selector: str) -> list[str]:
    """What elements say to a reader."""
    return [" ".join(text.split()) for text in page.locator(selector).all_text_contents()]


def drawn(page: Page, chart: str) -> list[dict[str, Any]]:
    """What a chart was given, series by series."""
    found: list[dict[str, Any]] = page.evaluate(
        "id => document.getElementById(id).data", f"chart-{chart}"
    )
    return found


@pytest.mark.smoke
def test_charts_draw_the_rows(open_page: OpenPage) -> None:
    page = open_page()
    customers = ROWS.customers
    [ring] = drawn(page, "shares")
    rest = sum(row["revenue_share"] for row in customers[20:])
    named = [float(row["revenue_share"]) for row in customers[:20]]
    assert ring["values"] == [*named, float(rest)]

    [bubbles] = drawn(page, "averages")
    assert bubbles["x"] == [float(row["avg_order_quantity"]) for row in customers]
    assert bubbles["y"] == [float(row["avg_order_revenue"]) for row in customers]
    # Areas; the smallest are drawn larger than they are, to be seen at all.
    areas = [size**2 for size in bubbles["marker"]["size"]]
    scale = max(areas) / max(row["count_orders"] for row in customers)
    assert areas == pytest.approx(
        [max(36, scale * row["count_orders"]) for row in customers]
    )

    [columns] = drawn(page, "months")
    assert dict(zip(columns["x"], columns["y"], strict=True)) == {
        str(row["order_month"]): float(row["revenue"])
        for row in ROWS.months
        if row["order_month"] != NO_MONTH
    }

    labels = page.evaluate("document.getElementById('chart-late').layout.yaxis.ticktext")
    countries = [label.rpartition(" (")[0] for label in labels]
    assert {
        (series["name"], countries[at]): late
        for series in drawn(page, "late")
        for at, late in zip(series["y"], series["x"], strict=True)
    } == {
        # The library reads some markup, so it gets names without any.
        (escape(row["shipper_name"], False), escape(row["ship_country"], False)): late
        for row in ROWS.shipments
        if (late := row["count_late"])
    }

    [columns] = drawn(page, "waits")
    hours = dict(zip(columns["x"], columns["y"], strict=True))
    assert hours == {"1996-07-01": 36.0, "1996-08-01": None}


def test_names_are_neither_markup_nor_formulas(open_page: OpenPage) -> None:
    """In what the charts show, also under the pointer."""
    page = open_page()
    assert {COMPANY, DOLLARS} <= set(texts(page, "#chart-averages .textpoint"))
    assert {SHIPPER, DOLLARS} <= set(texts(page, "#chart-late .legendtext"))
    assert texts(page, "#chart-late .ytick")[0] == f"{COUNTRY} (5 of 9)"
    page.locator("#chart-late .trace:last-child .point path").first.hover(force=True)
    page.locator("#chart-late .hovertext").wait_for()
    assert f"{SHIPPER}, {COUNTRY}" in texts(page, "#chart-late .hovertext")[0]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the screen."""
    wider: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return wider


def test_phone_needs_no_sideways_scrolling(open_page: OpenPage) -> None:
    """With every table open, too; and after the phone is turned, and turned back."""
    page = open_page(PHONE)
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


def test_keyboard_opens_every_table(open_page: OpenPage) -> None:
    page = open_page()
    tables = page.locator("details").count()
    # Each has one more stop: the table, which scrolls.
    for _ in range(2 * tables):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            page.keyboard.press("Enter")
    assert page.locator("table:visible").count() == tables == 7


def test_print_is_light_and_as_wide_as_the_paper(open_page: OpenPage) -> None:
    page = open_page(PHONE)
    page.emulate_media(color_scheme="dark")
    paper = "getComputedStyle(document.documentElement).getPropertyValue('--card')"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    widths = page.evaluate(
        "[...document.querySelectorAll('.chart')].map(it => it._fullLayout.width)"
    )
    assert max(widths) == pytest.approx(180 / 25.4 * 96, abs=1)
    assert page.evaluate(paper) == "#ffffff"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(paper) != "#ffffff"
    assert overflow(page) == 0


def test_each_customer_has_a_slice(open_page: OpenPage) -> None:
    """Also the only one, and two of one name; none is no error."""
    for count in (0, 1, 2):
        twins = [customer(rank + 1, "50", company_name="Twin") for rank in range(count)]
        page = open_page(customers=twins)
        assert page.locator("#chart-shares .slice").count() == count


def test_share_that_a_ring_cannot_show(open_page: OpenPage) -> None:
    """The list has it, and the ring makes room for it."""
    negative = customer(2, "-20", revenue_share=Decimal("-0.2"))
    page = open_page(customers=[customer(1, "120"), negative])
    assert texts(page, "#bars-shares li") == [
        "1 Company 1 120.00 120.0%",
        "2 Company 2 -20.00 -20.0%",
    ]
    assert page.locator("#chart-shares").is_hidden()


def test_thirty_shippers_look_different(open_page: OpenPage) -> None:
    page = open_page(shipments=[shipment(number) for number in range(1, 31)])
    looks = {
        (series["marker"]["color"], series["marker"]["pattern"]["shape"])
        for series in drawn(page, "late")
    }
    assert len(looks) == 30
