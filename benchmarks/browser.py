"""Chromium for the cases about the portal; needs the packages of the tests, and Debian's chromium."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.processes import NotMeasured

if TYPE_CHECKING:
    from playwright.async_api import Page

_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# From the start of the navigation until everything that the page needs has arrived and its scripts have begun.
_LOADED_MS = "performance.getEntriesByType('navigation')[0].loadEventEnd"


@asynccontextmanager
async def open_page() -> AsyncIterator[Page]:
    try:
        from playwright.async_api import async_playwright
    except ImportError:
        raise NotMeasured("playwright is missing; `make test` installs it") from None
    program = shutil.which("chromium")
    if program is None:
        raise NotMeasured("chromium is missing; `make test` installs it")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, headless=True, args=[*_OPTIONS])
        try:
            yield await browser.new_page(viewport={"width": 1280, "height": 900})
        finally:
            await browser.close()


async def load_milliseconds(page: Page, url: str) -> float:
    """Open a page; return the milliseconds until it was loaded, by the browser's own clock."""
    await page.goto(url)
    await page.wait_for_function(f"{_LOADED_MS} > 0")
    return float(await page.evaluate(_LOADED_MS))
