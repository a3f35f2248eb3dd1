"""Sizes as they are kept with every write: read, never counted by scanning data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import COUNTERS, LOGICAL_SIZES, TOTALS_KEY
from asterism.keyspaces.owner import Owner
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span

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
    return Size() if stored is None else Size(*COUNTERS.unpack(stored))


async def partition_size(owner: Owner, keyspace: Keyspace, partition: PartitionRange) -> Size:
    _, _, (stored,) = await owner.read(keyspace, partition.range.start, (TOTALS_KEY,))
    return size_from(stored)


async def stored_bytes(owner: Owner, keyspace: Keyspace) -> int:
    return sum([(await partition_size(owner, keyspace, one)).bytes for one in keyspace.record.map.ranges])


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
