"""A split, merge or move as it is remembered: enough to go on after a crash at any step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionMap, RangeStatus
from asterism.values.identifiers import Epoch, PartitionNumber, node_of
from asterism.values.json_text import dumps, loads_stored


class Step(Enum):
    """Where a job stands. A fault test stops the process at each of these."""

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
    """How far the copy has come: everything up to `key` in span `span` of source `source` is in the targets."""

    source: int = 0
    span: int = 0
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class ReshapeJob:
    """Sources become targets: one becomes two in a split, two become one in a merge, and one another in a move."""

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
        """The map that tells clients of the job while it is under way. Of a move there is nothing to tell: the range
        stays what it is."""
        if self.kind == "move":
            return current
        return current.mark(self.source_ids, RangeStatus.SPLITTING if self.kind == "split" else RangeStatus.MERGING)

    def recall(self, current: PartitionMap) -> PartitionMap:
        """The map that takes the announcement back."""
        return current.mark(self.source_ids, RangeStatus.ONLINE)

    def change_map(self, current: PartitionMap) -> PartitionMap:
        """The map as it will be when the job is published."""
        if self.kind == "move":
            return current.move(self.source_ids[0], partition=self.targets[0].number, epoch=self.epoch)
        if len(self.source_ids) == 1:
            low, high = self.targets
            return current.split(
                self.source_ids[0], at=high.interval.start, low=low.number, high=high.number, epoch=self.epoch
            )
        left, right = self.source_ids
        return current.merge(left, right, partition=self.targets[0].number, epoch=self.epoch)

    def to_bytes(self) -> bytes:
        return dumps(
            {
                "id": self.id,
                "keyspace": self.keyspace_rid.hex(),
                "reason": self.reason,
                "sources": list(self.source_ids),
                "targets": [[one.number, one.interval.start.hex(), one.interval.end.hex()] for one in self.targets],
                "epoch": self.epoch,
                "started_at": self.started_at,
                "cursor": [self.cursor.source, self.cursor.span, self.cursor.key.hex()],
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> ReshapeJob:
        told = cast(dict[str, Any], loads_stored(stored))
        source, span, key = told["cursor"]
        return cls(
            id=told["id"],
            keyspace_rid=bytes.fromhex(told["keyspace"]),
            reason=told["reason"],
            source_ids=tuple(told["sources"]),
            targets=tuple(
                Target(PartitionNumber(number), KeyRange(bytes.fromhex(start), bytes.fromhex(end)))
                for number, start, end in told["targets"]
            ),
            epoch=Epoch(told["epoch"]),
            started_at=told["started_at"],
            cursor=Cursor(source, span, bytes.fromhex(key)),
        )


@dataclass(slots=True)
class Progress:
    """What an operator sees of a job under way."""

    job: ReshapeJob
    step: Step = Step.PLANNED
    entries_copied: int = 0
    sealed_seconds: float = 0.0
    trouble: str = ""

    def history(self, before: PartitionMap, *, finished_at: int) -> bytes:
        """What is remembered of the job when it is done; `before` is the map that it changes."""
        job = self.job
        after = job.change_map(before)
        made = [one.id for one in after.ranges if one.since_version == after.version]
        return dumps(
            {
                "id": job.id,
                "kind": job.kind,
                "reason": job.reason,
                "sources": [str(one) for one in job.source_ids],
                "targets": [str(one) for one in made],
                "nodes": [node_of(one.number) for one in job.targets],
                "started_at": job.started_at,
                "finished_at": finished_at,
                "entries_copied": self.entries_copied,
                "sealed_ms": round(self.sealed_seconds * 1000, 1),
            }
        )

    def to_bytes(self) -> bytes:
        """The job with how far it is, for processes that do not carry it out."""
        told = cast(dict[str, Any], loads_stored(self.job.to_bytes()))
        return dumps(
            {**told, "progress": {"step": self.step.value, "entries": self.entries_copied, "trouble": self.trouble}}
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> Progress:
        job = ReshapeJob.from_bytes(stored)
        told = cast(dict[str, Any], loads_stored(stored)).get("progress")
        if told is None:
            return cls(job)
        return cls(job, Step(told["step"]), entries_copied=told["entries"], trouble=told["trouble"])
