"""Requests of a page that a test keeps on their way, so that others overtake them for certain."""

from __future__ import annotations

from playwright.sync_api import Page, Route

from tests.browser.editing import wait_until


class HeldRequests:
    """Holds each request to an address from now on, until `let_go`."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page = page
        self._routes: list[Route] = []
        self._is_holding = True
        page.route(pattern, self._take)

    def _take(self, route: Route) -> None:
        if self._is_holding:
            self._routes.append(route)
        else:
            route.continue_()

    def wait_for_one(self) -> None:
        wait_until(self._page, lambda: bool(self._routes))
        assert self._routes

    def pass_others(self) -> None:
        """Hold no further requests."""
        self._is_holding = False

    def let_go(self) -> None:
        self.pass_others()
        for route in self._routes:
            route.continue_()
