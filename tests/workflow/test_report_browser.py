"""The report in a real browser without a network: every page is clicked open and loads nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from offline_page import opened
from playwright.sync_api import Page

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def report(shop, finished) -> Path:
    """The report of a checkout that has run."""
    checkout = shop.copy_of(finished.checkout)
    outcome = checkout.epochwatt("report")
    assert outcome.status == 0, outcome.text
    return checkout.root / "results/report.html"


@pytest.fixture
def page(browser, report) -> Iterator[Page]:
    """The report's first page; whatever is done there, it has to run without errors, and alone."""
    with opened(browser, report, kinds=("error",)) as page:
        yield page


def click(page: Page, text: str) -> None:
    page.get_by_text(text, exact=True).first.click()


def open_list(page: Page, category: str) -> None:
    """Click open what a category holds; these have one part each, which opens by itself."""
    click(page, category)
    page.locator("table td").first.wait_for()


def row_of(page: Page, text: str):
    return page.locator("tr", has=page.get_by_text(text, exact=True))


def colours_drawn(page: Page) -> int:
    """Return how many colours the chart in view has, once it is drawn."""
    page.locator("canvas.marks").first.wait_for()
    return page.evaluate(
        """() => {
            const canvas = document.querySelector("canvas.marks");
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.data.buffer)).size;
        }"""
    )


def test_first_page_shows_the_graph_of_the_rules_and_statistics_their_times(page):
    assert page.get_by_text("where the time and the energy of a training epoch go").is_visible()
    assert colours_drawn(page) > 3
    click(page, "Statistics")
    page.locator("canvas.marks").nth(1).wait_for()  # the graph of the first page is gone
    assert colours_drawn(page) > 3
    click(page, "Workflow")
    assert colours_drawn(page) > 3


def test_every_figure_is_listed_and_one_is_drawn_and_says_what_is_seen(page):
    open_list(page, "Own figures")
    for figure in ("fig02a", "fig02b", "fig02c"):
        assert "measured, host" in row_of(page, figure).inner_text()
    show, explain = row_of(page, "fig02b").locator("a").all()
    show.click()
    page.wait_for_function("document.querySelector('img')?.complete")
    assert page.evaluate("document.querySelector('img').naturalWidth") > 0
    explain.click()
    page.get_by_text("plot_fig02", exact=True).wait_for()
    assert "DESCRIPTION" in page.locator("body").inner_text()


def test_the_overview_opens_inside_the_report(page):
    open_list(page, "Overview")
    row_of(page, "results on one page").locator("a").first.click()
    inside = page.frame_locator("iframe")
    inside.locator("h1", has_text="Summary").wait_for()
    assert "Measured on this machine: 2 runs, 3 epochs" in inside.locator("body").inner_text()
    text = inside.locator("pre", has_text="host-pipeline").first
    assert not text.is_visible()
    inside.get_by_text("config/config.yaml", exact=True).first.click()
    text.wait_for()
