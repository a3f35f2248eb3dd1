"""Entities of a table: browsed, filtered, inserted, edited with their types, deleted."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from uuid import UUID

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, TableClient, UpdateMode
from playwright.sync_api import Page, expect

from asterism.access.keys import derive_readonly_key
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in
from tests.browser.toasts import expect_toast
from tests.clients.table_server import TableServer, new_name

LARGE_NUMBER = 9007199254740993
WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.fixture
def table(portal: PortalServer) -> Iterator[TableClient]:
    with TableServer(portal.server).service() as tables:
        yield tables.create_table(new_name("Products"))


def open_table(page: Page, table: TableClient) -> None:
    sign_in(page, path=f"/t/devstoreaccount1/{table.table_name}/entities")
    expect(page.get_by_text("Page 1:")).to_be_visible()


def test_an_entity_keeps_its_types_and_its_odd_keys_through_an_edit(page: Page, table: TableClient) -> None:
    keys = {"PartitionKey": "O'Neill & <script>", "RowKey": "100% ☃ (a,b)='c'"}
    entity = {
        **keys,
        "Name": "Spade",
        "Price": 1.0,
        "Stock": 7,
        "Big": EntityProperty(LARGE_NUMBER, EdmType.INT64),
        "When": WHEN,
        "Code": UUID(int=5),
        "Raw": b"\x00\xff",
        "Sold": True,
    }
    table.create_entity(entity)
    open_table(page, table)
    page.get_by_label("PartitionKey", exact=True).fill("O'Neill & <script>")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("button", name="Open entity").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Value of Big")).to_have_value(str(LARGE_NUMBER))
    expect(dialog.get_by_label("Value of Price")).to_have_value("1.0")
    dialog.get_by_label("Value of Name").fill("Big spade")
    dialog.get_by_role("button", name="Add property").click()
    dialog.get_by_label("Name of the new property").fill("Weight")
    dialog.get_by_label("Type of the new property").select_option("Double")
    dialog.get_by_label("Value of the new property").fill("2")
    dialog.get_by_role("button", name="Save").click()
    expect_toast(page, "Saved.")
    stored = table.get_entity(keys["PartitionKey"], keys["RowKey"])
    assert stored == {**entity, "Name": "Big spade", "Weight": 2.0}
    assert type(stored["Weight"]) is type(stored["Price"]) is float


def test_an_edit_with_a_stale_etag_keeps_the_visitors_text(page: Page, table: TableClient, watch: PageWatch) -> None:
    watch.expect_fault("status of 412")
    table.create_entity({"PartitionKey": "a", "RowKey": "r", "Stock": 1})
    open_table(page, table)
    page.get_by_role("button", name="Open entity a, r").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value of Stock").fill("2")
    table.update_entity({"PartitionKey": "a", "RowKey": "r", "Stock": 30}, mode=UpdateMode.REPLACE)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert").filter(has_text="Somebody else changed the entity")).to_contain_text("30")
    expect(dialog.get_by_label("Value of Stock")).to_have_value("2")
    dialog.get_by_role("button", name="Keep mine").click()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    assert table.get_entity("a", "r")["Stock"] == 2


def test_an_entity_is_inserted_and_deleted(page: Page, table: TableClient, watch: PageWatch) -> None:
    watch.expect_fault("status of (400|409)")
    table.create_entity({"PartitionKey": "a", "RowKey": "taken"})
    open_table(page, table)
    page.get_by_role("button", name="New entity").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("PartitionKey").fill("a")
    dialog.get_by_label("RowKey").fill("taken")
    dialog.get_by_role("button", name="Insert entity").click()
    expect(dialog.get_by_role("alert").filter(has_text="There is an entity with these keys already.")).to_be_visible()
    dialog.get_by_label("RowKey").fill("with/slash")
    dialog.get_by_role("button", name="Insert entity").click()
    expect(dialog.get_by_role("alert").filter(has_text="out of range")).to_be_visible()
    dialog.get_by_label("RowKey").fill("free")
    dialog.get_by_role("button", name="Insert entity").click()
    page.get_by_role("button", name="Open entity a, free").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete …").click()
    page.get_by_role("dialog", name="Delete this entity?").get_by_role("button", name="Delete entity").click()
    expect(page.get_by_role("button", name="Open entity a, free")).to_have_count(0)
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("a", "free")


def test_entities_are_filtered_and_read_page_by_page(page: Page, table: TableClient, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    table.submit_transaction(
        [("create", {"PartitionKey": "a", "RowKey": f"{number:03}", "Number": number}) for number in range(100)]
    )
    table.create_entity({"PartitionKey": "b", "RowKey": "last", "Number": 7})
    open_table(page, table)
    expect(page.get_by_text("Page 1: 100 entities.")).to_be_visible()
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_role("button", name="Open entity b, last")).to_be_visible()
    expect(page.get_by_role("button", name="Next page")).to_be_disabled()
    page.get_by_role("button", name="Previous page").click()
    expect(page.get_by_role("button", name="Open entity a, 000")).to_be_visible()
    page.get_by_label("Filter (OData)").fill("Number eq 7")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Page 1: 2 entities, the last page.")).to_be_visible()
    page.get_by_label("PartitionKey", exact=True).fill("b")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Page 1: 1 entity, the last page.")).to_be_visible()
    page.get_by_label("Filter (OData)").fill("Number eq")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="of the filter")).to_be_visible()


def test_a_read_only_key_sees_entities_and_cannot_change_them(
    page: Page, portal: PortalServer, table: TableClient
) -> None:
    table.create_entity({"PartitionKey": "a", "RowKey": "r", "Stock": 1})
    sign_in(page, key=derive_readonly_key(portal.key), path=f"/t/devstoreaccount1/{table.table_name}/entities")
    page.get_by_role("button", name="Open entity a, r").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Value of Stock")).to_have_attribute("readonly", "")
    for name in ("Save", "Delete …", "Add property"):
        expect(dialog.get_by_role("button", name=name, exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="New entity")).to_have_count(0)


def test_a_table_that_is_deleted_is_said_to_be_gone(page: Page, table: TableClient, watch: PageWatch) -> None:
    watch.expect_fault("status of 404")
    open_table(page, table)
    table.delete_table()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="This table no longer exists.")).to_be_visible()
