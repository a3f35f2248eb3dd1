"""Faults of a page that a person may not see: errors in its scripts, and requests to other hosts."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

# Addresses that load nothing from a host.
_OWN_SCHEMES = ("data", "blob", "about")
# The browser logs violations of the content security policy too, but not all of them as errors.
_REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (violation) => {
  console.error(`Content security policy: ${violation.violatedDirective} refuses ${violation.blockedURI}`);
});
"""


class PageWatch:
    """Collects the faults of all pages in a context of the browser."""

    def __init__(self, context: BrowserContext, *, origin: str) -> None:
        """`origin`: the only scheme, host and port that a page may request anything from."""
        self._origins = {origin}
        self._expected: list[re.Pattern[str]] = []
        self._seen: list[str] = []
        context.add_init_script(_REPORT_VIOLATIONS)
        context.on("console", self._take_console_message)
        context.on("weberror", self._take_uncaught_exception)
        context.on("request", self._take_request)

    def expect_fault(self, pattern: str) -> None:
        """Accept faults that contain a match of this regular expression, such as `status of 412`."""
        self._expected.append(re.compile(pattern))

    def allow_origin(self, url: str) -> None:
        """Accept requests to the host and port of another server that the test itself has started."""
        self._origins.add(origin_of(url))

    @property
    def faults(self) -> list[str]:
        """The faults so far that the test did not expect; the browser logs every answer of 400 and above as one."""
        return [fault for fault in self._seen if not any(pattern.search(fault) for pattern in self._expected)]

    def _take_console_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._seen.append(f"console: {message.text} ({message.location['url']}:{message.location['lineNumber']})")

    def _take_uncaught_exception(self, exception: WebError) -> None:
        self._seen.append(f"uncaught: {exception.error}")

    def _take_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in _OWN_SCHEMES and origin_of(request.url) not in self._origins:
            self._seen.append(f"request: {request.url} is not on the server")


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
