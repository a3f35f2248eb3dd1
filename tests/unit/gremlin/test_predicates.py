"""Predicates as tests of values."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Instruction, Predicate, Token, Traversal
from asterism.languages.gremlin.values.comparison import are_equal
from asterism.languages.gremlin.values.numbers import Byte, Float, Long, Short
from asterism.languages.gremlin.values.predicates import as_test, comparison_of_two, compile_predicate
from asterism.languages.gremlin.values.results import Path, Tree
from asterism.languages.gremlin.values.structures import BulkSet

NAN = float("nan")
VERTEX = Vertex("a", "person", "p", None, key_name="pk")
EDGE = Edge({"id": "e", "label": "knows", "_vertexId": "a", "_sink": "b"}, key_name=None)
MIXED = st.one_of(
    st.none(), st.booleans(), st.integers(0, 3), st.floats(), st.integers(0, 3).map(Long), st.sampled_from("ab")
)


def holds(operator: str, argument: Any, value: Any) -> bool:
    return compile_predicate(Predicate(operator, argument))(value)


@pytest.mark.parametrize(
    ("operator", "argument", "value"),
    [
        ("eq", 1, 1.0),
        ("eq", "a", "a"),
        ("eq", None, None),
        ("neq", 1, True),
        ("neq", NAN, NAN),
        ("lt", 2, 1.5),
        ("lte", 2, Decimal(2)),
        ("gt", "a", "b"),
        ("gte", Long(2), Byte(2)),
        ("inside", [1, 3], 2),
        ("outside", [1, 3], 0),
        ("outside", [1, 3], 4),
        ("between", [1, 3], 1),
        ("within", [1, "a", None], 1.0),
        ("within", [1], Long(1)),
        ("within", [Decimal(1)], 1),
        ("within", [[1]], [1.0]),
        ("within", [VERTEX], Vertex("a", "other", "p", None, key_name="pk")),
        ("within", {"x", "y"}, "x"),
        ("without", [1, NAN], NAN),
        ("without", [], 1),
        ("without", [1], True),
        ("and", [Predicate("gt", 1), Predicate("lt", 3)], 2),
        ("or", [Predicate("gt", 5), Predicate("lt", 3)], 2),
        ("not", Predicate("gt", NAN), 1),
        ("not", Predicate("gt", "a"), 1),
        ("startingWith", "ma", "marko"),
        ("endingWith", "ko", "marko"),
        ("containing", "ark", "marko"),
        ("notStartingWith", "x", "marko"),
        ("notEndingWith", "x", "marko"),
        ("notContaining", "x", "marko"),
        ("notContaining", None, "marko"),
        ("notContaining", "x", None),
        ("regex", "^m.*o$", "marko"),
        ("regex", "ark", "marko"),
        ("notRegex", "^x", "marko"),
    ],
)
def test_a_predicate_holds(operator: str, argument: Any, value: Any) -> None:
    assert holds(operator, argument, value) is True


@pytest.mark.parametrize(
    ("operator", "argument", "value"),
    [
        ("eq", 1, True),
        ("eq", True, 1),
        ("eq", NAN, NAN),
        ("eq", "a", 1),
        ("lt", "a", 1),
        ("gt", NAN, 1),
        ("gte", NAN, NAN),
        ("lte", None, 1),
        ("inside", [1, 3], 1),
        ("inside", [1, 3], "x"),
        ("between", [1, 3], 3),
        ("outside", [1, 3], 2),
        ("within", [], 1),
        ("within", [1], True),
        ("within", [1], "1"),
        ("within", [NAN], NAN),
        ("and", [Predicate("gt", 1), Predicate("lt", 3)], 3),
        ("or", [Predicate("gt", 5), Predicate("lt", 3)], 4),
        ("startingWith", "m", 5),
        ("containing", None, "marko"),
        ("regex", "x", "marko"),
        ("regex", "x", None),
        ("regex", "x", "\ud800"),
    ],
)
def test_a_predicate_does_not_hold(operator: str, argument: Any, value: Any) -> None:
    assert holds(operator, argument, value) is False


@pytest.mark.parametrize(
    ("token", "name", "value"),
    [
        ("BIGDECIMAL", "BigDecimal", Decimal(1)),
        ("BIGINT", "BigInteger", 2**70),
        ("BINARY", "ByteBuffer", b"x"),
        ("BOOLEAN", "Boolean", True),
        ("BYTE", "Byte", Byte(1)),
        ("DATETIME", "OffsetDateTime", datetime(2023, 1, 1, tzinfo=UTC)),
        ("DOUBLE", "Double", 1.0),
        ("EDGE", "Edge", EDGE),
        ("FLOAT", "Float", Float(1.0)),
        ("INT", "Integer", 1),
        ("LIST", "List", [1]),
        ("LONG", "Long", 2**40),
        ("MAP", "Map", {}),
        ("NUMBER", "Number", Short(1)),
        ("PATH", "Path", Path([], [])),
        ("PROPERTY", "Property", Property("k", 1, EDGE)),
        ("PROPERTY", "Property", VertexProperty("i", "k", 1, VERTEX, {})),
        ("SET", "Set", {1}),
        ("SHORT", "Short", Short(1)),
        ("STRING", "String", "x"),
        ("TREE", "Tree", Tree()),
        ("UUID", "UUID", UUID(int=1)),
        ("VERTEX", "Vertex", VERTEX),
        ("VPROPERTY", "VertexProperty", VertexProperty("i", "k", 1, VERTEX, {})),
    ],
)
def test_a_value_is_of_its_type_by_token_and_by_name(token: str, name: str, value: Any) -> None:
    assert holds("typeOf", Token("GType", token), value)
    assert holds("typeOf", name, value)
    assert holds("typeOf", f"org.example.{name}", value)
    assert not holds("typeOf", Token("GType", token), None)
    assert not holds("typeOf", Token("GType", "NULL"), value)


def test_collected_values_are_a_set_to_its_type() -> None:
    assert holds("typeOf", Token("GType", "SET"), BulkSet([1, 1]))
    assert not holds("typeOf", Token("GType", "LIST"), BulkSet([1, 1]))


def test_numbers_are_of_their_own_type_alone() -> None:
    integers = [1, Long(1), Byte(1), Short(1), 2**70]
    assert [holds("typeOf", Token("GType", "INT"), value) for value in integers] == [True] + [False] * 4
    assert not holds("typeOf", Token("GType", "NUMBER"), True)
    assert holds("typeOf", Token("GType", "NULL"), None)


@pytest.mark.parametrize(
    ("operator", "argument", "text"),
    [
        ("typeOf", "non-registered-Name", "non-registered-Name is not a registered type"),
        ("regex", "(", "missing"),
        ("regex", "(a)\\1", "RE2"),
        ("regex", 5, "takes a text"),
        ("between", [1], "two values"),
        ("containing", 5, "takes a text"),
        ("not", None, "Cannot negate a null P"),
        ("eq", Traversal((Instruction("out"),)), "not with a traversal"),
        ("within", [Traversal()], "not with a traversal"),
        ("sounds", "x", "is not a predicate"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(operator: str, argument: Any, text: str) -> None:
    with pytest.raises(ExecutionFailure, match=text):
        compile_predicate(Predicate(operator, argument))


@given(MIXED, st.lists(MIXED))
def test_within_is_equality_with_any_member(value: Any, members: list[Any]) -> None:
    expected = any(are_equal(value, member) for member in members)
    assert holds("within", members, value) is expected
    assert holds("without", members, value) is not expected


@given(MIXED, MIXED)
def test_a_comparison_of_two_is_the_predicate(value: Any, other: Any) -> None:
    for operator in ("eq", "neq", "lt", "lte", "gt", "gte"):
        test = comparison_of_two(operator)
        assert test is not None
        assert test(value, other) is holds(operator, other, value)


def test_a_plain_value_is_tested_for_equality() -> None:
    assert as_test(1)(1.0)
    assert as_test(Predicate("gt", 1))(2)
    assert comparison_of_two("within") is None
