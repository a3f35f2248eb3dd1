"""The watch over the pages of a test, on pages of a plain web server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import WAIT_MILLISECONDS_MAX
from tests.browser.editing import wait_until
from tests.browser.page_watch import PageWatch, origin_of

_PAGES = {
    "/good": "<h1>Fine</h1>",
    "/exception": "<script src='/throws.js'></script>",
    "/throws.js": "throw new Error('broken script')",
    "/console": "<script src='/logs.js'></script>",
    "/logs.js": "console.error('broken rule')",
    "/inline": "<h1 style='color: red'>Inline</h1>",
    "/missing": "<script src='/absent.js'></script>",
    "/elsewhere": "<img src='http://elsewhere.example/pixel.png' alt=''>",
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = _PAGES.get(self.path)
        self.send_response(200 if text is not None else 404)
        self.send_header("content-type", "text/javascript" if self.path.endswith(".js") else "text/html")
        self.send_header("content-security-policy", "default-src 'self'; img-src *")
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: the pages are those above."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    with browser.new_context(base_url=site) as context:
        context.set_default_timeout(WAIT_MILLISECONDS_MAX)
        yield context.new_page()


@pytest.fixture
def watch(page: Page, site: str) -> PageWatch:
    # The browser asks for the icon of a site without being asked to.
    watch = PageWatch(page.context, origin=origin_of(site))
    watch.expect_fault("favicon")
    return watch


def test_a_page_without_faults_has_none(page: Page, watch: PageWatch) -> None:
    page.goto("/good", wait_until="networkidle")
    assert watch.faults == []


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/exception", "broken script"),
        ("/console", "broken rule"),
        ("/inline", "Content security policy: style-src-attr refuses inline"),
        ("/missing", "status of 404"),
        ("/elsewhere", "http://elsewhere.example/pixel.png is not on the server"),
    ],
)
def test_a_fault_of_a_page_is_noticed(page: Page, watch: PageWatch, path: str, fault: str) -> None:
    page.goto(path, wait_until="networkidle")
    # The report of a violation comes behind the page.
    wait_until(page, lambda: any(fault in seen for seen in watch.faults))
    assert [seen for seen in watch.faults if fault in seen] != []


def test_a_fault_that_the_test_expects_is_accepted(page: Page, watch: PageWatch) -> None:
    watch.expect_fault("status of 404")
    page.goto("/missing", wait_until="networkidle")
    assert watch.faults == []


def test_a_second_tab_is_watched_too(page: Page, watch: PageWatch) -> None:
    page.context.new_page().goto("/console", wait_until="networkidle")
    wait_until(page, lambda: bool(watch.faults))
    assert len(watch.faults) == 1
