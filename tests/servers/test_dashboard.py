"""The dashboard in Chromium: its charts draw its rows, and it loads nothing else."""

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from cdc_lakehouse.serving.dashboard.page import page_of
from tests.support.dashboard import COMPANY, COUNTRY, FULL, RENDERED, SHIPPER
from tests.support.required import require_program

# How many pixels the page is wider than the screen, and the width of each chart.
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
WIDTHS = "[...document.querySelectorAll('.chart > svg')].map(it => it.clientWidth)"
HEIGHTS = "bars => bars.map(bar => bar.getBBox().height)"
CARD = "getComputedStyle(document.documentElement).getPropertyValue('--card')"


@pytest.mark.smoke
def test_page_in_a_browser(tmp_path: Path) -> None:
    chromium = require_program("chromium", "chromium")
    file = tmp_path / "dashboard.html"
    file.write_text(page_of(FULL, RENDERED), encoding="utf-8")
    said: list[str] = []
    asked: set[str] = set()
    with sync_playwright() as playwright:
        launch = playwright.chromium.launch
        browser = launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(error.message))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.add(request.url))
        page.goto(file.as_uri())
        page.locator("#chart-waits path").first.wait_for()

        # The 20 largest customers, and the others together; all of them.
        assert page.locator("#chart-shares .mark-arc path").count() == 21
        assert page.locator("#chart-averages .mark-symbol path").count() == 22
        assert page.locator("#chart-late .mark-rect path").count() == 8
        first, last = page.locator("#chart-months .mark-rect path").evaluate_all(HEIGHTS)
        assert last / first == pytest.approx(3, abs=0.02)

        # Names are text.
        assert COMPANY in page.locator("#chart-averages text").all_text_contents()
        page.locator("#chart-late .mark-rect path").first.hover()
        shown = page.locator(".vg-tooltip.visible .value").all_text_contents()
        assert shown == [SHIPPER, COUNTRY, "1 of 10", "2.5"]

        # A phone needs no sideways scrolling, also with every table open.
        page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
        page.set_viewport_size({"width": 360, "height": 800})
        page.wait_for_function(f"Math.max(...{WIDTHS}) < 360")
        assert page.evaluate(OVERFLOW) == 0

        # Print is light, and as wide as the paper, whatever the screen is.
        page.emulate_media(color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.wait_for_function(f"Math.max(...{WIDTHS}) > 600")
        assert max(page.evaluate(WIDTHS)) == pytest.approx(180 / 25.4 * 96, abs=1)
        assert page.evaluate(CARD) == "#ffffff"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.wait_for_function(f"Math.max(...{WIDTHS}) < 360")
        browser.close()
    assert said == []
    assert asked == {file.as_uri()}
