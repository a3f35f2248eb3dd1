"""Searches of blobs by their tags, in the order of their points: that of their names."""

from __future__ import annotations

import asyncio
import heapq
import operator
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.scattered_calls import read_scattered
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import KIB
from asterism.models.blobs.calls import TagPage
from asterism.models.blobs.layout import point_of, root_key
from asterism.models.blobs.record import BlobRecord, unpack_blob
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.tags_index import name_prefix, value_prefix
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span

_ENTRIES: Final = SliceSize(500, 128 * KIB)
# Records that are read at once, to be compared with the search.
_CANDIDATES: Final = 200

_OPERATORS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class TagTest(NamedTuple):
    """A comparison of a tag with a text by one of the operators = > >= < <=."""

    name: str
    operator: str
    value: str

    def holds(self, tags: Mapping[str, str]) -> bool:
        found = tags.get(self.name)
        return found is not None and _OPERATORS[self.operator](found, self.value)


class TagSearch:
    """Searches of one container."""

    def __init__(self, space: BlobSpace) -> None:
        self._router = space.services.router
        self._keyspace = space.keyspace
        self._now = space.now

    async def find(self, tests: Sequence[TagTest], after: str | None, limit: int) -> TagPage:
        """Return the blobs for which all tests hold, from the name `after` on (that included)."""
        if not tests:
            raise ValueError("a search without a test is a listing")
        start = b"" if after is None else point_of(after)
        found: list[BlobRecord] = []
        async with aclosing(self._candidates(tests, start, limit)) as groups:
            async for points in groups:
                for record in await self._records(points):
                    if all(test.holds(record.tags) for test in tests):
                        if len(found) == limit:
                            return TagPage(found, record.name)
                        found.append(record)
        return TagPage(found, None)

    async def _records(self, points: Sequence[bytes]) -> list[BlobRecord]:
        stored = await read_scattered(self._router, self._keyspace, [(point, root_key(point)) for point in points])
        records = [unpack_blob(value) for value in stored if value is not None]
        now = self._now()
        return [record for record in records if record.exists and not record.is_expired(now)]

    async def _candidates(
        self, tests: Sequence[TagTest], start: bytes, limit: int
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the points of blobs that may be wanted, in order, from the point `start` on."""
        equal = next((test for test in tests if test.operator == "="), None)
        if equal is not None:
            async with aclosing(self._with_value(value_prefix(equal.name, equal.value), start)) as slices:
                async for points in slices:
                    for at in range(0, len(points), _CANDIDATES):
                        yield points[at : at + _CANDIDATES]
            return
        # Entries of a range are in the order of their values: all are read for each group of the smallest points.
        span = _span_of(tests[0])
        while points := await self._smallest(span, start, max(limit + 1, _CANDIDATES)):
            yield points
            start = points[-1] + b"\x00"

    async def _with_value(self, prefix: bytes, start: bytes) -> AsyncGenerator[list[bytes], None]:
        end = after_prefix(prefix)
        at: bytes | None = start
        while at is not None:
            record = self._keyspace.record
            partition = record.map.find(at)
            page = await self._router.scan(
                self._keyspace,
                record,
                partition,
                Span(prefix + at, end),
                limit=_ENTRIES.entries,
                bytes_max=_ENTRIES.bytes,
            )
            if page is None:
                continue
            points = [value for _, value in page.entries]
            if points:
                yield points
            is_last = partition is record.map.ranges[-1]
            at = points[-1] + b"\x00" if page.more else None if is_last else partition.range.end
            await asyncio.sleep(0)

    async def _smallest(self, span: Span, start: bytes, count: int) -> list[bytes]:
        """Return the smallest points from `start` on of the entries of a span."""
        smallest: list[bytes] = []
        at: bytes | None = start
        while at is not None:
            record = self._keyspace.record
            partition = record.map.find(at)
            found = await self._smallest_of(record, partition, span, start, count)
            if found is None:
                continue
            smallest += found
            # Points of later partitions are greater.
            is_last = partition is record.map.ranges[-1] or len(smallest) >= count
            at = None if is_last else partition.range.end
        return smallest[:count]

    async def _smallest_of(
        self, record: KeyspaceRecord, partition: PartitionRange, span: Span, start: bytes, count: int
    ) -> list[bytes] | None:
        """Return the smallest points of a partition; None if another map is in force by now."""
        smallest: list[bytes] = []
        rest: Span | None = span
        while rest is not None:
            page = await self._router.scan(
                self._keyspace, record, partition, rest, limit=_ENTRIES.entries, bytes_max=_ENTRIES.bytes
            )
            if page is None:
                return None
            wanted = {value for _, value in page.entries if value >= start}
            smallest = heapq.nsmallest(count, wanted.union(smallest))
            rest = page.rest(rest)
            await asyncio.sleep(0)
        return smallest


def _span_of(test: TagTest) -> Span:
    """Return the entries of the values that a test on a range of them may accept."""
    name = name_prefix(test.name)
    value = value_prefix(test.name, test.value)
    # A value that was cut begins as its entry does, without the end.
    return Span(value[:-1], after_prefix(name)) if ">" in test.operator else Span(name, after_prefix(value))
