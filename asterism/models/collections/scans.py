"""Scans of a collection: candidates of a filter in slices, from an index or from the documents themselves.

A scan knows its place by keys and intervals of the line, never by partitions: splits, merges and moves while it is open
leave it where it was. Each slice is of one moment; in a transaction all of them are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from asterism.errors import OwnerNotFound
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import after_prefix, id_key
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.keyspaces.routing.slice_sizes import ITEMS as SLICE
from asterism.models.collections.access import Condition, IndexAccess, choose_access, natural_access
from asterism.models.collections.layout import ARRAY_VALUES, ITEMS, DocumentKey, body_of
from asterism.models.collections.results import FoundDocument, NoSuchCollection, ScanPlan
from asterism.models.collections.rules import Collate, CollectionRules
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import LSN_BYTES, ScanPage, Span
from asterism.throughput import charge
from asterism.values.bson.key_bytes import encode_key, type_span
from asterism.values.bson.types import MaxKey, MinKey, Regex
from asterism.values.identifiers import Lsn

# As many as the first batch of a cursor has.
_FIRST_ENTRIES = 101
_NATURAL = "$natural"


class Verify(Protocol):
    """Raises NoSuchCollection if documents are not to be read by these rules: they are gone, or at another place. A
    reader that has begun may go on with what it began with, as long as that is kept."""

    def __call__(self, rules: CollectionRules, *, has_begun: bool) -> None: ...


class CollectionReads(Protocol):
    """Reads of partitions: the router's, or those of a transaction."""

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]: ...

    async def read_from(
        self, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange, keys: Sequence[bytes]
    ) -> tuple[Lsn, list[bytes | None]] | None: ...

    async def scan(
        self,
        keyspace: Keyspace,
        seen: KeyspaceRecord,
        partition: PartitionRange,
        span: Span,
        *,
        limit: int,
        bytes_max: int | None,
        reverse: bool = False,
    ) -> ScanPage | None: ...


@dataclass(frozen=True, slots=True)
class ScanQuery:
    """The object of a scan. The conditions must hold for every document that the caller accepts."""

    conditions: Sequence[Condition] = ()
    # Paths with the only value that they may have.
    equalities: Mapping[str, Any] = field(default_factory=dict)
    sort: Sequence[tuple[str, int]] = ()
    # The name of an index, or "$natural".
    hint: str | None = None
    collation: Mapping[str, Any] | None = None
    collate: Collate | None = None
    # Partial indexes whose filters the query implies.
    implied: frozenset[str] = frozenset()
    # About how many documents the caller wants; 0: all.
    wanted: int = 0
    is_reversed: bool = False
    # The indexes that may be chosen; None for all.
    allowed: frozenset[str] | None = None
    # With `$natural`: read a capped collection in the order of ids, whether or not that of inserts is complete.
    by_documents: bool = False
    # True if a document that fulfills the conditions is one that the caller accepts.
    is_complete: bool = False


class Scan:
    """An open scan: `plan` says how documents are found, and whether in the order that was asked for."""

    __slots__ = (
        "_access", "_has_begun", "_is_first", "_keyspace", "_point", "_query", "_reads", "_rules", "_settings",
        "_spent", "_verify", "plan",
    )  # fmt: skip

    def __init__(
        self,
        keyspace: Keyspace,
        rules: CollectionRules,
        reads: CollectionReads,
        query: ScanQuery,
        spent: Spent | None,
        verify: Verify | None = None,
    ) -> None:
        """`verify` is asked whenever the settings have changed: the documents may be gone, or at another place."""
        self._verify = verify
        self._has_begun = False
        self._settings = keyspace.record.settings
        self._keyspace = keyspace
        self._rules = rules
        self._reads = reads
        self._query = query
        self._spent = spent
        self._is_first = True
        self._point = rules.pinned_point(query.equalities)
        self._access: IndexAccess | None = None
        self.plan = ScanPlan()

    async def open(self) -> Scan:
        """Choose the access. Returns the scan itself."""
        query, plan = self._query, self.plan
        is_text = any(_has_text(condition.value) for condition in query.conditions if condition.path == "_id")
        ids_usable = query.hint in (None, "_id_") and not (query.collate is not None and is_text)
        if query.hint == _NATURAL:
            plan.is_sorted = not query.sort
            plan.direction = "backward" if query.is_reversed else "forward"
            self._use_natural()
            return self
        if query.hint not in (None, "_id_"):
            self._use(self._choose())
            return self
        if ids_usable and self._id_points() is not None:
            plan.stage, plan.index, plan.key_pattern = "IDHACK", "_id_", {"_id": 1}
            plan.is_sorted = not query.sort
            return self
        access = self._choose() if query.hint is None else None
        if access is not None:
            self._use(access)
            if self.plan.is_sorted and query.sort:
                self.plan.is_sorted = await self._has_exact_order()
            return self
        self._plan_documents(ids_usable)
        if plan.stage == "COLLSCAN":
            self._use_natural()
        return self

    def _use_natural(self) -> None:
        """Read the documents of a capped collection in the order of their inserts."""
        if self._rules.natural is not None and not self._query.by_documents:
            self._access = natural_access(self._rules.natural, is_reversed=self.plan.direction == "backward")

    @property
    def _first_entries(self) -> int:
        return min(self._query.wanted or _FIRST_ENTRIES, SLICE.entries)

    def _choose(self) -> IndexAccess | None:
        query = self._query
        return choose_access(
            self._rules.indexes,
            query.conditions,
            query.sort,
            collation=query.collation,
            implied=query.implied,
            hint=query.hint,
            allowed=query.allowed,
        )

    def _use(self, access: IndexAccess | None) -> None:
        self._access = access
        if access is None:
            self.plan.is_sorted = not self._query.sort
            return
        record = access.rules.record
        plan = self.plan
        plan.stage, plan.index, plan.key_pattern = "IXSCAN", record.name, record.key
        plan.direction = "backward" if access.is_reversed else "forward"
        plan.is_sorted = access.is_sorted and (not self._query.sort or self._point is not None)

    async def _has_exact_order(self) -> bool:
        """Return whether all entries lie in the part of the index that is in order."""
        access = self._access
        assert access is not None, "an index was chosen"
        assert self._point is not None, "only an index of one partition has an order"
        prefix = access.rules.prefix(ARRAY_VALUES)
        while True:
            record = self._keyspace.record
            partition = record.map.find(self._point)
            page = await self._reads.scan(
                self._keyspace, record, partition, Span(prefix, after_prefix(prefix)), limit=1, bytes_max=None
            )
            if page is not None:
                return not page.entries

    def _plan_documents(self, ids_usable: bool) -> None:
        query, plan = self._query, self.plan
        sort = query.sort
        by_id = len(sort) == 1 and sort[0][0] == "_id" and query.collate is None
        plan.is_sorted = not sort or (by_id and self._point is not None)
        if by_id and sort[0][1] < 0 and plan.is_sorted:
            plan.direction = "backward"
        if ids_usable and (by_id or query.hint == "_id_" or self._id_range() is not None):
            plan.stage, plan.index, plan.key_pattern = "IXSCAN", "_id_", {"_id": 1}

    # --- batches ----------------------------------------------------------------------------------------------------

    async def batches(self) -> AsyncGenerator[list[FoundDocument], None]:
        """Yield candidates in slices; other requests run between them."""
        points = self._id_points() if self.plan.stage == "IDHACK" else None
        if points is not None:
            source = self._by_ids(points)
        elif self._access is not None:
            source = self._by_index(self._access)
        else:
            source = self._by_documents()
        try:
            async for found in source:
                self._check_place()
                self.plan.documents_examined += len(found)
                yield found
            self._check_place()
        except OwnerNotFound:
            raise NoSuchCollection(self._rules.record.name) from None
        finally:
            await source.aclose()

    def _check_place(self) -> None:
        """Refuse what was read under other settings, unless the collection is still where it was."""
        settings = self._keyspace.record.settings
        if self._verify is not None and settings is not self._settings:
            self._verify(self._rules, has_begun=self._has_begun)
            self._settings = settings
        self._has_begun = True

    def _id_points(self) -> list[Any] | None:
        for condition in self._query.conditions:
            if condition.path != "_id":
                continue
            if condition.operator == "eq" and not isinstance(condition.value, (list, Regex)):
                return [condition.value]
            if condition.operator == "in" and not any(isinstance(value, (list, Regex)) for value in condition.value):
                return list(condition.value)
        return None

    def _id_range(self) -> tuple[bytes, bytes] | None:
        """Return the key bytes of the ids in question, as a half-open range."""
        low: bytes | None = None
        high: bytes | None = None
        for condition in self._query.conditions:
            value = condition.value
            if condition.path != "_id" or condition.operator not in ("gt", "gte", "lt", "lte"):
                continue
            if isinstance(value, (list, Regex, MinKey, MaxKey, dict)):
                continue
            start, end = type_span(value)
            own = id_key(encode_key(value))
            if condition.operator in ("gt", "gte"):
                start = own
            else:
                end = after_prefix(own) or end
            low = start if low is None else max(low, start)
            high = end if high is None else min(high, end)
        return None if low is None or high is None else (low, high)

    async def _by_ids(self, ids: Sequence[Any]) -> AsyncGenerator[list[FoundDocument], None]:
        keys = sorted({id_key(encode_key(value)) for value in ids})
        if self._point is None:
            async for found in self._by_ids_everywhere(set(keys)):
                yield found
            return
        for first in range(0, len(keys), SLICE.entries):
            part = keys[first : first + SLICE.entries]
            stored_keys = [ITEMS + self._point + key for key in part]
            partition, _, values = await self._reads.read(self._keyspace, self._point, stored_keys)
            found = [
                FoundDocument(DocumentKey(self._point, key), body_of(stored))
                for key, stored in zip(part, values, strict=True)
                if stored is not None
            ]
            self._pay(partition, found, lookups=len(part))
            yield found

    async def _by_ids_everywhere(self, keys: set[bytes]) -> AsyncGenerator[list[FoundDocument], None]:
        """Look for ids in all logical partitions. Each may have its own document of an id."""
        async for found in self._by_documents():
            yield [document for document in found if document.key.id_key in keys]

    async def _by_documents(self) -> AsyncGenerator[list[FoundDocument], None]:
        is_backward = self.plan.direction == "backward" or self._query.is_reversed
        interval = self._interval()
        size = SLICE._replace(entries=self._first_entries)
        point_bytes = self._rules.point_bytes
        keyspace = self._keyspace
        while interval.start < interval.end:
            record = keyspace.record
            partition = record.map.find_before(interval.end) if is_backward else record.map.find(interval.start)
            low, high = max(interval.start, partition.range.start), min(interval.end, partition.range.end)
            page = await self._reads.scan(
                keyspace,
                record,
                partition,
                Span(ITEMS + low, ITEMS + high),
                limit=size.entries,
                bytes_max=size.bytes,
                reverse=is_backward,
            )
            if page is None:
                continue
            found = [
                FoundDocument(DocumentKey(key[1 : 1 + point_bytes], key[1 + point_bytes :]), body_of(stored))
                for key, stored in page.entries
            ]
            if is_backward:
                interval = KeyRange(interval.start, page.entries[-1][0][1:] if page.more else low)
            else:
                interval = KeyRange(page.entries[-1][0][1:] + b"\x00" if page.more else high, interval.end)
            size = SLICE
            self._pay(partition, found, lookups=1)
            yield found
            await asyncio.sleep(0)

    def _interval(self) -> KeyRange:
        point = self._point
        if point is None:
            return FULL
        bounds = self._id_range() if self.plan.index == "_id_" else None
        if bounds is not None:
            return KeyRange(point + bounds[0], point + bounds[1])
        return KeyRange(point, after_prefix(point) or FULL.end)

    async def _by_index(self, access: IndexAccess) -> AsyncGenerator[list[FoundDocument], None]:
        point = self._point
        intervals = [FULL if point is None else KeyRange(point, after_prefix(point) or FULL.end)]
        seen: set[bytes] = set()
        spans = access.single[::-1] if access.is_reversed else access.single
        for span in spans:
            async for found in self._span(span, intervals, access, None):
                yield found
        self.plan.is_exact = False
        for span in access.arrays:
            async for found in self._span(span, intervals, access, seen):
                self.plan.is_multikey = self.plan.is_multikey or (bool(found) and self.plan.stage == "IXSCAN")
                yield found

    async def _span(
        self, span: Span, intervals: Sequence[KeyRange], access: IndexAccess, seen: set[bytes] | None
    ) -> AsyncGenerator[list[FoundDocument], None]:
        """Yield the documents of a span of the index, from each partition of the intervals. `seen` leaves out documents
        that another entry has led to."""
        keyspace, point_bytes = self._keyspace, self._rules.point_bytes
        work: list[tuple[KeyRange, Span]] = [(interval, span) for interval in intervals]
        entries = self._first_entries if self._is_first else SLICE.entries
        while work:
            interval, rest = work.pop()
            record = keyspace.record
            partition = record.map.find(interval.start)
            inside = KeyRange(interval.start, min(interval.end, partition.range.end))
            page = await self._reads.scan(
                keyspace, record, partition, rest, limit=entries, bytes_max=None, reverse=access.is_reversed
            )
            if page is None:
                work.append((interval, rest))
                continue
            references = [reference for _, reference in page.entries]
            if self._rules.is_sharded:
                references = [
                    reference for reference in references if inside.start <= reference[:point_bytes] < inside.end
                ]
            if seen is not None:
                references = [reference for reference in dict.fromkeys(references) if reference not in seen]
                seen.update(references)
            answer = await self._reads.read_from(
                keyspace, record, partition, [ITEMS + reference for reference in references]
            )
            if answer is None:
                if seen is not None:
                    seen.difference_update(references)
                work.append((interval, rest))
                continue
            if inside.end < interval.end:
                work.append((KeyRange(inside.end, interval.end), rest))
            behind = page.rest(rest, reverse=access.is_reversed)
            if behind is not None:
                work.append((inside, behind))
            entries = SLICE.entries
            if self.plan.stage != "COLLSCAN":
                self.plan.keys_examined += len(page.entries)
            found = [
                FoundDocument(DocumentKey(reference[:point_bytes], reference[point_bytes:]), body_of(stored))
                for reference, stored in zip(references, answer[1], strict=True)
                if stored is not None
            ]
            if seen is None:
                is_complete = access.is_exact and self._query.is_complete
                self.plan.is_exact = is_complete and _is_of_moment(page.lsn, *answer)
            self._pay(partition, found, lookups=1)
            yield found
            if work:
                await asyncio.sleep(0)

    def _pay(self, partition: PartitionRange, found: Sequence[FoundDocument], *, lookups: int) -> None:
        bytes_loaded = sum([len(document.body) for document in found])
        self.plan.partitions.add(partition.id)
        if self.plan.stage == "IDHACK" and len(found) == 1 and lookups == 1:
            cost = charge.point_read(bytes_loaded)
        elif self._is_first:
            cost = charge.query(
                index_lookups=lookups,
                items_loaded=len(found),
                bytes_loaded=bytes_loaded,
                results=len(found),
                bytes_returned=bytes_loaded,
            )
        else:
            cost = charge.feed_page(items=len(found), page_bytes=bytes_loaded)
        point = found[0].key.point if found else (self._point or partition.range.start)
        if self._is_first:
            self._keyspace.spend(partition, cost, point)
            self._is_first = False
        else:
            # A scan that was admitted goes on; the next request waits for its cost.
            self._keyspace.owe(partition, cost, point)
        if self._spent is not None:
            self._spent.charge += cost


def _is_of_moment(entries_lsn: Lsn | None, documents_lsn: Lsn, stored: Sequence[bytes | None]) -> bool:
    """Return whether documents are as they were when the index entries that led to them were read."""
    if entries_lsn is None or documents_lsn < entries_lsn:
        return False
    if documents_lsn == entries_lsn:
        return True
    last = entries_lsn.to_bytes(LSN_BYTES, "big")
    return all(document is None or document[:LSN_BYTES] <= last for document in stored)


def _has_text(value: object) -> bool:
    """Return whether a collation may change what a condition with this value holds for."""
    if isinstance(value, (list, tuple)):
        return any(map(_has_text, value))
    return isinstance(value, (str, dict))
