"""Items in the portal: find, create, change and delete them, and what can go wrong meanwhile."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from azure.cosmos import ContainerProxy, PartitionKey
from playwright.sync_api import Page, expect

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from tests.browser.editing import editor, replace_word, wait_until, write
from tests.browser.holding import HeldRequests
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in
from tests.browser.toasts import expect_toast

ITEM = "Item as JSON"


@pytest.fixture
def container(portal: PortalServer, request: pytest.FixtureRequest) -> ContainerProxy:
    """A container of the test's own, partitioned by customer."""
    database = portal.server.client().create_database_if_not_exists("items")
    return database.create_container(request.node.name, PartitionKey(path="/customer"))


def open_items(page: Page, container: ContainerProxy, *, search: str = "", key: str = WELL_KNOWN_EMULATOR_KEY) -> None:
    sign_in(page, key=key, path=f"/c/asterism/items/{container.id}/items{search}")


def open_item(page: Page, item_id: str) -> None:
    page.get_by_role("list", name="items").get_by_role("button", name=item_id).click()
    expect(page.get_by_role("heading", name=item_id, exact=True)).to_be_visible()


def test_a_person_creates_changes_duplicates_and_deletes_an_item(page: Page, container: ContainerProxy) -> None:
    open_items(page, container)
    expect(page.get_by_text("There are no items here.")).to_be_visible()
    page.get_by_role("button", name="New item").click()
    write(page, ITEM, '{"id": "first", "customer": "Ada", "note": "old"}')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="first", exact=True)).to_be_visible()
    expect(page.get_by_role("list", name="All items").get_by_role("button")).to_have_count(1)

    replace_word(page, ITEM, "old", "new")
    page.keyboard.press("Control+Enter")
    # "Saved for" stands there since the item was created.
    wait_until(page, lambda: container.read_item("first", "Ada")["note"] == "new")
    assert container.read_item("first", "Ada")["note"] == "new"
    expect(page.get_by_text(re.compile("Saved for"))).to_be_visible()

    page.get_by_role("button", name="Duplicate").click()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="first-copy")).to_be_visible()
    expect(page.get_by_role("list", name="All items").get_by_role("button")).to_have_count(2)

    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete item").click()
    expect(page.get_by_text("No item is open")).to_be_visible()
    assert [item["id"] for item in container.read_all_items()] == ["first"]


def hold_a_save(page: Page, container: ContainerProxy) -> HeldRequests:
    """Create and open an item with a note, change the note from old to new, and keep the save on its way."""
    container.create_item({"id": "first", "customer": "Ada", "note": "old"})
    open_items(page, container)
    open_item(page, "first")
    held = HeldRequests(page, "**/docs/first")
    replace_word(page, ITEM, "old", "new")
    page.keyboard.press("Control+Enter")
    held.wait_for_one()
    return held


def test_a_text_that_is_written_while_an_earlier_one_is_saved_stays(page: Page, container: ContainerProxy) -> None:
    held = hold_a_save(page, container)
    replace_word(page, ITEM, "new", "newer")
    held.let_go()
    expect(page.get_by_text(re.compile("Saved for"))).to_be_visible()
    assert container.read_item("first", "Ada")["note"] == "new"
    expect(editor(page, ITEM)).to_contain_text('"newer"')
    page.get_by_role("button", name="Save", exact=True).click()
    wait_until(page, lambda: container.read_item("first", "Ada")["note"] == "newer")
    assert container.read_item("first", "Ada")["note"] == "newer"


def test_the_answer_to_a_save_does_not_replace_a_copy_that_was_begun_meanwhile(
    page: Page, container: ContainerProxy
) -> None:
    held = hold_a_save(page, container)
    page.get_by_role("button", name="Duplicate").click()
    held.let_go()
    expect_toast(page, "Saved.")
    expect(editor(page, ITEM)).to_contain_text('"first-copy"')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="first-copy")).to_be_visible()
    assert {item["id"]: item["note"] for item in container.read_all_items()} == {"first": "new", "first-copy": "new"}


def test_numbers_and_the_order_of_properties_survive_an_edit(page: Page, container: ContainerProxy) -> None:
    open_items(page, container)
    page.get_by_role("button", name="New item").click()
    write(
        page,
        ITEM,
        '{"z": 1, "id": "exact", "customer": 5, "huge": 12345678901234567890, "whole": 1.0, "2": "old", "1": 0}',
    )
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text(re.compile("Saved for"))).to_be_visible()
    replace_word(page, ITEM, "old", "new")
    page.get_by_role("button", name="Save", exact=True).click()
    wait_until(page, lambda: container.read_item("exact", 5)["2"] == "new")
    expect(editor(page, ITEM)).to_contain_text('"2": "new"')
    page.reload()
    open_item(page, "exact")
    lines = editor(page, ITEM).locator(".cm-line").all_inner_texts()
    assert [line.strip().rstrip(",") for line in lines] == [
        "{",
        '"z": 1',
        '"id": "exact"',
        '"customer": 5',
        '"huge": 12345678901234567890',
        '"whole": 1.0',
        '"2": "new"',
        '"1": 0',
        "}",
    ]


def test_items_are_listed_by_key_and_page_by_page(page: Page, container: ContainerProxy) -> None:
    for number in range(60):
        container.create_item({"id": f"{number}", "customer": "Zoë" if number < 55 else "Bob"})
    open_items(page, container, search="?key=" + quote('["Zoë"]'))
    listed = page.get_by_role("list", name='Items of "Zoë"').get_by_role("button")
    expect(listed).to_have_count(50)
    page.get_by_role("button", name="Next page").click()
    expect(listed).to_have_count(55)
    page.get_by_label("Value of /customer").fill("Bob")
    page.get_by_role("button", name="Show items").click()
    expect(page.get_by_role("list", name='Items of "Bob"').get_by_role("button")).to_have_count(5)
    page.get_by_text("Largest and hottest logical partitions").click()
    page.get_by_role("button", name=re.compile('"Zoë"')).click()
    expect(listed).to_have_count(50)


def test_a_hierarchical_key_may_be_given_in_part(page: Page, portal: PortalServer) -> None:
    database = portal.server.client().create_database_if_not_exists("items")
    container = database.create_container("levels", PartitionKey(path=["/tenant", "/user"], kind="MultiHash"))
    for user in ("a", "b"):
        container.create_item({"id": user, "tenant": "t", "user": user})
    open_items(page, container)
    page.get_by_label("Value of /tenant").fill("t")
    page.get_by_role("button", name="Show items").click()
    expect(page.get_by_role("list", name='Items of "t"').get_by_role("button")).to_have_count(2)
    page.get_by_label("Value of /user").fill("b")
    page.get_by_role("button", name="Show items").click()
    expect(page.get_by_role("list", name='Items of "t", "b"').get_by_role("button")).to_have_count(1)
    page.get_by_label("Value of /tenant").fill("")
    page.get_by_role("button", name="Show items").click()
    expect(page.get_by_text("Give the values from the first on")).to_be_visible()


def test_a_save_over_the_change_of_another_shows_both_versions(
    page: Page, container: ContainerProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 412")
    container.create_item({"id": "shared", "customer": "Ada", "note": "first"})
    open_items(page, container)
    open_item(page, "shared")
    container.upsert_item({"id": "shared", "customer": "Ada", "note": "theirs"})
    replace_word(page, ITEM, "first", "mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Somebody else changed the item since you opened it.")).to_be_visible()
    expect(page.get_by_role("alert").get_by_text('"theirs"')).to_be_visible()
    expect(editor(page, ITEM)).to_contain_text('"mine"')
    page.get_by_role("button", name="Load the present version").click()
    expect(editor(page, ITEM)).to_contain_text('"theirs"')

    container.upsert_item({"id": "shared", "customer": "Ada", "note": "again"})
    replace_word(page, ITEM, "theirs", "mine")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(re.compile("Saved for"))).to_be_visible()
    assert container.read_item("shared", "Ada")["note"] == "mine"


def test_another_id_or_key_becomes_a_second_item_only_if_confirmed(page: Page, container: ContainerProxy) -> None:
    container.create_item({"id": "one", "customer": "Ada"})
    open_items(page, container)
    open_item(page, "one")
    replace_word(page, ITEM, "Ada", "Bob")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text('The partition key value changed from "Ada" to "Bob".')).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert len(list(container.read_all_items())) == 1
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Create a second item").click()
    expect(page.get_by_text(re.compile("Saved for"))).to_be_visible()
    assert sorted(item["customer"] for item in container.read_all_items()) == ["Ada", "Bob"]


def test_a_mistake_in_json_is_underlined_and_not_sent(page: Page, container: ContainerProxy) -> None:
    container.create_item({"id": "one", "customer": "Ada"})
    open_items(page, container)
    open_item(page, "one")
    write(page, ITEM, '{"id": "one", "customer": }')
    expect(page.locator(".cm-lintRange-error")).to_have_text("}")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("This is not JSON yet: A value is missing")).to_be_visible()


def test_markup_in_an_item_is_shown_as_text(page: Page, container: ContainerProxy) -> None:
    item_id = "<script>alert(1)<b>bold<img src=x onerror=alert(2)>"
    container.create_item({"id": item_id, "customer": item_id, "note": "<i>"})
    open_items(page, container)
    open_item(page, item_id)
    expect(editor(page, ITEM)).to_contain_text("<script>alert(1)")
    page.get_by_text("Largest and hottest logical partitions").click()
    expect(page.get_by_role("list").get_by_role("button", name="<script>").first).to_be_visible()
    page.get_by_role("tab", name="Query").click()
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("cell", name="<i>")).to_be_visible()
    assert page.locator("#content img, #content script").count() == 0


def test_an_item_of_two_megabytes_opens_and_saves(page: Page, container: ContainerProxy) -> None:
    values = {f"p{number}": "x" * 60 for number in range(8000)}
    large = {"id": "large", "customer": "Ada", "note": "old", "text": "y" * 1_400_000, **values}
    container.create_item(large)
    open_items(page, container)
    open_item(page, "large")
    editor(page, ITEM).get_by_text('"note": "old"').click()
    page.keyboard.press("End")
    page.keyboard.insert_text(' "more": 1,')
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(re.compile("Saved for"))).to_be_visible()
    stored = container.read_item("large", "Ada")
    assert stored["more"] == 1
    assert {name: stored[name] for name in large} == large


def test_a_read_only_session_sees_items_and_cannot_change_them(
    page: Page, container: ContainerProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 403")
    container.create_item({"id": "one", "customer": "Ada"})
    open_items(page, container, key=derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    open_item(page, "one")
    expect(editor(page, ITEM)).to_have_attribute("aria-readonly", "true")
    for name in ("Save", "New item", "Duplicate", "Delete"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    status = page.evaluate(
        """async (container) => (await fetch(`/api/asterism/nosql/dbs/items/colls/${container}/docs`, {
            method: "POST",
            headers: {
                "x-csrf-token": document.querySelector("meta[name=csrf]").content,
                "x-ms-documentdb-partitionkey": '["Ada"]',
            },
            body: '{"id": "two", "customer": "Ada"}',
        })).status""",
        container.id,
    )
    assert status == 403
    assert len(list(container.read_all_items())) == 1


def test_a_container_that_was_deleted_meanwhile_is_reported(
    page: Page, portal: PortalServer, container: ContainerProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 404")
    open_items(page, container)
    expect(page.get_by_text("There are no items here.")).to_be_visible()
    portal.server.client().get_database_client("items").delete_container(container.id)
    page.get_by_role("button", name="All items").click()
    expect(page.get_by_text("This container no longer exists.")).to_be_visible()
