"""The landing page in a real browser, offline: search, sorting, filters, pictures, a phone."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from offline_page import WIDTHS, opened
from page_numbers import Page as ShownPage
from page_numbers import differing
from planted_page import DRAWN, JUDGED, UNDRAWN, claim, plant
from playwright.sync_api import Page

FIRST_PICTURE_MS = 2000
FIRST_PAINT = """() => new Promise((seen) => {
    const look = () => {
        const [entry] = performance.getEntriesByName("first-contentful-paint");
        entry ? seen(entry.startTime) : setTimeout(look, 20);
    };
    look();
})"""

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def index(tmp_path_factory, make_checkout, write_epochs) -> Path:
    """A page of three runs, two figures and some published numbers."""
    folder = tmp_path_factory.mktemp("page")
    with contextlib.chdir(folder):
        runs = make_checkout(folder).runs
        times = [[{}, {"e2e_s": s}, {"e2e_s": s + 0.1}] for s in (30.0, 4.0, 100.0)]
        figures = [{}, {"title": "Stall of NX", "words": ["Xavier NX"], "section": "5.2"}]
        pairs = list(zip(runs, times, strict=False))
        plant(pairs, write_epochs, (claim(),), figures, DRAWN, JUDGED, UNDRAWN)
    return folder / "results/index.html"


@pytest.fixture(
    params=[WIDTHS["desk"], pytest.param(WIDTHS["phone"], marks=pytest.mark.thorough)], ids=WIDTHS
)
def page(request, browser, index) -> Iterator[Page]:
    """The page in one of two widths; whatever is done there, it says nothing and loads nothing."""
    with opened(browser, index, request.param) as page:
        yield page


def texts(page: Page, selector: str) -> list[str]:
    """Return the texts of what is in view."""
    found = page.locator(selector).all()
    return [element.inner_text() for element in found if element.is_visible()]


def test_every_number_of_a_page_that_the_workflow_made_is_that_of_its_table(finished):
    made = finished.checkout.root / "results/index.html"
    assert len(ShownPage(made.read_text("utf-8")).shown) > 5
    assert differing(made, finished.checkout.root) == []


def test_the_page_is_seen_soon_fits_the_screen_and_enlarges_its_pictures(page):
    assert page.evaluate(FIRST_PAINT) < FIRST_PICTURE_MS
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    (card,) = texts(page, ".card")
    for word in ("LeNet-5", "measured, host", "epoch", "stall", "held back by"):
        assert word in card
    thumb = page.locator("a.open").first
    thumb.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('a.open img').naturalWidth > 0")
    thumb.click()
    page.wait_for_function("document.querySelector('dialog[open] img').naturalWidth > 0")
    assert "Time by workers" in page.locator("dialog figcaption").inner_text()
    page.get_by_label("Close").click()
    assert not page.locator("dialog").is_visible()


def test_search_filters_and_sorting_leave_what_is_asked_for_in_order(page):
    search, found = page.locator("#search"), page.locator("#found")
    search.fill("STALL nx")
    assert texts(page, ".thumb h3") == ["Fig. 2a Stall of NX"]
    assert texts(page, ".runs tbody tr") == []
    search.fill("no-such-network")
    assert texts(page, ".thumb, .card, .group, .data tbody tr") == []
    nothing = "0 measured runs, 0 take-aways, 0 claims, 0 published numbers, 0 figures"
    assert nothing in found.inner_text()
    search.fill("cache (RAM) can reduce")  # words of the paper
    assert "1 take-aways, 0 claims, 0 published numbers, 2 figures" in found.inner_text()
    search.fill("lenet host")
    assert len(texts(page, ".card")) == 1
    assert len(texts(page, ".runs tbody tr")) == 3
    search.fill("")
    assert len(texts(page, ".thumb")) == 2

    runs, numbers = (page.locator(f".tools[data-for^={name}]") for name in ("runs", "numbers"))
    runs.locator("input").fill("batch 32")
    assert "1 of 3 rows" in runs.inner_text()
    assert len(texts(page, ".runs tbody tr")) == 1
    assert "3 rows" in numbers.inner_text()
    button = numbers.get_by_text("off by more than the tolerance")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert "1 of 3 rows" in numbers.inner_text()
    button.click()
    numbers.get_by_text("not used in the fit").click()
    assert texts(page, "[id^=numbers] td[data-label='used in the fit']") == ["no"]

    runs.locator("input").fill("")
    header = page.locator(".runs th", has_text="epoch time")
    for direction, expected in (("ascending", [4.05, 30.1, 100.0]), ("descending", None)):
        if header.locator("button").is_visible():
            header.locator("button").click()
        else:  # a phone shows rows as cards, without a header
            runs.locator("select").select_option(label="epoch time, " + direction)
        assert header.get_attribute("aria-sort") == direction
        cells = texts(page, ".runs td[data-label='epoch time']")
        assert [float(cell.split()[0]) for cell in cells] == (expected or [100.0, 30.1, 4.05])
