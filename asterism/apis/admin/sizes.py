"""Sizes of partitions for who looks at them: a node that is away is told of, not waited for."""

from __future__ import annotations

import asyncio

from asterism.errors import StorageUnavailable
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.statistics import Size, partition_size
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.identifiers import NodeNumber

# A node that takes longer to tell a size counts as unreachable.
SIZE_SECONDS_MAX = 3.0


class SizesAtHand:
    """For the length of one look: each node is waited for once."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._away: set[NodeNumber] = set()

    async def of(self, keyspace: Keyspace, partition: PartitionRange) -> Size | None:
        """None when the partition's node does not answer."""
        if partition.node in self._away:
            return None
        try:
            async with asyncio.timeout(SIZE_SECONDS_MAX):
                return await partition_size(self._owner, keyspace, partition)
        except (StorageUnavailable, TimeoutError):
            self._away.add(partition.node)
            return None
