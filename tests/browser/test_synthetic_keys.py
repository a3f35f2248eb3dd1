"""Synthetic keys in the portal: declared, explained, raised, and items under them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from playwright.sync_api import Locator, Page, expect

from asterism import keys
from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from tests.browser.editing import editor, replace_word, write
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in
from tests.clients.table_server import new_name

ITEM = "Item as JSON"
CONCATENATED = keys.concatenate("/deviceId", "/date")
HASHED = keys.hash_suffix("/date", of="/vin", count=40)


@pytest.fixture
def database(portal: PortalServer) -> Iterator[DatabaseProxy]:
    with portal.server.client() as client:
        yield client.create_database(new_name("synthetic"))


def make(database: DatabaseProxy, rule: keys.KeyRule) -> ContainerProxy:
    key = PartitionKey("/pk")
    key["synthetic"] = {"/pk": rule.to_json()}
    return database.create_container("things", key, offer_throughput=400)


def open_tab(page: Page, database: DatabaseProxy, tab: str, *, key: str = WELL_KNOWN_EMULATOR_KEY) -> None:
    sign_in(page, key=key, path=f"/c/asterism/{database.id}/things{tab}")


@pytest.fixture
def name(portal: PortalServer) -> str:
    """The name of a database that is not there yet."""
    return new_name("synthetic")


def key_of_new(portal: PortalServer, database: str) -> dict[str, Any]:
    with portal.server.client() as client:
        key: dict[str, Any] = client.get_database_client(database).get_container_client("things").read()["partitionKey"]
        return key


def open_dialog(page: Page, database: str, key: str) -> Locator:
    """Begin a container with a computed key."""
    sign_in(page)
    page.get_by_role("button", name="New container").click()
    dialog = page.get_by_role("dialog", name="New container")
    dialog.get_by_label("Database").fill(database)
    dialog.get_by_label("Name").fill("things")
    dialog.get_by_label("Partition key").fill(key)
    dialog.get_by_label("Compute it from other properties").check()
    return dialog


# --- a new container ------------------------------------------------------------------------------------------------


def test_a_rule_is_declared_with_the_key_of_a_sample_before_it(page: Page, portal: PortalServer, name: str) -> None:
    dialog = open_dialog(page, name, "/pk")
    expect(dialog.get_by_text("Give the path of the first part")).to_be_visible()
    dialog.get_by_label("Path of part 1").fill("/deviceId")
    expect(dialog.get_by_text('The sample gets the key "deviceId-1".')).to_be_visible()
    dialog.get_by_role("button", name="Add a part").click()
    dialog.get_by_label("Path of part 2").fill("/at")
    dialog.get_by_label("Form of part 2").select_option("day of a time stamp")
    dialog.get_by_label("Separator of the parts").fill("_")
    expect(dialog.get_by_text('"deviceId-1_2026-01-31"')).to_be_visible()
    dialog.get_by_label("Suffix", exact=True).select_option("drawn for each item")
    dialog.get_by_label("Suffixes, from 1 to").fill("400")
    expect(dialog.get_by_text("deviceId + '_' + day of at, then one of 400 suffixes by a draw")).to_be_visible()
    expect(dialog.get_by_text(re.compile('one of 400 keys: "deviceId-1_2026-01-31.1"'))).to_be_visible()
    dialog.get_by_label("Sample item").fill('{"deviceId": "abc", "at": 1769851800}')
    expect(dialog.get_by_text(re.compile('"abc_2026-01-31.1"'))).to_be_visible()
    dialog.get_by_role("button", name="Create container").click()
    expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("/pk")
    assert key_of_new(portal, name)["synthetic"]["/pk"] == {
        "parts": ["/deviceId", {"path": "/at", "bucket": "day"}],
        "separator": "_",
        "suffix": {"kind": "random", "count": 400, "separator": "."},
        "missing": "refuse",
    }


def test_every_form_of_a_part_and_a_hashed_suffix_can_be_chosen(page: Page, portal: PortalServer, name: str) -> None:
    dialog = open_dialog(page, name, "/tenant, /bucket")
    expect(dialog.get_by_label("Computed path")).to_have_value("/bucket")
    dialog.get_by_label("Path of part 1").fill("/number")
    dialog.get_by_label("Form of part 1").select_option("whole number, with zeros")
    dialog.get_by_label("Digits of part 1").fill("4")
    dialog.get_by_role("button", name="Add a part").click()
    dialog.get_by_label("Path of part 2").fill("/at")
    dialog.get_by_label("Form of part 2").select_option("time stamp in a format")
    dialog.get_by_label("Format of part 2").fill("%Y/%m")
    dialog.get_by_label("Unit of part 2").select_option("numbers: ms")
    dialog.get_by_role("button", name="Add a part").click()
    dialog.get_by_role("button", name="Remove part 3").click()
    dialog.get_by_label("Suffix", exact=True).select_option("by the hash of a property")
    dialog.get_by_label("Path of the property").fill("/vin")
    dialog.get_by_label("An item that lacks one of the properties").select_option("is stored without a key value")
    expect(dialog.get_by_text(re.compile(r'The sample gets the key "tenant-1", "0042-2026/01\.\d+"'))).to_be_visible()
    dialog.get_by_label("Sample item").fill('{"id": "1"}')
    expect(dialog.get_by_text("(no value), (no value)")).to_be_visible()
    dialog.get_by_role("button", name="Create container").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("/tenant, /bucket")
    assert key_of_new(portal, name)["synthetic"] == {
        "/bucket": {
            "parts": [{"path": "/number", "digits": 4}, {"path": "/at", "format": "%Y/%m", "unit": "ms"}],
            "separator": "-",
            "suffix": {"kind": "hash", "path": "/vin", "count": 10, "separator": "."},
            "missing": "absent",
        }
    }


def test_a_rule_that_cannot_be_says_why_beside_the_form(page: Page, name: str, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    dialog = open_dialog(page, name, "/pk")
    dialog.get_by_label("Path of part 1").fill("/pk")
    expect(dialog.get_by_role("alert").filter(has_text="names itself as a source")).to_be_visible()
    dialog.get_by_label("Path of part 1").fill("/date")
    dialog.get_by_label("Suffix", exact=True).select_option("drawn for each item")
    dialog.get_by_label("Suffixes, from 1 to").fill("1000000")
    refusal = dialog.get_by_role("alert").filter(has_text="must be a whole number from 1 to 1,000")
    expect(refusal).to_have_count(1)
    dialog.get_by_role("button", name="Create container").click()
    # The form's own, and that of the request.
    expect(refusal).to_have_count(2)
    dialog.get_by_label("Suffixes, from 1 to").fill("10")
    dialog.get_by_label("Sample item").fill('{"id": ')
    expect(dialog.get_by_role("alert").filter(has_text="The sample is not JSON yet")).to_be_visible()
    dialog.get_by_label("Sample item").fill('{"id": "1"}')
    expect(dialog.get_by_text("An item like the sample is refused. The item has no value at /date")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_fits_a_narrow_window(page: Page, name: str, scheme: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    dialog = open_dialog(page, name, "/pk")
    dialog.get_by_label("Path of part 1").fill("/at")
    dialog.get_by_label("Form of part 1").select_option("day of a time stamp")
    dialog.get_by_label("Suffix", exact=True).select_option("by the hash of a property")
    assert dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")


# --- a container that has one ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tab", ["", "/items", "/feed", "/scripts"])
def test_the_pages_of_a_container_tell_its_rule(page: Page, database: DatabaseProxy, tab: str) -> None:
    make(database, HASHED)
    open_tab(page, database, tab)
    expect(page.get_by_text("is computed: date, then one of 40 suffixes by the hash of vin.")).to_be_visible()


def test_the_count_of_suffixes_is_raised_and_not_lowered(page: Page, database: DatabaseProxy, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    container = make(database, HASHED)
    made = container.create_item({"id": "1", "date": "d", "vin": "v-1"})
    open_tab(page, database, "/settings")
    card = page.get_by_role("region", name="Synthetic key")
    expect(card.get_by_text("is date, then one of 40 suffixes by the hash of vin.")).to_be_visible()
    card.get_by_label("Suffixes").fill("80")
    card.get_by_role("button", name="Raise the count").click()
    dialog = page.get_by_role("dialog", name="Raise the count from 40 to 80?")
    expect(dialog).to_contain_text("Items that are there keep their keys.")
    dialog.get_by_role("button", name="Raise the count").click()
    expect(card.get_by_text("one of 80 suffixes by the hash of vin (earlier items: of 40)")).to_be_visible()
    assert container.read_item("1", ["d", "v-1"])["pk"] == made["pk"]
    card.get_by_label("Suffixes").fill("10")
    card.get_by_role("button", name="Raise the count").click()
    expect(card.get_by_role("alert").filter(has_text="cannot be lowered from 80 to 10")).to_be_visible()
    assert container.read()["partitionKey"]["synthetic"]["/pk"]["suffix"]["count"] == 80


def test_a_reader_tries_the_rule_on_an_item_and_changes_nothing(page: Page, database: DatabaseProxy) -> None:
    make(database, CONCATENATED)
    open_tab(page, database, "/settings", key=derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    card = page.get_by_role("region", name="Synthetic key")
    card.get_by_text("Try it on an item").click()
    card.get_by_label("Sample item").fill('{"deviceId": "abc", "date": 2018}')
    expect(card.get_by_text('The sample gets the key "abc-2018".')).to_be_visible()
    expect(card.get_by_role("button", name="Raise the count")).to_have_count(0)


# --- items ----------------------------------------------------------------------------------------------------------


def listed(page: Page, name: str) -> Locator:
    return page.get_by_role("list", name=name).get_by_role("button")


def test_an_item_is_written_without_its_key_and_opened_changed_and_deleted_with_it(
    page: Page, database: DatabaseProxy
) -> None:
    container = make(database, CONCATENATED)
    open_tab(page, database, "/items")
    page.get_by_role("button", name="New item").click()
    expect(editor(page, ITEM)).to_contain_text('"deviceId"')
    expect(editor(page, ITEM)).not_to_contain_text('"pk"')
    write(page, ITEM, '{"id": "1", "deviceId": "abc", "date": "2018", "note": "old"}')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(editor(page, ITEM)).to_contain_text('"pk": "abc-2018"')
    replace_word(page, ITEM, "old", "new")
    # "Saved for" is on the page since the creation; the answer puts the stored text into the editor.
    with page.expect_response(lambda answer: answer.request.method == "PUT"):
        page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(re.compile("Saved for"))).to_be_visible()
    assert container.read_item("1", "abc-2018")["note"] == "new"
    # The key may be left out: it stays.
    write(page, ITEM, '{"id": "1", "deviceId": "abc", "date": "2018", "note": "short"}')
    with page.expect_response(lambda answer: answer.request.method == "PUT"):
        page.get_by_role("button", name="Save", exact=True).click()
    expect(editor(page, ITEM)).to_contain_text('"pk": "abc-2018"')
    assert container.read_item("1", "abc-2018")["note"] == "short"
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete item").click()
    expect(page.get_by_text("There are no items here.")).to_be_visible()


def test_other_values_of_the_sources_need_a_second_item(page: Page, database: DatabaseProxy, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    container = make(database, CONCATENATED)
    container.create_item({"id": "1", "deviceId": "abc", "date": "2018"})
    open_tab(page, database, "/items")
    listed(page, "All items").click()
    replace_word(page, ITEM, "2018", "2019")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text('The key of this item is "abc-2018", made of /deviceId, /date')).to_be_visible()
    page.get_by_role("button", name="Duplicate").click()
    expect(editor(page, ITEM)).not_to_contain_text('"pk"')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(editor(page, ITEM)).to_contain_text('"pk": "abc-2019"')
    assert sorted(item["pk"] for item in container.read_all_items()) == ["abc-2018", "abc-2019"]


def test_items_are_listed_by_the_key_and_by_what_it_is_made_of(page: Page, database: DatabaseProxy) -> None:
    container = make(database, CONCATENATED)
    for number in range(3):
        container.create_item({"id": str(number), "deviceId": "abc", "date": 2018 + number % 2})
    open_tab(page, database, "/items")
    expect(listed(page, "All items")).to_have_count(3)
    page.get_by_label("Value of /pk").fill("abc-2018")
    page.get_by_role("button", name="Show items").click()
    expect(listed(page, 'Items of "abc-2018"')).to_have_count(2)
    page.get_by_label("Value of /pk").fill('["abc", 2019]')
    page.get_by_role("button", name="Show items").click()
    expect(listed(page, 'Items of "abc", 2019')).to_have_count(1)
    page.get_by_role("button", name="New item").click()
    expect(editor(page, ITEM)).to_contain_text('"date": 2019')
    page.reload()
    expect(listed(page, 'Items of "abc", 2019')).to_have_count(1)
    expect(page.get_by_label("Value of /pk")).to_have_value('["abc",2019]')


def test_a_query_that_fixes_the_sources_says_how_few_logical_partitions_it_reads(
    page: Page, database: DatabaseProxy
) -> None:
    container = make(database, HASHED)
    for number in range(20):
        container.create_item({"id": str(number), "date": "d", "vin": f"v-{number}"})
    open_tab(page, database, "/items")
    page.get_by_role("tab", name="Query").click()

    def read_by(query: str) -> Locator:
        write(page, "Query", query)
        page.get_by_role("button", name="Run").click()
        page.get_by_role("tab", name="Plan").click()
        return page.get_by_role("tabpanel", name="Plan").get_by_text("Logical partitions read").locator("+ dd")

    expect(read_by("SELECT * FROM c WHERE c.date = 'd' AND c.vin = 'v-7'")).to_have_text("1")
    expect(read_by("SELECT * FROM c WHERE c.date = 'd'")).to_have_text("40")
    expect(read_by("SELECT * FROM c WHERE c.vin = 'v-7'")).to_have_text("all")
    page.get_by_role("tab", name="Table").click()
    page.get_by_role("button", name="Open the item 7").click()
    expect(editor(page, ITEM)).to_contain_text('"vin": "v-7"')
