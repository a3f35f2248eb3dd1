"""Documents that expire: by a date in a field, by the time of their last change (`_ts`), or by the collection's rule.

A date in a field is found by its index, and one in `_id` by the order of the documents. The time of the last change and
that of a time series have no index: all documents are read, but only once a minute, as often as MongoDB looks at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from asterism.keyspaces.routing.families import after_prefix
from asterism.models.collections.collection import Collection
from asterism.models.collections.layout import ITEMS, DocumentKey, unpack_document
from asterism.models.collections.records import CollectionRecord
from asterism.models.collections.results import Change
from asterism.models.collections.rules import IndexRules
from asterism.models.collections.scans import ScanQuery
from asterism.models.collections.store import ACCOUNT_PREFIX, CollectionStore
from asterism.storage.contract import Span
from asterism.values.bson.codec import decode
from asterism.values.bson.types import DatetimeMS

# The service's name for the time of the last change of a document.
CHANGE_TIME: Final = "_ts"
EXPIRE_AFTER: Final = "expireAfterSeconds"
_FULL_READ_SECONDS: Final = 60.0
_REST_SECONDS: Final = 0.005
_PAGE_ENTRIES: Final = 500
_PAGE_BYTES: Final = 1024 * 1024


class _DueCondition:
    """Dates at a path up to a moment."""

    __slots__ = ("operator", "path", "value")

    def __init__(self, path: str, value: DatetimeMS) -> None:
        self.path = path
        self.operator = "lte"
        self.value = value


class Expiry:
    """Deletes the documents that are due. Held by the upkeep of the leading process."""

    def __init__(self, store: CollectionStore) -> None:
        self._store = store
        self._services = store.services
        # UUIDs of collections that are read as a whole, with the monotonic time of the last reading.
        self._read_at: dict[bytes, float] = {}

    async def remove_due(self) -> int:
        """Delete what is due; return how many documents that were."""
        removed = 0
        for collection in self._collections():
            record = collection.record
            for index in collection.rules.indexes:
                if EXPIRE_AFTER not in index.record.options or not index.record.is_ready:
                    continue
                cutoff = self._cutoff(index.record.options[EXPIRE_AFTER])
                if list(index.record.key) == [CHANGE_TIME]:
                    if self._is_time_to_read(record):
                        removed += await self._remove_unchanged(collection, cutoff)
                else:
                    removed += await self._remove_by_index(collection, index, cutoff)
            if EXPIRE_AFTER in record.options:
                removed += await self._remove_by_rule(collection, self._cutoff(record.options[EXPIRE_AFTER]))
        return removed

    def _collections(self) -> list[Collection]:
        found: list[Collection] = []
        for database in list(self._store.catalog.databases.values()):
            if not database.account.startswith(ACCOUNT_PREFIX):
                continue
            account = database.account[len(ACCOUNT_PREFIX) :]
            for record in self._store.records(account, database.name):
                if EXPIRE_AFTER in record.options or any(EXPIRE_AFTER in index.options for index in record.indexes):
                    collection = self._store.find(account, database.name, record.name)
                    if collection is not None:
                        found.append(collection)
        return found

    def _cutoff(self, seconds: Any) -> int:
        return self._services.wall_milliseconds() - int(float(seconds) * 1000)

    def _is_time_to_read(self, record: CollectionRecord) -> bool:
        now = self._services.clock.monotonic_seconds()
        last = self._read_at.get(record.uuid)
        if last is not None and now - last < min(_FULL_READ_SECONDS, self._store.expiry_round_seconds * 30):
            return False
        self._read_at[record.uuid] = now
        return True

    async def _remove_by_index(self, collection: Collection, index: IndexRules, cutoff: int) -> int:
        (path,) = list(index.record.key)[:1]
        query = ScanQuery([_DueCondition(path, DatetimeMS(cutoff))], hint=index.record.name)

        def dates_of(document: dict[str, Any]) -> list[Any]:
            keys, _ = index.keys_of(document)
            return [values[0] for values in keys]

        return await self._remove_found(collection, query, dates_of, cutoff)

    async def _remove_by_rule(self, collection: Collection, cutoff: int) -> int:
        """Delete by the date in `_id` of a clustered collection, or by the time of a time series."""
        series = collection.record.options.get("timeseries")
        if series is None:
            query = ScanQuery([_DueCondition("_id", DatetimeMS(cutoff))])
            return await self._remove_found(collection, query, lambda document: [document["_id"]], cutoff)
        if not self._is_time_to_read(collection.record):
            return 0
        field = series["timeField"]
        query = ScanQuery(hint="$natural")
        return await self._remove_found(collection, query, lambda document: [document.get(field)], cutoff)

    async def _remove_found(
        self, collection: Collection, query: ScanQuery, dates_of: Callable[[dict[str, Any]], list[Any]], cutoff: int
    ) -> int:
        def decide(_: DocumentKey, body: bytes | None) -> Change:
            if body is None:
                return Change.keep()
            dates = [int(value) for value in dates_of(decode(body)) if isinstance(value, DatetimeMS)]
            return Change.delete() if dates and min(dates) <= cutoff else Change.keep()

        removed = 0
        scan = await collection.open_scan(query)
        async for found in scan.batches():
            due = [document.key for document in found if decide(document.key, document.body).operation == "delete"]
            if due:
                await collection.change(due, decide)
                removed += len(due)
            await asyncio.sleep(_REST_SECONDS)
        return removed

    async def _remove_unchanged(self, collection: Collection, cutoff: int) -> int:
        """Delete documents whose last change is at or before a moment."""
        removed = 0
        keyspace, rules = collection.keyspace, collection.rules
        prefix = ITEMS + rules.fixed_point
        for partition in keyspace.record.map.ranges:
            span: Span | None = Span(prefix, after_prefix(prefix))
            while span is not None:
                page = await self._services.router.scan(
                    keyspace, keyspace.record, partition, span, limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES
                )
                if page is None:
                    break
                bodies: dict[DocumentKey, bytes] = {}
                for key, stored in page.entries:
                    document = unpack_document(stored, key)
                    if document.changed_at <= cutoff:
                        ends = len(ITEMS) + rules.point_bytes
                        bodies[DocumentKey(key[len(ITEMS) : ends], key[ends:])] = document.body
                if bodies:
                    await collection.change(list(bodies), _same_as(bodies))
                    removed += len(bodies)
                span = page.rest(span)
                await asyncio.sleep(_REST_SECONDS)
        return removed


def _same_as(bodies: dict[DocumentKey, bytes]) -> Callable[[DocumentKey, bytes | None], Change]:
    """Return the decision to delete documents that are still as they were read."""

    def decide(key: DocumentKey, body: bytes | None) -> Change:
        return Change.delete() if body is not None and body == bodies.get(key) else Change.keep()

    return decide
