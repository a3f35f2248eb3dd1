"""Indexes in the catalog: added and built, dropped with their entries, and both told to readers of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asterism.models.collections.catalog_log import change_of
from asterism.models.collections.index_build import IndexBuilder
from asterism.models.collections.records import ID_INDEX, CollectionRecord, IndexRecord
from asterism.models.collections.results import NoSuchCollection

if TYPE_CHECKING:
    from asterism.models.collections.store import CollectionStore


class IndexCatalog:
    def __init__(self, store: CollectionStore) -> None:
        self._store = store
        self.builder = IndexBuilder(store.services)

    async def create(
        self, account: str, record: CollectionRecord, indexes: Sequence[IndexRecord], *, is_logged: bool = True
    ) -> CollectionRecord:
        """Add indexes and build them on the documents that exist; DuplicateKey for a unique one that cannot be.

        Writers keep a new index from the moment it is in the record; queries use it when it is ready.
        """
        store = self._store
        names = {index.name for index in indexes}

        def add(before: CollectionRecord) -> CollectionRecord:
            kept = tuple(index for index in before.indexes if index.name not in names)
            numbered = tuple(
                replace(index, number=before.next_index + place, is_ready=False) for place, index in enumerate(indexes)
            )
            return replace(before, indexes=(*kept, *numbered), next_index=before.next_index + len(numbered))

        changed = await store.change_record(account, record, add, is_logged=False)
        collection = store.find(account, record.database, record.name)
        if collection is None:
            raise NoSuchCollection(record.name)
        try:
            await collection.keyspace.earlier_work_done()
            await self.builder.build(collection, [index for index in changed.indexes if index.name in names])
        except BaseException:
            await self.drop(account, record, sorted(names), is_logged=False)
            raise

        def finish(before: CollectionRecord) -> CollectionRecord:
            ready = [replace(index, is_ready=True) if index.name in names else index for index in before.indexes]
            return replace(before, indexes=tuple(ready))

        finished = await store.change_record(account, record, finish, is_logged=False)
        if is_logged:
            await self._log(account, "createIndexes", finished, [finished.index(name) for name in sorted(names)])
        return finished

    async def drop(
        self, account: str, record: CollectionRecord, names: Sequence[str], *, is_logged: bool = True
    ) -> CollectionRecord:
        """Drop indexes by name, and remove their entries."""
        store = self._store
        current = store.record(account, record.database, record.name)
        if current is None:
            raise NoSuchCollection(record.name)
        gone = [index for index in current.indexes if index.name in names and index.name != ID_INDEX]

        def without(before: CollectionRecord) -> CollectionRecord:
            numbers = {index.number for index in gone}
            return replace(before, indexes=tuple(index for index in before.indexes if index.number not in numbers))

        changed = await store.change_record(account, record, without, is_logged=False)
        if is_logged:
            await self._log(account, "dropIndexes", changed, gone)
        collection = store.find(account, record.database, record.name)
        if collection is not None:
            await collection.keyspace.earlier_work_done()
            for index in gone:
                await store.remover.remove_index(collection.keyspace, current, index)
        return changed

    async def _log(
        self, account: str, operation: str, record: CollectionRecord, indexes: Sequence[IndexRecord | None]
    ) -> None:
        home = self._store.home_keyspace(account, record.database)
        shown = [{"v": 2, "key": index.key, "name": index.name, **index.options} for index in indexes if index]
        if home is not None and shown:
            await self._store.catalog_log.write(home, record, change_of(operation, record, {"indexes": shown}))
