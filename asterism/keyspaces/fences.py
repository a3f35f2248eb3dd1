"""Bringing the fences of partitions to the epochs that the catalog's map gives them.

The map is written first and the fences follow, so that whoever finds a fence behind the map may bring it on: the one
who changed the map does, and after a death on the way whoever meets the difference.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from asterism.keyspaces.records import KeyspaceRecord
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Engine, Fence, FenceChanged, PartitionUnknown
from asterism.values.identifiers import Epoch


async def raise_fences(engine: Engine, record: KeyspaceRecord) -> None:
    """No partition of the map takes an epoch below the map's after this; one that is sealed stays so."""
    await asyncio.gather(*(raise_fence(engine, one) for one in record.map.ranges))


async def raise_fence(engine: Engine, partition: PartitionRange) -> Fence | None:
    """The fence as it is then; None if the partition is gone, which is more than being fenced."""
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
    """Nobody reads or writes a deleted keyspace any more, whatever map is gone by."""
    await asyncio.gather(*(_seal(engine, one) for one in record.map.ranges))


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
