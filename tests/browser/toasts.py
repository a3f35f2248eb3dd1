"""Messages that the portal shows in passing: each is gone after seconds, however late a test looks."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.editing import wait_until

# Keeps the text of every message of a page, until the page is left.
KEEP_TOASTS = """
globalThis.toastsOfTest = [];
addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("toasts");
  const keep = (changes) =>
    toastsOfTest.push(...changes.flatMap(({ addedNodes }) => [...addedNodes].map((added) => added.textContent)));
  if (place) new MutationObserver(keep).observe(place, { childList: true });
});
"""


def expect_toast(page: Page, text: str) -> None:
    """Wait until the page has said this in passing, now or earlier."""

    def said() -> list[str]:
        kept: list[str] = page.evaluate("toastsOfTest")
        return [message for message in kept if text in message]

    wait_until(page, lambda: bool(said()))
    assert said() != []
