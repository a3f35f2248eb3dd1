"""Fences of partitions, brought to the epochs that the map in the catalog gives them.

The map is written first and the fences follow (K4), so that every process that finds a fence behind the map may raise
it: the process that changed the map does, and after its crash any process that meets the difference.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Engine, Fence, FenceChanged, PartitionUnknown
from asterism.values.identifiers import Epoch


async def raise_fences(engine: Engine, record: KeyspaceRecord) -> None:
    """Make every partition of the map refuse epochs below its own; a sealed partition stays sealed."""
    await asyncio.gather(*(raise_fence(engine, partition) for partition in record.map.ranges))


async def raise_fence(engine: Engine, partition: PartitionRange) -> Fence | None:
    """Raise a fence to the epoch of the map and return it; None if the partition was dropped."""
    while True:
        try:
            fence, _ = await engine.read_fence(partition.partition)
            if fence.epoch >= partition.epoch:
                return fence
            raised = replace(fence, epoch=partition.epoch)
            await engine.set_fence(partition.partition, raised, expected=fence)
        except FenceChanged:
            continue
        except PartitionUnknown:
            return None
        return raised


async def seal_for_good(engine: Engine, record: KeyspaceRecord) -> None:
    """Seal the partitions of a deleted keyspace, so that no process reads or writes them by an older map."""
    await asyncio.gather(*(_seal(engine, partition) for partition in record.map.ranges))


async def _seal(engine: Engine, partition: PartitionRange) -> None:
    while True:
        try:
            fence, _ = await engine.read_fence(partition.partition)
            closed = replace(fence, epoch=Epoch(fence.epoch + 1), sealed=True)
            await engine.set_fence(partition.partition, closed, expected=fence)
        except FenceChanged:
            continue
        except PartitionUnknown:
            return
        return
