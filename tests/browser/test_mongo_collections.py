"""Collections of MongoDB in the portal, as a person sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bson import ObjectId
from playwright.sync_api import Page, expect
from pymongo import MongoClient

from tests.browser.portal_server import DOORS, PortalServer, running_portal
from tests.browser.signing_in import sign_in


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    with running_portal("--no-throttle", doors=(*DOORS, "mongo")) as running:
        address = f"mongodb://127.0.0.1:{running.server.ports['mongo']}/?replicaSet=globaldb"
        with MongoClient[dict[str, Any]](address, serverSelectionTimeoutMS=90_000) as client:
            shop = client["shop"]
            shop.users.insert_many([{"_id": f"user-{number}", "n": number} for number in range(3)])
            shop.users.create_index([("n", 1), ("mail", -1)], name="by_n", sparse=True)
            client.admin.command("shardCollection", "shop.orders", key={"city": "hashed"})
            shop.orders.insert_one({"_id": ObjectId("0" * 24), "city": "Oslo", "total": 5})
        yield running


def test_the_first_page_lists_collections_and_shows_how_to_connect(page: Page, portal: PortalServer) -> None:
    sign_in(page)
    row = page.locator("#collections tr", has_text="users")
    expect(row).to_contain_text("collection")
    expect(row).to_contain_text("shared")
    expect(page.locator("#collections tr", has_text="orders")).to_contain_text("/city")
    expect(page.get_by_role("button", name="Delete database shop")).to_have_count(0)
    expect(page.get_by_role("heading", name="MongoDB")).to_be_visible()
    panel = page.get_by_label("Python snippet").filter(has_text="pymongo")
    expect(panel).to_contain_text(f"127.0.0.1:{portal.server.ports['mongo']}")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Partitions", exact=True)).to_be_visible()


def test_documents_are_browsed_and_queried_and_not_edited(page: Page) -> None:
    sign_in(page, path="/c/asterism/shop/users/items")
    page.get_by_role("button", name="user-1").click()
    expect(page.get_by_role("textbox", name="Item as JSON")).to_contain_text('"_id": "user-1"')
    expect(page.get_by_role("button", name="New item")).to_have_count(0)
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    page.get_by_role("tab", name="Query").click()
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#results-state")).to_contain_text("3")


def test_a_sharded_collection_is_browsed_by_its_key(page: Page) -> None:
    sign_in(page, path='/c/asterism/shop/orders/items?key=["Oslo"]')
    page.get_by_role("button", name="0" * 24).click()
    expect(page.get_by_role("textbox", name="Item as JSON")).to_contain_text('"total": 5')


def test_indexes_and_the_shard_key_are_shown(page: Page) -> None:
    sign_in(page, path="/c/asterism/shop/users")
    page.get_by_role("link", name="Indexes").click()
    row = page.locator("#indexes tr", has_text="by_n")
    expect(row).to_contain_text('{"n": 1, "mail": -1}')
    expect(row).to_contain_text('{"sparse": true}')
    expect(row).to_contain_text("ready")
    expect(page.locator("#facts")).to_contain_text("it shares the partitions of its database")
    page.goto("/c/asterism/shop/orders/settings")
    expect(page.locator("#facts")).to_contain_text('{"city": "hashed"}')
