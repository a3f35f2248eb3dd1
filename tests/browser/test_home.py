"""The first page: what is stored, how to connect, and the dialogs that create and delete."""

from __future__ import annotations

import uuid

import pytest
from azure.cosmos import CosmosClient
from playwright.sync_api import Page, expect

from tests.browser.holding import HeldRequests
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in


def new_name(kind: str) -> str:
    return f"{kind}{uuid.uuid4().hex[:12]}"


def test_a_container_is_created_with_its_consequences_shown_first(page: Page, portal: PortalServer) -> None:
    database = new_name("shop")
    sign_in(page)
    page.get_by_role("button", name="New container").click()
    dialog = page.get_by_role("dialog", name="New container")
    dialog.get_by_label("Database").fill(database)
    dialog.get_by_label("Name").fill("orders")
    dialog.get_by_label("Partition key").fill("/customer")
    dialog.get_by_label("RU/s").fill("18000")
    expect(dialog.get_by_text("3 physical partitions, 6,000 RU/s each.")).to_be_visible()
    dialog.get_by_role("button", name="Create container").click()
    row = page.get_by_role("row").filter(has_text=database)
    expect(row).to_contain_text("/customer")
    expect(row).to_contain_text("18,000")
    with portal.server.client() as client:
        container = client.get_database_client(database).get_container_client("orders")
        assert container.get_throughput().offer_throughput == 18_000
    row.get_by_role("link", name="orders").click()
    expect(page.get_by_role("link", name="Partitions")).to_have_attribute("aria-current", "page")


def test_consequences_are_those_of_the_number_that_was_typed_last(page: Page) -> None:
    sign_in(page)
    page.get_by_role("button", name="New container").click()
    dialog = page.get_by_role("dialog", name="New container")
    expect(dialog.get_by_text("1 physical partition, 400 RU/s each.")).to_be_visible()
    held = HeldRequests(page, "**/plan/create?*")
    dialog.get_by_label("RU/s").fill("12000")
    held.wait_for_one()
    held.pass_others()
    dialog.get_by_label("RU/s").fill("18000")
    expect(dialog.get_by_text("3 physical partitions, 6,000 RU/s each.")).to_be_visible()
    with page.expect_response(lambda response: "throughput=12000" in response.url) as late:
        held.let_go()
    late.value.finished()
    expect(dialog.get_by_text("3 physical partitions, 6,000 RU/s each.")).to_be_visible()


def test_a_refusal_of_the_service_stands_in_the_dialog(page: Page, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    sign_in(page)
    page.get_by_role("button", name="New table").click()
    dialog = page.get_by_role("dialog", name="New table")
    dialog.get_by_label("Name").fill("no-such-name!")
    dialog.get_by_role("button", name="Create table").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_database_is_deleted_only_after_its_name_is_typed(page: Page, portal: PortalServer) -> None:
    name = new_name("old")
    with portal.server.client() as client:
        client.create_database(name)
        sign_in(page)
        page.get_by_role("button", name=f"Delete database {name}").click()
        dialog = page.get_by_role("dialog")
        confirm = dialog.get_by_role("button", name="Delete database")
        expect(confirm).to_be_disabled()
        dialog.get_by_role("textbox").fill(name[:-1])
        expect(confirm).to_be_disabled()
        dialog.get_by_role("textbox").fill(name)
        confirm.click()
        expect(page.get_by_role("button", name=f"Delete database {name}")).to_have_count(0)
        assert name not in [database["id"] for database in client.list_databases()]


def test_snippets_are_shown_for_every_official_client_and_hide_the_key(page: Page, portal: PortalServer) -> None:
    sign_in(page)
    snippets = page.get_by_role("tablist", name="Snippets for Cosmos DB for NoSQL")
    for language in ("Python", "JavaScript", "C#", "Java", "Go"):
        snippets.get_by_role("tab", name=language, exact=True).click()
        panel = page.get_by_role("tabpanel", name=language, exact=True).first
        expect(panel.get_by_label(f"{language} snippet")).to_contain_text("********")
    shown = page.get_by_role("tabpanel", name="Go", exact=True).first
    shown.get_by_role("button", name="Show the key").click()
    expect(shown.get_by_label("Go snippet")).to_contain_text(portal.key)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_narrow_and_wide_windows(page: Page, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    sign_in(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Switch between light and dark").click()
    other = {"light": "dark", "dark": "light"}[scheme]
    expect(page.locator("html")).to_have_attribute("data-theme", other)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", other)


def test_thousands_of_containers_are_found_by_name(page: Page, portal: PortalServer) -> None:
    prefix = new_name("many")
    with CosmosClient(portal.server.endpoint, portal.key) as client:
        database = client.create_database(prefix, offer_throughput=400)
        for number in range(120):
            database.create_container(f"c{number:03}", {"paths": ["/pk"], "kind": "Hash"})  # type: ignore[arg-type]
    sign_in(page)
    page.get_by_label("Find containers and tables by name").fill(prefix)
    page.keyboard.press("Enter")
    expect(page.locator("#total")).to_contain_text("120 containers")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("link", name="c119")).to_be_visible()
    expect(page.get_by_role("link", name="c001")).to_have_count(0)
