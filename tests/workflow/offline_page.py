"""A page in a Chromium without a network: whatever a test does there, it stays quiet and alone."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
FETCHED = REPOSITORY / ".cache/chromium/chromium"  # by `make browser`
INSTALLED = ("chromium-headless-shell", "chromium", "google-chrome")
WIDTHS = {"desk": 1400, "phone": 420}
INSIDE = ("data:", "blob:", "about:")  # of the page itself
PATIENCE_MS = 15_000


@contextlib.contextmanager
def a_browser() -> Iterator[Browser]:
    """Start the first Chromium that is here; skip the test where there is none."""
    there = [str(FETCHED)] * FETCHED.exists() + [shutil.which(name) for name in INSTALLED]
    program = next(filter(None, there), None)
    if program is None:
        pytest.skip(f"none of {', '.join(INSTALLED)} is here; `make browser` fetches one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, env=dict(os.environ))
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(
    browser: Browser, path: Path, width: int = WIDTHS["desk"], kinds: tuple[str, ...] = ()
) -> Iterator[Page]:
    """Open a page.

    Afterwards it must have written no message to the console and loaded nothing but itself.

    Parameters
    ----------
    kinds : of console messages that count, as "error"; none: all do
    """
    context = browser.new_context(offline=True, viewport={"width": width, "height": 900})
    page, messages, requests = context.new_page(), [], []
    page.set_default_timeout(PATIENCE_MS)
    page.on(
        "console",
        lambda message: messages.append(message.text) if message.type in kinds or not kinds else 0,
    )
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url[:200]))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert messages == []
    assert [url for url in requests if not url.startswith(INSIDE)] == [path.as_uri()]
