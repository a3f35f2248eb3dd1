"""Scans in slices: over an interval of the line, which follow splits, merges and moves, or over a span of keys.

A read of the embedded store never suspends, so a scan that was not divided would keep all other requests waiting. Each
slice is of one moment, not all of them together. Reads are those of the router, relaxed or not, or of a snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import Reads
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import ScanPage, Span

Entry = tuple[bytes, bytes]


# --- intervals of the line ------------------------------------------------------------------------------------------


class LineSlice(NamedTuple):
    """Entries of one partition in the order of their keys, or reversed; there may be none although some are left.

    `rest` is the part of the interval that was not read; it is empty at the end of the interval. A scan resumes there,
    on whatever map is in force by then.
    """

    partition: PartitionRange
    entries: list[Entry]
    rest: KeyRange


async def read_slice(
    reads: Reads, keyspace: Keyspace, family: bytes, interval: KeyRange, size: SliceSize, *, reverse: bool = False
) -> LineSlice:
    """Return the first slice of the entries that a key-routed family has in an interval; the last if `reverse`.

    The interval must not be empty.
    """
    start, end = interval.start, interval.end
    assert start < end, "an empty interval has no slice"
    while True:
        record = keyspace.record
        partition = record.map.find_before(end) if reverse else record.map.find(start)
        low, high = max(start, partition.range.start), min(end, partition.range.end)
        span = Span(family + low, family + high)
        page = await reads.scan(
            keyspace, record, partition, span, limit=size.entries, bytes_max=size.bytes, reverse=reverse
        )
        if page is None:
            # The interval is looked up again on the map that is in force now.
            continue
        if reverse:
            high = page.entries[-1][0][1:] if page.more else low
            return LineSlice(partition, page.entries, KeyRange(start, high))
        low = page.entries[-1][0][1:] + b"\x00" if page.more else high
        return LineSlice(partition, page.entries, KeyRange(low, end))


async def scan_line(
    reads: Reads, keyspace: Keyspace, family: bytes, interval: KeyRange, size: SliceSize, *, reverse: bool = False
) -> AsyncGenerator[LineSlice, None]:
    """Yield every entry that a key-routed family has in an interval, in slices, in order; other requests run after
    each slice (K6)."""
    rest = interval
    while rest.start < rest.end:
        found = await read_slice(reads, keyspace, family, rest, size, reverse=reverse)
        rest = found.rest
        yield found
        await asyncio.sleep(0)


# --- spans of one partition -----------------------------------------------------------------------------------------


async def scan_span(read_page: Callable[[Span], Awaitable[ScanPage]], span: Span) -> AsyncGenerator[list[Entry], None]:
    """Yield the entries of a span, page by page; other requests run between the pages."""
    rest: Span | None = span
    while rest is not None:
        page = await read_page(rest)
        yield page.entries
        rest = page.rest(rest)
        if rest is not None:
            await asyncio.sleep(0)
