"""Documents of a collection as the items that queries run over, and the places that a query or a key names."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from itertools import product
from typing import Any, Final, cast

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.layout import StoredDocument
from asterism.models.collections.pages import stored_slices
from asterism.models.collections.rules import CollectionRules
from asterism.models.collections.scans import CollectionReads
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKey, PartitionKeyDefinition
from asterism.reading.runnable import Runnable
from asterism.reading.source_page import SourceDocument, SourceSlice
from asterism.values.bson.codec import decode
from asterism.values.bson.json_view import item_of, values_of_text
from asterism.values.bson.types import MISSING
from asterism.values.resource_ids import DocumentLinks
from asterism.values.undefined import UNDEFINED

# A filter with a longer list of keys reads everything.
_PINNED_KEYS_MAX: Final = 1000


class CollectionSource:
    """The documents of a collection within intervals of the line, as items."""

    def __init__(self, reads: CollectionReads, keyspace: Keyspace, intervals: Sequence[KeyRange], rid: bytes) -> None:
        """`rid` is the resource id that items of the collection have as their owner's."""
        self.keyspace = keyspace
        self._reads = reads
        self._intervals = intervals
        self._links = DocumentLinks(rid)

    async def slices(self, start: bytes) -> AsyncGenerator[SourceSlice, None]:
        found = stored_slices(self._reads, self.keyspace, self._intervals, start)
        try:
            async for partition, documents in found:
                yield SourceSlice(partition, [self._document(place, stored) for place, stored in documents])
        finally:
            await found.aclose()

    def _document(self, place: bytes, stored: StoredDocument) -> SourceDocument:
        return SourceDocument(place, stored.number, len(stored.body), partial(item_from, self._links, stored))


def item_from(links: DocumentLinks, stored: StoredDocument) -> dict[str, Any]:
    rid = links.rid_text(stored.number)
    return item_of(
        decode(stored.body),
        rid=rid,
        self_link=links.self_link(rid),
        etag=f'"{stored.version.hex()}-{stored.place:04x}"',
        seconds=stored.changed_at // 1000,
    )


# --- places ---------------------------------------------------------------------------------------------------------


def pinned_keys(definition: PartitionKeyDefinition, query: Runnable) -> list[PartitionKey] | None:
    """Return the partition keys, or prefixes of them, that matching items can have; None for any key."""
    if definition.system_key or not query.reads_items:
        return None
    keys = query.pinned_partition_keys(definition.segments)
    if keys is None or len(keys) > _PINNED_KEYS_MAX or not all(map(_is_key, keys)):
        return None
    return [cast(PartitionKey, key) for key in keys]


def _is_key(key: Sequence[object]) -> bool:
    return all(part is None or part is UNDEFINED or isinstance(part, str | int | float) for part in key)


def intervals_of_keys(rules: CollectionRules, keys: Sequence[PartitionKey]) -> list[KeyRange]:
    """Return the places of documents whose shard keys JSON shows as one of these keys, in order."""
    if not rules.is_sharded:
        return [rules.whole_interval()]
    intervals = {rules.interval_at(values) for key in keys for values in product(*map(_stored_values, key))}
    return sorted(intervals, key=lambda interval: interval.start)


def intervals_of_query(
    rules: CollectionRules, definition: PartitionKeyDefinition, query: Runnable, within: Sequence[KeyRange]
) -> list[KeyRange]:
    """Return the parts of the intervals that a query must read: those of the keys that its filter names, or all."""
    keys = pinned_keys(definition, query)
    return list(within) if keys is None else common_parts(intervals_of_keys(rules, keys), within)


def common_parts(intervals: Sequence[KeyRange], others: Sequence[KeyRange]) -> list[KeyRange]:
    parts = [(max(first.start, other.start), min(first.end, other.end)) for first in intervals for other in others]
    return [KeyRange(start, end) for start, end in sorted(parts) if start < end]


def _stored_values(part: object) -> list[Any]:
    if part is UNDEFINED:
        return [MISSING]
    return list(values_of_text(part)) if isinstance(part, str) else [part]
