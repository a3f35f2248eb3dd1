"""Sizes, which every write keeps up to date: read, never counted by a scan of the data."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass

from asterism.errors import StoredDamage
from asterism.keyspaces.routing import slice_sizes
from asterism.keyspaces.routing.families import COUNTERS, ITEMS, LOGICAL_SIZES, TOTALS_KEY, after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter, Reads
from asterism.keyspaces.routing.scan import read_slice, scan_line
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span


@dataclass(frozen=True, slots=True)
class Size:
    bytes: int = 0
    items: int = 0


@dataclass(frozen=True, slots=True)
class LogicalPartition:
    effective_key: bytes
    size: Size


def size_from(stored: bytes | None) -> Size:
    try:
        return Size() if stored is None else Size(*COUNTERS.unpack(stored))
    except struct.error:
        raise StoredDamage(what="counters") from None


async def partition_size(router: Reads, keyspace: Keyspace, partition: PartitionRange) -> Size:
    _, _, (stored,) = await router.read(keyspace, partition.range.start, (TOTALS_KEY,))
    return size_from(stored)


async def bytes_by_range(router: Reads, keyspace: Keyspace) -> dict[int, int]:
    ranges = keyspace.record.map.ranges
    return {partition.id: (await partition_size(router, keyspace, partition)).bytes for partition in ranges}


async def stored_bytes(router: PartitionRouter, keyspace: Keyspace) -> int:
    return sum((await bytes_by_range(router, keyspace)).values())


async def logical_partitions(
    router: PartitionRouter, keyspace: Keyspace, partition: PartitionRange
) -> AsyncIterator[LogicalPartition]:
    """Yield the logical partitions in the interval of a physical partition, in the order of the line."""
    async for found in scan_line(router, keyspace, LOGICAL_SIZES, partition.range, slice_sizes.COUNTERS):
        for key, stored in found.entries:
            yield LogicalPartition(key[1:], size_from(stored))


async def first_item(router: Reads, keyspace: Keyspace, point: bytes) -> bytes | None:
    """Return the stored value of the first item of a logical partition; None if it is empty, or moves at present."""
    record, prefix = keyspace.record, ITEMS + point
    span = Span(prefix, after_prefix(prefix))
    page = await router.scan(keyspace, record, record.map.find(point), span, limit=1, bytes_max=1)
    return None if page is None or not page.entries else page.entries[0][1]


async def items_between(router: Reads, keyspace: Keyspace, start: bytes, end: bytes) -> int:
    """Count the items of an interval of the line by their counters, without reading them."""
    total, rest = 0, KeyRange(start, max(start, end))
    while rest.start < rest.end:
        record = keyspace.record
        partition = record.map.find(rest.start)
        if partition.range.is_within(rest):
            size = await partition_size(router, keyspace, partition)
            if keyspace.record is record:
                total += size.items
                rest = KeyRange(partition.range.end, end)
            continue
        found = await read_slice(router, keyspace, LOGICAL_SIZES, rest, slice_sizes.COUNTERS)
        total += sum(size_from(stored).items for _, stored in found.entries)
        rest = found.rest
        await asyncio.sleep(0)
    return total
