"""Reading the index: entries of one path in the order of their values, and the items they stand for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from asterism.documents.container import Container
from asterism.documents.index_paths import PATH_TOKEN_BYTES
from asterism.documents.item_record import StoredItem, unpack_item
from asterism.keyspaces.layout import INDEX, ITEMS
from asterism.keyspaces.owner import Reads
from asterism.keyspaces.records import KeyspaceRecord
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span

# One page of index entries is read in about a millisecond.
PAGE_ENTRIES = 500
PAGE_BYTES = 256 * 1024
# Items loaded in one go.
LOAD_ITEMS = 64

_VALUE_AT = 1 + PATH_TOKEN_BYTES
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class IndexSpan:
    """Entries of one path (or composite index) whose value bytes are from `low` up to, not including, `high`."""

    token: bytes
    low: bytes
    high: bytes


@dataclass(frozen=True, slots=True)
class IndexEntry:
    value: bytes
    number: int
    # The item's key without its family.
    reference: bytes


class MapChanged(Exception):
    """The partition was split or merged while it was read: look again where the map now says."""


class PartitionReader:
    """Reads one partition of a container as the record `seen` knows it. Raises MapChanged when that is over."""

    def __init__(self, owner: Reads, container: Container, seen: KeyspaceRecord, partition: PartitionRange) -> None:
        self._owner = owner
        self._container = container
        self._seen = seen
        self.partition = partition
        self.index_lookups = 0

    async def entries(
        self, span: IndexSpan, *, reverse: bool = False, after: tuple[bytes, int] | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        """Pages of entries in order; `after` is the (value, number) of the last one known."""
        head = INDEX + span.token
        low, high = head + span.low, head + span.high
        if after is not None:
            key = head + after[0] + after[1].to_bytes(_NUMBER_BYTES, "big")
            low, high = (low, min(high, key)) if reverse else (max(low, key + b"\x00"), high)
        more = True
        while more:
            page = await self._owner.scan(
                self._container.keyspace,
                self._seen,
                self.partition,
                Span(low, high),
                limit=PAGE_ENTRIES,
                bytes_max=PAGE_BYTES,
                reverse=reverse,
            )
            if page is None:
                raise MapChanged
            self.index_lookups += 1
            yield [_entry(key, reference) for key, reference in page.entries]
            more = page.more
            if more:
                last = page.entries[-1][0]
                low, high = (low, last) if reverse else (last + b"\x00", high)
                await asyncio.sleep(0)

    async def load(self, references: Sequence[bytes]) -> list[tuple[bytes, StoredItem]]:
        """The items there are, in the order of `references`."""
        found: list[tuple[bytes, StoredItem]] = []
        for start in range(0, len(references), LOAD_ITEMS):
            part = references[start : start + LOAD_ITEMS]
            partition, _, values = await self._owner.read(
                self._container.keyspace, part[0], [ITEMS + reference for reference in part]
            )
            if partition.partition != self.partition.partition:
                raise MapChanged
            found += [
                (reference, unpack_item(stored, ITEMS + reference))
                for reference, stored in zip(part, values, strict=True)
                if stored is not None
            ]
            if start:
                await asyncio.sleep(0)
        return found


def _entry(key: bytes, reference: bytes) -> IndexEntry:
    return IndexEntry(key[_VALUE_AT:-_NUMBER_BYTES], int.from_bytes(key[-_NUMBER_BYTES:], "big"), reference)
