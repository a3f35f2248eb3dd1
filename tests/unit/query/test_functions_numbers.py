from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asterism.languages.cosmos_sql.functions import FUNCTIONS, EvaluationContext
from asterism.languages.cosmos_sql.functions.integers import wrap
from asterism.values.json.order import values_equal
from asterism.values.number_text import number_text
from asterism.values.undefined import UNDEFINED

RUN: dict[str, Callable[..., Any]] = {name: function.run for name, function in FUNCTIONS.items()}
INTEGERS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
PRIMITIVES = st.none() | st.booleans() | INTEGERS | DOUBLES | st.text(max_size=5)
JSON = st.recursive(
    PRIMITIVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ARRAYS = st.lists(JSON, max_size=6)
PATTERNS_ARE_ARGUMENTS = {"REGEXMATCH", "REGEXEXTRACT", "REGEXEXTRACTALL"}
CONTEXT = EvaluationContext(now_wall_seconds=0.0, random=lambda: 0.5)


@given(st.data(), st.sampled_from(sorted(FUNCTIONS.keys() - PATTERNS_ARE_ARGUMENTS)))
def test_every_function_accepts_every_value(data: st.DataObject, name: str) -> None:
    function = FUNCTIONS[name]
    count = data.draw(st.integers(function.arguments_min, min(function.arguments_max, function.arguments_min + 2)))
    arguments = [data.draw(JSON | st.just(UNDEFINED)) for _ in range(count)]
    result = function.run(*[CONTEXT][: function.needs_context], *arguments)
    assert result is UNDEFINED or result is None or type(result) in (bool, int, float, str, list, dict)


@given(
    JSON, st.sampled_from(["a", "[a-z]+", "(.)|b", ""]) | st.integers(), st.sampled_from(["", "i", "msx", None]), JSON
)
def test_regular_expressions_accept_every_value(
    text: object, pattern: object, modifiers: object, group: object
) -> None:
    found = RUN["REGEXEXTRACTALL"](text, pattern, modifiers, group)
    assert found is UNDEFINED or type(found) is list


# --- integers -------------------------------------------------------------------------------------------------------


@given(INTEGERS, INTEGERS)
def test_integers_wrap_around_and_come_back(left: int, right: int) -> None:
    assert RUN["INTSUB"](RUN["INTADD"](left, right), right) == left
    assert RUN["INTADD"](left, right) == RUN["INTADD"](right, left)
    assert (RUN["INTMUL"](left, right) - left * right) % 2**64 == 0


@given(st.integers())
def test_wrapping_keeps_the_low_bits(value: int) -> None:
    wrapped = wrap(value)
    assert -(2**63) <= wrapped < 2**63
    assert (wrapped - value) % 2**64 == 0


@given(INTEGERS, INTEGERS)
def test_quotient_and_remainder_make_the_dividend(left: int, right: int) -> None:
    assume(right != 0)
    quotient, remainder = RUN["INTDIV"](left, right), RUN["INTMOD"](left, right)
    assert RUN["INTADD"](RUN["INTMUL"](quotient, right), remainder) == left


@given(INTEGERS, INTEGERS)
def test_bits_obey_de_morgan(left: int, right: int) -> None:
    inverted = RUN["INTBITNOT"]
    assert inverted(RUN["INTBITAND"](left, right)) == RUN["INTBITOR"](inverted(left), inverted(right))
    assert RUN["INTBITXOR"](RUN["INTBITXOR"](left, right), right) == left


# --- doubles --------------------------------------------------------------------------------------------------------


@given(DOUBLES)
def test_rounding_stays_within_a_half(value: float) -> None:
    assert abs(RUN["ROUND"](value) - value) <= 0.5
    assert RUN["FLOOR"](value) <= value <= RUN["CEILING"](value)


@given(DOUBLES)
def test_rounding_is_the_same_on_both_sides_of_zero(value: float) -> None:
    assert RUN["ROUND"](-value) == -RUN["ROUND"](value)
    assert RUN["ROUND"](value, 2) == RUN["ROUND"](RUN["ROUND"](value, 2), 2)


@given(st.floats(-1e6, 1e6), st.floats(0.001, 1e3))
def test_a_number_is_in_its_bin(value: float, size: float) -> None:
    start = RUN["NUMBERBIN"](value, size)
    assert isinstance(start, int | float)
    assert start - 1e-6 <= value <= start + size + 1e-6


@given(DOUBLES)
def test_the_text_of_a_number_reads_back_as_the_number(value: float) -> None:
    assert float(number_text(value)) == value
    assert values_equal(RUN["STRINGTONUMBER"](RUN["TOSTRING"](value)), value)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1.5e-7, "1.5e-7"),
        (1e-6, "0.000001"),
        (-123.456, "-123.456"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (2**53 + 1, "9007199254740993"),
        (2**70, "1.1805916207174113e+21"),
        (-0.0, "0"),
        (math.inf, "Infinity"),
    ],
)
def test_numbers_are_written_as_javascript_does(number: float, text: str) -> None:
    assert number_text(number) == text


@given(JSON)
def test_the_text_of_a_value_reads_back_as_the_value(value: object) -> None:
    text = RUN["TOSTRING"]([value])
    assert isinstance(text, str)
    assert values_equal(json.loads(text), [value])


# --- arrays and sets ------------------------------------------------------------------------------------------------


@given(ARRAYS, ARRAYS)
def test_sets_obey_the_laws_of_sets(left: list[object], right: list[object]) -> None:
    union, both = RUN["SETUNION"](left, right), RUN["SETINTERSECT"](left, right)
    only_left, only_right = RUN["SETDIFFERENCE"](left, right), RUN["SETDIFFERENCE"](right, left)
    assert RUN["SETEQUAL"](union, RUN["ARRAY_CONCAT"](only_left, both, only_right)) is True
    assert len(union) == len(only_left) + len(both) + len(only_right)
    assert RUN["SETEQUAL"](both, RUN["SETINTERSECT"](right, left)) is True


@given(ARRAYS, JSON)
def test_a_set_holds_the_elements_of_the_array(array: list[object], value: object) -> None:
    assert RUN["ARRAY_CONTAINS"](array, value) is (RUN["SETINTERSECT"](array, [value]) != [])


@given(ARRAYS, st.integers(-8, 8))
def test_two_slices_make_the_array(array: list[object], start: int) -> None:
    cut = max(start + len(array), 0) if start < 0 else start
    assert RUN["ARRAY_CONCAT"](RUN["ARRAY_SLICE"](array, 0, cut), RUN["ARRAY_SLICE"](array, start)) == array


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_average_and_median_lie_between_the_ends(numbers: list[float]) -> None:
    low, high = RUN["ARRAY_MIN"](numbers), RUN["ARRAY_MAX"](numbers)
    assert low <= RUN["ARRAY_MEDIAN"](numbers) <= high
    assert low - 1e-6 <= RUN["ARRAY_AVG"](numbers) <= high + 1e-6
