"""Bringing the containers of an older store to the present layout, before they are served.

Layout 2 lists items in the order of their creation, and keeps composite indexes turned so that they ascend by their
first path. A container of layout 1 is walked once, in the order of its keys; every item gets the entries that it lacks,
in batches that expect the items to be as they were read. To do any of it again does no harm, so that a conversion that
was interrupted begins anew; the container's record says when it is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from asterism.documents.indexes import UNTURNED_COMPOSITES, IndexingRules
from asterism.documents.item_changes import apply_changes
from asterism.documents.item_record import StoredItem, unpack_item
from asterism.documents.planning import Place, order_puts
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import ITEMS, number_bytes
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.records import LAYOUT
from asterism.keyspaces.statistics import partition_size
from asterism.partitioning.effective_key import HASH_BYTES, storage_point
from asterism.partitioning.partition_key import PartitionKeyDefinition, extract
from asterism.storage.contract import Batch, Expectation, Span
from asterism.values.item import Item
from asterism.values.json_text import loads_stored

_log = logging.getLogger(__name__)

SLICE_ITEMS = 500
SLICE_BYTES = 4 * 1024 * 1024
_END_OF_LINE = b"\xff"
_LOOK_SECONDS = 0.05
# Of a large container the log tells how far it is, every few seconds.
_ITEMS_BETWEEN_LINES = 100_000


class Conversion:
    """Converts what an older program has stored; done at once for a store that has nothing of it."""

    def __init__(self, catalog: Catalog, owner: Owner) -> None:
        self._catalog = catalog
        self._owner = owner
        # The container's name, items done, items in all. Fault tests stop the process here.
        self.on_progress: Callable[[str, int, int], None] | None = None

    def _due(self) -> list[Keyspace]:
        keyspaces = self._catalog.keyspaces.values()
        # Tables keep neither order entries nor an index.
        return [
            keyspace
            for keyspace in keyspaces
            if keyspace.record.layout < LAYOUT and "indexingPolicy" in keyspace.record.settings
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
        rules = _rules_of_all(record.settings["indexingPolicy"], record.catching_up)
        sizes = [await partition_size(self._owner, keyspace, partition) for partition in record.map.ranges]
        total = sum(size.items for size in sizes)
        done, position = 0, b""
        while position < _END_OF_LINE:
            seen = keyspace.record
            partition = seen.map.find(position)
            span = Span(ITEMS + position, ITEMS + partition.range.end)
            page = await self._owner.scan(keyspace, seen, partition, span, limit=SLICE_ITEMS, bytes_max=SLICE_BYTES)
            if page is None:
                continue
            items = [(key, unpack_item(stored, key)) for key, stored in page.entries]
            changes = [_change_of(key, item, record.definition, rules) for key, item in items]
            await apply_changes(self._owner, keyspace, changes)
            position = page.entries[-1][0][1:] + b"\x00" if page.more else partition.range.end
            done += len(items)
            if done // _ITEMS_BETWEEN_LINES > (done - len(items)) // _ITEMS_BETWEEN_LINES:
                _log.warning("converted %d of %d items of the container %s", done, total, record.name)
            if self.on_progress is not None:
                self.on_progress(record.name, done, total)
        await self._catalog.end_conversion(keyspace)


def _rules_of_all(policy: dict[str, Any], catching_up: Any) -> IndexingRules | None:
    """Return rules that know all entries that items may have now; None where all of them are right already."""
    written = (*catching_up.get("policies", ()), policy)
    composites = [paths for earlier in written for paths in earlier.get("compositeIndexes") or ()]
    if not catching_up and not any(_descends(paths[0]) for paths in composites):
        return None
    return IndexingRules.compile(policy, earlier=[{**earlier, UNTURNED_COMPOSITES: True} for earlier in written])


def _descends(path: dict[str, Any]) -> bool:
    return str(path.get("order", "ascending")).lower() == "descending"


def _change_of(
    key: bytes, stored: StoredItem, definition: PartitionKeyDefinition, rules: IndexingRules | None
) -> Batch:
    reference = key[1:]
    place = Place(_point_of(reference, stored, definition), key, reference)
    change = Batch(expectations=[Expectation(key, stored.version)], puts=order_puts(place, stored.number))
    if rules is not None and stored.is_indexed:
        missing, outdated = rules.changes_due(cast(Item, loads_stored(stored.body)))
        tail = number_bytes(stored.number)
        change.puts += [(term + tail, reference) for term in missing]
        change.deletes += [term + tail for term in outdated]
    return change


def _point_of(reference: bytes, stored: StoredItem, definition: PartitionKeyDefinition) -> bytes:
    if definition.system_key:
        return b""
    if definition.version == 1:
        return storage_point(definition, extract(definition, cast(Item, loads_stored(stored.body))))
    return reference[: HASH_BYTES * len(definition.paths)]
