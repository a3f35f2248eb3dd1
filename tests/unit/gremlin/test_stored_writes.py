"""Writes to a graph on a partitioned container."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from asterism.errors import (
    Forbidden,
    ItemExists,
    ItemNotFound,
    PreconditionFailed,
    RequestRateTooLarge,
    TooMuchContention,
)
from asterism.languages.gremlin.evaluation import EvaluationOptions, GraphName
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import EdgeDraft, Lookup, VertexDraft
from asterism.languages.gremlin.graph.writes import PartlyWritten
from asterism.languages.gremlin.service import GremlinService
from asterism.languages.gremlin.tree import T_ID, T_LABEL, Instruction, Token, Traversal
from asterism.models.documents.transaction import Overtaken
from tests.support.world import ACCOUNT
from tests.unit.gremlin.stored_graph import Graph, open_graph, step

SINGLE, LIST, SET = (Token("Cardinality", name) for name in ("single", "list", "set"))


@pytest.fixture
async def graph() -> AsyncIterator[Graph]:
    async with open_graph() as opened:
        yield opened


def child(*steps: Instruction) -> Traversal:
    return Traversal(steps)


def person(vertex_id: str, pk: str, *more: Instruction) -> tuple[Instruction, ...]:
    return (step("addV", "person"), step("property", T_ID, vertex_id), *more, step("property", "pk", pk))


async def stored(graph: Graph, vertex_id: str, pk: str) -> dict[str, Any]:
    answer = await graph.container.read_item(vertex_id.encode(), (pk,))
    return dict(json.loads(answer.body))


async def count(graph: Graph) -> tuple[int, int]:
    return len(await graph.results(step("V"))), len(await graph.results(step("E")))


# --- documents ------------------------------------------------------------------------------------------------------


async def test_a_vertex_is_the_document_that_the_service_stores(graph: Graph) -> None:
    await graph.results(*person("thomas", "p", step("property", "age", 44), step("property", "name", "T", "de", "X")))
    document = await stored(graph, "thomas", "p")
    assert {name: document[name] for name in ("id", "label", "pk")} == {"id": "thomas", "label": "person", "pk": "p"}
    (age,), (name,) = document["age"], document["name"]
    assert (age["_value"], "_meta" in age) == (44, False)
    assert (name["_value"], name["_meta"]) == ("T", {"de": "X"})


async def test_an_edge_lies_with_its_source_and_names_its_target(graph: Graph) -> None:
    await graph.results(*person("a", "p1"))
    await graph.results(*person("b", "p2"))
    await graph.results(
        step("V", ["p1", "a"]),
        step("addE", "knows"),
        step("property", T_ID, "e"),
        step("property", "since", 2017),
        step("to", child(step("V", "b"))),
    )
    document = await stored(graph, "e", "p1")
    expected = {
        "id": "e",
        "label": "knows",
        "_isEdge": True,
        "pk": "p1",
        "_vertexId": "a",
        "_vertexLabel": "person",
        "_sink": "b",
        "_sinkLabel": "person",
        "_sinkPartition": "p2",
        "since": 2017,
    }
    assert {name: value for name, value in document.items() if name in expected} == expected


async def test_a_graph_without_partitions_has_edges_without_keys() -> None:
    async with open_graph(partitions=1, is_fixed=True) as graph:
        await graph.results(
            step("addV"), step("property", T_ID, 1), step("as", "a"), step("addE", "self"), step("to", "a")
        )
        assert [found.id for found in await graph.results(step("V", 1), step("out"))] == ["1"]
        (found,) = await graph.results(step("E"))
        assert "_sinkPartition" not in found.document


async def test_new_ids_are_guids(graph: Graph) -> None:
    (first,) = await graph.results(step("addV"), step("property", "pk", "p"))
    (second,) = await graph.results(step("addV"), step("property", "pk", "p"))
    assert first.label == "vertex"
    assert len({first.id, second.id}) == 2
    assert len(first.id) == 36


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([step("addV", "person")], "Cannot add a vertex where the partition key property has value 'null'."),
        ([step("addV"), step("property", "pk", None)], "has value 'null'"),
        ([step("addV"), step("property", "pk", ["a", "b"])], "Partition property must be single-valued."),
        ([step("addV"), step("property", LIST, "pk", "a")], "Partition property must be single-valued."),
        ([*person("x", "p"), step("property", "name", None)], "cannot be null"),
        ([*person("x", "p"), step("property", "name", {"a": 1})], "cannot be a dict"),
        ([*person("x", "p"), step("property", "_etag", "1")], "reserved"),
        ([*person("x", "p"), step("property", "weight", float("nan"))], "not a finite number"),
        ([*person("x", "p"), step("identity"), step("property", "pk", "q")], "cannot be changed"),
        ([*person("x", "p"), step("identity"), step("property", T_LABEL, "q")], "T.label is immutable"),
        ([*person("x", "p"), step("addE", "knows"), step("to", child(step("V", "y")))], "must resolve to a Vertex"),
    ],
)
async def test_elements_that_cannot_be_stored_are_refused(
    graph: Graph, steps: list[Instruction], sentence: str
) -> None:
    with pytest.raises(ExecutionFailure, match=sentence):
        await graph.results(*steps)
    assert await count(graph) == (0, 0)


async def test_an_id_that_exists_is_refused(graph: Graph) -> None:
    await graph.results(*person("x", "p"))
    with pytest.raises(Overtaken):
        await graph.results(*person("x", "p"))
    with pytest.raises(ItemExists):
        await graph.results(*person("x", "p"), session=graph.session(looks_first=True))
    await graph.results(*person("x", "q"))
    assert await count(graph) == (2, 0)


async def test_a_read_only_session_writes_nothing(graph: Graph) -> None:
    with pytest.raises(Forbidden):
        await graph.results(*person("x", "p"), session=graph.session(may_write=False))


# --- units ----------------------------------------------------------------------------------------------------------


async def test_a_traversal_that_fails_leaves_nothing(graph: Graph) -> None:
    with pytest.raises(ExecutionFailure):
        await graph.results(*person("a", "p"), *person("b", "p"), step("addV", "without a key"))
    assert await count(graph) == (0, 0)


async def test_all_writes_of_a_logical_partition_are_one_batch(graph: Graph) -> None:
    await graph.results(
        *person("a", "p"),
        step("as", "a"),
        *person("b", "p"),
        step("as", "b"),
        step("addE", "knows"),
        step("from", "a"),
        step("to", "b"),
    )
    answers = [await graph.container.read_item(name, ("p",)) for name in (b"a", b"b")]
    assert [answer.lsn for answer in answers] == [1, 1]
    assert await count(graph) == (2, 1)


async def test_later_steps_see_what_was_added(graph: Graph) -> None:
    found = await graph.results(
        *person("a", "p"),
        step("as", "a"),
        *person("b", "q"),
        step("addE", "knows"),
        step("to", "a"),
        step("V", "b"),
        step("out", "knows"),
        step("id"),
    )
    assert found == ["a"]


async def test_a_conflict_with_another_writer_is_found_before_anything_is_written(graph: Graph) -> None:
    await graph.results(*person("a", "p"))
    session = graph.session()
    (vertex,) = [vertex async for batch in session.vertices(Lookup(ids=("a",))) for vertex in batch]
    await session.set_vertex_property(vertex, "age", 1, "single", {})
    await session.add_vertex(VertexDraft("person", "b", [("pk", "p", "single", {})]))
    await graph.results(step("V", ["p", "a"]), step("property", "age", 2))
    with pytest.raises(Overtaken):
        await session.commit()
    assert await graph.results(step("V", ["p", "a"]), step("values", "age")) == [2]
    assert await count(graph) == (1, 0)


async def test_an_edge_is_not_written_if_an_end_was_removed_meanwhile(graph: Graph) -> None:
    await graph.results(*person("a", "p"))
    await graph.results(*person("b", "p"))
    session = graph.session()
    vertices = [vertex async for batch in session.vertices(Lookup(keys=("p",))) for vertex in batch]
    await session.add_edge(EdgeDraft("knows", vertices[0], vertices[1]))
    await graph.results(step("V", ["p", "b"]), step("drop"))
    with pytest.raises((Overtaken, ItemNotFound)):
        await session.commit()
    assert await count(graph) == (1, 0)


@pytest.mark.parametrize("settings", [{}, {"incomingEdges": True}])
async def test_no_edge_stays_behind_that_is_added_while_an_end_is_removed(settings: dict[str, Any]) -> None:
    async with open_graph(**settings) as graph:
        for name in "abc":
            await graph.results(*person(name, f"p{name}"))
        session = graph.session()
        (found,) = [vertex async for batch in session.vertices(Lookup(ids=("b",))) for vertex in batch]
        await session.remove([found])
        for source, target in ("ab", "bc", "bb", "ac"):
            other = child(step("V", [f"p{target}", target]))
            await graph.results(step("V", [f"p{source}", source]), step("addE", "next"), step("to", other))
        assert await count(graph) == (3, 4)
        await session.commit()
        assert await count(graph) == (2, 1)


async def test_an_edge_is_taken_back_if_its_end_elsewhere_was_removed_meanwhile(graph: Graph) -> None:
    await graph.results(*person("a", "p"))
    await graph.results(*person("b", "q"))
    for adds_vertex in (False, True):
        session = graph.session()
        vertices = {vertex.id: vertex async for batch in session.vertices(Lookup()) for vertex in batch}
        await session.add_edge(EdgeDraft("knows", vertices["a"], vertices["b"]))
        if adds_vertex:
            await session.add_vertex(VertexDraft("person", "c", [("pk", "p", "single", {})]))
        await graph.results(step("V", ["q", "b"]), step("drop"))
        with pytest.raises(PartlyWritten if adds_vertex else ItemNotFound):
            await session.commit()
        assert await count(graph) == (1 + adds_vertex, 0)
        await graph.results(*person("b", "q"))


async def test_a_budget_that_is_spent_in_one_partition_leaves_nothing_in_another() -> None:
    async with open_graph(enforce=True) as graph:
        spent = graph.container.keyspace.record.map.find(graph.container.planner.point(("k1",))).id
        bucket = graph.container.keyspace.buckets[spent]
        bucket.spend(100_000, now=graph.world.store.services.clock.monotonic_seconds())
        with pytest.raises(RequestRateTooLarge):
            await graph.results(*person("a", "k2"), *person("b", "k3"), *person("c", "k1"))
        assert await count_without(graph, spent) == 0


async def count_without(graph: Graph, range_id: int) -> int:
    ranges = [each for each in graph.container.keyspace.record.map.ranges if each.id != range_id]
    return sum([len(await graph.world.everything(each.partition, b"\x10")) for each in ranges])


async def test_a_traversal_over_several_partitions_says_that_it_was_written_in_part(graph: Graph) -> None:
    await graph.results(*person("a", "k2"))
    session = graph.session()
    (vertex,) = [vertex async for batch in session.vertices(Lookup(ids=("a",))) for vertex in batch]
    await session.add_vertex(VertexDraft("person", "b", [("pk", "k1", "single", {})]))
    changed = await session.set_vertex_property(vertex, "age", 1, "single", {})
    original = graph.container.commit
    calls = []

    async def commit(work: Any) -> Any:
        calls.append(work)
        if len(calls) == 2:
            raise Overtaken
        return await original(work)

    object.__setattr__(session._writes, "_container", _ContestedContainer(graph.container, commit))
    with pytest.raises(PartlyWritten) as raised:
        await session.commit()
    assert (raised.value.written, raised.value.planned) == (1, 2)
    assert changed.values("age") == [1]


class _ContestedContainer:
    """A container whose second commit is overtaken."""

    def __init__(self, container: Any, commit: Any) -> None:
        self._container = container
        self.commit = commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)


async def test_any_failure_after_the_first_partition_is_told_with_its_reason(graph: Graph) -> None:
    session = graph.session()
    for key in ("k1", "k2", "k3"):
        await session.add_vertex(VertexDraft("person", "b", [("pk", key, "single", {})]))
    original = graph.container.commit
    calls = []

    async def commit(work: Any) -> Any:
        calls.append(work)
        if len(calls) == 3:
            raise Forbidden(reason="The partition is full.")
        return await original(work)

    object.__setattr__(session._writes, "_container", _ContestedContainer(graph.container, commit))
    with pytest.raises(PartlyWritten) as raised:
        await session.commit()
    sentence = raised.value.sentence
    assert "changes 3 logical partitions" in sentence
    assert "2 of them were written" in sentence
    assert sentence.endswith("The partition is full.")
    assert await count(graph) == (2, 0)


async def test_a_change_of_a_version_that_is_overtaken_is_refused_and_not_decided_again(graph: Graph) -> None:
    await graph.results(*person("a", "p"))
    version = (await stored(graph, "a", "p"))["_etag"]
    changes = 0

    async def overtaken(work: Any) -> Any:
        nonlocal changes
        changes += 1
        raise Overtaken

    services = graph.world.store.services
    service = GremlinService(graph.world.store, account=ACCOUNT, monotonic=services.clock.monotonic_seconds)
    name = GraphName(graph.world.catalog.databases[graph.container.record.database_rid].name, "c")
    open_graph_session = service.session

    def session(*arguments: Any, **options: Any) -> Any:
        opened = open_graph_session(*arguments, **options)
        object.__setattr__(opened._writes, "_container", _ContestedContainer(graph.container, overtaken))
        return opened

    service.session = session  # type: ignore[method-assign]
    for text, error in (
        ("g.V(['p','a']).has('_etag', version).property('age', 1)", PreconditionFailed),
        ("g.V(['p','a']).property('age', 1)", TooMuchContention),
    ):
        changes = 0
        evaluation = service.evaluate_text(name, text, {"version": version}, EvaluationOptions("cosmos"))
        with pytest.raises(error):
            [batch async for batch in evaluation.batches()]
        assert (changes == 1) is (error is PreconditionFailed)


async def test_a_version_can_be_a_condition_of_a_change(graph: Graph) -> None:
    await graph.results(*person("a", "p"))
    version = (await stored(graph, "a", "p"))["_etag"]
    change = step("V", ["p", "a"]), step("has", "_etag", version), step("property", "age", 1)
    assert len(await graph.results(*change)) == 1
    assert await graph.results(*change) == []


# --- properties -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([("name", "a"), ("name", "b")], ["b"]),
        ([(LIST, "name", "a"), (LIST, "name", "a")], ["a", "a"]),
        ([(SET, "name", "a"), (SET, "name", "a"), (SET, "name", "b")], ["a", "b"]),
        ([(LIST, "name", "a"), (LIST, "name", "b"), (SINGLE, "name", "c")], ["c"]),
        ([({"name": "a"},)], ["a"]),
        ([("name", child(step("constant", "x")))], ["x"]),
    ],
)
@pytest.mark.parametrize("is_stored", [True, False])
async def test_cardinalities(graph: Graph, calls: list[Any], expected: list[str], is_stored: bool) -> None:
    steps = [step("property", *arguments) for arguments in calls]
    if is_stored:
        await graph.results(*person("x", "p"))
        await graph.results(step("V", "x"), *steps)
    else:
        await graph.results(*person("x", "p"), *steps)
    assert await graph.results(step("V", "x"), step("values", "name")) == expected


async def test_in_tinkerpops_dialect_null_removes_and_names_of_a_new_vertex_repeat(graph: Graph) -> None:
    graph.dialect = "tinkerpop"
    await graph.results(*person("x", "p"), step("property", "name", "a"), step("property", "name", "b"))
    assert await graph.results(step("V", "x"), step("values", "name")) == ["a", "b"]
    (changed,) = await graph.results(step("V", "x"), step("property", "name", None))
    assert "name" not in changed.properties
    assert await graph.results(step("V", "x"), step("values", "name")) == []


async def test_drop_of_a_vertex_takes_the_edges_of_both_directions(graph: Graph) -> None:
    for name in "abc":
        await graph.results(*person(name, f"p{name}"))
    for source, target in ("ab", "bc", "ca"):
        await graph.results(
            step("V", [f"p{source}", source]), step("addE", "next"), step("to", child(step("V", target)))
        )
    await graph.results(step("V", ["pb", "b"]), step("drop"))
    assert await count(graph) == (2, 1)
    await graph.results(step("E"), step("drop"))
    assert await count(graph) == (2, 0)


async def test_an_element_that_was_added_and_dropped_is_not_written(graph: Graph) -> None:
    await graph.results(*person("x", "p"), step("drop"))
    assert await count(graph) == (0, 0)


# --- merges ---------------------------------------------------------------------------------------------------------

ON_CREATE, ON_MATCH = Token("Merge", "onCreate"), Token("Merge", "onMatch")
OUT, IN = Token("Direction", "OUT"), Token("Direction", "IN")


async def test_merge_adds_a_vertex_once(graph: Graph) -> None:
    merge = step("mergeV", {T_ID: "x", T_LABEL: "person", "pk": "p"})
    options = step("option", ON_CREATE, {"state": "new"}), step("option", ON_MATCH, {"state": "known"})
    await graph.results(merge, *options)
    assert await graph.results(step("V"), step("values", "state")) == ["new"]
    await graph.results(merge, *options)
    assert await graph.results(step("V"), step("values", "state")) == ["known"]


async def test_an_option_of_a_merge_may_have_a_cardinality(graph: Graph) -> None:
    await graph.results(*person("x", "p"), step("property", "name", "a"))
    merge = step("mergeV", {T_ID: "x", "pk": "p"}), step("option", ON_MATCH, {"name": "b"}, SET)
    await graph.results(*merge)
    assert await graph.results(step("V", "x"), step("values", "name")) == ["a", "b"]


async def test_merge_adds_an_edge_once(graph: Graph) -> None:
    await graph.results(*person("a", "p"))
    await graph.results(*person("b", "q"))
    merge = step("mergeE", {T_LABEL: "knows", OUT: "a", IN: ["q", "b"], "since": 1})
    for _ in range(2):
        await graph.results(merge)
    assert await graph.results(step("V", "a"), step("outE"), step("values", "since")) == [1]


async def test_an_edge_between_vertices_that_are_not_there_is_refused(graph: Graph) -> None:
    with pytest.raises(ExecutionFailure, match="Vertex id could not be resolved from mergeE"):
        await graph.results(step("mergeE", {T_LABEL: "knows", OUT: "a", IN: "b"}))
    with pytest.raises(ExecutionFailure, match="Out Vertex not specified"):
        await graph.results(step("mergeE", {T_LABEL: "knows"}))


async def test_what_is_created_must_be_what_was_sought(graph: Graph) -> None:
    with pytest.raises(ExecutionFailure, match="cannot override values from merge"):
        await graph.results(step("mergeV", {"pk": "p"}), step("option", ON_CREATE, {"pk": "q"}))
