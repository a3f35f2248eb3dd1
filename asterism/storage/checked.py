"""A wrapper that holds an engine and its callers to the storage contract. Tests put it around every engine.

It assumes that it sees every call to the engine; if other processes use the same store, its knowledge of fences is
outdated and it must not be used.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from asterism.storage.contract import (
    KEY_BYTES_MAX,
    LSN_BYTES,
    Batch,
    CeilingPassed,
    Engine,
    EngineFailed,
    EngineStatus,
    ExpectationFailed,
    Fence,
    FenceChanged,
    JournalEntry,
    ScanPage,
    Snapshot,
    Span,
)
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber


class ContractViolation(AssertionError):
    """The engine, or its caller, broke the storage contract."""


def require(holds: bool, message: str, *details: object) -> None:
    if not holds:
        raise ContractViolation(" ".join([message, *map(repr, details)]))


@dataclass(slots=True)
class _Partition:
    """State of a partition as known from past calls."""

    fence: Fence | None = None
    # Rises when a change of the fence starts, and again when it ends.
    fence_changes: int = 0
    # The LSN of the last batch when no batch was in flight; None if it has to be learned again.
    lsn: Lsn | None = None
    lsn_acknowledged: int = 0
    in_flight: int = 0
    # LSNs acknowledged since then.
    lsns: set[int] = field(default_factory=set)
    # A batch with an unknown outcome, or an LSN raised meanwhile, may leave a gap at any later time.
    may_have_gap: bool = False

    def begin_batch(self) -> None:
        self.in_flight += 1

    def acknowledge(self, lsn: int) -> None:
        require(lsn not in self.lsns, "two batches have the LSN", lsn)
        require(self.lsn is None or lsn > self.lsn, "the LSN does not rise:", lsn, self.lsn)
        self.lsns.add(lsn)
        self.lsn_acknowledged = max(self.lsn_acknowledged, lsn)

    def end_batch(self) -> None:
        self.in_flight -= 1
        if self.in_flight or not self.lsns:
            return
        first = min(self.lsns) if self.lsn is None or self.may_have_gap else self.lsn + 1
        last = max(self.lsns)
        if not self.may_have_gap:
            require(self.lsns == set(range(first, last + 1)), "the LSNs have a gap:", self.lsn, sorted(self.lsns))
        self.lsn = Lsn(last)
        self.lsns.clear()


def _least_lsn(known: _Partition, at_least: Lsn | None) -> int:
    """Return the LSN that a read must have seen: of all returned batches or, if it may be stale, `at_least`."""
    return known.lsn_acknowledged if at_least is None else min(at_least, known.lsn_acknowledged)


def check_key(key: bytes) -> None:
    require(type(key) is bytes, "a key is not bytes:", key)
    require(len(key) <= KEY_BYTES_MAX, "a key is too long:", len(key), key)


def check_value(value: bytes) -> None:
    require(type(value) is bytes, "a value is not bytes:", value)


def check_span(span: Span) -> None:
    require(type(span.start) is bytes and type(span.end) in (bytes, type(None)), "a bound is not bytes:", span)


def check_batch(batch: Batch) -> None:
    for expectation in batch.expectations:
        check_key(expectation.key)
    for span in batch.range_deletes:
        check_span(span)
    for _, value in (*batch.puts, *batch.versioned_puts):
        check_value(value)
    for prefix, suffix, value in batch.stamped_puts:
        check_key(prefix + bytes(LSN_BYTES) + suffix)
        check_value(value)
    for add in batch.adds:
        require(all(type(delta) is int for delta in add.deltas), "a delta is not a whole number:", add)
    check_lists_apart(_plain_lists(batch))


def _plain_lists(batch: Batch) -> list[set[bytes]]:
    lists = [
        set(batch.deletes),
        {key for key, _ in batch.puts},
        {key for key, _ in batch.versioned_puts},
        {add.key for add in batch.adds},
    ]
    for key in set().union(*lists):
        check_key(key)
    return lists


def check_lists_apart(lists: Sequence[set[bytes]]) -> None:
    named: set[bytes] = set()
    for keys in lists:
        require(named.isdisjoint(keys), "a key is named by two writing lists:", sorted(named & keys))
        named |= keys


def check_limits(limit: int, bytes_max: int | None) -> None:
    require(limit > 0 and (bytes_max is None or bytes_max > 0), "a limit is not positive:", limit, bytes_max)


def check_page(page: ScanPage, span: Span, *, reverse: bool, limit: int, bytes_max: int | None) -> None:
    keys = [key for key, _ in page.entries]
    require(len(keys) <= limit, "a page is longer than its limit:", len(keys), limit)
    require(all(map(span.contains, keys)), "a page has a key outside its span:", span)
    ascending = keys[::-1] if reverse else keys
    in_order = all(left < right for left, right in pairwise(ascending))
    require(in_order, "a page is out of order; reverse is", reverse)
    sizes = [len(key) + len(value) for key, value in page.entries]
    require(bytes_max is None or sum(sizes[:-1]) < bytes_max, "a page has too many bytes:", sizes, bytes_max)
    is_full = len(keys) == limit or (bytes_max is not None and sum(sizes) >= bytes_max)
    require(
        bool(keys) and is_full if page.more else True, "a page ends before its limits although there are more entries"
    )


class CheckedSnapshot:
    def __init__(self, engine: CheckedEngine, snapshot: Snapshot) -> None:
        self._engine = engine
        self._snapshot = snapshot
        self._is_closed = False

    @property
    def lsn(self) -> Lsn:
        return self._snapshot.lsn

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        require(not self._is_closed, "a closed snapshot is read")
        for key in keys:
            check_key(key)
        values = await self._snapshot.read(keys)
        require(len(values) == len(keys), "a snapshot read does not answer every key")
        return values

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        require(not self._is_closed, "a closed snapshot is scanned")
        check_span(span)
        check_limits(limit, bytes_max)
        page = await self._snapshot.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        check_page(page, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        return page

    async def close(self) -> None:
        require(not self._is_closed, "a snapshot is closed twice")
        self._is_closed = True
        self._engine.snapshots_open -= 1
        await self._snapshot.close()


class CheckedEngine:
    """Delegate every call to `engine`; raise `ContractViolation` if the call or its result breaks the contract."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.snapshots_open = 0
        self._partitions: defaultdict[PartitionNumber, _Partition] = defaultdict(_Partition)
        self._is_closed = False

    @contextmanager
    def _fenced_call(self, partition: PartitionNumber, epoch: Epoch) -> Iterator[_Partition]:
        """Check that a call succeeds only if the fence lets it pass, unless the fence changes meanwhile."""
        self._check_open()
        known = self._partitions[partition]
        fence, changes = known.fence, known.fence_changes
        yield known
        if fence is not None and known.fence_changes == changes:
            require(not fence.sealed and fence.epoch == epoch, "a call passed the fence:", partition, epoch, fence)

    def _check_open(self) -> None:
        require(not self._is_closed, "the engine is used after it was closed")

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        for key in keys:
            check_key(key)
        with self._fenced_call(partition, epoch) as known:
            acknowledged = _least_lsn(known, at_least)
            lsn, values = await self.engine.read(partition, epoch, keys, at_least=at_least)
        require(len(values) == len(keys), "a read does not answer every key")
        require(lsn >= acknowledged, "a read does not see a batch that has returned:", lsn, acknowledged)
        return lsn, values

    async def scan(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        span: Span,
        *,
        reverse: bool = False,
        limit: int = 1000,
        bytes_max: int | None = None,
        at_least: Lsn | None = None,
    ) -> ScanPage:
        check_span(span)
        check_limits(limit, bytes_max)
        with self._fenced_call(partition, epoch):
            page = await self.engine.scan(
                partition, epoch, span, reverse=reverse, limit=limit, bytes_max=bytes_max, at_least=at_least
            )
        check_page(page, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        return page

    async def snapshot(
        self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None
    ) -> CheckedSnapshot:
        with self._fenced_call(partition, epoch) as known:
            acknowledged = _least_lsn(known, at_least)
            snapshot = await self.engine.snapshot(partition, epoch, at_least=at_least)
        self.snapshots_open += 1
        require(snapshot.lsn >= acknowledged, "a snapshot does not see a batch that has returned:", snapshot.lsn)
        return CheckedSnapshot(self, snapshot)

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        check_batch(batch)
        with self._fenced_call(partition, epoch) as known:
            known.begin_batch()
            try:
                lsn = await self.engine.apply(partition, epoch, batch)
                known.acknowledge(lsn)
            except ExpectationFailed as refusal:
                require(refusal.key in {wanted.key for wanted in batch.expectations}, "no expectation on", refusal.key)
                raise
            except CeilingPassed as refusal:
                ceilings = {add.key for add in batch.adds if add.first_max is not None}
                require(refusal.key in ceilings, "no ceiling on", refusal.key)
                raise
            except (EngineFailed, asyncio.CancelledError):
                known.may_have_gap = True
                raise
            finally:
                known.end_batch()
        stamp = lsn.to_bytes(LSN_BYTES, "big")
        stamped = {prefix + stamp + suffix for prefix, suffix, _ in batch.stamped_puts}
        check_lists_apart([*_plain_lists(batch), stamped])
        return lsn

    # --- partitions -----------------------------------------------------------------------------------------------

    async def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> None:
        self._check_open()
        await self.engine.create_partition(partition, fence, lsn=lsn, announced=announced)
        self._partitions[partition] = _Partition(fence=fence, lsn=lsn, lsn_acknowledged=lsn)

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        self._check_open()
        return self.engine.watch(partition, callback)

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        self._check_open()
        self._partitions.pop(partition, None)
        return await self.engine.drop_partition(partition)

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        self._check_open()
        return await self.engine.partitions()

    async def read_fence(self, partition: PartitionNumber) -> tuple[Fence, Lsn]:
        self._check_open()
        known = self._partitions[partition]
        expected, changes, acknowledged = known.fence, known.fence_changes, known.lsn_acknowledged
        fence, lsn = await self.engine.read_fence(partition)
        if expected is not None and known.fence_changes == changes:
            require(fence == expected, "the fence is not the one that was set:", fence, expected)
        require(lsn >= acknowledged, "the LSN went back:", lsn, acknowledged)
        return fence, lsn

    async def set_fence(
        self,
        partition: PartitionNumber,
        fence: Fence,
        *,
        lsn: Lsn | None = None,
        expected: Fence | None = None,
    ) -> Lsn:
        self._check_open()
        known = self._partitions[partition]
        acknowledged, before = known.lsn_acknowledged, known.fence
        known.fence, known.fence_changes = None, known.fence_changes + 1
        changes = known.fence_changes
        try:
            lsn_now = await self.engine.set_fence(partition, fence, lsn=lsn, expected=expected)
        except FenceChanged:
            if known.fence_changes == changes:
                require(before is None or before != expected, "the fence was the expected one:", expected)
                known.fence = before
            raise
        require(lsn_now >= max(acknowledged, lsn or 0), "the fence has an LSN that is too low:", lsn_now)
        if known.fence_changes == changes:
            known.fence = fence
        known.fence_changes += 1
        # An engine may have work to do after the fence is set, while batches start and end already.
        others_wrote = known.in_flight > 0 or known.lsn_acknowledged > lsn_now
        known.lsn_acknowledged = max(known.lsn_acknowledged, lsn_now)
        if others_wrote:
            known.may_have_gap = known.may_have_gap or lsn is not None
        else:
            known.lsn, known.may_have_gap = lsn_now, False
        return lsn_now

    # --- copying --------------------------------------------------------------------------------------------------

    async def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> list[bytes | None]:
        self._check_open()
        for key in keys:
            check_key(key)
        values = await self.engine.read_unfenced(partition, keys)
        require(len(values) == len(keys), "a read does not answer every key")
        return values

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        self._check_open()
        check_span(span)
        check_limits(limit, bytes_max)
        page = await self.engine.scan_unfenced(partition, span, limit=limit, bytes_max=bytes_max)
        check_page(page, span, reverse=False, limit=limit, bytes_max=bytes_max)
        return page

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        self._check_open()
        check_limits(limit, None)
        entries = await self.engine.read_journal(partition, after=after, limit=limit)
        lsns = [after, *(entry.lsn for entry in entries)]
        rises = all(left < right for left, right in pairwise(lsns))
        require(rises and len(entries) <= limit, "the journal is out of order or too long:", lsns)
        return entries

    async def write_copied(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[Span] = (),
    ) -> None:
        self._check_open()
        fence = self._partitions[partition].fence
        require(fence is None or fence.sealed, "entries are copied into a partition that is not sealed:", partition)
        for span in range_deletes:
            check_span(span)
        for key in (*deletes, *(key for key, _ in puts)):
            check_key(key)
        for _, value in puts:
            check_value(value)
        await self.engine.write_copied(partition, epoch, puts=puts, deletes=deletes, range_deletes=range_deletes)

    # --- the engine itself ----------------------------------------------------------------------------------------

    @property
    def commits(self) -> int:
        return self.engine.commits

    async def status(self) -> EngineStatus:
        self._check_open()
        return await self.engine.status()

    async def close(self) -> None:
        self._check_open()
        self._is_closed = True
        await self.engine.close()
        require(self.snapshots_open == 0, "snapshots were left open:", self.snapshots_open)
