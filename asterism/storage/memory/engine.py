"""The memory engine: the storage contract over dictionaries. Reads never suspend; writes do once, as on a disk."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Sequence

from asterism.storage.contract import (
    Batch,
    EngineFailed,
    EngineStatus,
    Fence,
    JournalEntry,
    ScanPage,
    Span,
)
from asterism.storage.memory.ordered_map import FrozenMap
from asterism.storage.memory.partition import MemoryPartition
from asterism.storage.memory.store import MemoryStore
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber, sequence_of

# Entries that one call of `drop_partition` removes, as in the contract.
DROP_ENTRIES_PER_CALL = 10_000


class MemorySnapshot:
    """A frozen state of one partition; it keeps the blocks that were changed since until it is closed."""

    def __init__(self, state: FrozenMap, lsn: Lsn) -> None:
        self._state: FrozenMap | None = state
        self._lsn = lsn

    @property
    def lsn(self) -> Lsn:
        return self._lsn

    def _opened(self) -> FrozenMap:
        if self._state is None:
            raise EngineFailed("the snapshot is closed")
        return self._state

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._opened().get, keys))

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        return self._opened().scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)

    async def close(self) -> None:
        self._state = None


class MemoryEngine:
    """See `asterism.storage.contract.Engine`. A batch is as durable as the store, which may outlive the engine.

    Every call does its work before it suspends, so calls have their effect in the order in which they are made. Calls
    that write let others run before they return: a caller that writes in a loop does not hold up the event loop.
    """

    def __init__(self, store: MemoryStore | None = None) -> None:
        self._store = MemoryStore() if store is None else store
        self._is_closed = False
        self.commits = 0
        self._watches: list[Callable[[], None]] = []

    def _partition(self, number: PartitionNumber) -> MemoryPartition:
        self._check_open()
        return self._store.partition(number)

    def _check_open(self) -> None:
        if self._is_closed:
            raise EngineFailed("the engine is closed")

    def _fenced(self, number: PartitionNumber, epoch: Epoch) -> MemoryPartition:
        partition = self._partition(number)
        partition.check_epoch(epoch)
        return partition

    # --- reading --------------------------------------------------------------------------------------------------

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        found = self._fenced(partition, epoch)
        return found.lsn, list(map(found.entries.get, keys))

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
        found = self._fenced(partition, epoch)
        page = found.entries.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        return ScanPage(page.entries, page.more, found.lsn)

    async def snapshot(
        self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None
    ) -> MemorySnapshot:
        found = self._fenced(partition, epoch)
        return MemorySnapshot(found.entries.freeze(), found.lsn)

    # --- writing --------------------------------------------------------------------------------------------------

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        changed = self._fenced(partition, epoch)
        lsn = changed.apply(batch)
        self.commits += 1
        if changed.announced:
            loop = asyncio.get_running_loop()
            for callback in self._store.watches_of(changed):
                loop.call_soon(callback)
        await asyncio.sleep(0)
        return lsn

    # --- partitions -----------------------------------------------------------------------------------------------

    async def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> None:
        self._check_open()
        sequence = sequence_of(partition)
        if sequence in self._store.partitions:
            raise EngineFailed(f"partition {partition} exists already")
        self._store.partitions[sequence] = MemoryPartition(partition, fence, lsn, announced=announced)
        self.commits += 1
        await asyncio.sleep(0)

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        end = self._store.watch(partition, callback)
        self._watches.append(end)
        return end

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        self._check_open()
        found = self._store.partitions.get(sequence_of(partition))
        if found is None:
            return True
        found.dropping = True
        found.journal = []
        found.entries.remove_span(Span(), limit=DROP_ENTRIES_PER_CALL)
        self.commits += 1
        is_empty = not found.entries.entry_count
        if is_empty:
            del self._store.partitions[sequence_of(partition)]
        await asyncio.sleep(0)
        return is_empty

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        """By their numbers on node 0: the store does not know which node it is."""
        self._check_open()
        return {
            PartitionNumber(sequence): (known.fence, known.lsn)
            for sequence, known in sorted(self._store.partitions.items())
            if not known.dropping
        }

    async def read_fence(self, partition: PartitionNumber) -> tuple[Fence, Lsn]:
        found = self._partition(partition)
        return found.fence, found.lsn

    async def set_fence(
        self,
        partition: PartitionNumber,
        fence: Fence,
        *,
        lsn: Lsn | None = None,
        expected: Fence | None = None,
    ) -> Lsn:
        lsn_now = self._partition(partition).set_fence(fence, lsn=lsn, expected=expected)
        self.commits += 1
        await asyncio.sleep(0)
        return lsn_now

    # --- copying --------------------------------------------------------------------------------------------------

    async def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._partition(partition).entries.get, keys))

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        return self._partition(partition).entries.scan(span, reverse=False, limit=limit, bytes_max=bytes_max)

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        return self._partition(partition).journal_after(after, limit)

    async def write_copied(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[Span] = (),
    ) -> None:
        self._partition(partition).write_copied(epoch, puts=puts, deletes=deletes, range_deletes=range_deletes)
        self.commits += 1
        await asyncio.sleep(0)

    # --- the engine itself ----------------------------------------------------------------------------------------

    async def status(self) -> EngineStatus:
        self._check_open()
        bytes_used = sum(known.entries.bytes_used for known in self._store.partitions.values())
        return EngineStatus(bytes_used, is_writable=True, server_version=f"memory, Python {platform.python_version()}")

    async def close(self) -> None:
        self._is_closed = True
        for end_watch in self._watches:
            end_watch()
        self._watches.clear()
