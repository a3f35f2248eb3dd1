"""Reading the index: entries of one path in the order of their values, and the items they stand for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import cast

from asterism.documents.index_paths import PATH_TOKEN_BYTES
from asterism.documents.item_record import StoredItem, unpack_item
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import INDEX, ITEM_NUMBER_BYTES, ITEMS, TOTALS_KEY, number_bytes
from asterism.keyspaces.owner import Reads
from asterism.keyspaces.records import KeyspaceRecord
from asterism.keyspaces.statistics import Size, size_from
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.values.identifiers import Lsn

# One page of index entries is read in about a millisecond.
PAGE_ENTRIES = 500
# Items loaded in one go.
LOAD_ITEMS = 64

_VALUE_AT = 1 + PATH_TOKEN_BYTES


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
    """Reads one partition of a keyspace as the record `seen` knows it. Raises MapChanged when that is over."""

    def __init__(self, owner: Reads, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange) -> None:
        self._owner = owner
        self._keyspace = keyspace
        self._seen = seen
        self.partition = partition
        self.index_lookups = 0

    async def pages(
        self, span: Span, *, limit: int = PAGE_ENTRIES, reverse: bool = False
    ) -> AsyncIterator[list[tuple[bytes, bytes]]]:
        """Yield pages of entries other than items, which are small, as they are stored, in the order of their keys."""
        low, high = span.start, span.end
        more = True
        while more:
            page = await self._owner.scan(
                self._keyspace,
                self._seen,
                self.partition,
                Span(low, high),
                limit=limit,
                bytes_max=None,
                reverse=reverse,
            )
            if page is None:
                raise MapChanged
            yield page.entries
            more = page.more
            if more:
                last = page.entries[-1][0]
                low, high = (low, last) if reverse else (last + b"\x00", high)
                await asyncio.sleep(0)

    async def index_pages(
        self,
        span: IndexSpan,
        *,
        reverse: bool = False,
        after: tuple[bytes, int] | None = None,
        is_inclusive: bool = False,
    ) -> AsyncIterator[list[tuple[bytes, bytes]]]:
        """Yield pages of index entries as they are stored, those behind the (value, number) of `after`, or from there
        on if that is inclusive."""
        head = INDEX + span.token
        low, high = head + span.low, head + span.high
        if after is not None:
            key = head + after[0] + number_bytes(after[1])
            if is_inclusive is reverse:
                key += b"\x00"
            low, high = (low, min(high, key)) if reverse else (max(low, key), high)
        if low >= high:
            return
        async for page in self.pages(Span(low, high), reverse=reverse):
            self.index_lookups += 1
            yield page

    async def entries(
        self,
        span: IndexSpan,
        *,
        reverse: bool = False,
        after: tuple[bytes, int] | None = None,
        is_inclusive: bool = False,
    ) -> AsyncIterator[list[IndexEntry]]:
        """Yield pages of entries in order; see `index_pages`."""
        async for page in self.index_pages(span, reverse=reverse, after=after, is_inclusive=is_inclusive):
            yield [_entry(key, reference) for key, reference in page]

    async def load(self, references: Sequence[bytes]) -> list[tuple[bytes, StoredItem]]:
        """Return the items that exist, in the order of `references`."""
        found: list[tuple[bytes, StoredItem]] = []
        for start in range(0, len(references), LOAD_ITEMS):
            stored = await self.load_stored(references[start : start + LOAD_ITEMS])
            found += [(reference, unpack_item(record, ITEMS + reference)) for reference, record in stored]
            if start:
                await asyncio.sleep(0)
        return found

    async def load_stored(self, references: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return the records of the items that exist, in the order of `references`, which are read at once."""
        partition, _, records = await self._owner.read(
            self._keyspace, references[0], list(map(ITEMS.__add__, references))
        )
        if partition.partition != self.partition.partition:
            raise MapChanged
        # A list of all pairs first: as long as no item is gone, which is nearly always, it is the answer.
        found = list(zip(references, records, strict=True))
        if None in records:
            found = [pair for pair in found if pair[1] is not None]
        return cast("list[tuple[bytes, bytes]]", found)

    async def totals(self) -> tuple[Lsn, Size]:
        """Return the partition's LSN and its size."""
        partition, lsn, (stored,) = await self._owner.read(self._keyspace, self.partition.range.start, (TOTALS_KEY,))
        if partition.partition != self.partition.partition:
            raise MapChanged
        return lsn, size_from(stored)


def _entry(key: bytes, reference: bytes) -> IndexEntry:
    return IndexEntry(key[_VALUE_AT:-ITEM_NUMBER_BYTES], int.from_bytes(key[-ITEM_NUMBER_BYTES:], "big"), reference)
