"""Steps that show the properties of elements."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.gremlin.engine.run import Run
from asterism.languages.gremlin.engine.traverser import Traverser
from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Vertex
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.tree import T_ID, T_KEY, T_LABEL, T_VALUE, Instruction, Token, Traversal
from tests.unit.gremlin.memory_graph import modern

VERTEX = Vertex(
    "v1",
    "person",
    "p",
    {
        "id": "v1",
        "label": "person",
        "pk": "p",
        "name": [{"id": "n1", "_value": "a", "_meta": {"since": 1}}, {"id": "n2", "_value": "b"}],
    },
    key_name="pk",
)
EDGE = Edge(
    {
        "id": "e1",
        "label": "knows",
        "_isEdge": True,
        "_vertexId": "v1",
        "_sink": "v2",
        "_sinkLabel": "thing",
        "weight": 2,
    },
    key_name="pk",
)


def call(name: str, *arguments: Any) -> Instruction:
    return Instruction(name, arguments)


async def shown(value: Any, *steps: Instruction) -> list[Any]:
    compiler = Compiler(STEPS)
    pipeline = compiler.pipeline(Traversal(steps))
    run = Run(modern(), monotonic=lambda: 0.0, tracks_path=compiler.needs_path)
    (found,) = await pipeline.each([Traverser(value)], run)
    return [traverser.value for traverser in found]


async def test_a_vertex_has_lists_of_values_and_the_partition_key_first() -> None:
    (found,) = await shown(VERTEX, call("valueMap"))
    assert list(found.items()) == [("pk", ["p"]), ("name", ["a", "b"])]
    assert await shown(VERTEX, call("valueMap", "name", "no")) == [{"name": ["a", "b"]}]
    assert await shown(VERTEX, call("valueMap", None)) == [{}]


async def test_tokens_stand_in_maps_on_demand() -> None:
    (everything,) = await shown(VERTEX, call("valueMap", True, "name"))
    assert everything == {T_ID: "v1", T_LABEL: "person", "name": ["a", "b"]}
    tokens = "~tinkerpop.valueMap.tokens"
    assert await shown(VERTEX, call("valueMap", "no"), call("with", tokens, 1)) == [{T_ID: "v1"}]
    assert await shown(VERTEX, call("valueMap", "no"), call("with", tokens)) == [{T_ID: "v1", T_LABEL: "person"}]
    with pytest.raises(CompileFailure, match="requires Integer"):
        await shown(VERTEX, call("valueMap"), call("with", tokens, "x"))


async def test_a_modulator_of_a_map_takes_away_values_it_yields_nothing_for() -> None:
    unfold = Traversal((call("unfold"),))
    assert await shown(VERTEX, call("valueMap", "name"), call("by", unfold)) == [{"name": "a"}]
    nothing = Traversal((call("select", "x"),))
    assert await shown(VERTEX, call("valueMap", "name"), call("by", nothing)) == [{}]
    with pytest.raises(CompileFailure, match="only have one by"):
        await shown(VERTEX, call("valueMap"), call("by"), call("by"))


async def test_an_edge_has_plain_values_and_its_ends_in_an_element_map() -> None:
    assert await shown(EDGE, call("valueMap")) == [{"weight": 2}]
    assert await shown(EDGE, call("elementMap")) == [
        {
            T_ID: "e1",
            T_LABEL: "knows",
            Token("Direction", "IN"): {T_ID: "v2", T_LABEL: "thing"},
            Token("Direction", "OUT"): {T_ID: "v1", T_LABEL: "vertex"},
            "weight": 2,
        }
    ]


async def test_properties_know_their_elements() -> None:
    first, second = await shown(VERTEX, call("properties", "name"))
    assert (first.value, first.meta, second.value) == ("a", {"since": 1}, "b")
    assert await shown(first, call("element")) == [VERTEX]
    (meta,) = await shown(first, call("properties"))
    assert (meta.key, meta.value) == ("since", 1)
    assert await shown(meta, call("element")) == [first]
    assert await shown(first, call("elementMap")) == [{T_ID: "n1", T_KEY: "name", T_VALUE: "a", "since": 1}]
    (weight,) = await shown(EDGE, call("properties"))
    assert await shown(EDGE, call("propertyMap")) == [{"weight": weight}]


@pytest.mark.parametrize("name", ["properties", "valueMap", "elementMap", "element"])
async def test_values_that_are_no_elements_have_no_properties(name: str) -> None:
    with pytest.raises(ExecutionFailure, match="can only be applied to"):
        await shown(1, call(name))


async def test_properties_that_a_strategy_hides_are_not_shown() -> None:
    with_meta = Traversal((call("properties", "since"),))
    assert await shown(VERTEX, call("valueMap"), call("with", "~vertexProperties", with_meta)) == [{"name": ["a"]}]
    found = await shown(VERTEX, call("properties"), call("~filterVertexProperties", with_meta), call("value"))
    assert found == ["a"]
    assert await shown(VERTEX, call("~visibleValue", "name", with_meta)) == ["a"]
    assert await shown(VERTEX, call("~visibleValue", "pk", with_meta)) == []
    assert await shown({"pk": 5}, call("~visibleValue", "pk", with_meta)) == [5]
