"""Reads that may be stale, from the standbys of a node. The primary serves every read that a standby cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from asterism.storage.contract import EngineFailed, StorageRefusal
from asterism.storage.postgres.connections import Pool
from asterism.storage.postgres.node import PostgresNode
from asterism.storage.postgres.reading import PooledReader, ReadAnswer, check_fence
from asterism.storage.postgres.snapshots import PostgresSnapshot, open_snapshot
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# The standbys are not used for this long after they could not be reached.
REST_SECONDS = 3.0


class StandbyReads:
    """Reads from standbys. Each method returns None if the primary has to be used."""

    def __init__(self, node: PostgresNode) -> None:
        self._node = node
        self._readers: dict[PartitionNumber, PooledReader] = {}
        self._rests_until = 0.0

    def _pool(self, pool: Pool | None) -> Pool | None:
        return None if pool is None or asyncio.get_running_loop().time() < self._rests_until else pool

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], at_least: Lsn
    ) -> ReadAnswer | None:
        pool = self._pool(self._node.standby_readers)
        if pool is None:
            return None
        reader = self._readers.get(partition)
        if reader is None:
            reader = self._readers[partition] = PooledReader(self._node, pool, partition)
        try:
            answer = await reader.read(epoch, keys)
        except StorageRefusal as refusal:
            self._rest_after(refusal)
            return None
        return answer if answer[0] >= at_least else None

    async def ask(self, partition: PartitionNumber, epoch: Epoch, at_least: Lsn, *arguments: Any) -> Any:
        """Return a row that begins with epoch, sealed and LSN."""
        pool = self._pool(self._node.standby_readers)
        if pool is None:
            return None
        try:
            row = await self._node.ask(pool, pool.timeouts.read_seconds, *arguments)
            check_fence(partition, epoch, row)
        except StorageRefusal as refusal:
            self._rest_after(refusal)
            return None
        return row if row[2] >= at_least else None

    async def snapshot(self, partition: PartitionNumber, epoch: Epoch, at_least: Lsn) -> PostgresSnapshot | None:
        pool = self._pool(self._node.standby_snapshots)
        if pool is None:
            return None
        try:
            snapshot = await open_snapshot(self._node, pool, partition, epoch)
        except StorageRefusal as refusal:
            self._rest_after(refusal)
            return None
        if snapshot.lsn >= at_least:
            return snapshot
        await snapshot.close()
        return None

    def _rest_after(self, refusal: StorageRefusal) -> None:
        if isinstance(refusal, EngineFailed):
            self._rests_until = asyncio.get_running_loop().time() + REST_SECONDS
