"""The partition map's second kind: a line that is the order of the keys themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest, PartitionKeyMismatch
from asterism.limits import Limits
from asterism.partitioning.effective_key import border_at, effective_key, storage_point
from asterism.partitioning.hash_space import even_boundaries, hash_fraction, midpoint
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.load_split import (
    SAMPLES_MIN,
    Drift,
    drift_of,
    picture_of,
    plan_cold_merges,
    plan_load_split,
)
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.partitioning.partition_map import PartitionMap, PartitionRange, initial_map
from asterism.partitioning.split_merge import (
    CannotSplit,
    SplitPlan,
    SplitPointFinder,
    SplitReason,
    plan_demand_or_size_split,
)
from asterism.values.identifiers import Epoch, PartitionNumber

KEY = PartitionKeyDefinition(paths=("/key",), kind=PartitionKeyKind.RANGE)
LIMITS = Limits()
texts = st.text(max_size=6)


def point(text: str) -> bytes:
    return effective_key(KEY, (text,))


def first_map() -> PartitionMap:
    return initial_map(KEY, [PartitionNumber(1)], epoch=Epoch(1))


def whole_line() -> PartitionRange:
    return first_map().ranges[0]


# --- the kind ---------------------------------------------------------------------------------------------------------


def test_clients_cannot_ask_for_the_kind_range_but_records_keep_it() -> None:
    with pytest.raises(MalformedRequest):
        PartitionKeyDefinition.parse(KEY.to_json())
    assert PartitionKeyDefinition.from_record(KEY.to_json()) == KEY
    hashed = PartitionKeyDefinition(paths=("/key",))
    assert PartitionKeyDefinition.from_record(hashed.to_json()) == hashed


@given(texts, texts)
def test_the_line_is_the_order_of_the_keys(left: str, right: str) -> None:
    wanted = left.encode("utf-16-be", "surrogatepass") < right.encode("utf-16-be", "surrogatepass")
    assert (point(left) < point(right)) == wanted
    assert FULL.contains(point(left))
    assert storage_point(KEY, (left,)) == point(left)


def test_only_texts_are_ordered_keys() -> None:
    with pytest.raises(PartitionKeyMismatch):
        effective_key(KEY, (5,))


def test_an_ordered_line_begins_as_one_partition_and_has_no_middle_of_its_own() -> None:
    assert len(first_map().ranges) == 1
    assert midpoint(KEY, FULL) is None
    assert hash_fraction(KEY, FULL) == 0.0
    assert even_boundaries(KEY, 1) == ()
    with pytest.raises(ValueError, match="ordered line"):
        even_boundaries(KEY, 2)


def test_an_empty_ordered_partition_cannot_be_halved_and_the_refusal_says_why() -> None:
    refused = plan_demand_or_size_split(KEY, whole_line(), 0, SplitPointFinder(0))
    assert isinstance(refused, CannotSplit)
    assert "no data" in refused.reason


def test_long_keys_that_share_their_beginning_are_never_separated() -> None:
    finder = SplitPointFinder(30)
    long = sorted(point("x" * 400 + str(number)) for number in range(3))
    for key in long:
        finder.feed(border_at(KEY, key), 10)
    assert finder.split_point() is None
    assert border_at(KEY, point("short")) == point("short")


# --- load -------------------------------------------------------------------------------------------------------------

samples_of_many = st.lists(
    st.tuples(st.sampled_from([point(f"k{number}") for number in range(12)]), st.floats(0.5, 50)),
    min_size=SAMPLES_MIN,
    max_size=200,
)


@given(samples_of_many)
def test_a_load_split_lies_inside_the_range_with_load_on_both_sides_and_leaves_no_gap(
    samples: list[tuple[bytes, float]],
) -> None:
    plan = plan_load_split(KEY, whole_line(), samples)
    if isinstance(plan, CannotSplit):
        assert plan.reason.endswith(".")
        return
    assert plan.reason is SplitReason.LOAD
    low = sum(cost for key, cost in samples if key < plan.at)
    high = sum(cost for key, cost in samples if key >= plan.at)
    heaviest = max(sum(cost for key, cost in samples if key == candidate) for candidate, _ in samples)
    assert min(low, high) >= 0.1 * (low + high) * 0.999
    assert abs(low - high) <= heaviest * 1.001
    after = first_map().split(0, at=plan.at, low=PartitionNumber(2), high=PartitionNumber(3), epoch=Epoch(2))
    assert [child.range for child in after.ranges] == [KeyRange(b"", plan.at), KeyRange(plan.at, b"\xff")]


def test_one_hot_key_is_refused_with_a_sentence() -> None:
    refused = plan_load_split(KEY, whole_line(), [(point("only"), 5.0)] * 100)
    assert isinstance(refused, CannotSplit)
    assert "one partition key" in refused.reason


def test_a_key_with_nearly_all_of_the_load_is_refused_at_either_end() -> None:
    for other in ("a", "z"):
        samples = [(point("m"), 5.0)] * 99 + [(point(other), 5.0)]
        refused = plan_load_split(KEY, whole_line(), samples)
        assert isinstance(refused, CannotSplit)
        assert "would not help" in refused.reason


def test_a_hot_key_beside_others_gets_its_own_side() -> None:
    samples = [(point("m"), 5.0)] * 50 + [(point("a"), 5.0), (point("b"), 5.0)] * 25
    plan = plan_load_split(KEY, whole_line(), samples)
    assert plan == SplitPlan(0, point("m"), SplitReason.LOAD)


def test_samples_of_other_ranges_do_not_count() -> None:
    upper = (
        first_map().split(0, at=point("m"), low=PartitionNumber(2), high=PartitionNumber(3), epoch=Epoch(2)).ranges[1]
    )
    refused = plan_load_split(KEY, upper, [(point("a"), 5.0), (point("b"), 5.0)] * 50)
    assert isinstance(refused, CannotSplit)
    assert "too few" in refused.reason


def test_too_few_requests_make_no_plan() -> None:
    assert isinstance(plan_load_split(KEY, whole_line(), []), CannotSplit)


@pytest.mark.parametrize(
    ("numbers", "drift", "end"),
    [
        (range(100), Drift.RISING, "upper end"),
        (range(100, 0, -1), Drift.FALLING, "lower end"),
        # The fewest samples that can cause a split.
        (range(SAMPLES_MIN), Drift.RISING, "upper end"),
        (range(SAMPLES_MIN, 0, -1), Drift.FALLING, "lower end"),
    ],
)
def test_a_monotonic_key_is_seen_and_said_to_be_a_hotspot_at_one_end(numbers: range, drift: Drift, end: str) -> None:
    samples = [(point(f"{number:06}"), 5.0) for number in numbers]
    assert drift_of([key for key, _ in samples]) is drift
    assert picture_of(samples).drift is drift
    refused = plan_load_split(KEY, whole_line(), samples)
    assert isinstance(refused, CannotSplit)
    assert end in refused.reason


def test_a_few_keys_in_turn_are_not_a_drift() -> None:
    assert drift_of([point(str(number % 10)) for number in range(200)]) is Drift.NONE


def test_the_picture_names_the_hottest_key_and_its_share() -> None:
    picture = picture_of([(point("a"), 30.0), (point("b"), 10.0)])
    assert (picture.hottest_key, picture.hottest_share) == (point("a"), 0.75)
    assert picture_of([]).hottest_key is None


# --- cold ranges ------------------------------------------------------------------------------------------------------


def map_with(borders: list[str]) -> PartitionMap:
    made = first_map()
    for number, border in enumerate(borders):
        last = made.ranges[-1]
        low, high = PartitionNumber(10 + 2 * number), PartitionNumber(11 + 2 * number)
        made = made.split(last.id, at=point(border), low=low, high=high, epoch=Epoch(number + 2))
    return made


@given(st.integers(1, 8), st.data())
def test_cold_merges_join_neighbors_that_fit_and_no_range_twice(count: int, data: st.DataObject) -> None:
    made = map_with([f"{number:03}" for number in range(count)])
    ids = [partition_range.id for partition_range in made.ranges]
    cold = data.draw(st.sets(st.sampled_from(ids)))
    sizes = {range_id: data.draw(st.integers(0, 100)) for range_id in ids}
    limits = LIMITS.with_changes(physical_partition_bytes_max=250)
    plans = plan_cold_merges(made, cold_ids=cold, bytes_by_range=sizes, limits=limits)
    merged_ids = [range_id for plan in plans for range_id in (plan.left_id, plan.right_id)]
    assert len(merged_ids) == len(set(merged_ids))
    assert set(merged_ids) <= cold
    for plan in plans:
        assert ids.index(plan.right_id) == ids.index(plan.left_id) + 1
        assert sizes[plan.left_id] + sizes[plan.right_id] < 100
