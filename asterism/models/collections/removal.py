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
    image_key,
    index_prefix,
    pack_image,
    unpack_document,
)
from asterism.models.collections.log_entries import LOG_KEPT_SECONDS, CatalogChange
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.rules import CollectionRules
from asterism.storage.contract import Add, Batch, Span

# Entries of one batch of a removal.
_ENTRIES_MAX = 2000
# Documents of a collection that is removed with one batch.
_DOCUMENTS_AT_ONCE = 1000
# Bodies that are kept of a dropped collection; those of a larger one are no longer there for readers that come later.
_IMAGE_BYTES_MAX = 4 * 1024 * 1024


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
            if 0 < size.items <= _DOCUMENTS_AT_ONCE and size.bytes <= _IMAGE_BYTES_MAX:
                await self._keep_images(keyspace, point, spans[0], batch)
            self._services.planner.log_catalog(batch, point, logged)
        await self._services.router.apply(keyspace, point, batch)
        self._services.signal.notify()

    async def _keep_images(self, keyspace: Keyspace, point: bytes, documents: Span, batch: Batch) -> None:
        """Keep the bodies of a small collection for readers of changes that come later, as if each were deleted."""
        now = self._services.wall_milliseconds()
        page = None
        while page is None:
            record = keyspace.record
            page = await self._services.router.scan(
                keyspace, record, record.map.find(point), documents, limit=2 * _DOCUMENTS_AT_ONCE, bytes_max=None
            )
        for key, stored in page.entries:
            document = unpack_document(stored, key)
            if document.changed_at >= now - LOG_KEPT_SECONDS * 1000:
                image = image_key(document.version, place=document.place, number=document.number)
                batch.puts.append((image, pack_image(point, now, document.body)))

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
