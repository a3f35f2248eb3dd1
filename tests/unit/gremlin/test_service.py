"""Traversals from their text to their results, on a graph in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from asterism.errors import Forbidden, ItemExists, OwnerNotFound
from asterism.languages.gremlin.evaluation import EvaluationOptions, GraphName
from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.service import GremlinService
from asterism.languages.gremlin.text.parser import parse
from tests.support.world import ACCOUNT
from tests.unit.gremlin.stored_graph import Graph, edge, open_graph, vertex

COSMOS = EvaluationOptions("cosmos")


def service_of(graph: Graph) -> GremlinService:
    return GremlinService(
        graph.world.store, account=ACCOUNT, monotonic=graph.world.store.services.clock.monotonic_seconds
    )


def name_of(graph: Graph) -> GraphName:
    database = graph.world.store.catalog.databases[graph.container.record.database_rid]
    return GraphName(database.name, graph.container.record.name)


async def ask(graph: Graph, text: str, options: EvaluationOptions = COSMOS, **bindings: Any) -> list[Any]:
    return await ask_service(service_of(graph), graph, text, options, bindings)


async def ask_service(
    service: GremlinService, graph: Graph, text: str, options: EvaluationOptions, bindings: Mapping[str, Any]
) -> list[Any]:
    evaluation = service.evaluate_text(name_of(graph), text, bindings, options)
    return [value async for batch in evaluation.batches() for value, bulk in batch for _ in range(bulk)]


async def test_a_text_is_parsed_planned_and_run() -> None:
    async with open_graph() as graph:
        anna, ben = vertex("anna", "p1", age=30), vertex("ben", "p2", age=40)
        await graph.create(anna, ben, edge("e1", anna, ben))
        assert await ask(graph, "g.V(['p1','anna']).out('knows').values('age')") == [40]
        assert await ask(graph, "g.V().has('age', gt(limit)).count()", limit=35) == [1]


async def test_a_traversal_is_run_as_its_text_is() -> None:
    async with open_graph() as graph:
        await graph.create(vertex("anna", "p1", age=30))
        evaluation = service_of(graph).evaluate_bytecode(
            name_of(graph), parse("g.V('anna').values('age')"), EvaluationOptions("tinkerpop")
        )
        assert [value async for batch in evaluation.batches() for value, _ in batch] == [30]
        assert evaluation.charge > 0


async def test_values_of_bindings_are_no_part_of_a_plan() -> None:
    async with open_graph() as graph:
        await graph.create(vertex("anna", "p1"), vertex("ben", "p2"))
        service = service_of(graph)
        for vertex_id, pk in (("anna", "p1"), ("ben", "p2"), ("carl", "p3")):
            found = await ask_service(service, graph, "g.V([pk, x]).id()", COSMOS, {"pk": pk, "x": vertex_id})
            assert found == ([] if vertex_id == "carl" else [vertex_id])


@pytest.mark.parametrize(
    "text",
    [
        "g.V().has('pk', pk).id()",
        "g.V(x).has('pk', pk).id()",
        "g.V().has('name', x).id()",
        "g.V().hasLabel('person').as('v').where(__.has('pk', pk)).select('v').id()",
        "g.V().out('knows').has('pk', pk).id()",
        "g.V().outE('knows').inV().hasId(x).id()",
        "g.V().out('knows').dedup().has(id, x).id()",
    ],
)
async def test_conditions_that_a_step_looks_ahead_at_are_those_of_the_request(text: str) -> None:
    async with open_graph() as graph:
        vertices = [vertex(name, f"p{name}", name=name) for name in ("anna", "ben", "carl")]
        ring = [edge(f"e{n}", vertices[n], vertices[(n + 1) % 3]) for n in range(3)]
        await graph.create(*vertices, *ring)
        service = service_of(graph)
        for name in ("anna", "ben", "carl", "nobody", "anna"):
            found = await ask_service(service, graph, text, COSMOS, {"pk": f"p{name}", "x": name})
            assert found == ([] if name == "nobody" else [name])


async def test_a_key_for_reading_cannot_write() -> None:
    async with open_graph() as graph:
        options = EvaluationOptions("cosmos", may_write=False)
        with pytest.raises(Forbidden):
            await ask(graph, "g.addV('person').property('id','x').property('pk','p1')", options)
        assert await ask(graph, "g.V().count()", options) == [0]


async def test_a_graph_that_does_not_exist_is_refused() -> None:
    async with open_graph() as graph:
        evaluation = service_of(graph).evaluate_text(GraphName("nowhere", "g"), "g.V()", {}, COSMOS)
        with pytest.raises(OwnerNotFound):
            await anext(evaluation.batches())


async def test_racing_writers_of_one_vertex_lose_no_update() -> None:
    async with open_graph() as graph:
        await graph.create(vertex("anna", "p1"))
        service = service_of(graph)
        text = "g.V(['p1','anna']).property(list, 'seen', number)"
        await asyncio.gather(*(ask_service(service, graph, text, COSMOS, {"number": n}) for n in range(8)))
        assert sorted(await ask(graph, "g.V(['p1','anna']).values('seen')")) == list(range(8))


async def test_racing_upserts_leave_a_single_vertex() -> None:
    async with open_graph() as graph:
        service = service_of(graph)
        text = "g.V(['p1','anna']).fold().coalesce(unfold(), addV('person').property('id','anna').property('pk','p1'))"
        found = await asyncio.gather(*(ask_service(service, graph, text, COSMOS, {}) for _ in range(8)))
        assert [len(results) for results in found] == [1] * 8
        assert await ask(graph, "g.V().count()") == [1]


async def test_a_text_is_planned_once_whatever_its_bindings_are() -> None:
    async with open_graph() as graph:
        anna, ben = vertex("anna", "p1", age=30), vertex("ben", "p2", age=40)
        await graph.create(anna, ben, edge("e1", anna, ben))
        service = service_of(graph)
        text = "g.V(start).out(label).has('age', test).values(name)"
        same = {"label": "knows", "name": "age"}
        for changed, expected in (
            ({"start": ["p1", "anna"], "test": 40}, [40]),
            ({"start": "anna", "test": 40}, [40]),
            ({"start": ["p2", "ben"], "test": 40}, []),
            ({"start": "anna", "test": parse("g.V().is(gt(50))").steps[-1].arguments[0]}, []),
            ({"start": "anna", "test": parse("g.V().is(lt(50))").steps[-1].arguments[0]}, [40]),
        ):
            assert await ask_service(service, graph, text, COSMOS, {**same, **changed}) == expected


async def test_an_edge_may_have_the_id_of_a_vertex_of_its_partition() -> None:
    async with open_graph() as graph:
        await graph.create(vertex("1", "p1"), vertex("2", "p2"))
        await ask(graph, "g.V('1').addE('knows').to(g.V('2')).property('id','1')")
        assert await ask(graph, "g.E().id()") == ["1"]
        for text in ("g.E('1')", "g.E(['p1','1'])", "g.V('1').outE()", "g.V('2').inE()"):
            assert await ask(graph, f"{text}.id()") == ["1"]
        await ask(graph, "g.E('1').property('since', 2020)")
        assert await ask(graph, "g.E('1').values('since')") == [2020]
        with pytest.raises(ItemExists):
            await ask(graph, "g.V('1').addE('knows').to(g.V('2')).property('id','1')")
        await ask(graph, "g.E('1').drop()")
        assert await ask(graph, "g.E().count()") == [0]
        assert await ask(graph, "g.V().count()") == [2]


@pytest.mark.parametrize(
    ("text", "cosmos", "tinkerpop"),
    [
        # As the service's emulator was recorded to answer.
        ("g.V().values('age').max()", [40.0], [40]),
        ("g.V().values('age').fold().min(local)", [30.0], [30]),
        ("g.V().values('age').sum()", [70], [70]),
        ("g.V().choose(values('age')).option(3, constant(1)).count()", [0], [2]),
        ("g.V().choose(values('age')).option(30, constant(1)).option(none, constant(2)).fold()", [[1, 2]], [[1, 2]]),
    ],
)
async def test_the_dialects_differ_where_the_service_does(text: str, cosmos: list[Any], tinkerpop: list[Any]) -> None:
    async with open_graph(partitions=1) as graph:
        await graph.create(vertex("anna", "p1", age=30), vertex("ben", "p2", age=40))
        for options, expected in ((COSMOS, cosmos), (EvaluationOptions("tinkerpop"), tinkerpop)):
            found = await ask(graph, text, options)
            assert found == expected
            assert [isinstance(value, float) for value in found] == [isinstance(value, float) for value in expected]


async def test_values_of_other_types_are_checked_again() -> None:
    async with open_graph() as graph:
        await graph.create(vertex("anna", "p1", age=30))
        service = service_of(graph)
        text = "g.V().limit(count).values(name)"
        for _ in range(2):
            assert await ask_service(service, graph, text, COSMOS, {"count": 1, "name": "age"}) == [30]
        with pytest.raises(CompileFailure):
            await ask_service(service, graph, text, COSMOS, {"count": "one", "name": "age"})
        assert await ask_service(service, graph, text, COSMOS, {"count": 1, "name": "age"}) == [30]


async def test_two_hops_over_a_hundred_edges_take_few_calls_of_the_store() -> None:
    async with open_graph(partitions=4) as graph:
        people = [vertex(f"v{number}", f"p{number}") for number in range(111)]
        await graph.create(*people)
        for number in range(11):
            for place in range(10):
                target = people[1 + 10 * number + place]
                await graph.create(edge(f"e{number}-{place}", people[number], target))
        (profile,) = await ask(graph, "g.V(['p0', 'v0']).out().out().values('pk').executionProfile()")
        assert profile["metrics"][-1]["counts"] == {"resultCount": 100}
        assert profile["storeCalls"] <= 25
