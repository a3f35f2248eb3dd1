"""The way into the portal, as a person takes it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY


def sign_in(page: Page, *, key: str = WELL_KNOWN_EMULATOR_KEY, path: str = "/") -> None:
    """Open a page of the portal, give the key, and wait until the portal shows the page."""
    page.goto(path)
    page.get_by_label("Account key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
