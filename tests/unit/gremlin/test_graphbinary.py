"""GraphBinary, against the bytes of its page and the readers and writers of the real client."""

from __future__ import annotations

import io
import uuid
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from gremlin_python import statics
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.strategies import PartitionStrategy, ReadOnlyStrategy, SubgraphStrategy
from gremlin_python.process.traversal import (
    CardinalityValue as ClientCardinalityValue,
)
from gremlin_python.process.traversal import (
    Direction,
    GType,
    Merge,
    Operator,
    Order,
    P,
    Pick,
    Pop,
    Scope,
    T,
    TextP,
)
from gremlin_python.structure.graph import Edge as ClientEdge
from gremlin_python.structure.graph import Path as ClientPath
from gremlin_python.structure.graph import Vertex as ClientVertex
from gremlin_python.structure.io.graphbinaryV1 import GraphBinaryReader, GraphBinaryWriter
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.gremlin.graphbinary.types import READERS, open_reader
from asterism.apis.gremlin.graphbinary.writing import BinaryShapes
from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.languages.gremlin.graph.elements import Vertex
from asterism.languages.gremlin.tree import (
    T_ID,
    CardinalityValue,
    Instruction,
    Lambda,
    Predicate,
    Strategy,
    Token,
    Traversal,
)
from asterism.languages.gremlin.values.numbers import BigInteger, Byte, Float, Long, Short
from asterism.languages.gremlin.values.results import Metrics, Path, TraversalMetrics, Tree
from asterism.languages.gremlin.values.structures import FrozenList
from tests.unit.gremlin.elements import EDGE, VERTEX


def read(data: bytes) -> Any:
    reader = open_reader(data)
    found = reader.value()
    assert reader.left == 0
    return found


def write(value: Any) -> bytes:
    out = bytearray()
    BinaryShapes().write(out, value)
    return bytes(out)


def from_client(value: Any) -> Any:
    """Return what the door reads of a value that the client writes."""
    out = bytearray()
    GraphBinaryWriter().to_dict(value, out)
    return read(bytes(out))


def to_client(value: Any) -> Any:
    """Return what the client reads of a value that the door writes."""
    stream = io.BytesIO(write(value))
    found = GraphBinaryReader().read_object(stream)
    assert not stream.read(), "the client has read all of it"
    return found


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("01 00 00000001", 1),
        ("01 00 fffffffe", -2),
        ("01 01", None),
        ("fe 01", None),
        ("02 00 0000000000000001", Long(1)),
        ("03 00 00000003 616263", "abc"),
        ("03 00 00000000", ""),
        ("04 00 ffffffffffffffff", datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        ("07 00 3ff0000000000000", 1.0),
        ("08 00 3ec00000", Float(0.375)),
        ("09 00 00000001 01 00 00000005", [5]),
        ("0b 00 00000001 01 00 00000005", {5}),
        ("0a 00 00000001 03 00 00000001 61 27 00 01", {"a": True}),
        ("0c 00 00112233445566778899aabbccddeeff", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")),
        ("23 00 00000002 ff7f", BigInteger(-129)),
        ("22 00 00000002 00000002 04d2", Decimal("12.34")),
        ("24 00 ff", Byte(-1)),
        ("26 00 0101", Short(257)),
        ("25 00 00000002 0102", b"\x01\x02"),
        ("20 00 03 00 00000002 6964", T_ID),
        ("80 00 e282ac", "€"),
        ("81 00 0000000000000001 3b9aca00", timedelta(seconds=2)),
        ("82 00 00000004 7f000001", "127.0.0.1"),
        ("83 00 0000000000000001 00000000", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("84 00 000007e8 02 1d", datetime(2024, 2, 29, tzinfo=UTC)),
        ("86 00 0000000000000000", "00:00:00"),
        ("88 00 000007e8 02 1d 0000000000000000 00000e10", datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=1)))),
        ("8b 00 000007e8", 2024),
        ("8e 00 fffff1f0", "-01:00"),
        ("2a 00 00000001 03 00 00000001 61 0000000000000003", ["a", "a", "a"]),
        ("21 00 0000000000000002 01 00 00000007", 7),
        ("1d 00 00000006 67726f6f7679 00000001 78 ffffffff", Lambda("x")),
        ("06 00 00000005 612e622e63", "c"),
        ("14 00 00000001 78 01 00 00000007", 7),
    ],
)
def test_bytes_of_the_format_are_read(data: str, value: Any) -> None:
    found = read(bytes.fromhex(data))

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -5, 2**31, Long(3), BigInteger(2**70), -(2**63) - 1, 1.5, Float(0.5), Decimal("-1.250"),
        "", "žluť", uuid.UUID(int=7), b"\x00\xff", [1, [2, "a"]], {1, "b"}, {"a": 1, 2: [3]}, {T_ID: "x"},
        Byte(-128), Short(-1), timedelta(days=-1, microseconds=5), datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=UTC),
        Token("Direction", "OUT"), {FrozenList([1, 2]): "list as a key"},
    ],
)  # fmt: skip
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    found = read(write(value))

    assert found == value
    assert type(found) in (type(value), Long, BigInteger)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (P.gt(5), Predicate("gt", 5)),
        (P.within(1, 2), Predicate("within", [1, 2])),
        (P.within([1, 2]), Predicate("within", [1, 2])),
        (P.within(), Predicate("within", [])),
        (P.between(1, 9), Predicate("between", [1, 9])),
        (P.eq(None), Predicate("eq", None)),
        (P.gt(1).and_(P.lt(9)), Predicate("and", [Predicate("gt", 1), Predicate("lt", 9)])),
        (TextP.starting_with("a"), Predicate("startingWith", "a")),
        (TextP.not_containing("a"), Predicate("notContaining", "a")),
        (P.type_of(GType.INT), Predicate("typeOf", Token("GType", "INT"))),
        (T.id_, T_ID),
        (T.label, Token("T", "label")),
        (Order.desc, Token("Order", "desc")),
        (Scope.local, Token("Scope", "local")),
        (Pop.last, Token("Pop", "last")),
        (Pick.any_, Token("Pick", "any")),
        (Operator.sum_, Token("Operator", "sum")),
        (Direction.OUT, Token("Direction", "OUT")),
        (Merge.on_create, Token("Merge", "onCreate")),
        (ClientCardinalityValue.set_("x"), CardinalityValue("set", "x")),
        (ReadOnlyStrategy(), Strategy("ReadOnlyStrategy", {})),
        (
            PartitionStrategy(partition_key="pk", read_partitions=["p"], write_partition="p"),
            Strategy("PartitionStrategy", {"partitionKey": "pk", "readPartitions": ["p"], "writePartition": "p"}),
        ),
        (
            SubgraphStrategy(vertices=__.has_label("a")),
            Strategy("SubgraphStrategy", {"vertices": Traversal((Instruction("hasLabel", ("a",)),))}),
        ),
        (lambda: "x.foo()", Lambda("x.foo()")),
        (
            __.out("knows").has("age", P.lt(30)),
            Traversal((Instruction("out", ("knows",)), Instruction("has", ("age", Predicate("lt", 30))))),
        ),
        (datetime(2024, 2, 29, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, tzinfo=UTC)),
        (statics.SingleByte(5), Byte(5)),
        (statics.bigdecimal("1.5"), Decimal("1.5")),
    ],
)
def test_nodes_of_the_python_client_are_read(sent: Any, expected: Any) -> None:
    assert from_client(sent) == expected


def test_bytecode_of_the_python_client_is_read() -> None:
    g = traversal().with_(None)
    sent = g.with_strategies(ReadOnlyStrategy()).without_strategies(PartitionStrategy).V("a").out().to_list

    found = from_client(sent.__self__.bytecode)

    assert found == Traversal(
        (Instruction("V", ("a",)), Instruction("out")),
        (
            Instruction("withStrategies", (Strategy("ReadOnlyStrategy"),)),
            Instruction("withoutStrategies", (Strategy("PartitionStrategy"),)),
        ),
    )


def test_elements_of_the_python_client_equal_those_with_their_id() -> None:
    vertex = from_client(ClientVertex("v1", "person"))
    edge = from_client(ClientEdge("e1", ClientVertex("v1"), "knows", ClientVertex("v2")))

    assert vertex == Vertex("v1", "person", "any key", {}, key_name="pk")
    assert Vertex("v1", "person", "any key", {}, key_name="pk") == vertex
    assert (vertex.id, vertex.label, vertex.is_loaded) == ("v1", "person", False)
    assert (edge.id, edge.label, edge.out_id, edge.in_id) == ("e1", "knows", "v1", "v2")


def test_the_python_client_reads_elements_with_their_properties() -> None:
    vertex, edge = to_client(VERTEX), to_client(EDGE)

    assert (vertex.id, vertex.label) == ("v1", "person")
    assert {each.label: each.value for each in vertex.properties} == {"pk": "p1", "name": "GER", "ttl": 5}
    assert [(each.key, each.value) for each in vertex.properties[1].properties] == [("de", "D")]
    assert (edge.id, edge.label, edge.outV.id, edge.inV.id, edge.inV.label) == ("e1", "knows", "v1", "v2", "dog")
    assert [(each.key, each.value) for each in edge.properties] == [("since", 2017)]


def test_elements_without_properties_have_none() -> None:
    out = bytearray()
    BinaryShapes(materializes_properties=False).write(out, [VERTEX, EDGE])

    vertex, edge = GraphBinaryReader().read_object(io.BytesIO(bytes(out)))

    assert (vertex.properties, edge.properties) == ([], [])


def test_the_python_client_reads_paths_metrics_and_map_keys() -> None:
    path = to_client(Path([{"a"}, set()], [VERTEX, 5]))
    metrics = to_client(TraversalMetrics(1000, [Metrics("1", "V", 900, {"traverserCount": 2}, {"percentDur": 90.0})]))

    assert path == ClientPath([{"a"}, set()], [ClientVertex("v1"), 5])
    assert metrics["dur"] == 1000
    assert metrics["metrics"][0]["counts"] == {"traverserCount": 2}
    assert to_client({T_ID: "v1", Token("Direction", "IN"): 5}) == {T.id: "v1", Direction.IN: 5}


def test_a_tree_is_read_as_it_was_written() -> None:
    tree = Tree({"a": Tree({"b": Tree()}), "c": Tree()})

    assert read(write(tree)) == tree


@pytest.mark.parametrize("place", range(1, 60))
def test_a_message_cut_anywhere_is_refused(place: int) -> None:
    whole = write([VERTEX, {"a": 2**70, "b": datetime(2024, 1, 1, tzinfo=UTC)}])
    with pytest.raises(MalformedMessage):
        open_reader(whole[: place * len(whole) // 60]).value()


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00",
        b"\xff\x00",
        b"\xfe\x00",
        b"\x09\x00\x7f\xff\xff\xff",
        b"\x09\x00\xff\xff\xff\xff",
        b"\x03\x00\x00\x00\x00\x02\xff\xff",
        b"\x2a\x00\x00\x00\x00\x01\xfe\x01\x7f" + b"\xff" * 7,
        b"\x22\x00\x7f\xff\xff\xff\x00\x00\x00\x01\x01",
        b"\x88\x00\x00\x00\xff\xff\x01\x01" + bytes(12),
        b"\x09\x00\x00\x00\x00\x01" * 1000,
        b"\x2b\x00" + b"\x00\x00\x00\x01\xfe\x01" * 1000,
    ],
)
def test_bytes_that_are_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        open_reader(data).value()


@given(st.sampled_from(sorted(READERS)), st.binary(max_size=300))
def test_any_bytes_of_any_type_are_a_value_or_a_refusal(code: int, data: bytes) -> None:
    try:
        open_reader(bytes([code, 0]) + data).value()
    except MalformedMessage:
        return


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.uuids()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.datetimes(timezones=st.just(UTC))
    | st.timedeltas(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES)
def test_every_value_that_is_written_is_read_again(value: Any) -> None:
    assert read(write(value)) == value
