"""Sizes as they are kept with every write: read, never counted by scanning data."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass

from asterism.errors import StoredDamage
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import COUNTERS, LOGICAL_SIZES, TOTALS_KEY
from asterism.keyspaces.owner import Owner, Reads
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span

# In slices, so that other requests come between them.
_PAGE_ENTRIES = 1000
_PAGE_BYTES = 256 * 1024


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


async def partition_size(owner: Reads, keyspace: Keyspace, partition: PartitionRange) -> Size:
    _, _, (stored,) = await owner.read(keyspace, partition.range.start, (TOTALS_KEY,))
    return size_from(stored)


async def bytes_by_range(owner: Reads, keyspace: Keyspace) -> dict[int, int]:
    return {one.id: (await partition_size(owner, keyspace, one)).bytes for one in keyspace.record.map.ranges}


async def stored_bytes(owner: Owner, keyspace: Keyspace) -> int:
    return sum((await bytes_by_range(owner, keyspace)).values())


async def logical_partitions(
    owner: Owner, keyspace: Keyspace, partition: PartitionRange
) -> AsyncIterator[LogicalPartition]:
    """The logical partitions of one physical partition, in the order of the hash line."""
    at, end = LOGICAL_SIZES + partition.range.start, LOGICAL_SIZES + partition.range.end
    while True:
        record = keyspace.record
        if record.map.get(partition.id) is None:
            return
        page = await owner.scan(keyspace, record, partition, Span(at, end), limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES)
        if page is None:
            return
        for key, stored in page.entries:
            yield LogicalPartition(key[1:], size_from(stored))
        if not page.more:
            return
        at = page.entries[-1][0] + b"\x00"
        # A read of the embedded store never suspends; between two pages other requests have their turn.
        await asyncio.sleep(0)


async def items_between(owner: Reads, keyspace: Keyspace, start: bytes, end: bytes) -> int:
    """How many items an interval of the hash line holds, without looking at them."""
    total, at = 0, start
    while at < end:
        record = keyspace.record
        partition = record.map.find(at)
        if at <= partition.range.start and partition.range.end <= end:
            size = await partition_size(owner, keyspace, partition)
            if keyspace.record is record:
                total += size.items
                at = partition.range.end
            continue
        stop = min(end, partition.range.end)
        span = Span(LOGICAL_SIZES + at, LOGICAL_SIZES + stop)
        page = await owner.scan(keyspace, record, partition, span, limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES)
        if page is None:
            continue
        total += sum(size_from(stored).items for _, stored in page.entries)
        at = page.entries[-1][0][1:] + b"\x00" if page.more else stop
        await asyncio.sleep(0)
    return total
