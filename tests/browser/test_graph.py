"""The page of a graph: results drawn, elements chosen, profiles as a picture. The door is played by canned replies."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from playwright.sync_api import Page, expect

from tests.browser.editing import editor, write
from tests.browser.graph_replies import FakeDoor, edge, refusal, reply, vertex
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer
from tests.browser.signing_in import sign_in

TRAVERSAL = "Traversal"
# Circles and texts of the drawing in pixels, once the layout has come to rest.
SHAPES = """() => {
  const box = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return [left, right, top, bottom];
  };
  const all = (selector) => [...document.querySelectorAll(`#drawing ${selector}`)].map(box);
  return { circles: all(".vertex circle"), texts: all("text"), window: box(document.querySelector("#drawing svg")) };
}"""


@pytest.fixture(scope="module")
def graph(portal: PortalServer) -> str:
    database = portal.server.client().create_database_if_not_exists("graphs")
    database.create_container("people", PartitionKey(path="/pk"), offer_throughput=20_000)
    database.create_container("other", PartitionKey(path="/city"))
    database.create_container("nested", PartitionKey(path="/a/b"))
    return "/c/asterism/graphs/people/graph"


@pytest.fixture
def door(page: Page, graph: str) -> FakeDoor:
    door = FakeDoor(page)
    sign_in(page, path=graph)
    expect(editor(page, TRAVERSAL)).to_be_visible()
    return door


def run(page: Page, door: FakeDoor, results: list[Any], text: str = "g.V()") -> None:
    door.replies.append(reply(results))
    write(page, TRAVERSAL, text)
    page.keyboard.press("Control+Enter")


def drawn(page: Page) -> None:
    expect(page.locator("#drawing svg[data-state=still]")).to_be_visible()


def overlaps(boxes: list[list[float]]) -> int:
    return sum(
        1
        for place, (left, right, top, bottom) in enumerate(boxes)
        for other_left, other_right, other_top, other_bottom in boxes[place + 1 :]
        if left < other_right and other_left < right and top < other_bottom and other_top < bottom
    )


def covered(circles: list[list[float]]) -> int:
    """Count the pairs of circles, given by their boxes, of which one covers a part of the other."""
    centers = [((left + right) / 2, (top + bottom) / 2, right - left) for left, right, top, bottom in circles]
    return sum(
        1
        for place, (x, y, width) in enumerate(centers)
        for other_x, other_y, _ in centers[place + 1 :]
        if math.hypot(x - other_x, y - other_y) < width
    )


def clustered(count: int) -> list[Any]:
    """Vertices of ten communities with hubs, a few edges between them, and some vertices alone."""
    generator = random.Random(7)
    edges = []
    for number in range(10, count - 20):
        edges.append((number, number % 10))
        if number % 3 == 0:
            edges.append((number, generator.randrange(count - 20)))
    edges += [(hub, (hub + 1) % 10) for hub in range(10)]
    vertices = [vertex(number, label=f"label {number % 10}", key=f"p{number % 4}") for number in range(count)]
    return [*vertices, *(edge(number, *ends) for number, ends in enumerate(edges))]


def test_five_hundred_vertices_stay_readable(page: Page, door: FakeDoor) -> None:
    run(page, door, clustered(500))
    drawn(page)
    expect(page.get_by_text("500 vertices, ")).to_be_visible()
    shapes = page.evaluate(SHAPES)
    assert len(shapes["circles"]) == 500
    assert covered(shapes["circles"]) == 0
    # Labels only where they fit: some do, and none covers another.
    assert len(shapes["texts"]) >= 30
    assert overlaps(shapes["texts"]) == 0
    left, right, top, bottom = shapes["window"]
    assert all(left <= box[0] and box[1] <= right and top <= box[2] and box[3] <= bottom for box in shapes["circles"])
    before = len(shapes["texts"])
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    zoomed = page.evaluate(SHAPES)
    assert overlaps(zoomed["texts"]) == 0
    page.get_by_role("button", name="Fit").click()
    assert len(page.evaluate(SHAPES)["texts"]) == before


def test_a_star_and_vertices_without_edges_do_not_overlap(page: Page, door: FakeDoor) -> None:
    star = [vertex(number) for number in range(300)] + [edge(number, 0, number) for number in range(1, 200)]
    run(page, door, star)
    drawn(page)
    assert covered(page.evaluate(SHAPES)["circles"]) == 0


def test_elements_are_found_in_paths_and_maps(page: Page, door: FakeDoor) -> None:
    path = {"labels": [[], [], []], "objects": [vertex(1), edge(1, 1, 2), vertex(2)]}
    implied = {"labels": [[], []], "objects": [vertex(2), vertex(3)]}
    run(page, door, [path, implied, {"v": vertex(4), "deep": [{"e": edge(2, 4, 5)}]}, 7])
    drawn(page)
    expect(page.get_by_text("5 vertices, 3 edges")).to_be_visible()
    expect(page.locator("#drawing .edge.implied")).to_have_count(1)
    # The end of an edge is drawn though the result has no more than its id.
    expect(page.locator("#drawing .vertex.unloaded")).to_have_count(1)


def test_a_chosen_vertex_shows_its_properties_and_expands_by_one_traversal(page: Page, door: FakeDoor) -> None:
    run(page, door, [vertex(1, key="it's", age=31)])
    drawn(page)
    page.get_by_role("button", name="person name 1").click()
    chosen = page.get_by_role("complementary", name="Chosen element")
    expect(chosen).to_contain_text("31")
    expect(chosen).to_contain_text("it's")
    door.replies.append(reply([{"edge": edge(1, 1, 2, since=2017), "vertex": vertex(2)}]))
    page.get_by_role("button", name="Outgoing neighbors").click()
    expect(page.get_by_text("2 vertices, 1 edge")).to_be_visible()
    assert door.texts[-1].startswith("g.V(['it\\'s', 'v1']).outE()")
    drawn(page)
    page.get_by_role("button", name="person name 2").focus()
    page.keyboard.press("Enter")
    expect(chosen).to_contain_text("name 2")
    page.locator("#drawing .edge .grip").click(force=True)
    expect(chosen).to_contain_text("2017")


def test_edges_between_the_vertices_are_asked_for_by_key_and_id(page: Page, door: FakeDoor) -> None:
    run(page, door, [vertex(1), vertex(2)])
    drawn(page)
    door.replies.append(reply([edge(1, 1, 2)]))
    page.get_by_role("button", name="Find edges between them").click()
    expect(page.get_by_text("2 vertices, 1 edge")).to_be_visible()
    assert door.texts[-1] == "g.V(['p', 'v1'], ['p', 'v2']).outE().where(inV().hasId('v1', 'v2'))"


def test_vertices_are_reached_by_arrow_keys(page: Page, door: FakeDoor) -> None:
    run(page, door, [vertex(1), vertex(2), edge(1, 1, 2)])
    drawn(page)
    page.locator("#drawing .vertex").first.focus()
    names = {page.evaluate("document.activeElement.dataset.vertex")}
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        names.add(page.evaluate("document.activeElement.dataset.vertex"))
    assert names == {"v1", "v2"}
    page.keyboard.press("+")
    expect(page.locator("#drawing .vertex")).to_have_count(2)


def test_a_vertex_can_be_dragged_and_the_drawing_panned(page: Page, door: FakeDoor) -> None:
    run(page, door, [vertex(1), vertex(2), edge(1, 1, 2)])
    drawn(page)
    circle = page.locator("#drawing .vertex circle").first
    page.locator("#drawing").scroll_into_view_if_needed()
    circle.scroll_into_view_if_needed()
    box = circle.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 40, steps=4)
    page.mouse.up()
    moved = circle.bounding_box()
    assert moved is not None
    assert moved["x"] - box["x"] > 30
    expect(page.locator("#drawing svg.moving")).to_have_count(0)


def test_colors_stand_for_labels_or_for_partition_keys(page: Page, door: FakeDoor) -> None:
    run(
        page,
        door,
        [vertex(1, label="person", key="p"), vertex(2, label="city", key="p"), vertex(3, label="city", key="q")],
    )
    legend = page.get_by_role("list", name="Colors").get_by_role("listitem")
    expect(legend).to_have_text(["city (2)", "person (1)"])
    page.get_by_label("Colors").first.select_option("by pk")
    expect(legend).to_have_text(["p (2)", "q (1)"])
    drawn(page)
    assert page.locator("#drawing .vertex.series-1").count() == 2


def test_the_table_has_the_same_elements_and_chooses_them(page: Page, door: FakeDoor) -> None:
    run(page, door, [vertex(1, age=31), vertex(2), edge(1, 1, 2, since=2017)])
    page.get_by_role("tab", name="Table").click()
    rows = page.get_by_role("region", name="Tables of the elements").get_by_role("row")
    expect(rows).to_have_count(5)
    expect(rows.nth(1)).to_contain_text("age: 31")
    expect(rows.nth(4)).to_contain_text("since: 2017")
    page.get_by_role("button", name="Choose the vertex name 2").click()
    expect(page.get_by_role("complementary", name="Chosen element")).to_contain_text("name 2")


def test_results_without_elements_are_shown_as_json_with_exact_numbers(page: Page, door: FakeDoor) -> None:
    run(page, door, [{"person": 9007199254740993}])
    expect(page.get_by_role("tabpanel", name="JSON")).to_contain_text("9007199254740993")
    expect(page.get_by_text("1 result · 3.5 RU · 1.5 ms")).to_be_visible()


PROFILE = {
    "gremlin": "g.V('v1').out().executionProfile()",
    "totalTime": 28,
    "metrics": [
        {
            "name": "GetVertices",
            "time": 24,
            "counts": {"resultCount": 1},
            "storeOps": [
                {"fanoutFactor": 2, "count": 1, "size": 696, "time": 0.4, "partitions": ["0", "1"]}
                | {"requestCharge": 9.0, "index": "id"}
            ],
        },
        {
            "name": "GetEdges",
            "time": 3,
            "counts": {"resultCount": 2},
            "storeOps": [{"fanoutFactor": 1, "count": 2, "size": 90, "partitions": ["1"], "requestCharge": 1.25}],
        },
        {"name": "ProjectOperator", "time": 1, "counts": {"resultCount": 2}},
    ],
    "advice": ["V('v1') was looked for in 2 partitions; give the partition key"],
}


def test_the_profile_is_a_picture_of_steps_and_partitions(page: Page, door: FakeDoor) -> None:
    door.replies.append(reply([PROFILE], charge=10.25))
    write(page, TRAVERSAL, "g.V('v1').out().toList()")
    page.get_by_role("button", name="Run with profile").click()
    panel = page.get_by_role("tabpanel", name="Profile")
    expect(panel.get_by_role("list", name="Advice")).to_contain_text("give the partition key")
    assert door.texts == ["g.V('v1').out().executionProfile()"]
    expect(panel.get_by_text(re.compile(r"2 of 4 physical partitions touched · 10\.3 RU · 28 ms"))).to_be_visible()
    first, second, third = (panel.locator("tbody tr").nth(number).locator("td.partition") for number in range(3))
    expect(first).to_have_text(["4.5", "4.5", "", ""])
    expect(second).to_have_text(["", "1.25", "", ""])
    expect(third).to_have_text(["", "", "", ""])
    expect(panel.locator("tbody tr").first.locator("td.heat-4")).to_have_count(2)


def test_a_refusal_is_a_sentence(page: Page, door: FakeDoor, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    door.replies.append(
        refusal("Gremlin Query Compilation Error: Unable to find any method 'fail' @ line 1, column 11.")
    )
    write(page, TRAVERSAL, "g.V().fail(1)")
    page.keyboard.press("Control+Enter")
    problem = page.locator("#traversal-problem")
    expect(problem).to_have_text(
        "Gremlin Query Compilation Error: Unable to find any method 'fail' @ line 1, column 11."
    )
    door.replies.append(refusal("Slow down.", code=500, status=429, **{"x-ms-retry-after-ms": "00:00:03.2000000"}))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(problem).to_have_text("The provisioned throughput is used up (429). Try again in 4 seconds.")
    run(page, door, [vertex(1)])
    expect(problem).to_be_hidden()


def test_data_never_becomes_markup(page: Page, door: FakeDoor) -> None:
    run(page, door, [vertex(1, label="<img src=x>", name="<b>bold</b>")])
    drawn(page)
    expect(page.locator("#drawing text")).to_have_text(["<b>bold</b>"])
    assert page.locator("#graph img, #graph b").count() == 0


def test_the_history_and_the_choice_of_a_graph(page: Page, door: FakeDoor) -> None:
    run(page, door, [1], "g.V().count()")
    expect(page.get_by_text("1 result · ")).to_be_visible()
    page.reload()
    expect(editor(page, TRAVERSAL)).to_have_text("g.V().count()")
    page.get_by_text("Examples", exact=True).click()
    page.get_by_role("button", name="One vertex, by partition key and id").click()
    expect(editor(page, TRAVERSAL)).to_have_text("g.V(['key', 'id'])")
    choice = page.locator("#other-graph")
    expect(choice.get_by_role("option")).to_have_text(["graphs / other", "graphs / people"])
    choice.select_option("graphs / other")
    expect(page.get_by_role("heading", name="Graph graphs / other")).to_be_attached()


def test_a_container_with_another_kind_of_key_is_no_graph(page: Page, graph: str, watch: PageWatch) -> None:
    watch.expect_fault("status of 400")
    sign_in(page)
    page.goto("/c/asterism/graphs/nested/graph")
    expect(page.get_by_text("This container cannot be a graph")).to_be_visible()
