"""Reads of a graph on a partitioned container."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from asterism.errors import RequestRateTooLarge
from asterism.languages.gremlin.graph.contract import IndexCondition, Lookup
from asterism.languages.gremlin.graph.profile import StoreOperation
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.lookups import narrowed
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.tree import Instruction, Predicate, Traversal
from tests.unit.gremlin.stored_graph import Graph, edge, open_graph, step, vertex

MARY = vertex("mary", "p1", age=41)
PETER = vertex("peter", "p2", age=35)
LOP = vertex("lop", "p3", "software", lang="java")
PEOPLE = [vertex(f"v{number}", f"k{number}", age=number) for number in range(40)]


@pytest.fixture
async def graph() -> AsyncIterator[Graph]:
    async with open_graph() as opened:
        await opened.create(MARY, PETER, LOP, *PEOPLE)
        await opened.create(
            edge("e1", MARY, PETER, since=2017),
            edge("e2", MARY, LOP, "created"),
            edge("e3", PETER, LOP, "created"),
            edge("e4", LOP, LOP, "uses"),
        )
        yield opened


async def profiled(graph: Graph, *steps: Instruction) -> tuple[list[Any], list[StoreOperation]]:
    session = graph.session()
    session.ledger.operations = []
    return await graph.results(*steps, session=session), session.ledger.operations


def ids(elements: list[Any]) -> list[str]:
    return sorted(element.id for element in elements)


def range_of(graph: Graph, key: str) -> int:
    point = graph.container.planner.point((key,))
    return graph.container.keyspace.record.map.find(point).id


# --- places ---------------------------------------------------------------------------------------------------------


async def test_a_key_and_an_id_are_a_point_read(graph: Graph) -> None:
    found, operations = await profiled(graph, step("V", ["p1", "mary"]))
    assert [(person.id, person.key, person.values("age")) for person in found] == [("mary", "p1", [41])]
    assert [operation.partitions for operation in operations] == [{range_of(graph, "p1")}]
    assert sum(operation.charge for operation in operations) == 1.0


async def test_several_places_are_read_once_from_each_partition(graph: Graph) -> None:
    before = graph.world.router.calls
    found, operations = await profiled(graph, step("V", *[["k" + str(number), f"v{number}"] for number in range(40)]))
    assert len(found) == 40
    assert graph.world.router.calls - before == 4
    assert [operation.partitions for operation in operations] == [{0, 1, 2, 3}]


@pytest.mark.parametrize(
    "conditions",
    [
        [step("has", "pk", "p1")],
        [step("has", "pk", Predicate("within", ["p1", "p9"]))],
        [step("as", "a"), step("hasLabel", "person"), step("has", "pk", "p1")],
        [step("where", Traversal((step("has", "pk", "p1"),)))],
        [step("and", Traversal((step("has", "pk", "p1"),)), Traversal((step("hasLabel", "person"),)))],
    ],
)
async def test_ids_with_keys_are_point_reads(graph: Graph, conditions: list[Instruction]) -> None:
    lookup = narrowed(Compiler(STEPS, key_name="pk"), conditions, Lookup(ids=("mary", "peter")))
    session = graph.session()
    session.ledger.operations = operations = []
    found = [person async for batch in session.vertices(lookup) for person in batch]
    assert ids(found) == ["mary"]
    assert [operation.index for operation in operations] == [""]
    assert operations[0].partitions <= {range_of(graph, "p1"), range_of(graph, "p2")}


async def test_a_key_alone_is_a_scan_of_its_logical_partition(graph: Graph) -> None:
    session = graph.session()
    session.ledger.operations = operations = []
    found = [person async for batch in session.vertices(Lookup(keys=("p1",))) for person in batch]
    assert ids(found) == ["mary"]
    assert [(operation.partitions, operation.index) for operation in operations] == [({range_of(graph, "p1")}, "")]


@pytest.mark.parametrize(
    ("lookup", "index", "expected"),
    [
        (Lookup(ids=("peter",)), "id", ["peter"]),
        (Lookup(labels=("software",)), "label", ["lop"]),
        (Lookup(conditions=(IndexCondition("age", "eq", 35),)), "age", ["peter", "v35"]),
        (Lookup(conditions=(IndexCondition("age", "gt", 36),)), "age", ["mary", "v37", "v38", "v39"]),
        (Lookup(conditions=(IndexCondition("age", "within", (35, 41)),)), "age", ["mary", "peter", "v35"]),
    ],
)
async def test_conditions_use_the_index_of_every_partition(
    graph: Graph, lookup: Lookup, index: str, expected: list[str]
) -> None:
    session = graph.session()
    session.ledger.operations = operations = []
    found = [person async for batch in session.vertices(lookup) for person in batch]
    assert ids(found) == expected
    assert [(operation.partitions, operation.index) for operation in operations] == [({0, 1, 2, 3}, index)]


async def test_everything_is_scanned_without_conditions(graph: Graph) -> None:
    assert len(await graph.results(step("V"))) == 43
    assert ids(await graph.results(step("E"))) == ["e1", "e2", "e3", "e4"]


async def test_a_limit_reads_little(graph: Graph) -> None:
    session = graph.session()
    before = graph.world.router.calls
    found = [person async for batch in session.vertices(Lookup(limit=1)) for person in batch]
    assert len(found) == 1
    assert graph.world.router.calls - before == 1


# --- edges ----------------------------------------------------------------------------------------------------------


async def test_out_goes_to_the_partition_of_the_source_and_to_those_of_the_targets(graph: Graph) -> None:
    found, operations = await profiled(graph, step("V", ["p1", "mary"]), step("out"))
    assert ids(found) == ["lop", "peter"]
    assert all(person.is_loaded for person in found)
    assert [(operation.kind, operation.partitions) for operation in operations] == [
        ("GetVertices", {range_of(graph, "p1")}),
        ("GetEdges", {range_of(graph, "p1")}),
        ("GetNeighborVertices", {range_of(graph, "p2"), range_of(graph, "p3")}),
    ]


async def test_in_goes_to_every_partition(graph: Graph) -> None:
    found, operations = await profiled(graph, step("V", ["p3", "lop"]), step("in", "created"))
    assert ids(found) == ["mary", "peter"]
    assert (operations[1].kind, operations[1].partitions) == ("GetEdges", {0, 1, 2, 3})


async def test_both_has_a_loop_twice(graph: Graph) -> None:
    found = await graph.results(step("V", ["p3", "lop"]), step("both"))
    assert ids(found) == ["lop", "lop", "mary", "peter"]


async def test_ids_of_neighbors_are_known_from_the_edges(graph: Graph) -> None:
    found, operations = await profiled(graph, step("V", ["p1", "mary"]), step("out"), step("id"))
    assert sorted(found) == ["lop", "peter"]
    assert [operation.kind for operation in operations] == ["GetVertices", "GetEdges"]


async def test_edges_have_properties_and_both_ends(graph: Graph) -> None:
    assert await graph.results(step("V", ["p1", "mary"]), step("outE", "knows"), step("values", "since")) == [2017]
    assert ids(await graph.results(step("E", ["p1", "e2"]), step("bothV"))) == ["lop", "mary"]
    found = await graph.results(step("V", ["p3", "lop"]), step("inE", "created"), step("otherV"))
    assert ids(found) == ["mary", "peter"]


async def test_edges_are_found_by_the_partition_key_of_their_source(graph: Graph) -> None:
    found, operations = await profiled(graph, step("E"), step("has", "pk", "p1"))
    assert ids(found) == ["e1", "e2"]
    assert [operation.partitions for operation in operations] == [{range_of(graph, "p1")}]


async def test_vertices_of_one_id_in_two_logical_partitions_have_their_own_edges(graph: Graph) -> None:
    double = vertex("mary", "p9")
    await graph.create(double, edge("e9", double, PETER, "hates"))
    assert ids(await graph.results(step("V", ["p9", "mary"]), step("outE"))) == ["e9"]
    assert ids(await graph.results(step("V", ["p1", "mary"]), step("outE"))) == ["e1", "e2"]
    assert ids(await graph.results(step("V", "mary"))) == ["mary", "mary"]


async def test_edges_to_vertices_that_are_gone_lead_nowhere(graph: Graph) -> None:
    await graph.container.delete_item(b"peter", ("p2",))
    assert ids(await graph.results(step("V", ["p1", "mary"]), step("out"))) == ["lop"]


async def test_documents_that_are_no_elements_are_left_out(graph: Graph) -> None:
    await graph.create({"id": "x", "pk": "p1"}, {"id": "y", "pk": "p1", "label": 5})
    await graph.create({"id": "z", "pk": "p1", "label": "knows", "_isEdge": True})
    assert ids(await graph.results(step("V", ["p1", "x"], ["p1", "y"], ["p1", "z"]))) == []
    assert len(await graph.results(step("V"))) == 43


async def test_plain_values_that_others_wrote_are_found_by_the_index(graph: Graph) -> None:
    await graph.create({"id": "x", "pk": "p1", "label": "person", "age": 99})
    session = graph.session()
    lookup = Lookup(conditions=(IndexCondition("age", "eq", 99),))
    assert [person.id async for batch in session.vertices(lookup) for person in batch] == ["x"]


async def test_a_container_without_an_index_is_scanned() -> None:
    async with open_graph(indexingPolicy={"indexingMode": "none"}) as graph:
        await graph.create(MARY, PETER, LOP, edge("e1", MARY, PETER), edge("e2", PETER, LOP))
        assert ids(await graph.results(step("V", "peter"), step("out"))) == ["lop"]
        assert ids(await graph.results(step("V", "peter"), step("in"))) == ["mary"]


async def test_long_ids_that_share_their_first_bytes_are_told_apart(graph: Graph) -> None:
    first, second = vertex("x" * 250 + "a", "p1"), vertex("x" * 250 + "b", "p1")
    await graph.create(first, second, edge("long-1", first, PETER), edge("long-2", second, LOP))
    assert ids(await graph.results(step("V", ["p1", first["id"]]), step("out"))) == ["peter"]
    assert ids(await graph.results(step("V", second["id"]))) == [second["id"]]


async def test_reads_go_on_while_partitions_are_split(graph: Graph) -> None:
    session = graph.session()
    found: list[str] = []
    async for batch in session.vertices(Lookup(conditions=(IndexCondition("age", "gte", 0),))):
        found += [person.id for person in batch]
        if len(found) < 40:
            await graph.split(graph.container.keyspace.record.map.ranges[-1].id)
    assert sorted(found) == sorted(["mary", "peter", *(person["id"] for person in PEOPLE)])


async def test_a_spent_budget_refuses_with_the_charge_so_far() -> None:
    async with open_graph(partitions=1, enforce=True) as graph:
        await graph.create(MARY)
        bucket = graph.container.keyspace.buckets[0]
        bucket.spend(100_000, now=graph.world.store.services.clock.monotonic_seconds())
        session = graph.session()
        with pytest.raises(RequestRateTooLarge):
            await graph.results(step("V", ["p1", "mary"]), session=session)
        assert session.charge == 1.0
