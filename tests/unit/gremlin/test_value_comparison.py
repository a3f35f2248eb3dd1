"""Equality, comparability, order and identity of Gremlin's values."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.comparison import are_equal, compare, order_key
from asterism.languages.gremlin.values.identity import identity_key
from asterism.languages.gremlin.values.numbers import Byte, Float, Long
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import FrozenList, FrozenMap, MapEntry, freeze

NAN, INFINITY = float("nan"), float("inf")


def vertex(vertex_id: str, key: Any = "p") -> Vertex:
    return Vertex(vertex_id, "person", key, None, key_name="pk")


def edge(edge_id: str) -> Edge:
    document = {"id": edge_id, "label": "knows", "pk": "p", "_vertexId": "a", "_sink": "b", "_sinkPartition": "p"}
    return Edge(document, key_name="pk")


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-100, 100).map(Long),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.text(max_size=4),
    st.uuids(),
    st.datetimes(timezones=st.just(UTC)),
    st.sampled_from(["a", "b"]).map(vertex),
    st.sampled_from(["a", "b"]).map(edge),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.frozensets(st.integers(0, 3) | st.text(max_size=1), max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.lists(inner, max_size=2).map(lambda objects: Path([set()] * len(objects), objects)),
        st.tuples(st.text(max_size=2), inner).map(lambda pair: MapEntry(*pair)),
        inner.map(lambda value: Property("since", value, edge("e"))),
    ),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=8))
def test_every_list_of_values_has_an_order_and_the_order_is_total(values: list[Any]) -> None:
    keys = sorted(map(order_key, values))
    assert all(left <= right for left, right in pairwise(keys))
    values.reverse()
    assert sorted(map(order_key, values)) == keys


@given(VALUES, VALUES)
def test_comparability_agrees_with_the_order_and_with_equality(left: Any, right: Any) -> None:
    order, reverse = compare(left, right), compare(right, left)
    assert (order is None) == (reverse is None)
    assert are_equal(left, right) == (order == 0)
    assert order is None or reverse is None or (order > 0) == (reverse < 0)


@given(VALUES, VALUES)
def test_values_with_the_same_identity_sort_at_the_same_place(left: Any, right: Any) -> None:
    assert identity_key(left) != identity_key(right) or order_key(left) == order_key(right)


@given(VALUES)
def test_a_value_has_its_own_identity_and_keys_have_a_hash(value: Any) -> None:
    assert identity_key(value) == identity_key(value)
    assert hash(identity_key(value)) == hash(identity_key(value))


@given(st.recursive(st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_a_frozen_value_equals_the_value_and_has_a_hash(value: Any) -> None:
    assert freeze(value) == value
    assert hash(freeze(value)) == hash(freeze(value))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, Long(1)),
        (Byte(1), Decimal("1.0")),
        (0.1, Decimal("0.1")),
        (-0.0, 0.0),
        (INFINITY, Float(INFINITY)),
        (None, None),
        ([1, 2], [1.0, Decimal(2)]),
        ({1, "a"}, {"a", 1}),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
        (vertex("a"), vertex("a")),
        (Property("k", 1, edge("e")), Property("k", 1.0, edge("f"))),
        (Path([set()], [1]), Path([{"a"}], [1])),
        (datetime(2023, 8, 1, tzinfo=UTC), datetime.fromisoformat("2023-08-01T02:00:00+02:00")),
    ],
)
def test_equal_values_are_equal_both_ways(left: Any, right: Any) -> None:
    assert are_equal(left, right)
    assert are_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (NAN, NAN),
        (1, True),
        (0, None),
        (1, "1"),
        ([NAN], [NAN]),
        ([1], (1, 2)),
        ([1], {1}),
        (vertex("a"), edge("a")),
        (vertex("a", "p"), vertex("a", "q")),
        (UUID(int=5), str(UUID(int=5))),
        (Path([set()], [1]), [1]),
        ({"a": 1}, MapEntry("a", 1)),
        (vertex("a"), VertexProperty("a", "name", "x", vertex("a"), {})),
    ],
)
def test_values_that_differ_in_type_or_content_are_not_equal(left: Any, right: Any) -> None:
    assert not are_equal(left, right)
    assert not are_equal(right, left)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (False, True),
        (1, 1.5),
        (-INFINITY, -(10**400)),
        (10**400, INFINITY),
        (Decimal("1e5000"), INFINITY),
        ("a", "b"),
        ([], [1]),
        ([1, 2, 3], [1, 2, 4]),
        ([1, 2, 3], [1, 2, 3, 4]),
        (vertex("a"), vertex("b")),
        (UUID(int=5), UUID(int=6)),
        (datetime(2023, 1, 1, tzinfo=UTC), datetime(2023, 8, 1, tzinfo=UTC)),
    ],
)
def test_a_smaller_value_compares_below_a_larger_one(smaller: Any, larger: Any) -> None:
    assert (compare(smaller, larger), compare(larger, smaller)) == (-1, 1)


@pytest.mark.parametrize(("left", "right"), [(1, "a"), (NAN, 1), (None, 1), ([1], ["a"]), ([1, NAN], [2, NAN])])
def test_values_of_different_types_and_nan_cannot_be_compared(left: Any, right: Any) -> None:
    assert compare(left, right) is None


def test_values_sort_by_type_and_then_by_value() -> None:
    ordered: list[Any] = [
        None,
        False,
        True,
        -INFINITY,
        1,
        Decimal("1.5"),
        2.0,
        INFINITY,
        NAN,
        datetime(2023, 1, 1, tzinfo=UTC),
        "bar",
        "foo",
        UUID(int=5),
        vertex("b"),
        edge("a"),
        VertexProperty("a", "name", "x", vertex("a"), {}),
        Property("a", 1, edge("a")),
        Path([set()], [1]),
        {"x"},
        ["a", "b"],
        ["a", "b", "c"],
        {"a": "a", "b": False},
        {"a": "a", "b": "b"},
        MapEntry("a", 1),
    ]
    shuffled = ordered[::-1]
    shuffled.sort(key=order_key)
    assert list(map(repr, shuffled)) == list(map(repr, ordered))


def test_tokens_sort_among_texts_by_their_name() -> None:
    keys = ["name", Token("T", "label"), "age", Token("T", "id")]
    assert sorted(keys, key=order_key) == ["age", Token("T", "id"), Token("T", "label"), "name"]


def test_numbers_of_different_types_have_different_identities() -> None:
    values = [1, Long(1), Byte(1), 1.0, Float(1.0), Decimal(1), True, "1", 0.0, -0.0]
    assert len({identity_key(value) for value in values}) == len(values)


def test_nan_and_a_long_that_does_not_say_so_have_one_identity() -> None:
    assert identity_key(NAN) == identity_key(float("-nan"))
    assert identity_key(2**40) == identity_key(Long(2**40))


def test_frozen_lists_and_maps_are_keys_and_equal_their_bases() -> None:
    counts = {FrozenList([1, FrozenMap(a=1)]): 2}
    assert counts[freeze([1, {"a": 1}])] == 2
    assert FrozenList([1]) == [1]
    assert FrozenMap(a=1) == {"a": 1}


def test_maps_with_the_same_keys_have_hashes_of_their_own() -> None:
    # As `select` and `project` make them: groups by such maps would otherwise compare each with all.
    maps = [freeze({"a": first, "b": [second]}) for first in range(20) for second in range(20)]
    assert len(set(map(hash, maps))) == len(maps)
    assert hash(freeze({"a": [1, {"b": Long(2)}]})) == hash(freeze({"a": [Long(1), {"b": 2.0}]}))
    assert hash(freeze({"a": bytearray(b"x")})) == hash(freeze({"a": bytearray(b"y")}))
