"""Scripts of a container: created, edited, run, deleted, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from azure.cosmos import ContainerProxy, PartitionKey
from playwright.sync_api import Page, expect

from asterism.access.keys import derive_readonly_key
from tests.browser.holding import HeldRequests
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in
from tests.clients.table_server import new_name

ADD_UP = """
function addUp(a, b) {
  console.log("adding " + a + " and " + b);
  getContext().getResponse().setBody({ sum: a + b });
}
"""
FAILS = """
function fails() {
  console.log("before the failure");
  throw new Error("the order <b>is</b> closed");
}
"""
RUNS_LONG = "function runsLong() { for (;;) {} }"


@pytest.fixture
def container(portal: PortalServer) -> Iterator[ContainerProxy]:
    with portal.server.client() as client:
        database = client.create_database(new_name("scripts"))
        yield database.create_container("orders", PartitionKey("/customer"))


def path_of(container: ContainerProxy, chosen: str = "") -> str:
    return f"/c/asterism/{container.container_link.split('/')[1]}/orders/scripts{chosen}"


def write_text(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="JavaScript of the").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def test_a_stored_procedure_is_created_from_a_template_edited_and_run(page: Page, container: ContainerProxy) -> None:
    sign_in(page, path=path_of(container))
    page.get_by_role("button", name="New stored procedure").click()
    page.get_by_label("Name").fill("addUp")
    page.get_by_role("button", name="Create stored procedure").click()
    expect(page.get_by_role("link", name="addUp")).to_have_attribute("aria-current", "true")
    write_text(page, ADD_UP)
    page.get_by_label("Partition key /customer").fill("c-1 ☃")
    page.get_by_label("Parameters (JSON array)").fill("[1, 2.5]")
    # Running stores the text that is shown first.
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result")).to_contain_text('"sum": 3.5')
    expect(page.get_by_label("Console log")).to_have_text("adding 1 and 2.5")
    assert container.scripts.get_stored_procedure("addUp")["body"] == ADD_UP


def test_a_stored_procedure_that_fails_shows_its_message_and_its_log(
    page: Page, container: ContainerProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 400")
    container.scripts.create_stored_procedure({"id": "fails", "body": FAILS})
    sign_in(page, path=path_of(container))
    page.get_by_role("link", name="fails").click()
    page.get_by_label("Partition key /customer").fill("c-1")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="the order <b>is</b> closed")).to_be_visible()
    expect(page.get_by_label("Console log")).to_have_text("before the failure")
    page.get_by_label("Parameters (JSON array)").fill("{}")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="must be a JSON array")).to_be_visible()


def test_a_run_that_takes_long_is_cancelled(page: Page, container: ContainerProxy) -> None:
    container.scripts.create_stored_procedure({"id": "long", "body": RUNS_LONG})
    sign_in(page, path=path_of(container))
    page.get_by_role("link", name="long").click()
    page.get_by_label("Partition key /customer").fill("c-1")
    # The server ends a run after five seconds; this one does not even reach it.
    HeldRequests(page, "**/sprocs/long")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Canceled.")).to_be_visible()


def test_a_trigger_keeps_its_type_and_operation_and_is_deleted(page: Page, container: ContainerProxy) -> None:
    sign_in(page, path=path_of(container))
    page.get_by_role("button", name="New trigger").click()
    page.get_by_label("Name").fill("stamp")
    page.get_by_label("Type").select_option("Post")
    page.get_by_label("Operation").select_option("Create")
    page.get_by_role("button", name="Create trigger").click()
    expect(page.get_by_role("link", name="stamp")).to_contain_text("Post, Create")
    stored = container.scripts.get_trigger("stamp")
    assert (stored["triggerType"], stored["triggerOperation"]) == ("Post", "Create")
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete trigger").click()
    expect(page.get_by_role("link", name="stamp")).to_have_count(0)
    assert list(container.scripts.list_triggers()) == []


def test_a_function_is_tried_in_a_query(page: Page, container: ContainerProxy, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    container.scripts.create_user_defined_function({"id": "twice", "body": "function twice(n) { return n * 2; }"})
    sign_in(page, path=path_of(container))
    page.get_by_role("link", name="twice").click()
    page.get_by_label("Arguments, as in a query").fill("21")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.get_by_label("Result")).to_have_text("42")
    page.get_by_label("Arguments, as in a query").fill("21,")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.locator("#run-result").get_by_role("alert")).to_be_visible()


def test_a_script_that_another_client_changed_is_not_overwritten_unseen(
    page: Page, container: ContainerProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 412")
    container.scripts.create_stored_procedure({"id": "addUp", "body": ADD_UP})
    sign_in(page, path=path_of(container))
    page.get_by_role("link", name="addUp").click()
    write_text(page, "function mine() {}")
    container.scripts.replace_stored_procedure("addUp", {"id": "addUp", "body": "function theirs() {}"})
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="Somebody else changed")).to_contain_text("function theirs()")
    expect(page.get_by_role("textbox", name="JavaScript of the")).to_contain_text("function mine()")
    page.get_by_role("button", name="Load the present version").click()
    expect(page.get_by_role("textbox", name="JavaScript of the")).to_contain_text("function theirs()")


def test_changes_that_are_not_saved_are_not_left_without_a_question(page: Page, container: ContainerProxy) -> None:
    container.scripts.create_stored_procedure({"id": "first", "body": ADD_UP})
    container.scripts.create_stored_procedure({"id": "second", "body": FAILS})
    sign_in(page, path=path_of(container))
    page.get_by_role("link", name="first").click()
    write_text(page, "function mine() {}")
    page.get_by_role("link", name="second").click()
    page.get_by_role("dialog", name="Leave without saving?").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("textbox", name="JavaScript of the")).to_contain_text("function mine()")
    expect(page).to_have_url(re.compile("#sprocs/first$"))
    page.get_by_role("link", name="second").click()
    page.get_by_role("dialog").get_by_role("button", name="Leave without saving").click()
    expect(page.get_by_role("textbox", name="JavaScript of the")).to_contain_text("before the failure")


def test_a_read_only_key_sees_scripts_and_no_way_to_change_them(
    page: Page, portal: PortalServer, container: ContainerProxy
) -> None:
    container.scripts.create_stored_procedure({"id": "addUp", "body": ADD_UP})
    sign_in(page, key=derive_readonly_key(portal.key), path=path_of(container))
    page.get_by_role("link", name="addUp").click()
    expect(page.get_by_role("textbox", name="JavaScript of the")).to_contain_text("adding")
    for name in ("New stored procedure", "Save", "Delete …", "Run"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
