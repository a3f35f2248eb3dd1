from __future__ import annotations

import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.cosmos_sql.compiling.aggregates import AGGREGATES
from asterism.reading.limits import MemoryMeter
from asterism.reading.row_source import Aggregate
from asterism.values.undefined import UNDEFINED

_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_NUMBERS = st.integers() | _FLOATS
_VALUES = st.none() | st.booleans() | _NUMBERS | st.text() | st.just([1]) | st.just({"a": 1}) | st.just(UNDEFINED)
_NAMES = st.sampled_from(sorted(AGGREGATES))
_WITHOUT_ORDER = st.sampled_from(["AVG", "COUNT", "COUNTIF", "SUM"])


def _aggregate_of(name: str, values: list[object]) -> Aggregate:
    aggregate = AGGREGATES[name](MemoryMeter())
    for value in values:
        aggregate.add(value)
    return aggregate


@given(_NAMES, st.lists(_VALUES), st.lists(_VALUES))
def test_two_merged_aggregates_equal_one_of_all_values(name: str, first: list[object], second: list[object]) -> None:
    merged = _aggregate_of(name, first)
    merged.merge(pickle.loads(pickle.dumps(_aggregate_of(name, second).state())))
    assert repr(merged.result()) == repr(_aggregate_of(name, first + second).result())


@given(_WITHOUT_ORDER, st.lists(_VALUES).flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_the_order_of_values_does_not_matter(name: str, orders: tuple[list[object], list[object]]) -> None:
    first, second = orders
    assert repr(_aggregate_of(name, first).result()) == repr(_aggregate_of(name, second).result())


@given(st.lists(st.floats(-1e300, 1e300)))
def test_a_sum_is_the_double_nearest_to_the_exact_sum(values: list[float]) -> None:
    exact = sum(map(Fraction, values), Fraction())
    assert _aggregate_of("SUM", list(values)).result() == float(exact)


@given(st.lists(_FLOATS, min_size=1))
def test_an_average_lies_between_the_extremes(values: list[float]) -> None:
    mean = _aggregate_of("AVG", list(values)).result()
    assert min(values) <= mean <= max(values)


def test_a_sum_beyond_all_doubles_is_undefined() -> None:
    assert _aggregate_of("SUM", [1.7e308, 1.7e308]).result() is UNDEFINED


def test_a_sum_may_exceed_all_doubles_on_its_way() -> None:
    assert _aggregate_of("SUM", [1.7e308, 1.7e308, -1.7e308]).result() == 1.7e308


@pytest.mark.parametrize("smallest", [5e-324, -5e-324, 2.2250738585072014e-308])
def test_the_smallest_doubles_are_not_lost(smallest: float) -> None:
    assert _aggregate_of("SUM", [1e300, smallest, -1e300]).result() == smallest


@given(st.lists(st.text() | st.booleans() | st.none() | st.integers(-5, 5)))
def test_a_set_holds_each_value_of_the_list_once(values: list[object]) -> None:
    listed, unique = _aggregate_of("MAKELIST", values).result(), _aggregate_of("MAKESET", values).result()
    assert isinstance(listed, list)
    assert isinstance(unique, list)
    assert {repr(value) for value in listed} == {repr(value) for value in unique}
    assert len({repr(value) for value in unique}) == len(unique)


@given(st.lists(_NUMBERS, min_size=1))
def test_the_extremes_of_numbers(values: list[float]) -> None:
    assert _aggregate_of("MIN", list(values)).result() == min(values)
    assert _aggregate_of("MAX", list(values)).result() == max(values)


def test_infinities_are_not_json_numbers_and_make_a_sum_undefined() -> None:
    assert _aggregate_of("SUM", [math.inf, 1]).result() is UNDEFINED
