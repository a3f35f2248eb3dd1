"""Documents of a collection with their records, in the order of their keys: for readers that resume at a key.

A position is the reference of a document: the point of its logical partition and its id. It names no partition, so that
it is valid after splits, merges and moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.slice_sizes import ITEMS as SLICE
from asterism.models.collections.layout import ITEMS, DocumentKey, StoredDocument, unpack_document
from asterism.models.collections.scans import CollectionReads
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span


class StoredSlice(NamedTuple):
    """Some documents of one partition, each with its reference."""

    partition: PartitionRange
    documents: list[tuple[bytes, StoredDocument]]


class FoundStored(NamedTuple):
    """The answer of a point read; no document if no key has one."""

    partition: PartitionRange
    lsn: int
    document: StoredDocument | None


async def read_stored(
    reads: CollectionReads, keyspace: Keyspace, point: bytes, keys: Sequence[DocumentKey]
) -> FoundStored:
    """Return the first document that exists of some keys of one logical partition."""
    partition, lsn, values = await reads.read(keyspace, point, [key.stored for key in keys])
    for key, stored in zip(keys, values, strict=True):
        if stored is not None:
            return FoundStored(partition, lsn, unpack_document(stored, key.stored))
    return FoundStored(partition, lsn, None)


async def stored_slices(
    reads: CollectionReads, keyspace: Keyspace, intervals: Sequence[KeyRange], start: bytes = b""
) -> AsyncGenerator[StoredSlice, None]:
    """Yield the documents of intervals of the line, from the reference `start` on; other requests run between slices.

    The intervals are in order and do not overlap. Slices may be empty.
    """
    for interval in intervals:
        low, end = max(interval.start, start), interval.end
        while low < end:
            record = keyspace.record
            partition = record.map.find(low)
            high = min(end, partition.range.end)
            page = await reads.scan(
                keyspace,
                record,
                partition,
                Span(ITEMS + low, ITEMS + high),
                limit=SLICE.entries,
                bytes_max=SLICE.bytes,
            )
            if page is None:
                # The map has changed meanwhile.
                continue
            yield StoredSlice(partition, [(key[1:], unpack_document(stored, key)) for key, stored in page.entries])
            low = page.entries[-1][0][1:] + b"\x00" if page.more else high
            await asyncio.sleep(0)
