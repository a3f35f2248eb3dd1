"""GraphSON: requests of all versions, and typed results, against the readers and writers of the real client."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal

import pytest
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.strategies import OptionsStrategy, SubgraphStrategy
from gremlin_python.process.traversal import Cardinality, Direction, Merge, Operator, Order, P, Pick, T, TextP
from gremlin_python.structure.graph import Path as ClientPath
from gremlin_python.structure.graph import Vertex as ClientVertex
from gremlin_python.structure.io import graphsonV2d0, graphsonV3d0
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.gremlin.encoders import TypedJson
from asterism.apis.gremlin.graphson.reading import READERS, parse_json, read_value
from asterism.apis.gremlin.graphson.typed import TypedShapes
from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.languages.gremlin.graph.elements import Property
from asterism.languages.gremlin.tree import T_ID, Instruction, Lambda, Predicate, Strategy, Token, Traversal
from asterism.languages.gremlin.values.numbers import BigInteger, Byte, Float, Long, Short
from asterism.languages.gremlin.values.results import Metrics, Path, TraversalMetrics, Tree
from asterism.languages.gremlin.values.structures import FrozenList, MapEntry
from tests.unit.gremlin.elements import EDGE, VERTEX

Version = Literal[2, 3]


def typed(name: str, value: Any) -> dict[str, Any]:
    return {"@type": name, "@value": value}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (5, 5),
        ({"a": typed("g:Int32", 1)}, {"a": 1}),
        (typed("g:Int64", 3), Long(3)),
        (typed("gx:Int16", 3), Short(3)),
        (typed("gx:Byte", -3), Byte(-3)),
        (typed("g:Double", "NaN"), None),
        (typed("g:Double", 1), 1.0),
        (typed("g:Float", 0.1), Float(0.10000000149011612)),
        (typed("gx:BigInteger", "123456789012345678901234567890"), BigInteger(123456789012345678901234567890)),
        (typed("gx:BigDecimal", "1.10"), Decimal("1.10")),
        (typed("gx:BigDecimal", 1.1), Decimal("1.1")),
        (typed("g:UUID", str(uuid.UUID(int=9))), uuid.UUID(int=9)),
        (typed("g:Date", 1000), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (typed("gx:OffsetDateTime", "1970-01-01T00:00:00.000Z"), datetime(1970, 1, 1, tzinfo=UTC)),
        (
            typed("gx:ZonedDateTime", "2016-12-23T12:12:24.000000036+02:00[GMT+02:00]"),
            datetime(2016, 12, 23, 12, 12, 24, tzinfo=timezone(timedelta(hours=2))),
        ),
        (typed("gx:Duration", "PT1H30M0.5S"), timedelta(minutes=90, milliseconds=500)),
        (typed("gx:Duration", "P5D"), timedelta(days=5)),
        (typed("gx:Duration", "-PT1.5S"), timedelta(seconds=-1.5)),
        (typed("gx:Char", "a"), "a"),
        (typed("gx:ByteBuffer", "AQI="), b"\x01\x02"),
        (typed("g:List", [1, typed("g:Int32", 2)]), [1, 2]),
        (typed("g:Set", [1, typed("g:List", [2])]), {1, FrozenList([2])}),
        (typed("g:Map", ["a", 1, typed("g:T", "id"), 2]), {"a": 1, T_ID: 2}),
        (typed("g:BulkSet", ["a", typed("g:Int64", 2)]), ["a", "a"]),
        (typed("g:Binding", {"key": "x", "value": typed("g:Int32", 7)}), 7),
        (typed("g:Lambda", {"script": "x", "language": "groovy", "arguments": -1}), Lambda("x")),
        (typed("g:Order", "decr"), Token("Order", "desc")),
        (typed("g:P", {"predicate": "within", "value": [1, 2]}), Predicate("within", [1, 2])),
        (typed("g:SubgraphStrategy", {"vertices": "x"}), Strategy("SubgraphStrategy", {"vertices": "x"})),
    ],
)
def test_values_of_graphson_are_read(given: Any, value: Any) -> None:
    found = read_value(given)

    if value is None:
        assert found != found
    else:
        assert found == value
        assert type(found) is type(value)


@pytest.mark.parametrize("writer", [graphsonV2d0.GraphSONWriter(), graphsonV3d0.GraphSONWriter()], ids=["v2", "v3"])
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (P.gt(5), Predicate("gt", 5)),
        (P.within([1, 2]), Predicate("within", [1, 2])),
        (P.between(1, 9), Predicate("between", [1, 9])),
        (P.gt(1).or_(P.lt(9)), Predicate("or", [Predicate("gt", 1), Predicate("lt", 9)])),
        (TextP.ending_with("a"), Predicate("endingWith", "a")),
        (T.id_, T_ID),
        (Order.asc, Token("Order", "asc")),
        (Cardinality.list_, Token("Cardinality", "list")),
        (Direction.IN, Token("Direction", "IN")),
        (Merge.out_v, Token("Merge", "outV")),
        (Pick.none, Token("Pick", "none")),
        (Operator.add_all, Token("Operator", "addAll")),
        (lambda: "x.foo()", Lambda("x.foo()")),
        (OptionsStrategy(a=1), Strategy("OptionsStrategy", {"a": 1})),
        (
            SubgraphStrategy(edges=__.has_label("a")),
            Strategy("SubgraphStrategy", {"edges": Traversal((Instruction("hasLabel", ("a",)),))}),
        ),
        (__.V("a").out(), Traversal((Instruction("V", ("a",)), Instruction("out")))),
    ],
)
def test_nodes_of_the_python_client_are_read(writer: Any, sent: Any, expected: Any) -> None:
    assert read_value(json.loads(writer.write_object(sent))) == expected


@pytest.mark.parametrize("name", sorted(READERS))
@pytest.mark.parametrize("value", [None, 5, "x", [], [1], {}, {"a": []}, True, [[]], 1e400, "9" * 10_000])
def test_a_type_with_a_value_that_is_not_its_own_is_read_or_refused(name: str, value: Any) -> None:
    try:
        read_value(typed(name, value))
    except MalformedMessage:
        return


@pytest.mark.parametrize(
    "given",
    [
        typed("g:Nothing", 1),
        {"@type": 5, "@value": 1},
        typed("g:Int32", 2**31),
        typed("g:BulkSet", ["a", 10**12]),
        typed("gx:BigDecimal", "1e999999999"),
        typed("g:Set", [typed("g:P", {"predicate": "within", "value": [[1]]})]),
        typed("g:P", {"predicate": "between", "value": [1]}),
        typed("g:P", {"predicate": "and", "value": [1, 2]}),
        typed("g:Bytecode", {"step": [[5]]}),
        typed("g:Bytecode", {"step": {"V": []}}),
        typed("g:Date", 10**30),
    ],
)
def test_types_that_make_no_sense_are_refused(given: Any) -> None:
    with pytest.raises(MalformedMessage):
        read_value(given)


def test_large_integers_stay_exact() -> None:
    body = b'{"@type":"gx:BigInteger","@value":123456789012345678901234567890}'

    assert read_value(parse_json(body)) == 123456789012345678901234567890


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.builds(typed, st.sampled_from([*READERS, "g:T", "g:XStrategy"]), inner)
    ),
)


@given(JSON)
def test_any_json_is_a_value_or_a_refusal(parsed: Any) -> None:
    try:
        read_value(parsed)
    except MalformedMessage:
        return


def to_client(version: Version, value: Any) -> Any:
    reader = (graphsonV2d0 if version == 2 else graphsonV3d0).GraphSONReader()
    return reader.read_object(TypedJson(version, wraps_traversers=False, materializes_properties=True).item(value, 1))


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (5, typed("g:Int32", 5)),
        (Long(5), typed("g:Int64", 5)),
        (2**40, typed("g:Int64", 2**40)),
        (2**70, typed("gx:BigInteger", str(2**70))),
        (1.5, typed("g:Double", 1.5)),
        (float("-inf"), typed("g:Double", "-Infinity")),
        (Float(0.5), typed("g:Float", 0.5)),
        (Byte(1), typed("gx:Byte", 1)),
        (True, True),
        (None, None),
        ("a", "a"),
        (Decimal("1.50"), typed("gx:BigDecimal", "1.50")),
        (timedelta(minutes=90), typed("gx:Duration", "PT1H30M")),
        (timedelta(seconds=-1.5), typed("gx:Duration", "PT-1.5S")),
        (timedelta(0), typed("gx:Duration", "PT0S")),
        (datetime(2024, 2, 29, tzinfo=UTC), typed("gx:OffsetDateTime", "2024-02-29T00:00:00Z")),
        ([1], typed("g:List", [typed("g:Int32", 1)])),
        ({"a": T_ID}, typed("g:Map", ["a", typed("g:T", "id")])),
        (MapEntry("a", "b"), typed("g:Map", ["a", "b"])),
        (Property("since", 5, EDGE), typed("g:Property", {"key": "since", "value": typed("g:Int32", 5)})),
        (
            Tree({"a": Tree()}),
            typed("g:Tree", [{"key": "a", "value": typed("g:Tree", [])}]),
        ),
    ],
)
def test_values_have_the_shapes_of_version_3(value: Any, shape: Any) -> None:
    assert TypedShapes(3).shape(value) == shape


def test_version_2_has_plain_arrays_and_objects() -> None:
    shapes = TypedShapes(2)

    assert shapes.shape([1, {"a"}]) == [typed("g:Int32", 1), ["a"]]
    assert shapes.shape({T_ID: "x", 5: None}) == {"id": "x", "5": None}


@pytest.mark.parametrize("version", [2, 3])
def test_the_python_client_reads_results(version: Version) -> None:
    vertex, edge = to_client(version, VERTEX), to_client(version, EDGE)

    assert (vertex.id, vertex.label) == ("v1", "person")
    assert {each.label: each.value for each in vertex.properties} == {"pk": "p1", "name": "GER", "ttl": 5}
    assert (edge.id, edge.label, edge.outV.id, edge.inV.id) == ("e1", "knows", "v1", "v2")
    assert [(each.key, each.value) for each in edge.properties] == [("since", 2017)]
    assert to_client(version, [1, "a", None, 2.5]) == [1, "a", None, 2.5]
    path = to_client(version, Path([{"a"}, set()], [VERTEX, 5]))
    assert isinstance(path, ClientPath)
    assert path.objects == [ClientVertex("v1"), 5]
    metrics = to_client(version, TraversalMetrics(1_000_000, [Metrics("1", "V", 900, {"traverserCount": 2})]))
    assert metrics["dur"] == 1.0
    assert metrics["metrics"][0]["counts"] == {"traverserCount": 2}


def test_results_of_bytecode_are_traversers_with_a_bulk() -> None:
    item = TypedJson(3, wraps_traversers=True, materializes_properties=True).item("x", 3)

    found = graphsonV3d0.GraphSONReader().read_object(item)

    assert (found.object, found.bulk) == ("x", 3)
