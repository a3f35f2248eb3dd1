"""One order, implemented twice: by `order` for values in memory, by `key_bytes` for keys of the store."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.json.key_bytes import decode, encode
from asterism.values.json.order import compare, sort_key, values_equal
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import is_truncated

ASCENDING: list[object] = [
    UNDEFINED,
    None,
    False,
    True,
    -math.inf,
    -1e308,
    -2,
    -1.5,
    -5e-324,
    0,
    5e-324,
    1,
    1.5,
    2**53,
    1e308,
    math.inf,
    "",
    "\x00",
    "\x00\x01",
    "\x01",
    "A",
    "a",
    "a\x00",
    "ab",
    "é",
    "\uffff",
    "\U0001f600",
    [],
    [None],
    [None, None],
    [1],
    [1, "a"],
    [2],
    [[]],
    [{}],
    {},
    {"a": 1},
    {"a": 1, "b": 1},
    {"a": 2},
    {"ab": 1},
    {"b": 0},
]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.integers(-3, 3)
scalars = st.sampled_from([UNDEFINED, None, False, True]) | numbers | texts | st.text("\x00\x01\xffab", max_size=4)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


def bytes_order(left: bytes, right: bytes) -> int:
    return (left > right) - (left < right)


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(ASCENDING)))
def test_neighbors_in_the_order_stay_apart(lower: object, higher: object) -> None:
    assert compare(lower, higher) == -1
    assert compare(higher, lower) == 1
    assert encode(lower, bytes_max=None) < encode(higher, bytes_max=None)


def test_values_sort_by_their_keys() -> None:
    descending = ASCENDING[::-1]
    assert sorted(descending, key=sort_key) == ASCENDING


@given(values, values)
def test_bytes_sort_as_values_do(left: object, right: object) -> None:
    assert bytes_order(encode(left, bytes_max=None), encode(right, bytes_max=None)) == compare(left, right)


@given(values, values, st.integers(1, 24))
def test_cut_bytes_never_sort_against_the_values(left: object, right: object, bytes_max: int) -> None:
    cut_order = bytes_order(encode(left, bytes_max=bytes_max), encode(right, bytes_max=bytes_max))
    assert cut_order in (0, compare(left, right))


@given(values, st.integers(1, 24))
def test_a_cut_encoding_is_a_prefix_of_the_whole_one_and_is_recognized(value: object, bytes_max: int) -> None:
    whole = encode(value, bytes_max=None)
    encoded = encode(value, bytes_max=bytes_max)
    assert encoded == whole[:bytes_max]
    assert is_truncated(encoded, bytes_max) == (len(whole) >= bytes_max)


@given(values, values)
def test_no_encoding_is_a_prefix_of_another(left: object, right: object) -> None:
    left_bytes, right_bytes = encode(left, bytes_max=None), encode(right, bytes_max=None)
    assert left_bytes.startswith(right_bytes) == (left_bytes == right_bytes)


@given(scalars)
def test_a_scalar_comes_back_from_its_bytes(value: object) -> None:
    assert compare(decode(encode(value, bytes_max=None)), value) == 0


@pytest.mark.parametrize("value", [[], {}, [1]])
def test_arrays_and_objects_do_not_come_back(value: object) -> None:
    with pytest.raises(ValueError, match="scalar"):
        decode(encode(value, bytes_max=None))


@pytest.mark.parametrize("bytes_max", [1, 2, 3, 4, 5, 6])
def test_cut_scalars_do_not_come_back(bytes_max: int) -> None:
    with pytest.raises(ValueError, match="scalar"):
        decode(encode("four", bytes_max=bytes_max))


@given(values, values)
def test_values_are_equal_when_they_sort_together(left: object, right: object) -> None:
    assert values_equal(left, right) == (compare(left, right) == 0)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (0, -0.0), (2**53, 2**53 + 1), ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}), (None, None)],
)
def test_equal_values(left: object, right: object) -> None:
    assert values_equal(left, right)
    assert encode(left, bytes_max=None) == encode(right, bytes_max=None)


@pytest.mark.parametrize(
    ("left", "right"),
    [(True, 1), (False, 0), (None, UNDEFINED), ("1", 1), ([1], [True]), ({"a": 1}, {"b": 1}), ([], {}), ([1], [1, 1])],
)
def test_unequal_values(left: object, right: object) -> None:
    assert not values_equal(left, right)
    assert not values_equal(right, left)


def test_numbers_that_no_double_holds_have_a_place() -> None:
    ascending = [math.nan, -(10**400), -1, 1, 10**400]
    descending = ascending[::-1]
    assert sorted(descending, key=sort_key) == ascending
    assert sorted(descending, key=lambda number: encode(number, bytes_max=None)) == ascending


@pytest.mark.parametrize("value", [object(), 1j])
def test_a_value_that_is_not_json_is_an_error_of_the_caller(value: object) -> None:
    with pytest.raises(TypeError):
        sort_key(value)
    with pytest.raises(TypeError):
        encode(value, bytes_max=None)
