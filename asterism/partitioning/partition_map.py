"""The map from ranges of the hash line to physical partitions, with retired ranges for clients that use old ids."""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from asterism.partitioning.hash_space import even_boundaries, midpoint
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.values.identifiers import Epoch, NodeNumber, PartitionNumber, node_of

__all__ = ["RETIRED_MAX", "PartitionMap", "PartitionRange", "RangeStatus", "RetiredRange", "initial_map", "midpoint"]


# The map keeps this many of the ranges that were split or merged away: ranges that split and merge automatically would
# otherwise make it grow forever.
RETIRED_MAX = 1_000


class RangeStatus(enum.StrEnum):
    """Status of a range as clients see it: a range that is being reshaped continues to serve."""

    ONLINE = "online"
    SPLITTING = "splitting"
    MERGING = "merging"


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """A range of the line as clients see it (`id`), and the partition that serves it.

    `parents` are ALL ancestors that the map remembers, because clients carry session tokens over from any of them.
    `since_version` is the version of the map that placed the range on its partition.
    """

    id: int
    range: KeyRange
    partition: PartitionNumber
    epoch: Epoch
    parents: tuple[int, ...] = ()
    since_version: int = 1
    status: RangeStatus = RangeStatus.ONLINE

    @property
    def node(self) -> NodeNumber:
        return node_of(self.partition)


@dataclass(frozen=True, slots=True)
class RetiredRange:
    """A range that was split or merged away. Requests with its id are served as its interval until it is dropped."""

    id: int
    range: KeyRange


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """A whole line, without gap or overlap. A map is immutable; each change returns its next version."""

    version: int
    ranges: tuple[PartitionRange, ...]
    retired: tuple[RetiredRange, ...]
    next_id: int
    _starts: list[bytes] = field(init=False, repr=False, compare=False)
    _live: dict[int, PartitionRange] = field(init=False, repr=False, compare=False)
    _intervals: dict[int, KeyRange] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_cover(self.ranges)
        live = {live_range.id: live_range for live_range in self.ranges}
        intervals = {retired_range.id: retired_range.range for retired_range in self.retired}
        intervals |= {live_range.id: live_range.range for live_range in self.ranges}
        if len(intervals) != len(self.ranges) + len(self.retired):
            raise ValueError("two ranges of a partition map have one id")
        if max(intervals) >= self.next_id:
            raise ValueError("the next id of a partition map is in use")
        object.__setattr__(self, "_starts", [partition_range.range.start for partition_range in self.ranges])
        object.__setattr__(self, "_live", live)
        object.__setattr__(self, "_intervals", intervals)

    def find(self, point: bytes) -> PartitionRange:
        return self.ranges[bisect_right(self._starts, point) - 1]

    def find_before(self, point: bytes) -> PartitionRange:
        """Return the range of the points directly before `point`, which is not the start of the line."""
        return self.ranges[max(0, bisect_left(self._starts, point) - 1)]

    def overlapping(self, key_range: KeyRange) -> tuple[PartitionRange, ...]:
        if key_range.start >= key_range.end:
            return ()
        first = bisect_right(self._starts, key_range.start) - 1
        return self.ranges[first : bisect_left(self._starts, key_range.end)]

    def get(self, range_id: int) -> PartitionRange | None:
        return self._live.get(range_id)

    def interval_of(self, range_id: int) -> KeyRange | None:
        """Return the interval of a live or retired id."""
        return self._intervals.get(range_id)

    def changed_since(self, version: int) -> tuple[PartitionRange, ...]:
        return tuple(partition_range for partition_range in self.ranges if partition_range.since_version > version)

    def split(
        self, range_id: int, *, at: bytes, low: PartitionNumber, high: PartitionNumber, epoch: Epoch
    ) -> PartitionMap:
        """Return the map in which two children replace their parent: `low` before `at`."""
        parent = self._require(range_id)
        if not parent.range.start < at < parent.range.end:
            raise ValueError("the split point is not inside the range")
        child = replace(
            parent,
            epoch=epoch,
            parents=(*parent.parents, parent.id),
            since_version=self.version + 1,
            status=RangeStatus.ONLINE,
        )
        children = (
            replace(child, id=self.next_id, range=KeyRange(parent.range.start, at), partition=low),
            replace(child, id=self.next_id + 1, range=KeyRange(at, parent.range.end), partition=high),
        )
        return self._succeeded_by(replaced=(parent,), by=children)

    def merge(self, left_id: int, right_id: int, *, partition: PartitionNumber, epoch: Epoch) -> PartitionMap:
        """Return the map in which one child replaces two neighbors."""
        left, right = self._require(left_id), self._require(right_id)
        if left.range.end != right.range.start:
            raise ValueError("only neighbors can merge, the left range first")
        child = PartitionRange(
            id=self.next_id,
            range=KeyRange(left.range.start, right.range.end),
            partition=partition,
            epoch=epoch,
            parents=tuple(sorted({*left.parents, *right.parents, left.id, right.id})),
            since_version=self.version + 1,
        )
        return self._succeeded_by(replaced=(left, right), by=(child,))

    def move(self, range_id: int, *, partition: PartitionNumber, epoch: Epoch) -> PartitionMap:
        """Return the map in which another partition, on any node, serves the same range."""
        self._require(range_id)
        return self._with_changed((range_id,), partition=partition, epoch=epoch)

    def mark(self, range_ids: tuple[int, ...], status: RangeStatus) -> PartitionMap:
        """Return the map in which clients see another status of some ranges; no data moves."""
        return self._with_changed(range_ids, status=status)

    def with_next_epochs(self) -> PartitionMap:
        """Return the map with all epochs raised: partitions refuse users of the old map. Clients see no change."""
        ranges = tuple(
            replace(partition_range, epoch=Epoch(partition_range.epoch + 1)) for partition_range in self.ranges
        )
        return replace(self, ranges=ranges)

    def _with_changed(self, range_ids: tuple[int, ...], **changes: Any) -> PartitionMap:
        ranges = tuple(
            replace(partition_range, since_version=self.version + 1, **changes)
            if partition_range.id in range_ids
            else partition_range
            for partition_range in self.ranges
        )
        return PartitionMap(version=self.version + 1, ranges=ranges, retired=self.retired, next_id=self.next_id)

    def _require(self, range_id: int) -> PartitionRange:
        found = self._live.get(range_id)
        if found is None:
            raise ValueError("the range is not in the partition map")
        return found

    def _succeeded_by(self, *, replaced: tuple[PartitionRange, ...], by: tuple[PartitionRange, ...]) -> PartitionMap:
        replaced_ids = {parent.id for parent in replaced}
        ranges = [*(kept for kept in self.ranges if kept.id not in replaced_ids), *by]
        retired = (*self.retired, *(RetiredRange(parent.id, parent.range) for parent in replaced))
        if len(retired) > RETIRED_MAX:
            retired = retired[-RETIRED_MAX:]
            known_ids = {retired_range.id for retired_range in retired}
            ranges = [
                replace(
                    partition_range,
                    parents=tuple(parent_id for parent_id in partition_range.parents if parent_id in known_ids),
                )
                for partition_range in ranges
            ]
        return PartitionMap(
            version=self.version + 1,
            ranges=tuple(sorted(ranges, key=lambda partition_range: partition_range.range.start)),
            retired=retired,
            next_id=self.next_id + len(by),
        )

    def to_json(self) -> dict[str, object]:
        return {
            "version": self.version,
            "nextId": self.next_id,
            "ranges": [_range_to_json(partition_range) for partition_range in self.ranges],
            "retired": [
                {"id": retired_range.id, "range": list(retired_range.range.to_texts())}
                for retired_range in self.retired
            ],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> PartitionMap:
        return cls(
            version=record["version"],
            ranges=tuple(_range_from_json(entry) for entry in record["ranges"]),
            retired=tuple(
                RetiredRange(entry["id"], KeyRange.from_texts(*entry["range"])) for entry in record["retired"]
            ),
            next_id=record["nextId"],
        )


def _check_cover(ranges: Sequence[PartitionRange]) -> None:
    if not ranges or ranges[0].range.start != FULL.start or ranges[-1].range.end != FULL.end:
        raise ValueError("a partition map must cover the whole hash line")
    if any(left.range.end != right.range.start for left, right in pairwise(ranges)):
        raise ValueError("a partition map has a gap or an overlap")
    if any(partition_range.range.start >= partition_range.range.end for partition_range in ranges):
        raise ValueError("a partition map has an empty range")


def _range_to_json(partition_range: PartitionRange) -> dict[str, object]:
    return {
        "id": partition_range.id,
        "range": list(partition_range.range.to_texts()),
        "partition": partition_range.partition,
        "epoch": partition_range.epoch,
        "parents": list(partition_range.parents),
        "sinceVersion": partition_range.since_version,
        "status": partition_range.status.value,
    }


def _range_from_json(record: Mapping[str, Any]) -> PartitionRange:
    return PartitionRange(
        id=record["id"],
        range=KeyRange.from_texts(*record["range"]),
        partition=PartitionNumber(record["partition"]),
        epoch=Epoch(record["epoch"]),
        parents=tuple(record["parents"]),
        since_version=record["sinceVersion"],
        status=RangeStatus(record["status"]),
    )


def initial_map(
    definition: PartitionKeyDefinition, partitions: Sequence[PartitionNumber], *, epoch: Epoch
) -> PartitionMap:
    """Return the first map of a keyspace: the line divided evenly, in the order of `partitions`."""
    points = (FULL.start, *even_boundaries(definition, len(partitions)), FULL.end)
    ranges = tuple(
        PartitionRange(
            id=index,
            range=KeyRange(start, end),
            partition=partitions[index],
            epoch=epoch,
        )
        for index, (start, end) in enumerate(pairwise(points))
    )
    return PartitionMap(version=1, ranges=ranges, retired=(), next_id=len(ranges))
