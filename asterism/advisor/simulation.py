"""Simulation of a data set on a fleet: partitions, bytes and request units per node, by the server's own rules
(`split_merge`, `placement`), without any data.

Logical partitions are made up: a number of keys, the k-th largest of which has a share of 1 / k ** skew. They get their
places on the hash line as real keys do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from asterism.limits import Limits
from asterism.partitioning.effective_key import effective_key
from asterism.partitioning.hash_space import midpoint
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap, PartitionRange, initial_map
from asterism.partitioning.placement import (
    NO_RULES,
    NodeLoad,
    PlacedPartition,
    RangeName,
    Rules,
    place,
    place_split,
    plan_rebalance,
    weight_of,
)
from asterism.partitioning.split_merge import (
    SIZE_SPLIT_FRACTION,
    CannotSplit,
    SplitPlan,
    SplitPointFinder,
    SplitReason,
    partition_count_at_creation,
    plan_demand_or_size_split,
    plan_throughput_splits,
)
from asterism.values.identifiers import Epoch, NodeNumber, PartitionNumber

DEFINITION = PartitionKeyDefinition.parse({"paths": ["/key"], "kind": "Hash", "version": 2})
# Simulated points of the hash line; with more keys than points, the smaller keys share points.
POINTS_MIN = 20_000
POINTS_PER_PARTITION = 8

_KEYSPACE = b""


@dataclass(frozen=True, slots=True)
class Workload:
    """Data and throughput of a container. `created_with` is the throughput at creation, if it was raised since."""

    data_bytes: int
    ru_per_second: int
    keys: int
    skew: float = 0.0
    autoscale: bool = False
    created_with: int | None = None


@dataclass(frozen=True, slots=True)
class SimulatedKey:
    """A logical partition, or several that share a point: its point, its bytes and its share of all requests."""

    point: bytes
    size_bytes: int
    demand: float


@dataclass(frozen=True, slots=True)
class SimulatedPartition:
    range: KeyRange
    size_bytes: int
    demand: float
    node: NodeNumber
    # Full, and indivisible.
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    node: NodeNumber
    partitions: int
    size_bytes: int
    ru_share: float
    ru_demand: float


@dataclass(frozen=True, slots=True)
class Simulation:
    at_creation: int
    after_throughput: int
    partitions: tuple[SimulatedPartition, ...]
    nodes: tuple[SimulatedNode, ...]
    moves: int
    ru_per_partition: float
    # The highest demand on one partition, as a multiple of its share: above 1 it answers 429 while others are idle.
    hottest: float
    keys_too_large: int


def make_keys(workload: Workload, limits: Limits) -> list[SimulatedKey]:
    """Return keys in the order of the hash line. The largest have points of their own; small ones share points if there
    are many."""
    expected = workload.data_bytes / (limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION / 2)
    expected = max(expected, workload.ru_per_second / limits.initial_manual_ru_per_second_per_partition)
    points = min(workload.keys, max(POINTS_MIN, int(expected * POINTS_PER_PARTITION)))
    alone = points if points == workload.keys else points // 2
    weights = [rank**-workload.skew for rank in range(1, alone + 1)]
    if points > alone:
        edges = [alone + (workload.keys - alone) * step // (points - alone) for step in range(points - alone + 1)]
        weights += [_sum_of_powers(low, high, workload.skew) for low, high in pairwise(edges)]
    total = sum(weights)
    return sorted(
        (
            SimulatedKey(
                effective_key(DEFINITION, (f"key-{number}",)),
                int(workload.data_bytes * weight / total),
                weight / total,
            )
            for number, weight in enumerate(weights)
        ),
        key=lambda key: key.point,
    )


def _sum_of_powers(after: int, last: int, skew: float) -> float:
    """Approximate the sum of k ** -skew for the ranks behind `after` up to `last`."""
    middle = (after + last + 1) / 2
    return float((last - after) * middle**-skew)


def simulate(
    workload: Workload,
    nodes: Sequence[NodeLoad],
    limits: Limits,
    *,
    rules: Rules = NO_RULES,
    keys: Sequence[SimulatedKey] | None = None,
) -> Simulation:
    """Return the fleet with all data in it and rebalanced. Given `keys` must be in the order of the hash line."""
    known = make_keys(workload, limits) if keys is None else list(keys)
    fleet = _SimulatedFleet(list(nodes), rules, limits, workload.ru_per_second)
    created_with = workload.created_with or workload.ru_per_second
    at_creation = partition_count_at_creation(created_with, workload.autoscale, limits)
    ranges = initial_map(DEFINITION, [PartitionNumber(n) for n in range(at_creation)], epoch=Epoch(1))
    range_ids = [partition_range.id for partition_range in ranges.ranges]
    homes = dict(zip(range_ids, fleet.place_new(at_creation), strict=True))
    ranges = _split_for_throughput(ranges, workload.ru_per_second, limits, homes, fleet)
    partitions: list[SimulatedPartition] = []
    points = [key.point for key in known]
    for partition_range in ranges.ranges:
        low, high = bisect_left(points, partition_range.range.start), bisect_left(points, partition_range.range.end)
        partitions += _split_for_size(partition_range, known[low:high], homes[partition_range.id], limits, fleet)
    moved, moves = fleet.rebalance(partitions)
    after_throughput = len(ranges.ranges)
    return _summary(
        workload, limits, moved, fleet, known, at_creation=at_creation, after_throughput=after_throughput, moves=moves
    )


def _split_for_throughput(
    ranges: PartitionMap, ru_per_second: int, limits: Limits, homes: dict[int, NodeNumber], fleet: _SimulatedFleet
) -> PartitionMap:
    """Split in rounds until the throughput fits; it belongs to the hash line, so ranges are split at their midpoint."""
    while True:
        round_ids = plan_throughput_splits(
            ranges, definition=DEFINITION, ru_per_second=ru_per_second, limits=limits, bytes_by_range={}
        )
        if not round_ids:
            return ranges
        for range_id in round_ids:
            parent = ranges.get(range_id)
            at = None if parent is None else midpoint(DEFINITION, parent.range)
            if at is None:
                return ranges
            number = PartitionNumber(ranges.next_id)
            low_id, high_id = ranges.next_id, ranges.next_id + 1
            ranges = ranges.split(range_id, at=at, low=number, high=number, epoch=Epoch(1))
            homes[low_id], homes[high_id] = fleet.place_children(homes[range_id])


def _split_for_size(
    whole: PartitionRange, keys: Sequence[SimulatedKey], home: NodeNumber, limits: Limits, fleet: _SimulatedFleet
) -> list[SimulatedPartition]:
    """Return the partitions that result from a range once its data is in."""
    full_bytes = limits.physical_partition_bytes_max * SIZE_SPLIT_FRACTION
    done: list[SimulatedPartition] = []
    waiting = [(whole, list(keys), home)]
    while waiting:
        partition_range, own, node = waiting.pop()
        size = sum(key.size_bytes for key in own)
        plan = plan_size_split(partition_range, own, size) if size >= full_bytes else None
        if plan is None or isinstance(plan, CannotSplit):
            demand = sum(key.demand for key in own)
            done.append(SimulatedPartition(partition_range.range, size, demand, node, is_stuck=plan is not None))
            continue
        upper_start = bisect_left([key.point for key in own], plan.at)
        low, high = fleet.place_children(node)
        upper, lower = KeyRange(plan.at, partition_range.range.end), KeyRange(partition_range.range.start, plan.at)
        waiting.append((replace(partition_range, range=upper), own[upper_start:], high))
        waiting.append((replace(partition_range, range=lower), own[:upper_start], low))
    return done


def plan_size_split(
    partition_range: PartitionRange, keys: Sequence[SimulatedKey], size_bytes: int
) -> SplitPlan | CannotSplit:
    finder = SplitPointFinder(size_bytes)
    for key in keys:
        finder.feed(key.point, key.size_bytes)
    return plan_demand_or_size_split(DEFINITION, partition_range, len(keys), finder, reason=SplitReason.SIZE)


class _SimulatedFleet:
    """Placement of the partitions while they are being made."""

    def __init__(self, nodes: list[NodeLoad], rules: Rules, limits: Limits, ru_per_second: int) -> None:
        self.nodes = nodes
        self._rules = rules
        self._limits = limits
        self._ru_per_second = ru_per_second
        self._counts: Counter[NodeNumber] = Counter()
        self._loads = {load.node: load for load in nodes}
        self._empty = weight_of(size_bytes=0, ru_per_second=0, limits=limits)

    def place_new(self, count: int) -> tuple[NodeNumber, ...]:
        homes = place([self._empty] * count, self.nodes, self._rules)
        for node in homes:
            self._count(node, 1)
        return homes

    def place_children(self, source: NodeNumber) -> tuple[NodeNumber, NodeNumber]:
        low, high = place_split(source, list(self._loads.values()), self._rules, already_there=self._counts)
        self._count(source, -1)
        self._count(low, 1)
        self._count(high, 1)
        return low, high

    def _count(self, node: NodeNumber, change: int) -> None:
        self._counts[node] += change
        self._loads[node] = replace(self._loads[node], weight=self._counts[node] * self._empty)

    def rebalance(self, partitions: Sequence[SimulatedPartition]) -> tuple[list[SimulatedPartition], int]:
        """Return the partitions as `asterism rebalance --apply` leaves them, and the number of moves."""
        share = self._ru_per_second / len(partitions)
        placed = [
            PlacedPartition(
                RangeName(_KEYSPACE, number),
                partition.node,
                weight_of(size_bytes=partition.size_bytes, ru_per_second=share, limits=self._limits),
            )
            for number, partition in enumerate(partitions)
        ]
        plan = plan_rebalance(self.nodes, placed, {_KEYSPACE: self._rules})
        targets = {move.name.range_id: move.target for move in plan.moves}
        moved = [
            replace(partition, node=targets.get(number, partition.node)) for number, partition in enumerate(partitions)
        ]
        return moved, len(plan.moves)


def _summary(
    workload: Workload,
    limits: Limits,
    partitions: Sequence[SimulatedPartition],
    fleet: _SimulatedFleet,
    keys: Sequence[SimulatedKey],
    *,
    at_creation: int,
    after_throughput: int,
    moves: int,
) -> Simulation:
    share = min(workload.ru_per_second / len(partitions), limits.physical_partition_ru_per_second_max)

    by_node: dict[NodeNumber, list[SimulatedPartition]] = {load.node: [] for load in fleet.nodes}
    for partition in partitions:
        by_node[partition.node].append(partition)
    nodes = tuple(
        SimulatedNode(
            node=node,
            partitions=len(own),
            size_bytes=sum(partition.size_bytes for partition in own),
            ru_share=share * len(own),
            ru_demand=workload.ru_per_second * sum(partition.demand for partition in own),
        )
        for node, own in sorted(by_node.items())
    )
    return Simulation(
        at_creation=at_creation,
        after_throughput=after_throughput,
        partitions=tuple(sorted(partitions, key=lambda partition: partition.range.start)),
        nodes=nodes,
        moves=moves,
        ru_per_partition=share,
        hottest=max(partition.demand for partition in partitions) * workload.ru_per_second / share,
        keys_too_large=sum(key.size_bytes > limits.logical_partition_bytes_max for key in keys),
    )
