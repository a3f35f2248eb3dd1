from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.partitioning.partition_map import (
    RETIRED_MAX,
    PartitionMap,
    PartitionRange,
    RetiredRange,
    initial_map,
    midpoint,
)
from asterism.values.identifiers import Epoch, NodeNumber, PartitionNumber, partition_on

VERSION_1 = PartitionKeyDefinition(paths=("/pk",), version=1)
VERSION_2 = PartitionKeyDefinition(paths=("/pk",))
LEVELS = PartitionKeyDefinition(paths=("/a", "/b"), kind=PartitionKeyKind.MULTI_HASH)
EPOCH = Epoch(1)


def map_of(definition: PartitionKeyDefinition, count: int) -> PartitionMap:
    return initial_map(definition, [PartitionNumber(10 + index) for index in range(count)], epoch=EPOCH)


def texts_of(partition_map: PartitionMap) -> list[tuple[str, str]]:
    return [partition.range.to_texts() for partition in partition_map.ranges]


def split_in_the_middle(partition_map: PartitionMap, range_id: int) -> PartitionMap:
    interval = partition_map.interval_of(range_id)
    assert interval is not None
    at = midpoint(VERSION_2, interval)
    assert at is not None
    return partition_map.split(range_id, at=at, low=PartitionNumber(90), high=PartitionNumber(91), epoch=Epoch(2))


# --- the first map --------------------------------------------------------------------------------------------------


def test_one_partition_holds_the_whole_line() -> None:
    assert texts_of(map_of(VERSION_2, 1)) == [("", "FF")]


@pytest.mark.parametrize("definition", [VERSION_2, LEVELS])
def test_two_partitions_meet_at_the_services_midpoint(definition: PartitionKeyDefinition) -> None:
    middle = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
    assert texts_of(map_of(definition, 2)) == [("", middle), (middle, "FF")]


def test_version_1_partitions_meet_at_encoded_hashes() -> None:
    assert texts_of(map_of(VERSION_1, 2)) == [("", "05C1DFFFFFFFFC"), ("05C1DFFFFFFFFC", "FF")]


def test_ids_count_from_zero_and_partitions_keep_their_order() -> None:
    first = map_of(VERSION_2, 3)
    assert [(partition.id, partition.partition, partition.node, partition.parents) for partition in first.ranges] == [
        (0, 10, 0, ()),
        (1, 11, 0, ()),
        (2, 12, 0, ()),
    ]


def test_partitions_of_the_first_map_may_stand_on_several_nodes() -> None:
    numbers = [partition_on(NodeNumber(2), 7), partition_on(NodeNumber(5), 8)]
    assert [partition.node for partition in initial_map(VERSION_2, numbers, epoch=EPOCH).ranges] == [2, 5]


@pytest.mark.parametrize("definition", [VERSION_1, VERSION_2, LEVELS])
def test_the_first_map_spreads_keys_evenly(definition: PartitionKeyDefinition) -> None:
    first = map_of(definition, 4)
    counts = dict.fromkeys(range(4), 0)
    for number in range(2000):
        counts[first.find(effective_key(definition, (f"key{number}", "b")[: len(definition.paths)])).id] += 1
    assert all(400 < count < 600 for count in counts.values())


# --- midpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", [VERSION_1, VERSION_2, LEVELS])
@given(keys=st.lists(st.text(max_size=5), min_size=2, max_size=2, unique=True))
def test_a_midpoint_is_strictly_inside(definition: PartitionKeyDefinition, keys: list[str]) -> None:
    start, end = sorted(effective_key(definition, (key, "b")[: len(definition.paths)]) for key in keys)
    middle = midpoint(definition, KeyRange(start, end))
    assert middle is not None
    assert start < middle < end


def test_a_line_can_be_halved_again_and_again_below_40() -> None:
    upper = KeyRange(bytes.fromhex("3FFFFFFFFFFFFFFFFFFFFFFFFFFFFF00"), b"\xff")
    middle = midpoint(VERSION_2, upper)
    assert middle == bytes.fromhex("3FFFFFFFFFFFFFFFFFFFFFFFFFFFFF7F")


@pytest.mark.parametrize(
    ("definition", "start", "end"),
    [
        (VERSION_2, "10" * 16, "10" * 15 + "11"),
        (VERSION_2, "3F" + "FF" * 15, "FF"),
        (VERSION_1, "05C014", "05C01405"),
        (VERSION_1, "05C1EFFFFFFFFE", "FF"),
    ],
)
def test_a_range_of_one_hash_has_no_midpoint(definition: PartitionKeyDefinition, start: str, end: str) -> None:
    assert midpoint(definition, KeyRange.from_texts(start, end)) is None


def test_a_range_of_one_first_level_divides_by_the_next_level() -> None:
    tenant = effective_key(LEVELS, ("tenant",))
    middle = midpoint(LEVELS, KeyRange(tenant, tenant + b"\xff"))
    assert middle == tenant + bytes.fromhex("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF")


def test_a_range_of_one_whole_hierarchical_key_has_no_midpoint() -> None:
    key = effective_key(LEVELS, ("tenant", "user"))
    assert midpoint(LEVELS, KeyRange(key, key + b"\xff")) is None


# --- lookups --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.binary(max_size=17), st.binary(max_size=17))
def test_overlapping_finds_exactly_the_ranges_that_overlap(count: int, left: bytes, right: bytes) -> None:
    partition_map = map_of(VERSION_2, count)
    wanted = KeyRange(min(left, right, b"\xff"), min(max(left, right), b"\xff"))
    assert partition_map.overlapping(wanted) == tuple(r for r in partition_map.ranges if r.range.intersection(wanted))


def test_an_unknown_id_is_not_found() -> None:
    partition_map = map_of(VERSION_2, 1)
    assert partition_map.get(7) is None
    assert partition_map.interval_of(7) is None


# --- reshaping ------------------------------------------------------------------------------------------------------


def test_a_split_gives_two_children_with_all_ancestors() -> None:
    twice = split_in_the_middle(split_in_the_middle(map_of(VERSION_2, 1), 0), 2)
    assert [(partition.id, partition.parents) for partition in twice.ranges] == [(1, (0,)), (3, (0, 2)), (4, (0, 2))]
    assert twice.version == 3
    assert [partition.id for partition in twice.changed_since(2)] == [3, 4]
    assert [partition.id for partition in twice.changed_since(0)] == [1, 3, 4]


def test_a_retired_id_is_still_its_interval() -> None:
    after = split_in_the_middle(map_of(VERSION_2, 1), 0)
    assert after.get(0) is None
    assert after.interval_of(0) == FULL


def test_ids_that_were_retired_long_ago_are_forgotten() -> None:
    """A table with changing load splits and merges for as long as it exists."""
    merged = map_of(VERSION_2, 1)
    for _ in range(RETIRED_MAX):
        (only,) = merged.ranges
        divided = split_in_the_middle(merged, only.id)
        low, high = divided.ranges
        merged = divided.merge(low.id, high.id, partition=PartitionNumber(5), epoch=Epoch(3))
    (only,) = merged.ranges
    assert (only.id, len(merged.retired), len(only.parents)) == (3 * RETIRED_MAX, RETIRED_MAX, RETIRED_MAX)
    assert merged.interval_of(0) is None
    assert merged.interval_of(only.id - 1) is not None
    assert set(only.parents) == {retired.id for retired in merged.retired}
    assert PartitionMap.from_json(merged.to_json()) == merged


def test_a_merged_child_descends_from_both_and_all_their_ancestors() -> None:
    before = split_in_the_middle(map_of(VERSION_2, 2), 0)
    after = before.merge(3, 1, partition=PartitionNumber(5), epoch=Epoch(3))
    assert [(partition.id, partition.parents) for partition in after.ranges] == [(2, (0,)), (4, (0, 1, 3))]
    assert after.interval_of(3) == before.interval_of(3)


def test_a_move_keeps_the_id_and_interval() -> None:
    before = map_of(VERSION_2, 2)
    after = before.move(1, partition=partition_on(NodeNumber(3), 7), epoch=Epoch(9))
    moved = after.get(1)
    assert moved is not None
    assert (moved.node, moved.epoch, moved.range) == (3, 9, before.ranges[1].range)
    assert (moved.parents, moved.status) == ((), before.ranges[1].status)
    assert after.changed_since(before.version) == (moved,)


def test_impossible_reshapes_are_errors_of_the_caller() -> None:
    three = map_of(VERSION_2, 3)
    number = PartitionNumber(1)
    with pytest.raises(ValueError, match="neighbors"):
        three.merge(0, 2, partition=number, epoch=EPOCH)
    with pytest.raises(ValueError, match="neighbors"):
        three.merge(1, 0, partition=number, epoch=EPOCH)
    with pytest.raises(ValueError, match="not in the partition map"):
        three.move(9, partition=number, epoch=EPOCH)
    with pytest.raises(ValueError, match="not inside"):
        three.split(0, at=b"", low=number, high=number, epoch=EPOCH)
    with pytest.raises(ValueError, match="not inside"):
        three.split(0, at=three.ranges[0].range.end, low=number, high=number, epoch=EPOCH)


def a_range(range_id: int, start: bytes, end: bytes) -> PartitionRange:
    return PartitionRange(range_id, KeyRange(start, end), PartitionNumber(1), EPOCH)


# K1 of asterism/keyspaces/DESIGN.md.
@pytest.mark.parametrize(
    ("ranges", "retired", "next_id"),
    [
        ((), (), 0),
        ((a_range(0, b"\x01", b"\xff"),), (), 1),
        ((a_range(0, b"", b"\x10"),), (), 1),
        ((a_range(0, b"", b"\x10"), a_range(1, b"\x11", b"\xff")), (), 2),
        ((a_range(0, b"", b"\x10"), a_range(1, b"\x0f", b"\xff")), (), 2),
        ((a_range(0, b"", b""), a_range(1, b"", b"\xff")), (), 2),
        ((a_range(0, b"", b"\x10"), a_range(0, b"\x10", b"\xff")), (), 2),
        ((a_range(0, b"", b"\xff"),), (RetiredRange(0, FULL),), 1),
        ((a_range(0, b"", b"\xff"),), (), 0),
    ],
)
def test_a_map_with_a_gap_an_overlap_or_a_doubled_id_cannot_be_built(ranges: Any, retired: Any, next_id: int) -> None:
    with pytest.raises(ValueError, match="partition map"):
        PartitionMap(version=1, ranges=ranges, retired=retired, next_id=next_id)


class ReshapedMap(RuleBasedStateMachine):
    """Any sequence of splits, merges and moves."""

    def __init__(self) -> None:
        super().__init__()
        self.map = map_of(VERSION_2, 2)
        self.ever: dict[int, KeyRange] = {partition.id: partition.range for partition in self.map.ranges}

    @rule(choice=st.integers(0, 10**6))
    def split(self, choice: int) -> None:
        parent = self.map.ranges[choice % len(self.map.ranges)]
        before = self.map
        self.map = split_in_the_middle(self.map, parent.id)
        self.ever |= {partition.id: partition.range for partition in self.map.ranges}
        children = self.map.overlapping(parent.range)
        assert len(children) == 2
        assert all(child.range.is_within(parent.range) and parent.id in child.parents for child in children)
        assert before.changed_since(before.version) == ()
        assert self.map.changed_since(before.version) == children

    @rule(choice=st.integers(0, 10**6))
    def merge(self, choice: int) -> None:
        pairs = list(zip(self.map.ranges, self.map.ranges[1:], strict=False))
        for left, right in pairs[choice % max(len(pairs), 1) :][:1]:
            self.map = self.map.merge(left.id, right.id, partition=PartitionNumber(3), epoch=Epoch(3))
        self.ever |= {partition.id: partition.range for partition in self.map.ranges}

    @rule(choice=st.integers(0, 10**6), node=st.integers(0, 3).map(NodeNumber))
    def move(self, choice: int, node: NodeNumber) -> None:
        partition = self.map.ranges[choice % len(self.map.ranges)]
        self.map = self.map.move(partition.id, partition=partition_on(node, 4), epoch=Epoch(4))

    @rule(point=st.binary(max_size=16).filter(lambda point: point < b"\xff"))
    def a_point_is_in_exactly_one_range(self, point: bytes) -> None:
        assert [partition for partition in self.map.ranges if partition.range.contains(point)] == [self.map.find(point)]

    @invariant()
    def no_gap_and_no_overlap(self) -> None:
        ends = [partition.range.end for partition in self.map.ranges]
        starts = [partition.range.start for partition in self.map.ranges]
        assert starts == [FULL.start, *ends[:-1]]
        assert ends[-1] == FULL.end

    @invariant()
    def every_id_that_ever_was_is_still_its_interval(self) -> None:
        assert {range_id: self.map.interval_of(range_id) for range_id in self.ever} == self.ever

    @invariant()
    def the_map_survives_its_json(self) -> None:
        assert PartitionMap.from_json(json.loads(json.dumps(self.map.to_json()))) == self.map


TestReshapedMap = ReshapedMap.TestCase
TestReshapedMap.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
