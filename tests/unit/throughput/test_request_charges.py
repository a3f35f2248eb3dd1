from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.throughput import charge

KB = 1024
sizes = st.integers(0, 2 * 1024 * KB)
counts = st.integers(0, 10_000)


def _replace(size: int, count: int) -> float:
    return charge.replace(before_bytes=size, after_bytes=size, indexed_paths=count)


def _feed_page(count: int, size: int) -> float:
    return charge.feed_page(items=count, page_bytes=size)


def _query(count: int, size: int) -> float:
    return charge.query(index_lookups=count, items_loaded=count, bytes_loaded=size, results=count, bytes_returned=size)


def test_a_point_read_of_1_kb_costs_1_and_of_100_kb_costs_10() -> None:
    assert charge.point_read(0) == charge.point_read(KB) == 1.0
    assert charge.point_read(100 * KB) == 10.0


def test_a_1_kb_create_with_ten_indexed_paths_costs_about_5_and_a_half() -> None:
    assert charge.write(KB, 10) == 5.5
    assert charge.write(100 * KB, 10) == 50.5


def test_a_replace_costs_about_a_delete_and_a_create() -> None:
    assert _replace(KB, 20) == charge.delete(KB, 10) + charge.write(KB, 10) == 11.0


def test_a_miss_and_metadata_cost_1() -> None:
    assert charge.MISS == charge.METADATA == charge.QUERY_PLAN == 1.0


def test_a_query_for_one_small_item_costs_more_than_reading_it() -> None:
    cost = charge.query(index_lookups=1, items_loaded=1, bytes_loaded=KB, results=1, bytes_returned=KB)
    assert charge.point_read(KB) < cost < 3.0


def test_a_scan_costs_more_than_a_lookup_with_the_same_results() -> None:
    lookup = charge.query(index_lookups=1, items_loaded=10, bytes_loaded=10 * KB, results=10, bytes_returned=10 * KB)
    scan = charge.query(
        index_lookups=0, items_loaded=10_000, bytes_loaded=10_000 * KB, results=10, bytes_returned=10 * KB
    )
    assert scan > 50 * lookup


@given(sizes, sizes, counts, counts)
def test_charges_never_fall_as_sizes_and_counts_grow(size: int, more: int, count: int, more_count: int) -> None:
    larger, higher = size + more, count + more_count
    assert charge.point_read(size) <= charge.point_read(larger)
    assert charge.write(size, count) <= charge.write(larger, higher)
    assert _replace(size, count) <= _replace(larger, higher)
    assert _feed_page(count, size) <= _feed_page(higher, larger)
    assert _query(count, size) <= _query(higher, larger)


@given(sizes, counts)
def test_charges_have_two_decimals_and_are_at_least_1(size: int, count: int) -> None:
    for cost in (
        charge.point_read(size),
        charge.write(size, count),
        charge.delete(size, count),
        _feed_page(count, size),
        _query(count, size),
    ):
        assert cost == round(cost, 2) >= 1.0


@pytest.mark.parametrize(("size", "cost"), [(KB, 1.0), (KB + 1, 1.09), (2 * KB, 1.09), (2 * KB + 1, 1.18)])
def test_a_begun_kilobyte_counts(size: int, cost: float) -> None:
    assert charge.point_read(size) == cost


def test_the_price_of_items_includes_the_computation_of_an_ordinary_query() -> None:
    alone = _query(10, 10 * KB)
    computing = charge.query(
        index_lookups=10,
        items_loaded=10,
        bytes_loaded=10 * KB,
        results=10,
        bytes_returned=10 * KB,
        steps=3_000,
        bytes_built=64 * KB + 20 * KB,
    )
    assert computing == alone


def test_rows_work_and_bytes_beyond_that_are_paid_for() -> None:
    base = charge.query(index_lookups=0, items_loaded=0, bytes_loaded=0, results=1, bytes_returned=1)
    steps = charge.query(index_lookups=0, items_loaded=0, bytes_loaded=0, results=1, bytes_returned=1, steps=11_000)
    built = charge.query(
        index_lookups=0, items_loaded=0, bytes_loaded=0, results=1, bytes_returned=1, bytes_built=64 * KB + 1000 * KB
    )
    assert (base, round(steps - base, 2), round(built - base, 2)) == (2.26, 10.0, 10.0)
