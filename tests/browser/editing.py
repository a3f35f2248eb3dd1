"""Texts in the portal's code editor, as a person writes and reads them."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Locator, Page

from tests.support.server import WAIT_SECONDS_MAX


def editor(page: Page, label: str) -> Locator:
    return page.get_by_role("textbox", name=label, exact=True)


def write(page: Page, label: str, text: str) -> None:
    """Replace the text of an editor."""
    editor(page, label).focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def replace_word(page: Page, label: str, old: str, new: str) -> None:
    """Replace a word that stands alone between double quotes, with colors: not in a large text, which has none."""
    editor(page, label).get_by_text(f'"{old}"', exact=True).dblclick()
    page.keyboard.insert_text(new)


def wait_until(page: Page, condition: Callable[[], bool]) -> None:
    """Return when a condition outside the page holds; the last check is the caller's own assertion."""
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while not condition() and time.monotonic() < give_up_at:
        page.wait_for_timeout(100)
