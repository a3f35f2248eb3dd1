"""The page of a container's partitions, as people use it to understand their partition key."""

from __future__ import annotations

import re

import pytest
from azure.cosmos import ContainerProxy, PartitionKey
from azure.data.tables import TableServiceClient
from playwright.sync_api import Locator, Page, expect

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, derive_readonly_key
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in
from tests.browser.toasts import expect_toast

DATABASE = "shop"
ITEMS = 240


def make_container(portal: PortalServer, name: str, *, dates: int, throughput: int = 400) -> ContainerProxy:
    """Make a container of orders, the key of which is their date."""
    database = portal.server.client().create_database_if_not_exists(DATABASE)
    container = database.create_container(name, PartitionKey("/date"), offer_throughput=throughput)
    for number in range(ITEMS):
        container.create_item({"id": str(number), "date": f"day-{number % dates}", "text": "x" * 200})
    return container


def open_partitions(page: Page, name: str) -> None:
    sign_in(page, path=f"/c/asterism/{DATABASE}/{name}")
    expect(segments(page).first).to_be_visible()


def segments(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Physical partitions").get_by_role("option")


def test_a_skewed_container_is_judged_and_its_key_is_named(page: Page, portal: PortalServer) -> None:
    make_container(portal, "skewed", dates=1)
    open_partitions(page, "skewed")
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("date=day-0")
    expect(verdict).to_contain_text(str(ITEMS))
    largest = page.get_by_role("table", name="Largest keys")
    link = largest.get_by_role("link", name="day-0")
    expect(link).to_have_attribute("href", re.compile(r"/c/asterism/shop/skewed/items\?key=%5B%22day-0%22%5D$"))


def test_a_split_is_started_and_watched_until_two_partitions_are_shown(page: Page, portal: PortalServer) -> None:
    make_container(portal, "divided", dates=60)
    open_partitions(page, "divided")
    expect(segments(page)).to_have_count(1)
    segments(page).first.click()
    page.get_by_role("button", name="Split", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Partitions: 1 now, 2 after.")
    expect(dialog).to_contain_text("RU/s per partition: 400 now, 200 after.")
    dialog.get_by_role("button", name="Split").click()
    expect(segments(page)).to_have_count(2)
    expect_toast(page, "Split of 0 into 1 and 2")
    expect(page.get_by_role("img", name=re.compile("1 changes of the partitions"))).to_be_visible()
    # The facts stay open with the first of the two that came of the selected partition.
    expect(page.get_by_role("region", name="Partition 1")).to_be_visible()

    page.get_by_role("button", name="Merge with 2").click()
    expect(page.get_by_role("dialog")).to_contain_text("Partitions: 2 now, 1 after.")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(segments(page)).to_have_count(2)


def test_a_split_that_is_refused_says_why(page: Page, portal: PortalServer) -> None:
    make_container(portal, "whole", dates=1)
    open_partitions(page, "whole")
    segments(page).first.click()
    page.get_by_role("button", name="Split", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="a logical partition cannot be divided")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_keyboard_reaches_partitions_and_cells(page: Page, portal: PortalServer) -> None:
    make_container(portal, "wide", dates=60, throughput=24_000)
    open_partitions(page, "wide")
    expect(segments(page)).to_have_count(4)
    segments(page).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(segments(page).nth(2)).to_be_focused()
    expect(segments(page).nth(2)).to_have_attribute("aria-selected", "true")
    facts = page.get_by_role("region", name="Partition 2")
    expect(facts).to_contain_text("25 % of the line")
    page.get_by_role("button", name="Close the facts").press("Escape")
    expect(facts).to_be_hidden()

    page.get_by_role("img", name="Heat map").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text(re.compile(r"Partition 0 at .* of its 6,000 RU/s"))).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_text(re.compile(r"Partition 1 at .* of its 6,000 RU/s"))).to_be_visible()


def test_figures_are_there_as_a_table_too(page: Page, portal: PortalServer) -> None:
    make_container(portal, "tabled", dates=60)
    open_partitions(page, "tabled")
    page.get_by_text("All physical partitions as a table").click()
    row = page.get_by_role("table", name="Physical partitions").get_by_role("row").nth(1)
    expect(row).to_contain_text("online")
    expect(row).to_contain_text(str(ITEMS))


def test_a_container_that_is_deleted_while_it_is_shown_is_missed(
    page: Page, portal: PortalServer, watch: PageWatch
) -> None:
    watch.expect_fault("status of 404")
    make_container(portal, "doomed", dates=3)
    open_partitions(page, "doomed")
    portal.server.client().get_database_client(DATABASE).delete_container("doomed")
    expect(page.get_by_text("This container no longer exists.")).to_be_visible()
    page.get_by_role("link", name="Back to the first page").click()
    expect(page.get_by_role("heading", name="Data")).to_be_visible()


def test_a_split_made_elsewhere_is_shown(page: Page, portal: PortalServer) -> None:
    make_container(portal, "split-elsewhere", dates=60)
    open_partitions(page, "split-elsewhere")
    other = page.context.new_page()
    other.goto(f"/c/asterism/{DATABASE}/split-elsewhere")
    segments(other).first.click()
    other.get_by_role("button", name="Split", exact=True).click()
    other.get_by_role("dialog").get_by_role("button", name="Split").click()
    expect(segments(page)).to_have_count(2)


def test_a_key_that_looks_like_markup_stays_text(page: Page, portal: PortalServer) -> None:
    container = make_container(portal, "marked", dates=1)
    container.create_item({"id": "markup", "date": "<script>alert(1)</script>"})
    open_partitions(page, "marked")
    largest = page.get_by_role("table", name="Largest keys")
    expect(largest.get_by_role("link", name="<script>alert(1)</script>")).to_be_visible()


def test_a_read_only_key_sees_facts_and_no_actions(page: Page, portal: PortalServer) -> None:
    make_container(portal, "seen", dates=60)
    sign_in(
        page,
        key=derive_readonly_key(portal.key),
        path=f"/c/asterism/{DATABASE}/seen",
    )
    segments(page).first.click()
    expect(page.get_by_role("region", name="Partition 0")).to_contain_text("100 % of the line")
    expect(page.get_by_role("button", name="Split", exact=True)).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_dark_theme_has_no_faults_and_nothing_is_too_wide(page: Page, portal: PortalServer, width: int) -> None:
    make_container(portal, f"dark-{width}", dates=60, throughput=24_000)
    page.set_viewport_size({"width": width, "height": 844})
    open_partitions(page, f"dark-{width}")
    page.get_by_role("button", name="Switch between light and dark").click()
    page.get_by_role("button", name="1 hour").click()
    expect(page.get_by_role("button", name="1 hour")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("429s in 1 hour")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_table_shows_its_ordered_line(page: Page, portal: PortalServer) -> None:
    endpoint = f"http://127.0.0.1:{portal.server.ports['table']}/{DEVELOPMENT_ACCOUNT}"
    text = f"DefaultEndpointsProtocol=http;AccountName={DEVELOPMENT_ACCOUNT};AccountKey={DEVELOPMENT_KEY};"
    table = TableServiceClient.from_connection_string(f"{text}TableEndpoint={endpoint}").create_table("rooms")
    for number in range(120):
        table.create_entity({"PartitionKey": f"room-{number % 40:02}", "RowKey": str(number)})
    sign_in(page, path=f"/t/{DEVELOPMENT_ACCOUNT}/rooms")
    expect(segments(page)).to_have_count(1)
    expect(page.get_by_text("Text has no scale")).to_be_visible()
    link = page.get_by_role("table", name="Largest keys").get_by_role("link").first
    expect(link).to_have_attribute("href", re.compile(r"/entities\?key=%5B%22room-\d\d%22%5D$"))
