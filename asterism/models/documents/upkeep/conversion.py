"""Conversion of the containers of an older store to the present layout, before they are served.

Layout 2 lists items in the order of their creation, and keeps composite indexes turned so that they ascend by their
first path. A container of layout 1 is walked once, in the order of its keys; every item gets the entries that it lacks,
in batches that expect the items to be as they were read. To do any of it again does no harm, so that a conversion that
was interrupted restarts; the container's record says when it is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import LAYOUT
from asterism.keyspaces.routing.families import ITEMS, number_bytes
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.scan import scan_line
from asterism.keyspaces.routing.slice_sizes import CONVERTED_ITEMS
from asterism.keyspaces.routing.statistics import partition_size
from asterism.models.documents.codec import DocumentCodec
from asterism.models.documents.container import DocumentServices
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.item_changes import apply_changes
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.models.documents.planner import order_puts
from asterism.partitioning.effective_key import HASH_BYTES, storage_point
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_key import PartitionKeyDefinition, extract
from asterism.storage.contract import Batch, Expectation

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.05
# The log shows the progress of a large container, every few seconds.
_ITEMS_BETWEEN_LINES = 100_000


class StoreConversion:
    """Converts what an older program has stored; without any of that it is done at once."""

    def __init__(self, catalog: Catalog, services: DocumentServices) -> None:
        self._catalog = catalog
        self._router = services.router
        self._profile = services.profile
        # The container's name, items done, items in all. Fault tests stop the process here.
        self.on_progress: Callable[[str, int, int], None] | None = None

    def _due(self) -> list[Keyspace]:
        keyspaces = self._catalog.keyspaces.values()
        # Tables keep neither order entries nor an index.
        return [
            keyspace
            for keyspace in keyspaces
            if keyspace.record.layout < LAYOUT and self._profile.describes(keyspace.record)
        ]

    async def run(self) -> None:
        """Convert every container that needs it. Only the process that leads does so."""
        for keyspace in self._due():
            _log.warning("converting the container %s to the present layout", keyspace.record.name)
            await self._convert(keyspace)

    async def finished(self) -> None:
        """Return when no container is left to be converted, whichever process does it."""
        while self._due():
            await asyncio.sleep(_LOOK_SECONDS)
            await self._catalog.follow()

    async def _convert(self, keyspace: Keyspace) -> None:
        record = keyspace.record
        rules, codec = self._profile.conversion_rules(record), self._profile.codec(record)
        sizes = [await partition_size(self._router, keyspace, partition) for partition in record.map.ranges]
        total = sum(size.items for size in sizes)
        done = 0
        async for _, entries, _ in scan_line(self._router, keyspace, ITEMS, FULL, CONVERTED_ITEMS):
            items = [(key, unpack_item(stored, key)) for key, stored in entries]
            changes = [_change_of(key, item, record.definition, rules, codec) for key, item in items]
            await apply_changes(self._router, keyspace, changes)
            done += len(items)
            if done // _ITEMS_BETWEEN_LINES > (done - len(items)) // _ITEMS_BETWEEN_LINES:
                _log.warning("converted %d of %d items of the container %s", done, total, record.name)
            if self.on_progress is not None:
                self.on_progress(record.name, done, total)
        await self._catalog.end_conversion(keyspace)


def _change_of(
    key: bytes,
    stored: StoredItem,
    definition: PartitionKeyDefinition,
    rules: IndexingRules | None,
    codec: DocumentCodec,
) -> Batch:
    """Return the change that gives an item the entries of the present layout."""
    reference, tail = key[1:], number_bytes(stored.number)
    item_key = ItemKey.of_reference(_point_of(key, stored, definition, codec), reference)
    change = Batch(expectations=[Expectation(key, stored.version)], puts=[*order_puts(item_key, tail)])
    if rules is not None and stored.is_indexed:
        missing, outdated = rules.changes_due(codec.decode(stored.body, key=key))
        change.puts += [(term + tail, reference) for term in missing]
        change.deletes += [term + tail for term in outdated]
    return change


def _point_of(key: bytes, stored: StoredItem, definition: PartitionKeyDefinition, codec: DocumentCodec) -> bytes:
    if definition.system_key:
        return b""
    if definition.version == 1:
        return storage_point(definition, extract(definition, codec.decode(stored.body, key=key)))
    return key[1 : 1 + HASH_BYTES * len(definition.paths)]
