"""Changes of an index that exists: its options, and its conversion into a unique one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.results import NoSuchCollection
from asterism.models.collections.scans import ScanQuery
from asterism.models.collections.store import CollectionStore
from asterism.values.bson.codec import decode

# Behind the name of an index while another form of it is built.
_BUILDING = "$building"


async def change_index_options(
    store: CollectionStore, account: str, record: CollectionRecord, index: IndexRecord, options: Mapping[str, Any]
) -> None:
    """Change options that leave the entries of an index as they are."""
    changed = replace(index, options=dict(options))

    def change(before: CollectionRecord) -> CollectionRecord:
        indexes = tuple(changed if kept.number == index.number else kept for kept in before.indexes)
        return replace(before, indexes=indexes)

    await store.change_record(account, record, change)


async def rebuild_index(
    store: CollectionStore, account: str, record: CollectionRecord, index: IndexRecord, options: Mapping[str, Any]
) -> None:
    """Build an index anew with other options beside the old one, which serves queries until it is replaced."""
    building = IndexRecord(0, index.name + _BUILDING, index.key, dict(options))
    changed = await store.indexes.create(account, record, [building], is_logged=False)
    built = changed.index(building.name)
    if built is None:
        raise NoSuchCollection(record.name)
    finished = replace(built, name=index.name)

    def swap(before: CollectionRecord) -> CollectionRecord:
        kept = [other for other in before.indexes if other.number != built.number]
        return replace(before, indexes=tuple(finished if other.number == index.number else other for other in kept))

    await store.change_record(account, record, swap)
    collection = store.find(account, record.database, record.name)
    if collection is not None:
        await collection.keyspace.earlier_work_done()
        await store.remover.remove_index(collection.keyspace, record, index)


async def find_duplicates(collection: Collection, index: IndexRecord) -> list[list[Any]]:
    """Return the ids of documents that have a key of an index in common, by key."""
    rules = next(rules for rules in collection.rules.indexes if rules.record.number == index.number)
    holders: dict[bytes, list[Any]] = {}
    scan = await collection.open_scan(ScanQuery(hint="$natural"))
    async for found in scan.batches():
        for document in found:
            decoded = decode(document.body)
            keys, _ = rules.keys_of(decoded)
            for encoded in {rules.encode(values) for values in keys}:
                holders.setdefault(document.key.point + encoded, []).append(decoded["_id"])
    return [ids for ids in holders.values() if len(ids) > 1]


async def keep_natural_order(
    store: CollectionStore, account: str, record: CollectionRecord, options: Mapping[str, Any]
) -> None:
    """Change the options of a collection into those of a capped one, and note the order of the documents that exist."""
    await store.change_options(account, record, options)
    collection = store.find(account, record.database, record.name)
    if collection is None:
        raise NoSuchCollection(record.name)
    natural = collection.rules.natural
    assert natural is not None, "a capped collection keeps the order of inserts"
    await collection.keyspace.earlier_work_done()
    await store.indexes.builder.build(collection, [natural.record])
