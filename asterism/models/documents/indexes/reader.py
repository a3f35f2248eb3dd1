"""Reads of the index: entries of one path in the order of their values, and the items they stand for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import cast

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import (
    CHANGE_LOG,
    INDEX,
    ITEM_NUMBER_BYTES,
    ITEMS,
    TOTALS_KEY,
    after_prefix,
    behind_lsn,
    number_bytes,
)
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import Reads
from asterism.keyspaces.routing.statistics import Size, size_from
from asterism.models.documents.indexes.paths import PATH_TOKEN_BYTES
from asterism.models.documents.item_position import Numbered
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import ScanPage, Span
from asterism.values.identifiers import Lsn

# One page of index entries is read in about a millisecond.
PAGE_ENTRIES = 500
# Pages that begin small grow: each has this many times the entries of the previous one.
_GROWTH = 4
# Items loaded at once.
LOAD_ITEMS = 64

# The offset of the value in the key of an index entry.
VALUE_AT = 1 + PATH_TOKEN_BYTES


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
    """The partition was split or merged while it was read: retry with the current map."""


class PartitionReader:
    """A reader of one partition of a keyspace, as the record `seen` has it. Raises MapChanged once the map differs."""

    def __init__(self, router: Reads, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange) -> None:
        self._router = router
        self._keyspace = keyspace
        self._seen = seen
        self.partition = partition
        self.index_lookups = 0

    async def pages(
        self, span: Span, *, limit: int | None = None, reverse: bool = False, first_limit: int | None = None
    ) -> AsyncIterator[list[tuple[bytes, bytes]]]:
        """Yield pages of entries other than items, which are small, as they are stored, in the order of their keys.
        With a `first_limit` the first page has that many entries, and pages grow to the limit, by default
        `PAGE_ENTRIES`."""
        low, high = span.start, span.end
        more = True
        limit_max = limit or PAGE_ENTRIES
        limit = min(first_limit or limit_max, limit_max)
        while more:
            page = await self._scan(Span(low, high), limit=limit, reverse=reverse)
            yield page.entries
            more = page.more
            if more:
                limit = min(_GROWTH * limit, limit_max)
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
        first_limit: int | None = None,
    ) -> AsyncIterator[list[tuple[bytes, bytes]]]:
        """Yield pages of index entries as they are stored, those behind the (value, number) of `after`, or from there
        on if `is_inclusive`."""
        head = INDEX + span.token
        low, high = head + span.low, head + span.high
        if after is not None:
            key = head + after[0] + number_bytes(after[1])
            if is_inclusive is reverse:
                key += b"\x00"
            low, high = (low, min(high, key)) if reverse else (max(low, key), high)
        if low >= high:
            return
        async for page in self.pages(Span(low, high), reverse=reverse, first_limit=first_limit):
            self.index_lookups += 1
            yield page

    async def index_page(
        self, span: IndexSpan, *, limit: int, reverse: bool = False
    ) -> tuple[list[tuple[bytes, bytes]], bool]:
        """Return the first entries of a span as they are stored, and True if there are more."""
        head = INDEX + span.token
        page = await self._scan(Span(head + span.low, head + span.high), limit=limit, reverse=reverse)
        self.index_lookups += 1
        return page.entries, page.more

    async def _scan(self, span: Span, *, limit: int, reverse: bool) -> ScanPage:
        page = await self._router.scan(
            self._keyspace, self._seen, self.partition, span, limit=limit, bytes_max=None, reverse=reverse
        )
        if page is None:
            raise MapChanged
        return page

    async def entries(
        self,
        span: IndexSpan,
        *,
        reverse: bool = False,
        after: tuple[bytes, int] | None = None,
        is_inclusive: bool = False,
        first_limit: int | None = None,
    ) -> AsyncIterator[list[IndexEntry]]:
        """Yield pages of entries in order; see `index_pages`."""
        async for page in self.index_pages(
            span, reverse=reverse, after=after, is_inclusive=is_inclusive, first_limit=first_limit
        ):
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
        partition, _, records = await self._router.read(
            self._keyspace, references[0], list(map(ITEMS.__add__, references))
        )
        if partition.partition != self.partition.partition:
            raise MapChanged
        # A list of all pairs first: if no item is gone, as is nearly always the case, it is the result.
        found = list(zip(references, records, strict=True))
        if None in records:
            found = [pair for pair in found if pair[1] is not None]
        return cast("list[tuple[bytes, bytes]]", found)

    async def changes_since(self, lsn: Lsn, *, changes_max: int) -> list[Numbered] | None:
        """Return the items that were created or changed after `lsn` and exist, as the change log lists them; None if
        they are more than `changes_max`."""
        changed: list[Numbered] = []
        async for page in self.pages(Span(behind_lsn(CHANGE_LOG, lsn), after_prefix(CHANGE_LOG))):
            changed += [key[-ITEM_NUMBER_BYTES:] + reference for key, reference in page]
            if len(changed) > changes_max:
                return None
        return changed

    async def totals(self) -> tuple[Lsn, Size]:
        """Return the partition's LSN and its size."""
        partition, lsn, (stored,) = await self._router.read(self._keyspace, self.partition.range.start, (TOTALS_KEY,))
        if partition.partition != self.partition.partition:
            raise MapChanged
        return lsn, size_from(stored)


def _entry(key: bytes, reference: bytes) -> IndexEntry:
    return IndexEntry(key[VALUE_AT:-ITEM_NUMBER_BYTES], int.from_bytes(key[-ITEM_NUMBER_BYTES:], "big"), reference)
