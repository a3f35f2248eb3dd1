"""The page of a hub: partitions as they grow, events, and the lag of consumer groups."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from azure.storage.blob import BlobServiceClient
from playwright.sync_api import Page, expect

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import DOORS, PortalServer, running_portal
from tests.browser.signing_in import sign_in

HOST = "asterism.servicebus.windows.net"


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    with running_portal("--no-throttle", doors=(*DOORS, "blob", "amqp")) as running:
        yield running


@pytest.fixture
def client(portal: PortalServer) -> AdminClient:
    return AdminClient(portal.server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=True)


@pytest.fixture
def hub(client: AdminClient) -> str:
    """A hub with three events in partition 1 of 2."""
    name = f"hub-{uuid.uuid4()}"
    client.post("messaging/create", {"namespace": "asterism", "entity": name, "kind": "hub", "partitions": 2})
    send(client, name, "first", '{"t": 2}', "third")
    return name


def send(client: AdminClient, hub: str, *bodies: str) -> None:
    events = [{"body": body, "properties": {"sensor": "s7"}} for body in bodies]
    client.post("messaging/events", {"namespace": "asterism", "hub": hub, "partition": 1, "events": events})


def test_the_list_leads_to_the_partitions_of_a_hub_as_they_grow(page: Page, hub: str, client: AdminClient) -> None:
    sign_in(page, path=f"/?search={hub}")
    page.get_by_role("link", name=hub).click()
    rows = page.get_by_role("table", name="Partitions").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("none yet")
    expect(rows.nth(2)).to_contain_text("up")
    expect(page.locator("#total-events")).to_have_text("3")
    send(client, hub, "fourth")
    expect(page.locator("#total-events")).to_have_text("4")


def test_events_are_shown_and_opened(page: Page, hub: str) -> None:
    sign_in(page, path=f"/h/asterism/{hub}")
    page.get_by_label("Partition", exact=True).select_option("1")
    page.get_by_role("button", name="Show events").click()
    table = page.get_by_role("table", name="Events")
    expect(table).to_contain_text("sensor=s7")
    table.get_by_role("button", name="Open event 1").click()
    expect(page.get_by_role("dialog").get_by_label("Body")).to_contain_text('"t": 2')
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_label("From number").fill("2")
    page.get_by_role("button", name="Show events").click()
    expect(table.get_by_role("row")).to_have_count(2)


def test_the_lag_of_a_group_is_shown_by_its_checkpoints(page: Page, hub: str, portal: PortalServer) -> None:
    endpoint = f"http://127.0.0.1:{portal.server.ports['blob']}/{DEVELOPMENT_ACCOUNT}"
    container = f"checkpoints-{uuid.uuid4()}"
    with BlobServiceClient(endpoint, credential=DEVELOPMENT_KEY) as blobs:
        metadata = {"sequencenumber": "0", "offset": "0"}
        made = blobs.create_container(container)
        made.upload_blob(f"{HOST}/{hub}/$default/checkpoint/1", b"", metadata=metadata)
    sign_in(page, path=f"/h/asterism/{hub}")
    page.get_by_label("Container of checkpoints").fill(container)
    page.get_by_role("button", name="Show lag").click()
    expect(page.get_by_role("region", name="Consumer group $Default")).to_contain_text("2 events behind")
    page.reload()
    expect(page.get_by_role("table", name="Consumer group $Default")).to_contain_text("2")


def test_a_container_that_does_not_exist_is_said_not_to(page: Page, hub: str, watch: PageWatch) -> None:
    watch.expect_fault("status of 404")
    sign_in(page, path=f"/h/asterism/{hub}")
    page.get_by_label("Container of checkpoints").fill("nosuch")
    page.get_by_role("button", name="Show lag").click()
    expect(page.get_by_role("alert").filter(has_text="There is no container of blobs")).to_be_visible()


def test_the_page_fits_a_phone(page: Page, hub: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, path=f"/h/asterism/{hub}")
    expect(page.get_by_role("table", name="Partitions")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
