"""Chromium, a page of it for each test, and a server with a portal for each module.

Tests here are plain functions, not coroutines: the browser's client keeps an event loop of its own running in this
thread while it is open. It is closed after the last test of this package, so that coroutines elsewhere can run again.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.page_watch import PageWatch, origin_of
from tests.browser.portal_server import PortalServer, running_portal
from tests.browser.toasts import KEEP_TOASTS
from tests.support.server import PROJECT

# A page waits this long for an element or an answer: machines that run tests may be slow.
WAIT_MILLISECONDS_MAX = 90_000
SCREENSHOTS = PROJECT / "build" / "browser"
WINDOW = {"width": 1280, "height": 900}
_OPTIONS = (
    # A container without user namespaces has no sandbox; the pages are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name of another machine has an address, so nothing that the browser itself looks up leaves this one.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1",
)
_REPORT = pytest.StashKey[pytest.TestReport]()


class WatchedContext(NamedTuple):
    context: BrowserContext
    watch: PageWatch


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the outcome of the test itself, by which the fixture `page` decides to take a picture."""
    report = yield
    if report.when == "call":
        item.stash[_REPORT] = report
    return report


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "These tests need Chromium; run: sudo apt-get install chromium"
    expect.set_options(timeout=WAIT_MILLISECONDS_MAX)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, headless=True, args=[*_OPTIONS])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    """A server in memory for the tests of a module, each of which uses databases and tables with names of its own. A
    module about other options overrides this fixture."""
    with running_portal("--no-throttle") as running:
        yield running


@pytest.fixture
def watched(browser: Browser, portal: PortalServer, request: pytest.FixtureRequest) -> Iterator[WatchedContext]:
    """A context without cookies or history; at its end the test fails if one of its pages had a fault."""
    context = browser.new_context(base_url=portal.url, viewport=WINDOW, locale="en-US")
    context.set_default_timeout(WAIT_MILLISECONDS_MAX)
    context.add_init_script(KEEP_TOASTS)
    watch = PageWatch(context, origin=origin_of(portal.url))
    yield WatchedContext(context, watch)
    report = request.node.stash.get(_REPORT, None)
    has_failed = report is None or report.failed or bool(watch.faults)
    for number, page in enumerate(context.pages if has_failed else ()):
        page.screenshot(path=_picture_path(request.node.nodeid, number), full_page=True)
    context.close()
    assert watch.faults == []


@pytest.fixture
def page(watched: WatchedContext) -> Page:
    """A page on which paths are those of the portal: `page.goto("/")`. Another tab is `page.context.new_page()`."""
    return watched.context.new_page()


@pytest.fixture
def watch(watched: WatchedContext) -> PageWatch:
    """The watch over the test's pages, for tests that expect a fault: `watch.expect_fault("status of 412")`."""
    return watched.watch


def _picture_path(node_id: str, number: int) -> Path:
    name = re.sub(r"[^\w.-]+", "-", node_id.removeprefix("tests/browser/"))
    return SCREENSHOTS / f"{name}-{number}.png"
