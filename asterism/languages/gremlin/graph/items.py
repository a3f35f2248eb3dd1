"""Reads of the items of a graph: by their keys, by index entries, or in a scan; each partition is paid for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asterism.keyspaces.routing.families import INDEX, ITEMS
from asterism.keyspaces.routing.scan import read_slice
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.keyspaces.routing.statistics import items_between
from asterism.languages.gremlin.graph.profile import Ledger, RunningOperation
from asterism.languages.gremlin.graph.routing import IndexRoute, KeySpan
from asterism.languages.gremlin.graph.together import AT_ONCE, together
from asterism.limits import KIB
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.item_record import HEADER_BYTES, tag_and_body
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.throughput import charge

# The first batch is small, so that `limit(1)` reads little; each has twice the items of the previous one.
_BATCH_ITEMS_MIN: Final = 32
_BATCH_ITEMS_MAX: Final = 512
_BATCH_BYTES: Final = 512 * KIB
# Items that are read by one call: about a millisecond.
_LOAD_ITEMS: Final = 512

Document = dict[str, Any]


@dataclass(slots=True)
class _Walk:
    """The rest of a span of index entries, of the items in an interval of the line."""

    interval: KeyRange
    low: bytes
    high: bytes


class ItemReads:
    """Reads for one traversal. Items that have expired are left out everywhere."""

    __slots__ = ("_codec", "_keyspace", "_ledger", "_router", "container")

    def __init__(self, container: Container, services: DocumentServices, ledger: Ledger) -> None:
        self.container = container
        self._codec = container.codec
        self._keyspace = container.keyspace
        self._router = services.router
        self._ledger = ledger

    # --- by key -----------------------------------------------------------------------------------------------------

    async def read_points(self, references: Sequence[bytes], kind: str) -> list[Document | None]:
        """Return the items with these references (point and id key), in their order; None for one that is not there.
        A partition is asked once."""
        operation = self._ledger.begin(kind)
        try:
            if len(references) == 1:
                (reference,) = references
                partition, _, (stored,) = await self._router.read(self._keyspace, reference, (ITEMS + reference,))
                documents, size = self._decoded(references, (0,), (stored,))
                cost = charge.MISS if documents[0] is None else charge.point_read(size)
                self._pay(operation, partition, reference, cost, int(size > 0), size)
                return documents
            return await self._read_many(references, operation)
        finally:
            operation.end()

    async def _read_many(self, references: Sequence[bytes], operation: RunningOperation) -> list[Document | None]:
        found: list[Document | None] = [None] * len(references)
        for partition, places, records in await self.read_stored(references):
            documents, size_bytes = self._decoded(references, places, records)
            for place, document in zip(places, documents, strict=True):
                found[place] = document
            count = len(documents) - documents.count(None)
            # The page of a query that finds three items costs less than three point reads.
            cost = _query(lookups=1, items=count, size_bytes=size_bytes)
            if len(places) <= 2:
                cost = min(cost, sum(self._point_read(record) for record in records))
            self._pay(operation, partition, references[places[0]], cost, count, size_bytes)
        return found

    async def read_stored(
        self, references: Sequence[bytes]
    ) -> list[tuple[PartitionRange, list[int], list[bytes | None]]]:
        """Return the stored records by partition: their places in `references`, and the records, None for one that is
        absent. Nothing is paid yet."""
        answers: list[tuple[PartitionRange, list[int], list[bytes | None]]] = []
        left: Sequence[int] = range(len(references))
        while left:
            record = self._keyspace.record
            groups: dict[int, tuple[PartitionRange, list[int]]] = {}
            for place in left:
                partition = record.map.find(references[place])
                group = groups.get(partition.id)
                if group is None:
                    groups[partition.id] = partition, [place]
                else:
                    group[1].append(place)
            parts = [
                (partition, places[start : start + _LOAD_ITEMS])
                for partition, places in groups.values()
                for start in range(0, len(places), _LOAD_ITEMS)
            ]
            reads = await together(
                [
                    self._router.read_from(
                        self._keyspace, record, partition, [ITEMS + references[place] for place in places]
                    )
                    for partition, places in parts
                ]
            )
            again: list[int] = []
            for (partition, places), read in zip(parts, reads, strict=True):
                if read is None:
                    again += places
                else:
                    answers.append((partition, places, read[1]))
            left = again
        return answers

    def _decoded(
        self, references: Sequence[bytes], places: Sequence[int], records: Sequence[bytes | None]
    ) -> tuple[list[Document | None], int]:
        """Return the documents of records, None for those that clients do not see, and the bytes of all bodies. The
        record of a place is that of the reference there."""
        codec, planner = self._codec, self.container.planner
        parse, expires = codec.parse, planner.time_to_live is not None
        documents: list[Document | None] = []
        size_bytes = 0
        # Written out: a traversal loads hundreds of items.
        for place, record in zip(places, records, strict=True):
            if record is None:
                documents.append(None)
                continue
            body = record[HEADER_BYTES:]
            if expires and not planner.is_visible(body):
                documents.append(None)
                continue
            try:
                document: Document = parse(body)
            except codec.parse_error:
                # Says what is wrong with the record.
                key = ITEMS + references[place]
                document = codec.decode(tag_and_body(record, key)[1], key=key)
            documents.append(document)
            size_bytes += len(body)
        return documents, size_bytes

    def _point_read(self, record: bytes | None) -> float:
        if record is None:
            return charge.MISS
        return charge.point_read(len(record) - HEADER_BYTES)

    def _pay(
        self,
        operation: RunningOperation,
        partition: PartitionRange,
        point: bytes,
        cost: float,
        count: int,
        size_bytes: int,
    ) -> None:
        operation.add(partition, count=count, size_bytes=size_bytes, charge=cost)
        self._ledger.spend(partition, cost, point)

    # --- by an index ------------------------------------------------------------------------------------------------

    async def look_up(
        self, route: IndexRoute, intervals: Sequence[KeyRange], kind: str, *, one_by_one: bool = False
    ) -> AsyncIterator[list[Document]]:
        """Yield the items in these intervals of the line that have an entry in the index, each once; batches grow.

        `one_by_one`: ask one partition after the other, for callers that need few results.
        """
        pages_at_once = 1 if one_by_one else AT_ONCE
        batch_items = _BATCH_ITEMS_MIN
        seen: set[bytes] | None = set() if len(route.spans) > 1 else None
        with self._keyspace.in_flight:
            walks = self._walks(intervals, route.spans)
            while walks:
                current, walks = walks[:pages_at_once], walks[pages_at_once:]
                operation = self._ledger.begin(kind, route.name)
                pages = await together([self._index_page(walk, batch_items) for walk in current])
                references: dict[bytes, None] = {}
                lookups: dict[int, tuple[PartitionRange, int]] = {}
                further: list[_Walk] = []
                for partition, entries, rest in pages:
                    references.update(dict.fromkeys(entries))
                    lookups[partition.id] = partition, lookups.get(partition.id, (partition, 0))[1] + 1
                    further += rest
                walks = further + walks
                new = [reference for reference in references if seen is None or reference not in seen]
                if seen is not None:
                    seen.update(new)
                found = await self._load_for_query(new, lookups, operation)
                operation.end()
                if found:
                    yield found
                batch_items = min(2 * batch_items, _BATCH_ITEMS_MAX)
                await asyncio.sleep(0)

    def _walks(self, intervals: Sequence[KeyRange], spans: Sequence[KeySpan]) -> list[_Walk]:
        ranges = self._keyspace.record.map
        return [
            _Walk(
                KeyRange(max(interval.start, partition.range.start), min(interval.end, partition.range.end)),
                INDEX + span.low,
                INDEX + span.high,
            )
            for interval in intervals
            for partition in ranges.overlapping(interval)
            for span in spans
        ]

    async def _index_page(self, walk: _Walk, limit: int) -> tuple[PartitionRange, list[bytes], list[_Walk]]:
        """Return the references of some entries, and the walks that are left of this one: several after a split."""
        interval = walk.interval
        while True:
            record = self._keyspace.record
            partition = record.map.find(interval.start)
            page = await self._router.scan(
                self._keyspace, record, partition, Span(walk.low, walk.high), limit=limit, bytes_max=None
            )
            if page is not None:
                break
        end = min(interval.end, partition.range.end)
        entries = [reference for _, reference in page.entries if interval.start <= reference < end]
        rest: list[_Walk] = []
        if page.more:
            rest.append(_Walk(KeyRange(interval.start, end), page.entries[-1][0] + b"\x00", walk.high))
        if end < interval.end:
            rest.append(_Walk(KeyRange(end, interval.end), walk.low, walk.high))
        return partition, entries, rest

    async def references_in(
        self, interval: KeyRange, spans: Sequence[KeySpan], *, limit: int | None = None
    ) -> tuple[list[bytes], list[PartitionRange]]:
        """Return the references of the entries in an interval, and the partition of each page that was read."""
        found: list[bytes] = []
        partitions: list[PartitionRange] = []
        walks = [_Walk(interval, INDEX + span.low, INDEX + span.high) for span in spans]
        size = _BATCH_ITEMS_MAX if limit is None else min(limit, _BATCH_ITEMS_MAX)
        while walks:
            partition, entries, rest = await self._index_page(walks.pop(), size)
            partitions.append(partition)
            found += entries
            if limit is not None and len(found) >= limit:
                return found[:limit], partitions
            walks += rest
            if rest:
                size = _BATCH_ITEMS_MAX
                await asyncio.sleep(0)
        return found, partitions

    async def load_looked_up(
        self,
        references: Sequence[bytes],
        lookups: Sequence[PartitionRange],
        operation: RunningOperation,
    ) -> dict[bytes, Document]:
        """Return the items by their references. `lookups` has a partition for each index lookup that found them."""
        counted: dict[int, tuple[PartitionRange, int]] = {}
        for partition in lookups:
            counted[partition.id] = partition, counted.get(partition.id, (partition, 0))[1] + 1
        found: dict[bytes, Document] = {}
        await self._load_into(found, references, counted, operation)
        return found

    async def _load_for_query(
        self,
        references: Sequence[bytes],
        lookups: dict[int, tuple[PartitionRange, int]],
        operation: RunningOperation,
    ) -> list[Document]:
        found: dict[bytes, Document] = {}
        await self._load_into(found, references, lookups, operation)
        return list(found.values())

    async def _load_into(
        self,
        found: dict[bytes, Document],
        references: Sequence[bytes],
        lookups: dict[int, tuple[PartitionRange, int]],
        operation: RunningOperation,
    ) -> None:
        """Load items, and pay for them together with the lookups, partition by partition."""
        for partition, places, records in await self.read_stored(references):
            documents, size_bytes = self._decoded(references, places, records)
            count = 0
            for place, document in zip(places, documents, strict=True):
                if document is not None:
                    found[references[place]] = document
                    count += 1
            _, looked_up = lookups.pop(partition.id, (partition, 1))
            cost = _query(lookups=looked_up, items=count, size_bytes=size_bytes)
            self._pay(operation, partition, references[places[0]], cost, count, size_bytes)
        for partition, looked_up in lookups.values():
            cost = _query(lookups=looked_up, items=0, size_bytes=0)
            self._pay(operation, partition, partition.range.start, cost, 0, 0)

    # --- all of an interval -----------------------------------------------------------------------------------------

    async def count_items(self, interval: KeyRange) -> int:
        """Return the number of items in an interval, from the statistics that are kept with every write."""
        return await items_between(self._router, self._keyspace, interval.start, interval.end)

    async def scan(self, interval: KeyRange, kind: str) -> AsyncIterator[list[Document]]:
        """Yield all items of an interval in the order of their keys; batches grow."""
        rest, batch_items = interval, _BATCH_ITEMS_MIN
        while rest.start < rest.end:
            operation = self._ledger.begin(kind)
            size = SliceSize(batch_items, _BATCH_BYTES)
            part = await read_slice(self._router, self._keyspace, ITEMS, rest, size)
            rest = part.rest
            references = [key[1:] for key, _ in part.entries]
            documents, size_bytes = self._decoded(
                references, range(len(references)), [stored for _, stored in part.entries]
            )
            found = [document for document in documents if document is not None]
            cost = _query(lookups=0, items=len(found), size_bytes=size_bytes)
            self._pay(operation, part.partition, interval.start, cost, len(found), size_bytes)
            operation.end()
            if found:
                yield found
            batch_items = min(2 * batch_items, _BATCH_ITEMS_MAX)
            await asyncio.sleep(0)


def _query(*, lookups: int, items: int, size_bytes: int) -> float:
    """Return the price of the page of a query in one partition."""
    return charge.query(
        index_lookups=lookups,
        items_loaded=items,
        bytes_loaded=size_bytes,
        results=items,
        bytes_returned=size_bytes,
    )
