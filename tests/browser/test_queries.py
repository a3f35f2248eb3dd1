"""Queries in the portal: run, cancel, read and download them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy, PartitionKey
from playwright.sync_api import Page, expect

from tests.browser.editing import editor, write
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in

QUERY = "Query"


@pytest.fixture
def container(portal: PortalServer, request: pytest.FixtureRequest) -> ContainerProxy:
    """A container of the test's own, partitioned by city, on several partitions."""
    database = portal.server.client().create_database_if_not_exists("queries")
    return database.create_container(request.node.name, PartitionKey(path="/city"), offer_throughput=20_000)


def open_queries(page: Page, container: ContainerProxy) -> None:
    sign_in(page, path=f"/c/asterism/queries/{container.id}/items?tab=query")
    expect(editor(page, QUERY)).to_be_visible()


def run(page: Page, query: str) -> None:
    write(page, QUERY, query)
    page.keyboard.press("Control+Enter")


def test_a_query_over_all_partitions_is_shown_page_by_page_with_its_plan(page: Page, container: ContainerProxy) -> None:
    for number in range(30):
        container.create_item(
            {"id": f"{number}", "city": f"city {number % 7}", "size": number, "tags": ["a", {"b": 1}]}
        )
    open_queries(page, container)
    page.get_by_label("Page size").select_option("20")
    run(page, "SELECT c.id, c.city, c.size, c.tags FROM c WHERE c.size >= 5 ORDER BY c.size DESC")
    rows = page.locator("#table-view tbody tr")
    expect(rows).to_have_count(20)
    expect(rows.first.get_by_role("cell")).to_have_text(["29", "city 1", "29", '["a",{"b":1}]'])
    page.get_by_role("button", name="Next page").click()
    expect(rows).to_have_count(25)
    expect(page.get_by_text(re.compile(r"25 results · .* RU · (\d) of \1 partitions"))).to_be_visible()

    page.get_by_role("tab", name="Table").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel", name="JSON")).to_contain_text('"city": "city 1"')
    page.keyboard.press("ArrowRight")
    tree = page.get_by_role("tabpanel", name="Tree")
    tree.get_by_text("29", exact=True).click()
    expect(tree.get_by_text('"city 1"')).to_be_visible()
    page.get_by_role("tab", name="Plan").click()
    expect(page.get_by_role("tabpanel", name="Plan")).to_contain_text("/size/?")

    page.get_by_role("tab", name="Table").click()
    page.get_by_role("button", name="Open the item 29").click()
    expect(editor(page, "Item as JSON")).to_contain_text('"size": 29')
    page.get_by_role("tab", name="Browse").click()
    expect(page.get_by_role("list", name="All items").get_by_role("button")).to_have_count(30)


def test_a_mistake_is_underlined_where_the_server_found_it(
    page: Page, container: ContainerProxy, watch: PageWatch
) -> None:
    watch.expect_fault("status of 400")
    open_queries(page, container)
    # A character beyond the first 65,536 counts as two in a browser, and as one on the server.
    run(page, 'SELECT "🌍" AS planet FRM c')
    expect(page.locator(".cm-lintRange-error")).to_have_text("FRM")
    expect(page.get_by_role("alert").get_by_text("Syntax error, incorrect syntax near 'FRM'.")).to_be_visible()
    run(page, "SELECT VALUE 1")
    expect(page.get_by_text(re.compile("^1 result"))).to_be_visible()
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)


def test_parameters_and_results_keep_their_numbers(page: Page, container: ContainerProxy) -> None:
    open_queries(page, container)
    page.get_by_text("Parameters", exact=True).click()
    write(page, "Parameters as JSON", '{"@huge": 9007199254740993, "whole": 1.0}')
    run(page, "SELECT @huge AS huge, @whole AS whole")
    expect(page.locator("#table-view tbody tr").get_by_role("cell")).to_have_text(["9007199254740993", "1.0"])


def test_downloads_hold_all_pages_and_no_formulas(page: Page, container: ContainerProxy, tmp_path: Path) -> None:
    container.create_item({"id": "1", "city": "=HYPERLINK(1)", "note": 'say "hi",\nthen go', "size": -5})
    container.create_item({"id": "2", "city": "Oslo", "more": {"a": [1]}})
    open_queries(page, container)
    run(page, "SELECT c.id, c.city, c.note, c.size, c.more FROM c ORDER BY c.id")
    expect(page.locator("#table-view tbody tr")).to_have_count(2)
    with page.expect_download() as csv:
        page.get_by_role("button", name="Download CSV").click()
    csv.value.save_as(tmp_path / "results.csv")
    assert (tmp_path / "results.csv").read_bytes().decode() == (
        'id,city,note,size,more\r\n1,\'=HYPERLINK(1),"say ""hi"",\nthen go",-5,\r\n2,Oslo,,,"{""a"":[1]}"\r\n'
    )
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download JSON").click()
    assert downloaded.value.suggested_filename == f"{container.id}.json"
    downloaded.value.save_as(tmp_path / "results.json")
    assert [row["id"] for row in json.loads((tmp_path / "results.json").read_text())] == ["1", "2"]


def test_a_query_that_runs_long_can_be_canceled(page: Page, container: ContainerProxy) -> None:
    container.create_item({"id": "1", "city": "Oslo", "numbers": list(range(300))})
    open_queries(page, container)
    run(
        page,
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.numbers JOIN y IN c.numbers JOIN z IN c.numbers WHERE x + y + z = 5",
    )
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Canceled.")).to_be_visible()
    run(page, "SELECT VALUE 1")
    expect(page.get_by_text(re.compile("^1 result"))).to_be_visible()


def test_the_history_survives_a_reload_and_can_be_cleared(page: Page, container: ContainerProxy) -> None:
    open_queries(page, container)
    run(page, "SELECT VALUE 1")
    expect(page.get_by_text(re.compile("^1 result"))).to_be_visible()
    run(page, "SELECT VALUE 2")
    expect(page.locator("#table-view").get_by_role("cell", name="2")).to_be_visible()
    page.reload()
    expect(editor(page, QUERY)).to_have_text("SELECT VALUE 2")
    page.get_by_text("History", exact=True).click()
    page.get_by_role("button", name="SELECT VALUE 1").click()
    expect(editor(page, QUERY)).to_have_text("SELECT VALUE 1")
    page.get_by_role("button", name="Clear history").click()
    page.reload()
    expect(editor(page, QUERY)).to_have_text("SELECT * FROM c")


def test_properties_of_the_data_complete_a_query(page: Page, container: ContainerProxy) -> None:
    container.create_item({"id": "1", "city": "Oslo", "address": {"street": "Karl"}, "lines": [{"sku": "a"}]})
    open_queries(page, container)
    expect(page.get_by_text("1 item.")).to_have_count(1)
    write(page, QUERY, "SELECT * FROM c JOIN l IN c.lines WHERE c.address.")
    page.keyboard.type("st")
    expect(page.get_by_role("option", name="street")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.type("reet = l.s")
    expect(page.get_by_role("option", name="sku")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.type("ku AND ARRAY_C")
    expect(page.get_by_role("option", name="ARRAY_CONTAINS()")).to_be_visible()
