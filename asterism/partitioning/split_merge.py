"""Plans for splits and merges: the partitions and the split points. The keyspaces carry them out."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from asterism.limits import Limits
from asterism.partitioning.hash_space import hash_fraction, midpoint
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap, PartitionRange

# The service offers partitions for merging below 3,000 RU/s and 20 GB each; written as fractions of a partition's
# limits (10,000 RU/s and 50 GB), so that an operator's lower limits keep the proportion.
_MERGE_RU_NUMERATOR, _MERGE_RU_DENOMINATOR = 3, 10
_MERGE_BYTES_NUMERATOR, _MERGE_BYTES_DENOMINATOR = 2, 5

# A split for size begins at this fraction of the limit, so that it ends before the partition is full.
SIZE_SPLIT_FRACTION = 0.8


class SplitReason(enum.Enum):
    THROUGHPUT = "throughput"
    SIZE = "size"
    DEMAND = "demand"
    LOAD = "load"


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Keys before `at` go to the lower child, the others to the upper one."""

    range_id: int
    at: bytes
    reason: SplitReason


@dataclass(frozen=True, slots=True)
class MergePlan:
    left_id: int
    right_id: int


@dataclass(frozen=True, slots=True)
class CannotSplit:
    """The reason why there is no plan, as a message for the operator."""

    reason: str


class SplitPointFinder:
    """Find the boundary that best halves a partition's bytes, fed with its logical partitions in key order."""

    __slots__ = ("_best_imbalance", "_best_point", "_bytes_before", "_last_key", "_total_bytes", "bytes_below")

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self._bytes_before = 0
        self._last_key: bytes | None = None
        self._best_point: bytes | None = None
        self._best_imbalance = 0
        # Bytes of the keys before the split point.
        self.bytes_below = 0

    def feed(self, key: bytes, size_bytes: int) -> None:
        """Add the next logical partition by effective key and size; equal keys in a row cannot be separated."""
        if self._last_key is not None and key != self._last_key:
            if key < self._last_key:
                raise ValueError("keys must be fed in order")
            imbalance = abs(2 * self._bytes_before - self._total_bytes)
            if self._best_point is None or imbalance < self._best_imbalance:
                self._best_point, self._best_imbalance = key, imbalance
                self.bytes_below = self._bytes_before
        self._last_key = key
        self._bytes_before += size_bytes

    def split_point(self) -> bytes | None:
        """Return a key such that keys before it, and keys from it on, both exist; None with fewer than two."""
        return self._best_point


def plan_demand_or_size_split(
    definition: PartitionKeyDefinition,
    partition_range: PartitionRange,
    logical_partitions: int,
    finder: SplitPointFinder,
    *,
    reason: SplitReason = SplitReason.DEMAND,
) -> SplitPlan | CannotSplit:
    """Plan the split of one partition: at the middle of its data or, if it is empty, of its part of the line."""
    if definition.system_key:
        return CannotSplit(
            "The container has no partition key, so all of its items are one logical partition and it cannot be "
            "split. Copy the items to a container with a partition key."
        )
    if logical_partitions == 1:
        return CannotSplit(
            "All data of the partition has one partition key value, and a logical partition cannot be divided. "
            "Choose a partition key with more values, or add a level to it, and copy the items over."
        )
    if logical_partitions == 0 and definition.is_ordered:
        return CannotSplit("The partition holds no data, and the line of ordered keys has no middle without data.")
    at = midpoint(definition, partition_range.range) if logical_partitions == 0 else finder.split_point()
    if at is None:
        return CannotSplit("All data of the partition is at a single point of the hash line, so it cannot be divided.")
    return SplitPlan(range_id=partition_range.id, at=at, reason=reason)


def plan_throughput_splits(
    partition_map: PartitionMap,
    *,
    definition: PartitionKeyDefinition,
    ru_per_second: int,
    limits: Limits,
    bytes_by_range: Mapping[int, int],
) -> tuple[int, ...]:
    """Return the ids to split in this round to get enough partitions for the throughput; empty if there are enough.

    Each range splits at most once a round: large ones first, then wide ones, then in the order of the line. (Ids would
    depend on the order in which earlier splits ended.)
    """
    if definition.system_key:
        return ()
    missing = partition_count_for(ru_per_second, limits) - len(partition_map.ranges)

    def urgency(partition_range: PartitionRange) -> tuple[int, float, bytes]:
        return (
            -bytes_by_range.get(partition_range.id, 0),
            -hash_fraction(definition, partition_range.range),
            partition_range.range.start,
        )

    return tuple(partition_range.id for partition_range in sorted(partition_map.ranges, key=urgency)[: max(missing, 0)])


def plan_merges(
    partition_map: PartitionMap, *, ru_per_second: int, bytes_by_range: Mapping[int, int], limits: Limits
) -> tuple[MergePlan, ...]:
    """Return disjoint pairs of neighbors worth merging, smallest first, and leave enough partitions for the RU/s."""
    count = len(partition_map.ranges)
    spare = count - partition_count_for(ru_per_second, limits)
    ru_max = limits.physical_partition_ru_per_second_max
    share_is_large = ru_per_second * _MERGE_RU_DENOMINATOR >= count * ru_max * _MERGE_RU_NUMERATOR
    if spare <= 0 or share_is_large:
        return ()
    bytes_max = limits.physical_partition_bytes_max
    candidate_bytes_max = bytes_max * _MERGE_BYTES_NUMERATOR // _MERGE_BYTES_DENOMINATOR
    pairs: list[tuple[int, int, MergePlan]] = []
    for position, (left, right) in enumerate(pairwise(partition_map.ranges)):
        sizes = bytes_by_range.get(left.id, 0), bytes_by_range.get(right.id, 0)
        if max(sizes) < candidate_bytes_max and sum(sizes) < bytes_max:
            pairs.append((sum(sizes), position, MergePlan(left.id, right.id)))
    plans: list[MergePlan] = []
    taken: set[int] = set()
    for _, _, plan in sorted(pairs, key=lambda pair: pair[:2]):
        if len(plans) < spare and taken.isdisjoint((plan.left_id, plan.right_id)):
            plans.append(plan)
            taken.update((plan.left_id, plan.right_id))
    return tuple(plans)


def partition_count_at_creation(throughput_ru: int, autoscale: bool, limits: Limits) -> int:
    """Return the number of partitions of a new container. The service leaves one with manual throughput room to grow,
    so it plans for fewer RU/s per partition."""
    if autoscale:
        return partition_count_for(throughput_ru, limits)
    return max(1, -(-throughput_ru // limits.initial_manual_ru_per_second_per_partition))


def partition_count_for(ru_per_second: int, limits: Limits) -> int:
    return max(1, -(-ru_per_second // limits.physical_partition_ru_per_second_max))
