"""The record of a split, merge or move: enough to resume it after a crash at any step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionMap, RangeStatus
from asterism.values.identifiers import Epoch, PartitionNumber, node_of
from asterism.values.records import Form, StoredRecord, pack_record, unpack_record


class Step(Enum):
    """The steps of a job. A fault test stops the process at each of them."""

    PLANNED = "planned"
    ANNOUNCED = "announced"
    TARGETS_CREATED = "targets created"
    JOURNALING = "journaling"
    COPYING = "copying"
    COPIED = "copied"
    CAUGHT_UP = "caught up"
    SEALED = "sealed"
    REPLAYED = "replayed"
    TARGETS_OPENED = "targets opened"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Target:
    """A partition that a job fills, and the interval of the hash line it will serve."""

    number: PartitionNumber
    interval: KeyRange


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of the copy: everything up to `key` in span `span` of source `source` is in the targets."""

    source: int = 0
    span: int = 0
    key: bytes = b""


def _pack_targets(targets: tuple[Target, ...]) -> list[Any]:
    return [[target.number, target.interval.start.hex(), target.interval.end.hex()] for target in targets]


def _unpack_targets(stored: list[Any]) -> tuple[Target, ...]:
    return tuple(
        Target(PartitionNumber(number), KeyRange(bytes.fromhex(start), bytes.fromhex(end)))
        for number, start, end in stored
    )


def _pack_cursor(cursor: Cursor) -> list[Any]:
    return [cursor.source, cursor.span, cursor.key.hex()]


def _unpack_cursor(stored: list[Any]) -> Cursor:
    source, span, key = stored
    return Cursor(source, span, bytes.fromhex(key))


@dataclass(frozen=True, slots=True)
class ReshapeJob(StoredRecord):
    """Sources become targets: one becomes two in a split, two become one in a merge, and one another in a move."""

    STORED_NAMES: ClassVar = {"keyspace_rid": "keyspace", "source_ids": "sources"}
    FORMS: ClassVar = {"targets": Form(_pack_targets, _unpack_targets), "cursor": Form(_pack_cursor, _unpack_cursor)}

    id: int
    keyspace_rid: bytes
    reason: str
    source_ids: tuple[int, ...]
    targets: tuple[Target, ...]
    epoch: Epoch
    started_at: int
    cursor: Cursor = Cursor()

    @property
    def kind(self) -> str:
        if len(self.targets) == len(self.source_ids):
            return "move"
        return "split" if len(self.targets) > len(self.source_ids) else "merge"

    def announce(self, current: PartitionMap) -> PartitionMap:
        """Return the map that shows the job to clients while it runs. A move is not shown: the range stays the same."""
        if self.kind == "move":
            return current
        return current.mark(self.source_ids, RangeStatus.SPLITTING if self.kind == "split" else RangeStatus.MERGING)

    def recall(self, current: PartitionMap) -> PartitionMap:
        """Return the map without the announcement."""
        return current.mark(self.source_ids, RangeStatus.ONLINE)

    def change_map(self, current: PartitionMap) -> PartitionMap:
        """Return the map that the job publishes."""
        if self.kind == "move":
            return current.move(self.source_ids[0], partition=self.targets[0].number, epoch=self.epoch)
        if len(self.source_ids) == 1:
            low, high = self.targets
            return current.split(
                self.source_ids[0], at=high.interval.start, low=low.number, high=high.number, epoch=self.epoch
            )
        left, right = self.source_ids
        return current.merge(left, right, partition=self.targets[0].number, epoch=self.epoch)


@dataclass(slots=True)
class Progress:
    """The progress of a job, for operators."""

    job: ReshapeJob
    step: Step = Step.PLANNED
    entries_copied: int = 0
    sealed_seconds: float = 0.0
    trouble: str = ""

    def history(self, before: PartitionMap, *, finished_at: int) -> bytes:
        """Return the entry of a finished job in the history; `before` is the map that it changes."""
        job = self.job
        after = job.change_map(before)
        made = [partition.id for partition in after.ranges if partition.since_version == after.version]
        return pack_record(
            {
                "id": job.id,
                "kind": job.kind,
                "reason": job.reason,
                "sources": [str(range_id) for range_id in job.source_ids],
                "targets": [str(range_id) for range_id in made],
                "nodes": [node_of(target.number) for target in job.targets],
                "started_at": job.started_at,
                "finished_at": finished_at,
                "entries_copied": self.entries_copied,
                "sealed_ms": round(self.sealed_seconds * 1000, 1),
            }
        )

    def to_bytes(self) -> bytes:
        """Return the job with its progress, for processes that do not carry it out."""
        progress = {"step": self.step.value, "entries": self.entries_copied, "trouble": self.trouble}
        return pack_record({**self.job.to_fields(), "progress": progress})

    @classmethod
    def from_bytes(cls, stored: bytes) -> Progress:
        members = unpack_record(stored)
        job, progress = ReshapeJob.from_fields(members), members.get("progress")
        if progress is None:
            return cls(job)
        return cls(job, Step(progress["step"]), entries_copied=progress["entries"], trouble=progress["trouble"])
