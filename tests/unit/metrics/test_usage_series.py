"""Consumption by partition over time, in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asterism.throughput.usage_series import Consumption, RangeSteps, UsageSeries

A, B = b"a", b"b"

# Keyspace, range, slot, and what was consumed: whole numbers, which four bytes hold exactly.
samples = st.tuples(
    st.sampled_from([A, B]),
    st.integers(0, 3),
    st.integers(1, 40),
    st.builds(
        Consumption,
        request_units=st.integers(0, 1000).map(float),
        throttled=st.integers(0, 9),
        requests=st.integers(0, 99),
    ),
)


def in_order(unordered: list[tuple[bytes, int, int, Consumption]]) -> list[tuple[bytes, int, int, Consumption]]:
    return sorted(unordered, key=lambda sample: sample[2])


def fill(series: UsageSeries, sampled: list[tuple[bytes, int, int, Consumption]]) -> UsageSeries:
    for rid, range_id, slot, consumption in sampled:
        series.add(slot, rid, range_id, consumption)
    return series


def sums(steps: dict[int, RangeSteps]) -> dict[int, tuple[float, int, int]]:
    return {
        range_id: (sum(served.request_units), sum(served.throttled), sum(served.requests))
        for range_id, served in steps.items()
    }


@given(
    st.lists(samples, max_size=60).map(in_order),
    st.integers(-5, 45),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_the_steps_of_any_division_add_up_to_the_samples_in_the_window(
    sampled: list[tuple[bytes, int, int, Consumption]], first_slot: int, slots_per_step: int, steps: int
) -> None:
    series = fill(UsageSeries(slots_max=100, cells_max=1000), sampled)
    expected: dict[int, Consumption] = {}
    for rid, range_id, slot, consumption in sampled:
        if rid == A and first_slot <= slot < first_slot + slots_per_step * steps:
            expected.setdefault(range_id, Consumption()).add(consumption)
    found = series.steps_of(A, first_slot=first_slot, slots_per_step=slots_per_step, steps=steps)
    assert sums(found) == {
        range_id: (served.request_units, served.throttled, served.requests) for range_id, served in expected.items()
    }
    assert all(len(served.requests) == steps for served in found.values())


@given(st.lists(samples, max_size=200).map(in_order), st.integers(1, 20), st.integers(1, 30))
def test_no_more_cells_are_kept_than_the_bounds_allow(
    sampled: list[tuple[bytes, int, int, Consumption]], cells_max: int, slots_max: int
) -> None:
    series = UsageSeries(slots_max=slots_max, cells_max=cells_max)
    for rid, range_id, slot, consumption in sampled:
        series.add(slot, rid, range_id, consumption)
        assert series.cells <= cells_max
        beyond = series.steps_of(rid, first_slot=slot - slots_max - 40, slots_per_step=1, steps=41)
        assert beyond == {}, "a cell is older than the history"


def test_the_oldest_cells_are_dropped_first() -> None:
    series = UsageSeries(slots_max=100, cells_max=3)
    for slot in range(1, 6):
        series.add(slot, A, 0, Consumption(requests=slot))
    assert series.steps_of(A, first_slot=1, slots_per_step=1, steps=5)[0].requests == [0, 0, 3, 4, 5]


def test_a_late_sample_counts_for_the_last_slot() -> None:
    series = UsageSeries(slots_max=100, cells_max=10)
    series.add(7, A, 0, Consumption(requests=1))
    series.add(6, A, 0, Consumption(requests=2))
    assert series.steps_of(A, first_slot=6, slots_per_step=1, steps=2)[0].requests == [0, 3]


def test_a_deleted_keyspace_is_forgotten_and_its_cells_go_with_their_time() -> None:
    series = UsageSeries(slots_max=2, cells_max=10)
    series.add(1, A, 0, Consumption(requests=1))
    series.add(1, B, 0, Consumption(requests=2))
    series.keep_only({B})
    series.add(2, A, 0, Consumption(requests=4))
    assert series.steps_of(A, first_slot=1, slots_per_step=1, steps=2)[0].requests == [0, 4]
    series.advance(3)
    assert series.cells == 1


def test_keyspaces_that_come_and_go_for_days_leave_nothing_behind() -> None:
    series = UsageSeries(slots_max=10, cells_max=1000)
    for slot in range(1, 5000):
        rid = slot.to_bytes(8, "big")
        series.add(slot, rid, 0, Consumption(requests=1))
        series.keep_only({rid})
    assert (series.keyspaces, series.cells) == (1, 10)


def test_counts_beyond_four_bytes_are_cut() -> None:
    series = UsageSeries(slots_max=10, cells_max=10)
    series.add(1, A, 0, Consumption(requests=2**40))
    series.advance(2)
    assert series.steps_of(A, first_slot=1, slots_per_step=1, steps=1)[0].requests == [2**32 - 1]
