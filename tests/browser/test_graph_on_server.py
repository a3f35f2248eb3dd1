"""The page of a graph on the server's own Gremlin door: what is drawn comes from the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.cosmos import PartitionKey
from playwright.sync_api import Page, expect

from tests.browser.editing import editor, write
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer, running_portal
from tests.browser.signing_in import sign_in

PEOPLE = "/c/asterism/graphs/people"
TRAVERSAL = "Traversal"


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    """A graph of a ring of six people, in four physical partitions."""
    with running_portal("--no-throttle", doors=("nosql", "gremlin", "portal")) as running:
        database = running.server.client().create_database("graphs")
        people = database.create_container("people", PartitionKey(path="/pk"), offer_throughput=20_000)
        for number in range(6):
            name = [{"id": f"n{number}", "_value": f"Person {number}"}]
            people.create_item({"id": f"v{number}", "label": "person", "pk": f"p{number % 3}", "name": name})
            people.create_item(edge(number, number, (number + 1) % 6))
        yield running


def edge(number: int, source: int, target: int) -> dict[str, object]:
    return {
        "id": f"e{number}",
        "label": "knows",
        "_isEdge": True,
        "pk": f"p{source % 3}",
        "_vertexId": f"v{source}",
        "_vertexLabel": "person",
        "_sink": f"v{target}",
        "_sinkLabel": "person",
        "_sinkPartition": f"p{target % 3}",
        "since": 2000 + number,
    }


def run(page: Page, text: str) -> None:
    write(page, TRAVERSAL, text)
    page.keyboard.press("Control+Enter")


def drawn(page: Page, counts: str) -> None:
    expect(page.get_by_text(counts)).to_be_visible()
    expect(page.locator("#drawing svg[data-state=still]")).to_be_visible()


def test_a_traversal_is_drawn_and_grows_by_its_neighbors(page: Page) -> None:
    sign_in(page, path=PEOPLE)
    page.get_by_role("link", name="Graph", exact=True).click()
    expect(editor(page, TRAVERSAL)).to_be_visible()
    run(page, "g.V(['p0', 'v0'])")
    drawn(page, "1 vertex, 0 edges")
    page.get_by_role("button", name="person Person 0").click()
    page.get_by_role("button", name="Outgoing neighbors").click()
    drawn(page, "2 vertices, 1 edge")
    page.get_by_role("button", name="All neighbors").click()
    drawn(page, "3 vertices, 2 edges")
    run(page, "g.V()")
    drawn(page, "6 vertices, 0 edges")
    page.get_by_role("button", name="Find edges between them").click()
    drawn(page, "6 vertices, 6 edges")
    run(page, "g.V(['p0', 'v0']).outE().inV().outE().inV().path()")
    drawn(page, "3 vertices, 2 edges")


def test_a_refusal_of_the_door_is_a_sentence(page: Page, watch: PageWatch) -> None:
    watch.expect_fault("status of 4")
    sign_in(page, path=f"{PEOPLE}/graph")
    run(page, "g.V().nothing()")
    problem = page.locator("#traversal-problem")
    expect(problem).to_contain_text("Gremlin Query Compilation Error: ")
    expect(problem).not_to_contain_text("ActivityId")
    run(page, "g.V().count()")
    expect(page.get_by_role("tabpanel", name="JSON")).to_contain_text("6")
    expect(problem).to_be_hidden()


def test_the_profile_of_a_traversal_shows_the_partitions_that_it_read(page: Page) -> None:
    sign_in(page, path=f"{PEOPLE}/graph")
    write(page, TRAVERSAL, "g.V('v0').out()")
    page.get_by_role("button", name="Run with profile").click()
    for step in ("GetVertices", "GetEdges", "GetNeighborVertices"):
        expect(page.get_by_text(step, exact=True).first).to_be_visible()
    expect(page.get_by_text("V() was looked for in 4 partitions; give the partition key.")).to_be_visible()
