from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.limits import GIB, Limits
from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap, initial_map
from asterism.partitioning.split_merge import (
    CannotSplit,
    MergePlan,
    SplitPlan,
    SplitPointFinder,
    SplitReason,
    partition_count_at_creation,
    partition_count_for,
    plan_demand_or_size_split,
    plan_merges,
    plan_throughput_splits,
)
from asterism.values.identifiers import Epoch, PartitionNumber

KEY = PartitionKeyDefinition(paths=("/pk",))
FIXED = PartitionKeyDefinition(paths=("/_partitionKey",), system_key=True)
LIMITS = Limits()


def map_of(count: int) -> PartitionMap:
    return initial_map(KEY, [PartitionNumber(index) for index in range(count)], epoch=Epoch(1))


def finder_of(sizes: dict[bytes, int]) -> SplitPointFinder:
    finder = SplitPointFinder(sum(sizes.values()))
    for key in sorted(sizes):
        finder.feed(key, sizes[key])
    return finder


# --- where to split -------------------------------------------------------------------------------------------------

logical_partitions = st.dictionaries(st.binary(min_size=1, max_size=4), st.integers(0, 10_000), min_size=2, max_size=30)


@given(logical_partitions)
def test_a_split_point_has_data_on_both_sides_and_halves_as_well_as_the_largest_key_allows(
    sizes: dict[bytes, int],
) -> None:
    point = finder_of(sizes).split_point()
    assert point is not None
    left = sum(size for key, size in sizes.items() if key < point)
    right = sum(size for key, size in sizes.items() if key >= point)
    assert any(key < point for key in sizes)
    assert any(key >= point for key in sizes)
    assert abs(left - right) <= max(sizes.values())


@given(logical_partitions)
def test_no_other_boundary_halves_better(sizes: dict[bytes, int]) -> None:
    point = finder_of(sizes).split_point()
    total = sum(sizes.values())
    imbalances = {at: abs(2 * sum(s for key, s in sizes.items() if key < at) - total) for at in sorted(sizes)[1:]}
    assert point is not None
    assert imbalances[point] == min(imbalances.values())


def test_fewer_than_two_keys_have_no_split_point() -> None:
    assert finder_of({}).split_point() is None
    finder = SplitPointFinder(20)
    finder.feed(b"a", 10)
    finder.feed(b"a", 10)
    assert finder.split_point() is None


def test_keys_out_of_order_are_an_error_of_the_caller() -> None:
    finder = SplitPointFinder(2)
    finder.feed(b"b", 1)
    with pytest.raises(ValueError, match="order"):
        finder.feed(b"a", 1)


def test_an_empty_partition_splits_in_the_middle_of_its_range() -> None:
    plan = plan_demand_or_size_split(KEY, map_of(1).ranges[0], 0, SplitPointFinder(0))
    assert plan == SplitPlan(0, bytes.fromhex("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"), SplitReason.DEMAND)


def test_a_partition_with_data_splits_in_the_middle_of_its_data() -> None:
    sizes = {effective_key(KEY, (name,)): 100 for name in "abcd"}
    plan = plan_demand_or_size_split(KEY, map_of(1).ranges[0], 4, finder_of(sizes), reason=SplitReason.SIZE)
    assert plan == SplitPlan(0, sorted(sizes)[2], SplitReason.SIZE)


def test_one_logical_partition_is_refused_in_plain_words() -> None:
    refusal = plan_demand_or_size_split(KEY, map_of(1).ranges[0], 1, finder_of({b"a": 5}))
    assert isinstance(refusal, CannotSplit)
    assert "one partition key value" in refusal.reason
    assert "cannot be divided" in refusal.reason


def test_logical_partitions_at_one_point_are_refused() -> None:
    assert isinstance(plan_demand_or_size_split(KEY, map_of(1).ranges[0], 2, finder_of({b"a": 5})), CannotSplit)


def test_a_fixed_container_never_splits() -> None:
    refusal = plan_demand_or_size_split(FIXED, map_of(1).ranges[0], 0, SplitPointFinder(0))
    assert isinstance(refusal, CannotSplit)
    assert "no partition key" in refusal.reason
    assert (
        plan_throughput_splits(map_of(1), definition=FIXED, ru_per_second=50_000, limits=LIMITS, bytes_by_range={})
        == ()
    )


# --- how many -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ru", "count"), [(400, 1), (6000, 1), (6100, 2), (10_100, 2), (12_000, 2), (18_000, 3), (30_000, 5)]
)
def test_a_manual_container_begins_with_a_partition_for_each_6000_ru(ru: int, count: int) -> None:
    assert partition_count_at_creation(ru, autoscale=False, limits=LIMITS) == count


@pytest.mark.parametrize(("ru", "count"), [(1000, 1), (10_000, 1), (11_000, 2), (30_000, 3)])
def test_an_autoscale_container_begins_with_a_partition_for_each_10000_ru(ru: int, count: int) -> None:
    assert partition_count_at_creation(ru, autoscale=True, limits=LIMITS) == count
    assert partition_count_for(ru, LIMITS) == count


def splits(partition_map: PartitionMap, ru: int, bytes_by_range: dict[int, int]) -> tuple[int, ...]:
    return plan_throughput_splits(
        partition_map, definition=KEY, ru_per_second=ru, limits=LIMITS, bytes_by_range=bytes_by_range
    )


def test_enough_partitions_are_left_alone() -> None:
    assert splits(map_of(2), 20_000, {}) == ()
    assert splits(map_of(5), 400, {}) == ()


def test_growth_splits_the_largest_range_first() -> None:
    assert splits(map_of(3), 40_000, {0: 1, 1: 9, 2: 5}) == (1,)
    assert splits(map_of(2), 25_000, {0: 1, 1: 9}) == (1,)


def test_of_equal_ranges_the_widest_splits_and_then_the_oldest() -> None:
    at = bytes.fromhex("0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF")
    uneven = map_of(2).split(0, at=at, low=PartitionNumber(7), high=PartitionNumber(8), epoch=Epoch(2))
    assert splits(uneven, 40_000, {}) == (1,)
    assert splits(map_of(3), 50_000, {}) == (0, 1)


@given(st.integers(1, 8), st.integers(400, 300_000))
def test_a_round_splits_each_range_at_most_once_and_never_too_many(count: int, ru: int) -> None:
    planned = splits(map_of(count), ru, {})
    assert len(set(planned)) == len(planned)
    assert count + len(planned) <= max(count, partition_count_for(ru, LIMITS))


# --- merging --------------------------------------------------------------------------------------------------------


def test_small_idle_neighbors_are_worth_merging() -> None:
    assert plan_merges(map_of(2), ru_per_second=400, bytes_by_range={}, limits=LIMITS) == (MergePlan(0, 1),)


@pytest.mark.parametrize(
    ("count", "ru", "sizes"),
    [
        (1, 400, {}),
        (2, 11_000, {}),
        (3, 9_000, {}),
        (2, 400, {0: 20 * GIB}),
        (2, 400, {1: 30 * GIB}),
    ],
)
def test_busy_large_or_single_partitions_are_not_merged(count: int, ru: int, sizes: dict[int, int]) -> None:
    assert plan_merges(map_of(count), ru_per_second=ru, bytes_by_range=sizes, limits=LIMITS) == ()


def test_the_smallest_pair_is_merged_first() -> None:
    plans = plan_merges(map_of(4), ru_per_second=400, bytes_by_range={0: 9, 1: 1, 2: 1, 3: 9}, limits=LIMITS)
    assert plans == (MergePlan(1, 2),)


@given(st.integers(1, 12), st.integers(400, 60_000), st.lists(st.integers(0, 60 * GIB), min_size=12, max_size=12))
def test_merges_are_of_disjoint_neighbors_and_leave_enough_partitions(count: int, ru: int, sizes: list[int]) -> None:
    partition_map = map_of(count)
    by_range = dict(enumerate(sizes))
    plans = plan_merges(partition_map, ru_per_second=ru, bytes_by_range=by_range, limits=LIMITS)
    named = [range_id for plan in plans for range_id in (plan.left_id, plan.right_id)]
    assert len(set(named)) == len(named)
    assert all(plan.right_id == plan.left_id + 1 for plan in plans)
    assert all(by_range[plan.left_id] + by_range[plan.right_id] < 50 * GIB for plan in plans)
    assert count - len(plans) >= min(count, partition_count_for(ru, LIMITS))
