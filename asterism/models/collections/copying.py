"""Copies of collections: all documents and indexes of one in another database, or in another form."""

from __future__ import annotations

from dataclasses import replace

from asterism.models.collections.collection import Collection
from asterism.models.collections.records import ID_INDEX, CollectionRecord, IndexRecord
from asterism.models.collections.results import CollectionExists, NoSuchCollection
from asterism.models.collections.scans import ScanQuery
from asterism.models.collections.store import CollectionStore


async def copy_documents(source: Collection, target: Collection) -> int:
    """Insert all documents of a collection into another, in their natural order; return how many."""
    copied = 0
    scan = await source.open_scan(ScanQuery(hint="$natural"))
    async for found in scan.batches():
        bodies = [document.body for document in found]
        if bodies:
            result = await target.insert(bodies, allow_missing_shard_key=True)
            for problem in result.problems:
                raise problem.error
            copied += result.inserted
    return copied


async def move_collection(
    store: CollectionStore,
    account: str,
    source: CollectionRecord,
    to_database: str,
    to_name: str,
    *,
    drop_target: bool,
) -> None:
    """Move a collection to another database. CollectionExists if the target exists and may not be dropped.

    The source takes another name first: a client that writes to the old one meanwhile makes a new collection, as after
    the move, and no document is lost.
    """
    if store.record(account, to_database, to_name) is not None:
        if not drop_target:
            raise CollectionExists(to_name)
        await store.drop(account, to_database, to_name)
    hidden_name = f"system.move.{store.services.random_bytes(6).hex()}"
    hidden = await store.rename(account, source.database, source.name, hidden_name)
    try:
        indexes = [replace(index) for index in source.indexes if index.name != ID_INDEX]
        await _copy(store, account, hidden, to_database, to_name, indexes)
    except BaseException:
        await store.drop(account, to_database, to_name)
        await store.rename(account, source.database, hidden_name, source.name)
        raise
    await store.drop(account, source.database, hidden_name)


async def _copy(
    store: CollectionStore,
    account: str,
    source: CollectionRecord,
    to_database: str,
    to_name: str,
    indexes: list[IndexRecord],
) -> None:
    target = await store.create(
        account, to_database, to_name, source.options, shard_pattern=source.shard_pattern or None
    )
    if indexes:
        await store.create_indexes(account, target, indexes)
    old = store.find(account, source.database, source.name)
    new = store.find(account, to_database, to_name)
    if old is None or new is None:
        raise NoSuchCollection(source.name)
    await copy_documents(old, new)
