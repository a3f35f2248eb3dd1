"""The profile of items: sketches, the sample, and what it says of paths."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.advisor.keys.candidate import CandidateKey, first_of
from asterism.advisor.keys.item_lines import BadLines, read_items
from asterism.advisor.keys.key_table import KeyTable
from asterism.advisor.keys.sketches import EXACT_VALUES_MAX, DistinctCounter, Reservoir, estimate_distinct
from asterism.advisor.keys.spread import gini, shares, top_share
from asterism.advisor.keys.time_stamps import shape_of
from asterism.limits import DEFAULT_LIMITS, GIB
from tests.unit.advisor.advised import TENANTS, orders, profile_of

AMOUNTS = st.lists(st.floats(0, 1e9), max_size=50)


@given(AMOUNTS)
def test_gini_is_between_none_and_all(amounts: list[float]) -> None:
    assert 0.0 <= gini(amounts) <= 1.0


@given(AMOUNTS.filter(lambda amounts: sum(amounts) > 0))
def test_shares_are_parts_of_one(amounts: list[float]) -> None:
    assert sum(shares(amounts)) == pytest.approx(1.0)
    assert top_share(amounts, len(amounts)) == pytest.approx(1.0)


def test_gini_of_known_divisions() -> None:
    assert gini([5, 5, 5, 5]) == pytest.approx(0.0)
    assert gini([0, 0, 0, 100]) == pytest.approx(0.75)
    assert gini([1, 2, 3, 4]) == pytest.approx(0.25)


@given(st.lists(st.integers(0, 500), max_size=2_000))
def test_few_different_values_are_counted_exactly(values: list[int]) -> None:
    counter = DistinctCounter()
    for value in values:
        counter.add(value)
    assert counter.estimate() == len(set(values))


def test_many_different_values_are_estimated_closely() -> None:
    counter = DistinctCounter()
    for number in range(20 * EXACT_VALUES_MAX):
        counter.add(f"value-{number}")
    assert counter.estimate() == pytest.approx(20 * EXACT_VALUES_MAX, rel=0.15)


def test_a_long_text_is_one_value_however_often_it_comes() -> None:
    counter = DistinctCounter()
    for _ in range(3):
        counter.add("x" * 5_000)
        counter.add("x" * 5_000 + "y")
    assert counter.exact is not None
    assert sorted(counter.exact.values()) == [3, 3]


def test_a_reservoir_is_fair_and_bounded() -> None:
    reservoir: Reservoir[int] = Reservoir(1_000, random.Random(5))
    for number in range(20_000):
        reservoir.offer(partial(int, number))
    assert len(reservoir.kept) == 1_000
    assert sum(reservoir.kept) / 1_000 == pytest.approx(10_000, rel=0.1)
    assert not reservoir.is_whole


def test_different_values_of_a_sample_stand_for_those_of_the_whole() -> None:
    assert estimate_distinct({1: 100}, sampled=100, total=10_000) == 10_000
    assert estimate_distinct({50: 2}, sampled=100, total=10_000) == 2
    assert estimate_distinct({1: 10, 9: 10}, sampled=100, total=10_000) == 110


def test_paths_are_counted_with_nested_ones() -> None:
    profile = profile_of([*orders(80), {"id": "last", "odd name": 1, "tags": [1, 2]}])
    assert profile.share_with("/id") == 1.0
    assert profile.share_with("/lines/count") == pytest.approx(80 / 81)
    assert profile.share_with('/"odd name"') == pytest.approx(1 / 81)
    assert profile.share_with("/tags") == 0.0
    assert profile.distinct("/tenantId") == TENANTS
    assert list(profile.time_shapes()) == ["/at"]


def test_system_properties_are_no_paths() -> None:
    profile = profile_of([{"id": "1", "_rid": "x", "_ts": 1, "_etag": "e"}])
    assert list(profile.paths) == ["/id"]


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        (["2026-01-01T10:00:00Z", "2026-01-01"], "s"),
        ([1_763_496_000, 1_763_496_000.5], "s"),
        ([1_763_496_000_000], "ms"),
    ],
)
def test_time_stamps_are_recognized_by_their_values(values: list[str | int | float], unit: str) -> None:
    shape = shape_of(values)
    assert shape is not None
    assert shape.unit == unit


@pytest.mark.parametrize("values", [[], ["2026"], [12, 13], ["2026-01-01", "soon"], [True], ["2026-13-45"]])
def test_other_values_are_no_time_stamps(values: list[str | int]) -> None:
    assert shape_of(values) is None


def test_lines_that_are_no_items_are_counted_with_their_reasons() -> None:
    bad = BadLines()
    lines = [b'{"id": "1"}\n', b"no json\n", b"[1]\n", b"\n", b'{"id": "2"']
    assert [item["id"] for item, _ in read_items(lines, bad)] == ["1"]
    assert bad.count == 3
    assert [(line.number, line.is_torn) for line in bad.shown] == [(2, False), (3, False), (5, True)]


def test_the_storage_of_a_key_is_divided_as_the_items_are() -> None:
    items = [{"id": str(number), "t": "large" if number < 60 else f"s{number}"} for number in range(100)]
    table = KeyTable(profile_of(items), CandidateKey.of_paths("/t"), first_of, rows_max=1_000)
    figures = table.storage(DEFAULT_LIMITS, write_bytes_per_second={})
    assert figures.cardinality == 41
    assert figures.largest_key == ("large",)
    assert figures.largest_share == pytest.approx(0.6, abs=0.01)
    assert figures.top_ten_share == pytest.approx(0.69, abs=0.01)
    assert figures.absent_share == 0.0


def test_the_growth_of_the_latest_items_says_when_a_key_is_full() -> None:
    items = [{"id": str(number), "t": "one", "at": 1_763_496_000 + number} for number in range(1_000)]
    profile = profile_of(items)
    figures = KeyTable(profile, CandidateKey.of_paths("/t"), first_of, rows_max=1_000).storage(
        DEFAULT_LIMITS, write_bytes_per_second={}
    )
    assert figures.growth_bytes_per_second == pytest.approx(profile.mean_bytes, rel=0.02)
    assert figures.full_after_seconds == pytest.approx(20 * GIB / profile.mean_bytes, rel=0.02)


def test_a_sample_stands_for_all_items() -> None:
    profile = profile_of(orders(4_000), sampled_items=500)
    table = KeyTable(profile, CandidateKey.of_paths("/tenantId"), first_of, rows_max=20_000)
    assert table.cardinality == TENANTS
    assert table.items_below(("t1",)) == pytest.approx(100, rel=0.9)
    assert Counter(table.key_of_row).total() == 500
