"""Results in the service's own shapes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from asterism.apis.gremlin.cosmos_json import PlainShapes
from asterism.apis.gremlin.malformed import ResultRefused
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import T_ID, T_LABEL
from asterism.languages.gremlin.values.numbers import Long
from asterism.languages.gremlin.values.results import Path, Tree
from tests.unit.gremlin.elements import EDGE, VERTEX

SHAPES = PlainShapes()


def test_a_vertex_shows_its_partition_key_first() -> None:
    assert SHAPES.shape(VERTEX) == {
        "id": "v1",
        "label": "person",
        "type": "vertex",
        "properties": {
            "pk": [{"id": "v1|pk", "value": "p1"}],
            "name": [{"id": "x", "value": "GER", "properties": {"de": "D"}}],
            "ttl": [{"id": "v1|ttl", "value": 5}],
        },
    }
    assert next(iter(SHAPES.shape(VERTEX)["properties"])) == "pk"


def test_the_short_way_from_a_document_shows_the_same_as_the_properties() -> None:
    shown = SHAPES.shape(VERTEX)["properties"]

    assert shown == {
        name: [{"id": each.id, "value": each.value} | ({"properties": each.meta} if each.meta else {}) for each in held]
        for name, held in VERTEX.properties.items()
    }


def test_empty_maps_of_properties_are_left_out() -> None:
    bare = Edge({name: held for name, held in EDGE.document.items() if name != "since"}, key_name="pk")

    assert SHAPES.shape(bare) == {
        "id": "e1", "label": "knows", "type": "edge", "inVLabel": "dog", "outVLabel": "person", "inV": "v2",
        "outV": "v1",
    }  # fmt: skip
    assert SHAPES.shape(EDGE)["properties"] == {"since": 2017}
    assert "properties" not in SHAPES.shape(Vertex("v", "x", None, {"id": "v", "label": "x"}, key_name=None))


def test_elements_show_no_properties_if_the_request_does_not_want_them() -> None:
    shapes = PlainShapes(materializes_properties=False)

    assert shapes.shape([VERTEX]) == [{"id": "v1", "label": "person", "type": "vertex"}]
    assert "properties" not in shapes.shape(EDGE)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (VERTEX.properties["name"][0], {"id": "x", "value": "GER", "label": "name", "properties": {"de": "D"}}),
        (VertexProperty("i", "age", 5, VERTEX, {}), {"id": "i", "value": 5, "label": "age"}),
        (Property("since", 2017, EDGE), {"key": "since", "value": 2017}),
        (Path([set(), {"b", "a"}], ["x", 1]), {"labels": [[], ["a", "b"]], "objects": ["x", 1]}),
        ({T_ID: "v1", T_LABEL: "person", "name": ["x"]}, {"id": "v1", "label": "person", "name": ["x"]}),
        ({VERTEX: 1, 5: 2, True: 3, None: 4}, {"v1": 1, "5": 2, "true": 3, "null": 4}),
        (Tree({"a": Tree({"b": Tree()})}), {"a": {"key": "a", "value": {"b": {"key": "b", "value": {}}}}}),
        (Long(5), 5),
        (0.0, 0.0),
        (float("nan"), "NaN"),
        (datetime(2024, 2, 29, tzinfo=UTC), "2024-02-29T00:00:00Z"),
        ({"a"}, ["a"]),
    ],
)
def test_values_have_plain_shapes(value: Any, shape: Any) -> None:
    assert SHAPES.shape(value) == shape


def test_a_value_without_a_shape_is_refused() -> None:
    with pytest.raises(ResultRefused):
        SHAPES.shape(object())
