"""Sizes of partitions for operators: a node that does not answer is reported, not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from asterism.errors import AsterismError, StorageUnavailable
from asterism.keyspaces.routing.families import LOGICAL_SIZES
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import Size, partition_size, size_from
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.identifiers import NodeNumber

# A node that takes longer to answer with a size counts as unreachable.
SIZE_SECONDS_MAX = 3.0
# Enough to hide the round trips to other machines.
_KEYSPACES_AT_ONCE = 32


class PartitionSizes:
    """The sizes for a single request: each node is waited for once."""

    def __init__(self, router: PartitionRouter) -> None:
        self._router = router
        self._away: set[NodeNumber] = set()

    async def of(self, keyspace: Keyspace, partition: PartitionRange) -> Size | None:
        """Return the size of a partition, or None if its node does not answer."""
        if partition.node in self._away:
            return None
        try:
            async with asyncio.timeout(SIZE_SECONDS_MAX):
                return await partition_size(self._router, keyspace, partition)
        except (StorageUnavailable, TimeoutError):
            self._away.add(partition.node)
            return None

    async def of_keyspaces(self, keyspaces: Sequence[Keyspace]) -> dict[bytes, Size | None]:
        """Return the sizes of whole keyspaces, by their resource ids; None for those that are not known completely."""
        sizes: dict[bytes, Size | None] = {}
        for place in range(0, len(keyspaces), _KEYSPACES_AT_ONCE):
            batch = keyspaces[place : place + _KEYSPACES_AT_ONCE]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._of_keyspace(keyspace)) for keyspace in batch]
            sizes |= {keyspace.record.rid: task.result() for keyspace, task in zip(batch, tasks, strict=True)}
        return sizes

    async def of_logical(self, keyspace: Keyspace, point: bytes) -> Size | None:
        """Return the size of a logical partition, or None if its node does not answer."""
        if keyspace.record.map.find(point).node in self._away:
            return None
        try:
            async with asyncio.timeout(SIZE_SECONDS_MAX):
                _, _, (stored,) = await self._router.read(keyspace, point, (LOGICAL_SIZES + point,))
        except (AsterismError, TimeoutError):
            # Deleted while it was asked, or its node is away.
            return None
        return size_from(stored)

    async def _of_keyspace(self, keyspace: Keyspace) -> Size | None:
        total = Size()
        for partition in keyspace.record.map.ranges:
            try:
                size = await self.of(keyspace, partition)
            except AsterismError:
                # Deleted while it was asked.
                return None
            if size is None:
                return None
            total = Size(total.bytes + size.bytes, total.items + size.items)
        return total
