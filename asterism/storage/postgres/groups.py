"""Groups of batches that can share a transaction, and their arguments for the database. No connections, no waiting.

Batches of a group must not conflict: a key that a batch expects or writes must not be written by an earlier one. Adds
to one key are the exception, because their sum is the same in any order; a ceiling on such a key is then checked as if
all earlier growth had happened, and a batch that fails such a check is retried in a later group.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from asterism.storage.contract import (
    Batch,
    CeilingPassed,
    ExpectationFailed,
    StorageRefusal,
    encode_counters,
)
from asterism.storage.postgres.journal_record import encode_journal
from asterism.values.identifiers import Epoch, Lsn

GROUP_BATCHES_MAX = 128
# A group's transaction blocks the next ones, and is sent in one message.
GROUP_BYTES_MAX = 4 * 1024 * 1024
# Below any counter: a condition that cannot hold.
NEVER = -(1 << 63)


@dataclass(slots=True, eq=False)
class WaitingBatch:
    """A batch, the future of its caller, and its start of waiting (a time of the event loop). `alone` after a group
    that it shared has failed."""

    epoch: Epoch
    batch: Batch
    future: asyncio.Future[Lsn]
    since: float = 0.0
    alone: bool = False


@dataclass(slots=True)
class MemberCondition:
    """Condition of one member: its key begins with these bytes, is absent, or counts no more than `ceiling`."""

    member: int
    key: bytes
    begins_with: bytes | None
    ceiling: int | None
    # False if the result may differ once the outcome of earlier members is known.
    is_certain: bool = True

    def refusal(self) -> StorageRefusal:
        return ExpectationFailed(self.key) if self.ceiling is None else CeilingPassed(self.key)


@dataclass(slots=True)
class Group:
    """Batches of one epoch for one partition, in the order in which they get their LSNs."""

    epoch: Epoch
    members: list[WaitingBatch] = field(default_factory=list)
    conditions: list[MemberCondition] = field(default_factory=list)
    _written: set[bytes] = field(default_factory=set)
    # The sums of all members' adds.
    _added: dict[bytes, list[int]] = field(default_factory=dict)
    # Maximum growth of the first counter through the members so far.
    _growth: dict[bytes, int] = field(default_factory=dict)
    _bytes: int = 0

    def admits(self, waiting: WaitingBatch) -> bool:
        if not self.members:
            return True
        batch = waiting.batch
        if waiting.epoch != self.epoch or len(self.members) >= GROUP_BATCHES_MAX or self._bytes >= GROUP_BYTES_MAX:
            return False
        if waiting.alone or batch.range_deletes or self.members[0].alone or self.members[0].batch.range_deletes:
            return False
        written, added = self._written, self._added
        for expectation in batch.expectations:
            if expectation.key in written or expectation.key in added:
                return False
        for key in _keys_written(batch):
            if key in written or key in added:
                return False
        return all(add.key not in written for add in batch.adds)

    def add(self, waiting: WaitingBatch) -> None:
        batch = waiting.batch
        member = len(self.members)
        self.members.append(waiting)
        for wanted in batch.expectations:
            self.conditions.append(MemberCondition(member, wanted.key, wanted.begins_with, None))
        if batch.adds:
            self._add_up(member, batch)
        self._written.update(_keys_written(batch))
        self._bytes += sum(len(value) for _, value in batch.puts)
        self._bytes += sum(len(value) for _, value in batch.versioned_puts)
        self._bytes += sum(len(value) for _, _, value in batch.stamped_puts)

    def _add_up(self, member: int, batch: Batch) -> None:
        own: dict[bytes, int] = {}
        growth: dict[bytes, int] = {}
        for add in batch.adds:
            key, deltas = add.key, add.deltas
            if not deltas:
                continue
            own[key] = own.get(key, 0) + deltas[0]
            growth[key] = max(growth.get(key, 0), own[key])
            if add.first_max is not None and deltas[0] > 0:
                before = self._growth.get(key)
                ceiling = add.first_max - own[key] - (before or 0)
                if batch.range_deletes and any(span.contains(key) for span in batch.range_deletes):
                    # The span is empty by then: only the batch's own adds count.
                    ceiling = NEVER if ceiling < 0 else -NEVER - 1
                ceiling = max(NEVER, min(ceiling, -NEVER - 1))
                self.conditions.append(MemberCondition(member, key, None, ceiling, is_certain=before is None))
            known = self._added.get(key)
            if known is None:
                self._added[key] = list(deltas)
            elif len(known) == len(deltas):
                self._added[key] = list(map(int.__add__, known, deltas))
            else:
                self._added[key] = [left + right for left, right in zip_longest(known, deltas, fillvalue=0)]
        for key, most in growth.items():
            self._growth[key] = self._growth.get(key, 0) + most

    def arguments(self, *, journaling: bool) -> tuple[Any, ...]:
        """Return the arguments of the partition's `apply` function from the epoch on."""
        batches = [waiting.batch for waiting in self.members]
        spans = batches[0].range_deletes
        puts = {key: value for batch in batches for key, value in batch.puts}
        versioned = [
            (key, value, step)
            for step, batch in enumerate(batches, 1)
            for key, value in dict(batch.versioned_puts).items()
        ]
        stamped = [
            (head, tail, value, step)
            for step, batch in enumerate(batches, 1)
            for (head, tail), value in {(head, tail): value for head, tail, value in batch.stamped_puts}.items()
        ]
        conditions = self.conditions
        return (
            self.epoch,
            len(batches),
            [condition.key for condition in conditions],
            [condition.begins_with for condition in conditions],
            [condition.ceiling for condition in conditions],
            [span.start for span in spans],
            [span.end for span in spans],
            [key for batch in batches for key in batch.deletes],
            list(puts),
            list(puts.values()),
            [key for key, _, _ in versioned],
            [value for _, value, _ in versioned],
            [step for _, _, step in versioned],
            [head for head, _, _, _ in stamped],
            [tail for _, tail, _, _ in stamped],
            [value for _, _, value, _ in stamped],
            [step for _, _, _, step in stamped],
            list(self._added),
            [encode_counters(deltas) for deltas in self._added.values()],
            [encode_journal(batch) for batch in batches] if journaling else None,
        )

    def split_off(self, failed: list[int]) -> tuple[Group, list[WaitingBatch]]:
        """Refuse the members whose conditions do not hold, given the numbers of those conditions (from 1). Return a
        group of the members without failed conditions, and the members to retry after these have been applied.

        The first member's conditions are certain, so that each time a member is refused or the group becomes smaller.
        """
        first_failed: dict[int, MemberCondition] = {}
        for number in sorted(failed):
            condition = self.conditions[number - 1]
            first_failed.setdefault(condition.member, condition)
        retries: list[WaitingBatch] = []
        others = Group(self.epoch)
        for member, waiting in enumerate(self.members):
            failing = first_failed.get(member)
            if failing is None:
                others.add(waiting)
            elif failing.is_certain:
                refuse(waiting, failing.refusal())
            else:
                retries.append(waiting)
        return others, retries


def _keys_written(batch: Batch) -> list[bytes]:
    keys = list(batch.deletes)
    keys += (key for key, _ in batch.puts)
    keys += (key for key, _ in batch.versioned_puts)
    return keys


def refuse(waiting: WaitingBatch, refusal: StorageRefusal) -> None:
    # The caller may have been canceled.
    if not waiting.future.done():
        waiting.future.set_exception(refusal)


def fail_all(members: list[WaitingBatch], refusal: StorageRefusal) -> None:
    for waiting in members:
        # Each caller raises an exception of its own; a shared one would collect all their tracebacks.
        refuse(waiting, type(refusal)(*refusal.args))
