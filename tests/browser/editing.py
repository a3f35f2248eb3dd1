"""Texts in the portal's code editor, as a person writes and reads them."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


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
