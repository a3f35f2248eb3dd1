"""Removal of the data of dropped collections and indexes, in bounded batches."""

from __future__ import annotations

import asyncio

from asterism.keyspaces.routing.families import LOGICAL_SIZES, TOTALS_KEY, after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.statistics import size_from
from asterism.models.collections.collection import CollectionServices
from asterism.models.collections.layout import (
    ARRAY_VALUES,
    ITEMS,
    RETRIES,
    SINGLE_VALUES,
    UNIQUE_KEYS,
    collection_index_span,
    index_prefix,
)
from asterism.models.collections.log_entries import CatalogChange
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.rules import CollectionRules
from asterism.storage.contract import Add, Batch, Span

# Entries of one batch of a removal.
_ENTRIES_MAX = 2000
# Documents of a collection that is removed with one batch.
_DOCUMENTS_AT_ONCE = 1000


class CollectionRemover:
    """Removes what a collection or an index without a record has left behind. Repeating it does no harm."""

    def __init__(self, services: CollectionServices) -> None:
        self._services = services

    async def remove(self, keyspace: Keyspace, rules: CollectionRules, *logged: CatalogChange) -> None:
        """Remove the documents of a collection without a shard key, with everything that belongs to them. The changes
        that readers are to see are logged in the last batch."""
        point = rules.fixed_point
        size_key = LOGICAL_SIZES + point
        _, _, (stored,) = await self._services.router.read(keyspace, point, (size_key,))
        size = size_from(stored)
        start, end = collection_index_span(rules.record.number)
        spans = [
            Span(family + point, family + (after_prefix(point) or b"\xff")) for family in (ITEMS, UNIQUE_KEYS, RETRIES)
        ]
        spans.append(Span(start, end))
        if size.items > _DOCUMENTS_AT_ONCE:
            for span in spans:
                await self._empty(keyspace, point, span)
        batch = Batch(range_deletes=spans)
        if size.bytes or size.items:
            deltas = (-size.bytes, -size.items)
            batch.adds += [Add(size_key, deltas), Add(TOTALS_KEY, deltas)]
        if logged:
            self._services.planner.log_catalog(batch, point, logged)
        await self._services.router.apply(keyspace, point, batch)
        self._services.signal.notify()

    async def remove_index(self, keyspace: Keyspace, collection: CollectionRecord, index: IndexRecord) -> None:
        """Remove the entries of an index from every partition. Its unique keys are never read again."""
        for region in (SINGLE_VALUES, ARRAY_VALUES):
            prefix = index_prefix(collection.number, index.number, region)
            for partition in keyspace.record.map.ranges:
                await self._empty(keyspace, partition.range.start, Span(prefix, after_prefix(prefix)))

    async def _empty(self, keyspace: Keyspace, point: bytes, span: Span) -> None:
        while True:
            record = keyspace.record
            partition = record.map.find(point)
            page = await self._services.router.scan(
                keyspace, record, partition, span, limit=_ENTRIES_MAX, bytes_max=4 * 1024 * 1024
            )
            if page is None:
                continue
            if page.entries:
                await self._services.router.apply(keyspace, point, Batch(deletes=[key for key, _ in page.entries]))
            if not page.more:
                return
            await asyncio.sleep(0)
