"""The settings of a container and of a table, as a person changes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import CosmosResourceNotFoundError
from playwright.sync_api import Locator, Page, Response, expect

from asterism.access.keys import derive_readonly_key
from tests.browser.holding import HeldRequests
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in
from tests.browser.toasts import expect_toast
from tests.clients.table_server import TableServer, new_name

NOT_INDEXED = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [],
    "excludedPaths": [{"path": "/*"}],
}
INDEXED = {"indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*"}], "excludedPaths": []}
# Many properties in each item: a transformation of their index takes longer than the answer to its request.
FILL = """
function fill(items, properties) {
  const container = getContext().getCollection();
  for (let number = 0; number < items; number += 1) {
    const item = { id: "item-" + number, customer: "a" };
    for (let place = 0; place < properties; place += 1) item["p" + place] = number * place;
    if (!container.createDocument(container.getSelfLink(), item)) throw new Error("not accepted");
  }
}
"""
# Keeps whether the bar of the transformation was shown, at each change.
NOTE_PROGRESS = """() => {
  globalThis.progressOfTest = [];
  const bar = document.querySelector("progress[aria-label='Index transformation']");
  new MutationObserver(() => progressOfTest.push(!bar.hidden)).observe(bar, { attributeFilter: ["hidden"] });
}"""


@pytest.fixture
def database(portal: PortalServer) -> Iterator[DatabaseProxy]:
    with portal.server.client() as client:
        yield client.create_database(new_name("settings"))


def new_container(database: DatabaseProxy, **settings: object) -> ContainerProxy:
    return database.create_container("orders", PartitionKey("/customer"), offer_throughput=400, **settings)


def path_of(database: DatabaseProxy, page: str = "settings") -> str:
    return f"/c/asterism/{database.id}/orders/{page}"


def write_policy(page: Page, policy: dict[str, object]) -> None:
    editor = page.get_by_role("textbox", name="Indexing policy")
    expect(editor).to_contain_text("indexingMode")
    editor.click()
    page.keyboard.press("Control+A")
    # Typed as a whole: the editor would add closing brackets to single keys.
    page.keyboard.insert_text(json.dumps(policy))


def is_replacement(response: Response) -> bool:
    return response.request.method == "PUT" and response.ok


def alert_in(place: Page | Locator, text: str) -> Locator:
    return place.get_by_role("alert").filter(has_text=text)


def test_more_throughput_shows_its_partitions_before_and_has_them_after(page: Page, database: DatabaseProxy) -> None:
    new_container(database)
    sign_in(page, path=path_of(database))
    expect(page.get_by_text("400 RU/s, manual: 1 partition with 400 RU/s each.")).to_be_visible()
    page.get_by_label("RU/s").fill("18000")
    expect(page.get_by_text("2 partitions (now 1), 9,000 RU/s each (now 400). This begins 1 split.")).to_be_visible()
    page.get_by_role("button", name="Change throughput").click()
    dialog = page.get_by_role("dialog", name="Change throughput to 18,000 RU/s?")
    expect(dialog).to_contain_text("2 partitions (now 1)")
    dialog.get_by_role("button", name="Change throughput").click()
    expect(page.get_by_text("18,000 RU/s, manual: 2 partitions with 9,000 RU/s each.")).to_be_visible()
    page.get_by_role("link", name="Partitions").click()
    line = page.get_by_role("listbox", name="Physical partitions")
    expect(line.get_by_role("option")).to_have_count(2)


def test_throughput_that_is_not_allowed_says_why_and_cannot_be_sent(page: Page, database: DatabaseProxy) -> None:
    new_container(database)
    sign_in(page, path=path_of(database))
    expect(page.get_by_text("400 RU/s, manual")).to_be_visible()
    page.get_by_label("RU/s").fill("401")
    expect(page.locator("#throughput-consequences")).to_contain_text("100")
    expect(page.get_by_role("button", name="Change throughput")).to_be_disabled()


def test_autoscale_throughput_is_changed_by_its_maximum(page: Page, database: DatabaseProxy) -> None:
    container = database.create_container(
        "orders", PartitionKey("/customer"), offer_throughput=ThroughputProperties(auto_scale_max_throughput=1000)
    )
    sign_in(page, path=path_of(database))
    expect(page.get_by_text("Autoscale up to 1,000 RU/s: 1 partition with 1,000 RU/s each.")).to_be_visible()
    page.get_by_label("Highest RU/s (autoscale)").fill("2000")
    expect(page.get_by_text("1 partition (now 1), 2,000 RU/s each")).to_be_visible()
    page.get_by_role("button", name="Change throughput").click()
    page.get_by_role("dialog").get_by_role("button", name="Change throughput").click()
    expect(page.get_by_text("Autoscale up to 2,000 RU/s")).to_be_visible()
    assert container.get_throughput().auto_scale_max_throughput == 2000


def test_the_throughput_of_a_database_is_changed_for_the_containers_that_share_it(
    page: Page, portal: PortalServer
) -> None:
    with portal.server.client() as client:
        database = client.create_database(new_name("shared"), offer_throughput=1000)
        database.create_container("orders", PartitionKey("/customer"))
        sign_in(page, path=path_of(database))
        expect(page.get_by_text(f"shared by the containers of the database {database.id}")).to_be_visible()
        page.get_by_label("RU/s").fill("2000")
        expect(page.get_by_text("1 partition (now 1)")).to_be_visible()
        page.get_by_role("button", name="Change throughput").click()
        page.get_by_role("dialog").get_by_role("button", name="Change throughput").click()
        expect(page.get_by_text("2,000 RU/s, manual, shared")).to_be_visible()
        assert database.get_throughput().offer_throughput == 2000


def test_an_index_transformation_is_watched_to_its_end(page: Page, database: DatabaseProxy) -> None:
    container = new_container(database, indexing_policy=NOT_INDEXED)
    container.scripts.create_stored_procedure({"id": "fill", "body": FILL})
    container.scripts.execute_stored_procedure("fill", partition_key="a", params=[400, 100])
    sign_in(page, path=path_of(database))
    expect(page.get_by_text("The index follows this policy.")).to_be_visible()
    write_policy(page, INDEXED)
    page.evaluate(NOTE_PROGRESS)
    page.get_by_role("button", name="Save indexing policy").click()
    expect_toast(page, "Indexing policy saved.")
    expect(page.get_by_text("The index follows this policy.")).to_be_visible()
    # The bar may be gone before a busy machine looks for it.
    assert True in page.evaluate("progressOfTest")
    assert container.read()["indexingPolicy"]["includedPaths"] == [{"path": "/*"}]


def test_a_policy_that_the_server_or_json_refuses_says_why(
    page: Page, database: DatabaseProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 400")
    new_container(database)
    sign_in(page, path=path_of(database))
    write_policy(page, {"indexingMode": "sometimes"})
    page.get_by_role("button", name="Save indexing policy").click()
    expect(page.locator("#policy-problem")).to_contain_text("sometimes")
    page.get_by_role("textbox", name="Indexing policy").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("{")
    page.get_by_role("button", name="Save indexing policy").click()
    expect(alert_in(page, "This is not JSON yet")).to_be_visible()


def test_time_to_live_is_set_and_removed(page: Page, database: DatabaseProxy) -> None:
    container = new_container(database)
    sign_in(page, path=path_of(database))
    expect(page.get_by_label("Off")).to_be_checked()
    page.get_by_label("On, with a default").check()
    page.get_by_label("Seconds").fill("3600")
    with page.expect_response(is_replacement):
        page.get_by_role("button", name="Save time to live").click()
    assert container.read()["defaultTtl"] == 3600
    page.get_by_label("Off").check()
    with page.expect_response(is_replacement):
        page.get_by_role("button", name="Save time to live").click()
    assert "defaultTtl" not in container.read()


def test_what_was_read_before_a_save_is_not_shown_behind_it(page: Page, database: DatabaseProxy) -> None:
    container = new_container(database)
    sign_in(page, path=path_of(database))
    expect(page.get_by_label("Off")).to_be_checked()
    # The page reads its settings again and again; this reading has the container already.
    held = HeldRequests(page, "**/admin/partitions?*")
    held.wait_for_one()
    page.get_by_label("On, with a default").check()
    page.get_by_label("Seconds").fill("3600")
    page.get_by_role("button", name="Save time to live").click()
    expect_toast(page, "Time to live saved.")
    with page.expect_response(lambda response: "/admin/partitions?" in response.url) as late:
        held.let_go()
    late.value.finished()
    page.get_by_label("Off").check()
    with page.expect_response(is_replacement):
        page.get_by_role("button", name="Save time to live").click()
    assert "defaultTtl" not in container.read()


def test_settings_that_another_client_changed_meanwhile_are_not_overwritten_unseen(
    page: Page, database: DatabaseProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 412")
    container = new_container(database)
    sign_in(page, path=path_of(database))
    write_policy(page, {**INDEXED, "excludedPaths": [{"path": "/mine/*"}]})
    database.replace_container(container, PartitionKey("/customer"), default_ttl=60)
    page.get_by_role("button", name="Save indexing policy").click()
    conflict = alert_in(page, "Somebody else changed the container's settings")
    expect(conflict).to_be_visible()
    expect(page.get_by_role("textbox", name="Indexing policy")).to_contain_text("/mine/*")
    page.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save indexing policy").click()
    expect_toast(page, "Indexing policy saved.")
    stored = container.read()
    assert {"path": "/mine/*"} in stored["indexingPolicy"]["excludedPaths"]
    assert stored["defaultTtl"] == 60


def test_a_container_that_another_client_deletes_is_said_to_be_gone(
    page: Page, database: DatabaseProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 404")
    container = new_container(database)
    sign_in(page, path=path_of(database))
    expect(page.get_by_text("400 RU/s, manual")).to_be_visible()
    database.delete_container(container)
    expect(page.get_by_role("heading", name="This container no longer exists.")).to_be_visible()
    expect(page.get_by_role("link", name="Back to the first page")).to_be_visible()


def test_a_container_is_deleted_after_its_name_is_typed(page: Page, database: DatabaseProxy, watch: PageWatch) -> None:
    # The page reads the container again and again, perhaps once more before it is left.
    watch.expect_fault("status of 404")
    container = new_container(database)
    container.create_item({"id": "a", "customer": "c"})
    sign_in(page, path=path_of(database))
    page.get_by_role("button", name="Delete container").click()
    dialog = page.get_by_role("dialog", name="Delete the container orders?")
    expect(dialog).to_contain_text("1 item with")
    confirm = dialog.get_by_role("button", name="Delete container")
    dialog.get_by_label("Type the name orders to confirm").fill("order")
    expect(confirm).to_be_disabled()
    dialog.get_by_label("Type the name orders to confirm").fill("orders")
    confirm.click()
    expect(page.get_by_role("heading", name="Data")).to_be_visible()
    with pytest.raises(CosmosResourceNotFoundError):
        container.read()


def test_a_read_only_key_sees_settings_and_no_way_to_change_them(
    page: Page, portal: PortalServer, database: DatabaseProxy
) -> None:
    new_container(database)
    sign_in(page, key=derive_readonly_key(portal.key), path=path_of(database))
    expect(page.get_by_text("400 RU/s, manual")).to_be_visible()
    expect(page.get_by_role("textbox", name="Indexing policy")).to_have_attribute("aria-readonly", "true")
    expect(page.get_by_label("Off")).to_be_disabled()
    expect(page.get_by_role("button", name=re.compile("Save|Change throughput|Delete"))).to_have_count(0)


def test_a_table_is_deleted_after_its_name_is_typed(page: Page, portal: PortalServer, watch: PageWatch) -> None:
    # As above.
    watch.expect_fault("status of 404")
    name = new_name("Products")
    with TableServer(portal.server).service() as tables:
        tables.create_table(name).create_entity({"PartitionKey": "a", "RowKey": "b"})
        sign_in(page, path=f"/t/devstoreaccount1/{name}/settings")
        expect(page.get_by_text("a table has no throughput of its own")).to_be_visible()
        page.get_by_role("button", name="Delete table").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("1 entity with")
        dialog.get_by_label(f"Type the name {name} to confirm").fill(name)
        dialog.get_by_role("button", name="Delete table").click()
        expect(page.get_by_role("heading", name="Data")).to_be_visible()
        assert name not in [table.name for table in tables.list_tables()]
