"""Arithmetic with Java's types of numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.values.arithmetic import (
    OPERATORS,
    REDUCTIONS,
    add,
    divide,
    larger,
    multiply,
    multiply_by_bulk,
    smaller,
    subtract,
)
from asterism.languages.gremlin.values.numbers import BigInteger, Byte, Float, Long, Short, number_type

NAN, INFINITY = float("nan"), float("inf")
BYTES = st.integers(-128, 127).map(Byte)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1).map(Long)


def typed(value: Any) -> tuple[str, Any]:
    return number_type(value), value


@pytest.mark.parametrize(
    ("left", "right", "kind", "expected"),
    [
        (1, 2, "Integer", 3),
        (2**31 - 1, 1, "Long", 2**31),
        (Byte(1), Byte(2), "Byte", 3),
        (Byte(127), Byte(1), "Short", 128),
        (Byte(127), Short(32767), "Integer", 32894),
        (Byte(1), 1, "Integer", 2),
        (1, Long(1), "Long", 2),
        (2**40, -(2**40), "Long", 0),
        (Long(1), BigInteger(1), "BigInteger", 2),
        (1, Float(1.5), "Float", 2.5),
        (Long(1), Float(1.5), "Double", 2.5),
        (1, 1.5, "Double", 2.5),
        (1, Decimal("1.5"), "BigDecimal", Decimal("2.5")),
        (BigInteger(1), 0.5, "BigDecimal", Decimal("1.5")),
        (Float(3.4e38), Float(3.4e38), "Double", 2 * float(Float(3.4e38))),
        (1.7e308, 1.7e308, "Double", INFINITY),
    ],
)
def test_a_sum_has_the_larger_type_and_a_larger_if_it_must(left: Any, right: Any, kind: str, expected: Any) -> None:
    assert typed(add(left, right)) == (kind, expected)
    assert typed(add(right, left)) == (kind, expected)


@pytest.mark.parametrize(
    ("left", "right", "kind", "expected"),
    [
        (7, 2, "Integer", 3),
        (-7, 2, "Integer", -3),
        (-(2**31), -1, "Long", 2**31),
        (7, 2.0, "Double", 3.5),
        (Float(1.0), Float(3.0), "Float", 0.3333333432674408),
        (1.0, 0, "Double", INFINITY),
        (Float(-1.0), Byte(0), "Double", -INFINITY),
        (Decimal(1), Decimal(8), "BigDecimal", Decimal("0.125")),
        (Decimal(10), Decimal(3), "BigDecimal", Decimal("3.3333333333")),
        (Decimal("12345678901234567890"), 7, "BigDecimal", Decimal("1763668414462081127.1428571429")),
    ],
)
def test_a_quotient_of_whole_numbers_is_whole(left: Any, right: Any, kind: str, expected: Any) -> None:
    assert typed(divide(left, right)) == (kind, expected)


def test_zero_by_zero_is_no_number() -> None:
    assert math.isnan(divide(0.0, 0))


@pytest.mark.parametrize(
    ("left", "right", "sentence"),
    [
        (1, 0, "/ by zero"),
        (BigInteger(1), 0, "/ by zero"),
        (Decimal(1), 0, "Division by zero"),
        (Decimal(0), 0, "Division undefined"),
        (Decimal(1), INFINITY, "BigDecimal"),
        ("a", 1, "String cannot be cast to Number"),
        (True, 1, "Boolean cannot be cast to Number"),
    ],
)
def test_a_quotient_that_does_not_exist_is_refused(left: Any, right: Any, sentence: str) -> None:
    with pytest.raises(ExecutionFailure, match=sentence):
        divide(left, right)


@pytest.mark.parametrize("operation", [add, multiply, lambda left, right: subtract(left, -right)])
def test_a_long_that_overflows_is_refused(operation: Any) -> None:
    with pytest.raises(ExecutionFailure, match="long overflow"):
        operation(Long(2**62), Long(2**62))


def test_large_numbers_have_a_limit() -> None:
    huge = BigInteger(2**10_000)
    with pytest.raises(ExecutionFailure, match="14000 bits"):
        multiply(huge, huge)
    with pytest.raises(ExecutionFailure, match="Overflow"):
        multiply(Decimal("1e999000"), Decimal("1e999000"))


@given(st.one_of(BYTES, INTEGERS, LONGS), st.one_of(BYTES, INTEGERS))
def test_whole_numbers_add_up_exactly_or_not_at_all(left: int, right: int) -> None:
    try:
        assert int(add(left, right)) == int(left) + int(right)
    except ExecutionFailure:
        assert abs(int(left) + int(right)) >= 2**63


@given(st.one_of(INTEGERS, LONGS, st.floats(allow_nan=False)), st.one_of(INTEGERS, LONGS, st.floats(allow_nan=False)))
def test_the_smaller_and_the_larger_are_in_order_and_of_one_type(left: Any, right: Any) -> None:
    low, high = smaller(left, right), larger(left, right)
    assert low <= high
    assert number_type(low) == number_type(high)


def test_minima_pass_over_null_and_nan_and_widen() -> None:
    assert smaller(None, 1) == 1
    assert larger(NAN, 1) == 1
    assert typed(smaller(1, 2.0)) == ("Double", 1.0)
    assert typed(larger(Byte(1), 2)) == ("Integer", 2)
    assert typed(smaller(1, Decimal("1.5"))) == ("BigDecimal", Decimal(1))
    assert smaller("b", "a") == "a"
    assert smaller(Decimal(1), INFINITY) == 1
    with pytest.raises(ExecutionFailure, match="cannot be compared"):
        smaller("a", 1)


def reduced(name: str, *values: tuple[Any, int]) -> Any:
    state = None
    for value, bulk in values:
        state = REDUCTIONS[name].add(state, value, bulk)
    return REDUCTIONS[name].finish(state)


def test_totals_and_means_pass_over_null() -> None:
    assert REDUCTIONS["sum"].of([1, None, 2]) == 3
    assert REDUCTIONS["sum"].of([None, None]) is None
    assert REDUCTIONS["min"].of([3, None, 2]) == 2
    assert REDUCTIONS["max"].of(["a", "b"]) == "b"
    assert reduced("sum", (2, 3), (1, 1)) == 7
    assert typed(reduced("mean", (1, 1), (None, 5), (2, 3))) == ("Double", 1.75)
    assert reduced("mean", (None, 1)) is None
    assert typed(REDUCTIONS["mean"].of([Decimal(1), Decimal(2)])) == ("BigDecimal", Decimal("1.5"))
    with pytest.raises(ExecutionFailure, match="cannot be cast to Number"):
        REDUCTIONS["sum"].of(["a"])


def test_a_bulk_does_not_widen_the_type() -> None:
    assert typed(multiply_by_bulk(Byte(2), 3)) == ("Byte", 6)
    assert typed(multiply_by_bulk(Byte(100), 3)) == ("Short", 300)
    assert typed(multiply_by_bulk(2, 3)) == ("Integer", 6)
    assert typed(multiply_by_bulk(Float(0.5), 3)) == ("Float", 1.5)
    assert typed(multiply_by_bulk(Decimal("0.5"), 3)) == ("BigDecimal", Decimal("1.5"))
    assert multiply_by_bulk(None, 3) is None


def test_operators_merge_values() -> None:
    assert OPERATORS["assign"](1, 2) == 2
    assert OPERATORS["and"](True, False) is False
    assert OPERATORS["or"](None, True) is True
    assert OPERATORS["minus"](5, 3) == 2
    assert typed(OPERATORS["sumLong"](1, 2)) == ("Long", 3)
    assert OPERATORS["addAll"]([1], [2]) == [1, 2]
    assert OPERATORS["addAll"]({1}, [[2]]) == {1, *OPERATORS["addAll"](set(), [[2]])}
    assert OPERATORS["addAll"]({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    assert OPERATORS["sum"](None, 1) is None


def test_operators_refuse_values_they_cannot_merge() -> None:
    with pytest.raises(ExecutionFailure, match="both of Map or Collection"):
        OPERATORS["addAll"]([1], {"a": 1})
    with pytest.raises(ExecutionFailure, match="Boolean"):
        OPERATORS["and"](1, True)
    with pytest.raises(ExecutionFailure, match="long overflow"):
        OPERATORS["sumLong"](2**63 - 1, 1)
