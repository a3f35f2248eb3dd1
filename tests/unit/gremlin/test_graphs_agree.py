"""A stored graph, divided into partitions, answers traversals as a graph in a dictionary does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asterism.errors import ReshapeRefused
from asterism.languages.gremlin.engine.evaluate import evaluate
from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.graph.contract import GraphSession
from asterism.languages.gremlin.graph.elements import Edge, Vertex
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.tree import Instruction, Predicate, Traversal
from tests.unit.gremlin.memory_graph import MemoryGraph
from tests.unit.gremlin.stored_graph import Graph, edge, open_graph, step, vertex

VERTICES = 8
KEYS = ("a", "b", "c", "d", "e")
LABELS = ("person", "software")
EDGE_LABELS = ("knows", "created")

edges_between = st.lists(
    st.tuples(st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1), st.sampled_from(EDGE_LABELS)), max_size=14
)
keys_of = st.lists(st.sampled_from(KEYS), min_size=VERTICES, max_size=VERTICES)

to_vertices = st.sampled_from(
    [
        (step("out"),),
        (step("in"),),
        (step("both"),),
        (step("out", "knows"),),
        (step("in", "created"),),
        (step("both", "knows", "created"),),
        (step("outE"), step("inV")),
        (step("inE", "knows"), step("outV")),
        (step("bothE"), step("otherV")),
        (step("outE"), step("bothV")),
        (step("bothE"), step("has", "weight", Predicate("gt", 3)), step("otherV")),
        (step("hasLabel", "person"),),
        (step("has", "age", Predicate("lt", 5)),),
        (step("has", "age", Predicate("within", [1, 2, 3, 6])),),
        (step("has", "person", "age", Predicate("between", [2, 7])),),
        (step("dedup"),),
        (step("where", Traversal((step("out"),))),),
        (step("not", Traversal((step("in", "created"),))),),
        (step("repeat", Traversal((step("out"),))), step("times", 2)),
        (step("repeat", Traversal((step("both"),))), step("emit"), step("times", 2)),
        (step("union", Traversal((step("out"),)), Traversal((step("in"), step("hasLabel", "software")))),),
        (step("optional", Traversal((step("out", "created"),))),),
        (step("V"), step("hasLabel", "software")),
        (step("V", "3"), step("out")),
        (step("as", "x"), step("out"), step("as", "y"), step("select", "x")),
        (step("local", Traversal((step("out"), step("dedup")))),),
    ]
)
starts = st.sampled_from(
    [
        (step("V"),),
        (step("V", "0", "1", "5"),),
        (step("V"), step("hasLabel", "person")),
        (step("V"), step("has", "age", Predicate("gte", 4))),
        (step("E"), step("outV")),
        (step("E"), step("hasLabel", "knows"), step("inV")),
        (step("E"), step("has", "weight", Predicate("lte", 4)), step("bothV")),
    ]
)
ends = st.sampled_from(
    [
        (),
        (step("id"),),
        (step("values", "age"),),
        (step("outE"),),
        (step("outE"), step("values", "weight")),
        (step("count"),),
        (step("out"), step("count")),
        (step("path"),),
        (step("label"),),
    ]
)


async def answers(graph: GraphSession, steps: tuple[Instruction, ...]) -> list[str]:
    compiler = Compiler(STEPS, key_name=graph.key_name)
    pipeline = compiler.root(Traversal(steps))
    run = Run(graph, monotonic=lambda: 0.0, tracks_path=compiler.needs_path)
    return sorted(
        shown(traverser.value)
        for batch in [batch async for batch in evaluate(pipeline, run)]
        for traverser in batch
        for _ in range(traverser.bulk)
    )


def shown(value: Any) -> str:
    if isinstance(value, Vertex):
        assert value.is_loaded, "results are shown with their properties"
        return f"v{value.id} {value.label} {value.values('age')}"
    if isinstance(value, Edge):
        return f"e{value.id} {value.label}"
    objects = getattr(value, "objects", None)
    return str([shown(place) for place in objects]) if objects is not None else repr(value)


async def fill(graph: Graph, memory: MemoryGraph, keys: list[str], edges: list[tuple[int, int, str]]) -> None:
    documents = [vertex(str(number), key, LABELS[number % 2], age=number) for number, key in enumerate(keys)]
    await graph.create(*documents)
    memory.vertex_documents = {document["id"]: document for document in documents}
    found = [
        edge(f"e{number}", documents[source], documents[target], label, weight=number)
        for number, (source, target, label) in enumerate(edges)
    ]
    await graph.create(*found)
    memory.edge_documents = {document["id"]: document for document in found}


@pytest.mark.parametrize("container_settings", [{}, {"incomingEdges": True}])
@settings(max_examples=60, deadline=None)
@given(
    keys=keys_of,
    edges=edges_between,
    start=starts,
    middle=st.lists(to_vertices, max_size=3),
    end=ends,
    splits=st.integers(0, 1),
)
async def test_stored_graphs_answer_as_graphs_in_memory_do(
    container_settings: dict[str, Any],
    keys: list[str],
    edges: list[tuple[int, int, str]],
    start: tuple[Instruction, ...],
    middle: list[tuple[Instruction, ...]],
    end: tuple[Instruction, ...],
    splits: int,
) -> None:
    # Of several ways to a vertex, any may be the one that is kept.
    assume((step("dedup"),) not in middle or end != (step("path"),))
    steps = (*start, *(instruction for part in middle for instruction in part), *end)
    async with open_graph(partitions=3, **container_settings) as graph:
        memory = MemoryGraph()
        await fill(graph, memory, keys, edges)
        for _ in range(splits):
            # Refused for a partition whose data has one key.
            with suppress(ReshapeRefused):
                await graph.split(1)
        assert await answers(graph.session(), steps) == await answers(memory, steps)
