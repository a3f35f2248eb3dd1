"""Which physical partition holds which part of the hash line, now and (for clients that ask with old ids) before."""

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


# Of ranges that were split or merged away, the last so many are remembered: ranges that split and merge by themselves
# would otherwise make the map grow for ever.
RETIRED_MAX = 1_000


class RangeStatus(enum.StrEnum):
    """What clients are told of a range: while it is being reshaped it goes on serving."""

    ONLINE = "online"
    SPLITTING = "splitting"
    MERGING = "merging"


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """One range of the line as clients see it (`id`), and the partition that serves it.

    `parents` are ALL ancestors that the map remembers, because clients carry session tokens over from any of them.
    `since_version` is the map's version that brought the range to where it is.
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
    """A range that was split or merged away. Its id stays an interval of the line, and is served as that, for long."""

    id: int
    range: KeyRange


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """A whole line, without gap or overlap; never changed, only followed by the next version."""

    version: int
    ranges: tuple[PartitionRange, ...]
    retired: tuple[RetiredRange, ...]
    next_id: int
    _starts: list[bytes] = field(init=False, repr=False, compare=False)
    _live: dict[int, PartitionRange] = field(init=False, repr=False, compare=False)
    _intervals: dict[int, KeyRange] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_cover(self.ranges)
        live = {one.id: one for one in self.ranges}
        intervals = {one.id: one.range for one in self.retired} | {one.id: one.range for one in self.ranges}
        if len(intervals) != len(self.ranges) + len(self.retired):
            raise ValueError("two ranges of a partition map have one id")
        if max(intervals) >= self.next_id:
            raise ValueError("the next id of a partition map is in use")
        object.__setattr__(self, "_starts", [one.range.start for one in self.ranges])
        object.__setattr__(self, "_live", live)
        object.__setattr__(self, "_intervals", intervals)

    def find(self, point: bytes) -> PartitionRange:
        return self.ranges[bisect_right(self._starts, point) - 1]

    def overlapping(self, key_range: KeyRange) -> tuple[PartitionRange, ...]:
        if key_range.start >= key_range.end:
            return ()
        first = bisect_right(self._starts, key_range.start) - 1
        return self.ranges[first : bisect_left(self._starts, key_range.end)]

    def get(self, range_id: int) -> PartitionRange | None:
        return self._live.get(range_id)

    def interval_of(self, range_id: int) -> KeyRange | None:
        """The interval of a live or retired id."""
        return self._intervals.get(range_id)

    def changed_since(self, version: int) -> tuple[PartitionRange, ...]:
        return tuple(one for one in self.ranges if one.since_version > version)

    def split(
        self, range_id: int, *, at: bytes, low: PartitionNumber, high: PartitionNumber, epoch: Epoch
    ) -> PartitionMap:
        """The map in which two children have the parent's place: `low` before `at`."""
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
        """The map in which one child has the place of two neighbours."""
        left, right = self._require(left_id), self._require(right_id)
        if left.range.end != right.range.start:
            raise ValueError("only neighbours can merge, the left one first")
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
        """The map in which another partition, on whatever node, serves the same range."""
        self._require(range_id)
        return self._with_changed((range_id,), partition=partition, epoch=epoch)

    def mark(self, range_ids: tuple[int, ...], status: RangeStatus) -> PartitionMap:
        """The map in which clients are told another status of some ranges; nothing moves."""
        return self._with_changed(range_ids, status=status)

    def with_next_epochs(self) -> PartitionMap:
        """The map in which whoever still goes by this one is refused everywhere. For clients nothing has changed."""
        ranges = tuple(replace(one, epoch=Epoch(one.epoch + 1)) for one in self.ranges)
        return replace(self, ranges=ranges)

    def _with_changed(self, range_ids: tuple[int, ...], **changes: Any) -> PartitionMap:
        ranges = tuple(
            replace(one, since_version=self.version + 1, **changes) if one.id in range_ids else one
            for one in self.ranges
        )
        return PartitionMap(version=self.version + 1, ranges=ranges, retired=self.retired, next_id=self.next_id)

    def _require(self, range_id: int) -> PartitionRange:
        found = self._live.get(range_id)
        if found is None:
            raise ValueError("the range is not in the partition map")
        return found

    def _succeeded_by(self, *, replaced: tuple[PartitionRange, ...], by: tuple[PartitionRange, ...]) -> PartitionMap:
        gone = {one.id for one in replaced}
        ranges = [*(one for one in self.ranges if one.id not in gone), *by]
        retired = (*self.retired, *(RetiredRange(one.id, one.range) for one in replaced))
        if len(retired) > RETIRED_MAX:
            retired = retired[-RETIRED_MAX:]
            known = {one.id for one in retired}
            ranges = [replace(one, parents=tuple(id_ for id_ in one.parents if id_ in known)) for one in ranges]
        return PartitionMap(
            version=self.version + 1,
            ranges=tuple(sorted(ranges, key=lambda one: one.range.start)),
            retired=retired,
            next_id=self.next_id + len(by),
        )

    def to_json(self) -> dict[str, object]:
        return {
            "version": self.version,
            "nextId": self.next_id,
            "ranges": [_range_to_json(one) for one in self.ranges],
            "retired": [{"id": one.id, "range": list(one.range.to_texts())} for one in self.retired],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> PartitionMap:
        return cls(
            version=told["version"],
            ranges=tuple(_range_from_json(one) for one in told["ranges"]),
            retired=tuple(RetiredRange(one["id"], KeyRange.from_texts(*one["range"])) for one in told["retired"]),
            next_id=told["nextId"],
        )


def _check_cover(ranges: Sequence[PartitionRange]) -> None:
    if not ranges or ranges[0].range.start != FULL.start or ranges[-1].range.end != FULL.end:
        raise ValueError("a partition map must cover the whole hash line")
    if any(left.range.end != right.range.start for left, right in pairwise(ranges)):
        raise ValueError("a partition map has a gap or an overlap")
    if any(one.range.start >= one.range.end for one in ranges):
        raise ValueError("a partition map has an empty range")


def _range_to_json(one: PartitionRange) -> dict[str, object]:
    return {
        "id": one.id,
        "range": list(one.range.to_texts()),
        "partition": one.partition,
        "epoch": one.epoch,
        "parents": list(one.parents),
        "sinceVersion": one.since_version,
        "status": one.status.value,
    }


def _range_from_json(told: Mapping[str, Any]) -> PartitionRange:
    return PartitionRange(
        id=told["id"],
        range=KeyRange.from_texts(*told["range"]),
        partition=PartitionNumber(told["partition"]),
        epoch=Epoch(told["epoch"]),
        parents=tuple(told["parents"]),
        since_version=told["sinceVersion"],
        status=RangeStatus(told["status"]),
    )


def initial_map(
    definition: PartitionKeyDefinition, partitions: Sequence[PartitionNumber], *, epoch: Epoch
) -> PartitionMap:
    """The first map of a keyspace: the line divided evenly, in the order of `partitions`."""
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
