"""Containers of blobs and queues in the portal: in the list of data, and with their ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient
from playwright.sync_api import Page, expect

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from tests.browser.portal_server import DOORS, PortalServer, running_portal
from tests.browser.signing_in import sign_in


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    with running_portal(doors=(*DOORS, "blob", "queue")) as running:
        blobs = BlobServiceClient(_endpoint(running, "blob"), credential=DEVELOPMENT_KEY)
        photos = blobs.create_container("photos")
        for number in range(20):
            photos.upload_blob(f"2026/{number:02}.jpg", bytes(1000))
        queues = QueueServiceClient(_endpoint(running, "queue"), credential=DEVELOPMENT_KEY)
        queues.create_queue("jobs").send_message("first")
        yield running


def _endpoint(portal: PortalServer, service: str) -> str:
    return f"http://127.0.0.1:{portal.server.ports[service]}/{DEVELOPMENT_ACCOUNT}"


def test_the_list_leads_to_the_ranges_of_a_container_of_blobs(page: Page) -> None:
    sign_in(page, path="/")
    row = page.get_by_role("row").filter(has_text="container of blobs")
    expect(row).to_contain_text("/name")
    row.get_by_role("link", name="photos").click()
    expect(page).to_have_url(re.compile(f"/b/{DEVELOPMENT_ACCOUNT}/photos$"))
    expect(page.get_by_role("table", name="Largest keys")).to_contain_text("2026/")
    expect(page.get_by_role("table", name="Largest keys").get_by_role("link")).to_have_count(0)
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()
    expect(page.get_by_role("navigation", name="container of blobs photos").get_by_role("link")).to_have_count(1)


def test_the_list_leads_to_the_ranges_of_the_queues_of_an_account(page: Page) -> None:
    sign_in(page, path="/")
    page.get_by_role("row").filter(has_text="/queue").get_by_role("link", name="queues").click()
    expect(page).to_have_url(re.compile(f"/q/{DEVELOPMENT_ACCOUNT}$"))
    expect(page.get_by_role("table", name="Largest keys")).to_contain_text("jobs")
    expect(page.get_by_role("region", name="Verdict")).to_be_visible()


@pytest.mark.parametrize("path", ["/b/devstoreaccount1/nosuch", "/q/nosuch"])
def test_a_page_of_something_that_does_not_exist_says_so(page: Page, path: str) -> None:
    sign_in(page, path="/")
    answer = page.request.get(path)
    assert answer.status == 404
    assert "There is no" in answer.text()
