"""The change feed on its page: items of the official client appear while it is open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from playwright.sync_api import Page, expect

from tests.browser.holding import HeldRequests
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in
from tests.clients.table_server import new_name

LARGE_NUMBER = 12345678901234567890


@pytest.fixture
def database(portal: PortalServer) -> Iterator[DatabaseProxy]:
    with portal.server.client() as client:
        yield client.create_database(new_name("feed"))


@pytest.fixture
def container(database: DatabaseProxy) -> ContainerProxy:
    return database.create_container("orders", PartitionKey("/customer"), offer_throughput=400)


def path_of(database: DatabaseProxy, page: str = "feed") -> str:
    return f"/c/asterism/{database.id}/orders/{page}"


def open_feed(page: Page, database: DatabaseProxy) -> None:
    """Open the page and wait until its first read has found the present end of the feed."""
    with page.expect_response(lambda response: response.url.endswith("/orders/docs") and response.status == 304):
        sign_in(page, path=path_of(database))


def test_an_item_that_the_official_client_writes_appears_and_is_opened(
    page: Page, database: DatabaseProxy, container: ContainerProxy
) -> None:
    container.create_item({"id": "before", "customer": "c"})
    open_feed(page, database)
    container.create_item({"id": "<script>alert(1)", "customer": "c-1", "number": LARGE_NUMBER})
    row = page.get_by_role("row").filter(has_text="<script>alert(1)")
    expect(row).to_contain_text("c-1")
    row.get_by_role("button").click()
    expect(page.get_by_label("Change of <script>alert(1)")).to_contain_text(f'"number": {LARGE_NUMBER}')
    expect(page.get_by_role("button", name="before")).to_have_count(0)
    page.get_by_label("Begin").select_option("From the beginning")
    expect(page.get_by_role("button", name="before")).to_be_visible()


def test_changes_wait_while_the_feed_is_paused_and_are_filtered_by_text(
    page: Page, database: DatabaseProxy, container: ContainerProxy
) -> None:
    open_feed(page, database)
    page.get_by_role("button", name="Pause").click()
    container.create_item({"id": "one", "customer": "c", "color": "red"})
    container.create_item({"id": "two", "customer": "c", "color": "blue"})
    expect(page.get_by_text("Paused: changes wait in the feed")).to_be_visible()
    expect(page.get_by_text("0 changes seen")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("2 changes seen")).to_be_visible()
    page.get_by_label("Show changes with this text").fill("BLUE")
    expect(page.get_by_role("button", name="two")).to_be_visible()
    expect(page.get_by_role("button", name="one")).to_have_count(0)
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("Nothing has changed yet.")).to_be_visible()


def test_changes_of_a_page_that_comes_after_the_pause_wait_too(
    page: Page, database: DatabaseProxy, container: ContainerProxy
) -> None:
    open_feed(page, database)
    held = HeldRequests(page, "**/orders/docs")
    held.wait_for_one()
    container.create_item({"id": "one", "customer": "c"})
    page.get_by_role("button", name="Pause").click()
    with page.expect_response(lambda response: response.url.endswith("/orders/docs")) as late:
        held.let_go()
    assert late.value.status == 200
    late.value.finished()
    expect(page.get_by_text("0 changes seen")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("1 change seen")).to_be_visible()


def test_the_feed_goes_on_over_a_split(page: Page, database: DatabaseProxy, container: ContainerProxy) -> None:
    open_feed(page, database)
    container.replace_throughput(18_000)
    settings = page.context.new_page()
    settings.goto(path_of(database, "settings"))
    expect(settings.get_by_text("2 partitions with 9,000 RU/s each.")).to_be_visible()
    for number in range(8):
        container.create_item({"id": f"after-{number}", "customer": f"c-{number}"})
    page.bring_to_front()
    expect(page.get_by_text("8 changes seen")).to_be_visible()


def test_deletes_appear_with_all_versions(page: Page, database: DatabaseProxy) -> None:
    container = database.create_container(
        "orders", PartitionKey("/customer"), change_feed_policy={"retentionDuration": 10}
    )
    open_feed(page, database)
    # A read in the mode before may still be under way.
    with page.expect_response(
        lambda response: response.request.headers.get("a-im") == "Full-Fidelity Feed" and response.status == 304
    ):
        page.get_by_label("Mode").select_option("All versions and deletes")
    container.create_item({"id": "short", "customer": "c"})
    container.delete_item("short", "c")
    expect(page.get_by_role("row").filter(has_text="create")).to_contain_text("short")
    expect(page.get_by_role("row").filter(has_text="delete")).to_contain_text("short")


def test_a_container_that_is_deleted_ends_the_feed(
    page: Page, database: DatabaseProxy, container: ContainerProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 404")
    open_feed(page, database)
    database.delete_container(container)
    expect(page.get_by_role("heading", name="This container no longer exists.")).to_be_visible()
