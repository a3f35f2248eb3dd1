"""Two containers side by side: the picture of a bad and of a good partition key."""

from __future__ import annotations

from azure.cosmos import PartitionKey
from playwright.sync_api import Page, expect

from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in

DATABASE = "compared"
ADDRESS = f"/compare?left=asterism/{DATABASE}/by-date&right=asterism/{DATABASE}/by-device"


def fill_both(portal: PortalServer) -> None:
    database = portal.server.client().create_database(DATABASE)
    by_date = database.create_container("by-date", PartitionKey("/date"), offer_throughput=24_000)
    by_device = database.create_container("by-device", PartitionKey("/device"), offer_throughput=24_000)
    for number in range(300):
        item = {"id": str(number), "date": "2026-11-18", "device": f"device-{number % 150}", "text": "x" * 200}
        by_date.create_item(item)
        by_device.create_item(item)


def test_both_sides_are_shown_live_until_a_side_is_deleted(page: Page, portal: PortalServer, watch: PageWatch) -> None:
    watch.expect_fault("status of 404")
    fill_both(portal)
    sign_in(page, path=ADDRESS)
    bad = page.get_by_role("region", name=f"{DATABASE} / by-date")
    good = page.get_by_role("region", name=f"{DATABASE} / by-device")
    expect(bad.get_by_role("region", name="Verdict")).to_contain_text("date=2026-11-18")
    expect(bad.get_by_role("region", name="Verdict")).to_contain_text("/date")
    expect(good.get_by_role("region", name="Verdict")).to_contain_text("evenly")
    for side in (bad, good):
        expect(side.get_by_role("option")).to_have_count(4)
        expect(side.get_by_role("img", name="Stored bytes")).to_be_visible()
        expect(side.get_by_role("img", name="Heat map")).to_be_visible()
    # The same colors mean the same on both sides.
    left, right = page.locator("[data-side] .legend").all_inner_texts()
    assert left == right

    page.get_by_role("button", name="15 minutes").click()
    expect(bad.get_by_text("429s in 15 minutes")).to_be_visible()
    expect(good.get_by_text("429s in 15 minutes")).to_be_visible()

    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    portal.server.client().get_database_client(DATABASE).delete_container("by-date")
    expect(bad).to_contain_text("This container no longer exists.")
    expect(good.get_by_role("option")).to_have_count(4)


def test_a_comparison_without_names_says_how_to_name_them(page: Page, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    sign_in(page)
    page.goto("/compare?left=asterism&right=")
    expect(page.get_by_role("alert")).to_contain_text("left=ACCOUNT/DATABASE/CONTAINER")
