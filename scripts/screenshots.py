"""Take the pictures of the portal in docs/pictures, with a real browser on a server of its own.

`make screenshots` runs it. The server keeps its data in memory, and the demonstration drives its load meanwhile.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from azure.cosmos import CosmosClient, PartitionKey
from playwright.sync_api import Browser, Page, expect, sync_playwright

from asterism.testing import Server

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures"
DEMO: Final = "asterism-demo"
ACCOUNT: Final = "asterism"
WAIT_MILLISECONDS_MAX: Final = 60_000
# Long enough for the heat map to have a past.
LOAD_SECONDS: Final = 90
QUERY: Final = """SELECT c.deviceId, c.at, c.temperatureCelsius, c.humidityPercent
FROM c
WHERE c.temperatureCelsius > 20
ORDER BY c.temperatureCelsius DESC"""


@dataclass(frozen=True)
class Picture:
    name: str
    path: str
    # A text that stands on the page when it is ready.
    ready: str
    width: int = 1280
    height: int = 900
    theme: str = "light"
    is_full: bool = False
    # A button to press first, and the text that then stands on the page.
    press: str = ""
    pressed: str = ""


def _page(container: str, tab: str = "") -> str:
    return f"/c/{ACCOUNT}/{DEMO}/{container}{tab}"


PICTURES: Final = (
    Picture(
        "portal-compare.png",
        f"/compare?left={ACCOUNT}/{DEMO}/telemetry-by-date&right={ACCOUNT}/{DEMO}/telemetry-by-device",
        "telemetry-by-device",
        is_full=True,
    ),
    Picture("portal-home.png", "/", "telemetry-by-date"),
    Picture("portal-partitions.png", _page("telemetry-by-date"), "Use of throughput", is_full=True),
    Picture(
        "portal-query.png",
        _page("telemetry-by-device", f"/items?{urlencode({'query': QUERY})}"),
        "Query",
        theme="dark",
        press="Run",
        pressed="Download CSV",
    ),
    Picture("portal-phone.png", _page("telemetry-by-date"), "Use of throughput", width=390, height=844),
)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    program = shutil.which("chromium")
    if program is None:
        sys.exit("The pictures need Chromium; run: sudo apt-get install chromium")
    with Server(options=["--portal-open"], portal=True) as server, _demonstration(server):
        _add_shop(server)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, headless=True, args=["--no-sandbox"])
            for picture in PICTURES:
                _take(browser, server, picture)
            browser.close()


@contextmanager
def _demonstration(server: Server) -> Iterator[None]:
    """Run the demonstration, from the moment when it has most of its past."""
    command = [sys.executable, "-m", "asterism", "demo", "--endpoint", server.cosmos_endpoint, "--key", server.key]
    process = subprocess.Popen([*command, "--seconds", str(2 * LOAD_SECONDS)], stdout=subprocess.DEVNULL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(LOAD_SECONDS)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _add_shop(server: Server) -> None:
    with CosmosClient(server.cosmos_endpoint, server.key) as client:
        shop = client.create_database_if_not_exists("shop")
        orders = shop.create_container_if_not_exists("orders", PartitionKey("/customer"), offer_throughput=400)
        for number in range(20):
            orders.upsert_item({"id": str(number), "customer": f"customer-{number % 5}", "total": 1.5 * number})


def _take(browser: Browser, server: Server, picture: Picture) -> None:
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.theme == "dark" else "light",
        locale="en-US",
    )
    page = context.new_page()
    page.goto(f"{server.portal_url.rstrip('/')}{picture.path}")
    expect(page.get_by_text(picture.ready).first).to_be_visible(timeout=WAIT_MILLISECONDS_MAX)
    if picture.press:
        page.get_by_role("button", name=picture.press, exact=True).click()
        expect(page.get_by_text(picture.pressed).first).to_be_visible(timeout=WAIT_MILLISECONDS_MAX)
    _settle(page)
    page.screenshot(path=FOLDER / picture.name, full_page=picture.is_full)
    context.close()


def _settle(page: Page) -> None:
    """Wait until the page has drawn what it polled for."""
    page.wait_for_timeout(4_000)


if __name__ == "__main__":
    main()
