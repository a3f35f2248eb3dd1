"""Sizes of partitions for operators: a node that does not answer is reported, not waited for."""

from __future__ import annotations

import asyncio

from asterism.errors import StorageUnavailable
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import Size, partition_size
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.identifiers import NodeNumber

# A node that takes longer to answer with a size counts as unreachable.
SIZE_SECONDS_MAX = 3.0


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
