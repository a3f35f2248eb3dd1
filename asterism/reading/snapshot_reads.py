"""Reads of a partition at one snapshot, for answers from entries that a write may move while they are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

from asterism.errors import StorageUnavailable
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter, Reads
from asterism.models.documents.indexes.reader import MapChanged, PartitionReader
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import EngineFailed, ScanPage, Snapshot, Span
from asterism.values.identifiers import Lsn

# A store has slots for some hundred snapshots, or connections for sixteen, and scripts need them as well.
_SNAPSHOTS_MAX: Final = 8

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class _SnapshotReads:
    """The `Reads` of one partition, from a snapshot of it."""

    def __init__(self, snapshot: Snapshot, partition: PartitionRange) -> None:
        self._snapshot = snapshot
        self._partition = partition

    async def read(
        self,
        keyspace: Keyspace,  # noqa: ARG002
        point: bytes,  # noqa: ARG002
        keys: Sequence[bytes],
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        try:
            return self._partition, self._snapshot.lsn, await self._snapshot.read(keys)
        except EngineFailed as failure:
            raise StorageUnavailable(reason=str(failure)) from failure

    async def scan(
        self,
        keyspace: Keyspace,  # noqa: ARG002
        seen: KeyspaceRecord,  # noqa: ARG002
        partition: PartitionRange,  # noqa: ARG002
        span: Span,
        *,
        limit: int,
        bytes_max: int | None,
        reverse: bool = False,
    ) -> ScanPage:
        try:
            return await self._snapshot.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        except EngineFailed as failure:
            raise StorageUnavailable(reason=str(failure)) from failure


@asynccontextmanager
async def snapshot_reader(
    router: Reads, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange
) -> AsyncIterator[PartitionReader]:
    """Open a reader of a snapshot. Raises MapChanged if another map than `seen` is in force."""
    if not isinstance(router, PartitionRouter):
        # A unit of work reads one snapshot already.
        yield PartitionReader(router, keyspace, seen, partition)
        return
    async with _slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_SNAPSHOTS_MAX)):
        snapshot = await router.snapshot(keyspace, partition.range.start)
        try:
            if keyspace.record is not seen:
                raise MapChanged
            yield PartitionReader(_SnapshotReads(snapshot, partition), keyspace, seen, partition)
        finally:
            await snapshot.close()
