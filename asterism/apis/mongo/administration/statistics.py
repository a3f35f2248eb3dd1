"""Commands that measure and check collections and databases."""

from __future__ import annotations

from typing import Final

from asterism.apis.mongo.arguments import BOOL, NUMBER, TRUTH, as_int
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule, Target
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document, Int64

_VALIDATE_FIELDS: Final = {
    name: FieldRule(TRUTH)
    for name in ("full", "repair", "fixMultikey", "background", "checkBSONConformance", "metadata", "collHash",
                 "enforceFastCount", "logDiagnostics")
} | {"hashPrefixes": FieldRule(("array",)), "revealHashedIds": FieldRule(("array",))}  # fmt: skip


async def validate(call: Call) -> Document:
    collection = call.collection()
    if collection is None:
        if call.record() is not None:
            raise MongoFailure(166, f"Cannot validate a view: {call.namespace}")
        raise MongoFailure(26, f"Collection '{call.namespace}' does not exist to validate.")
    size = await collection.size()
    indexes = collection.record.indexes
    return {
        "ns": call.namespace,
        "nInvalidDocuments": 0,
        "nrecords": size.items,
        "nIndexes": len(indexes),
        "keysPerIndex": {index.name: size.items for index in indexes},
        "indexDetails": {index.name: {"valid": True} for index in indexes},
        "valid": True,
        "repaired": False,
        "warnings": [],
        "errors": [],
        "extraIndexEntries": [],
        "missingIndexEntries": [],
        "corruptRecords": [],
    }


async def collection_stats(call: Call) -> Document:
    collection = call.collection()
    size = None if collection is None else await collection.size()
    items, stored = (0, 0) if size is None else (size.items, size.bytes)
    scale = _read_scale(call)
    indexes = () if collection is None else collection.record.indexes
    answer: Document = {
        "ns": call.namespace,
        "size": stored // scale,
        "count": items,
        "numOrphanDocs": 0,
        "storageSize": stored // scale,
        "nindexes": len(indexes),
        "indexSizes": {index.name: 0 for index in indexes},
        "totalIndexSize": 0,
        "totalSize": stored // scale,
        "scaleFactor": scale,
        "capped": bool(collection is not None and collection.record.options.get("capped")),
    }
    if items:
        answer["avgObjSize"] = stored // items
    return answer


async def database_stats(call: Call) -> Document:
    records = call.store.records(call.account, call.database)
    scale = _read_scale(call)
    stored = items = indexes = 0
    for record in records:
        collection = call.store.find(call.account, call.database, record.name)
        if collection is not None:
            size = await collection.size()
            stored, items, indexes = stored + size.bytes, items + size.items, indexes + len(record.indexes)
    views = sum(record.is_view for record in records)
    answer: Document = {
        "db": call.database,
        "collections": Int64(len(records) - views),
        "views": Int64(views),
        "objects": Int64(items),
        "avgObjSize": stored / items if items else 0.0,
        "dataSize": stored / scale,
        "storageSize": stored / scale,
        "indexes": Int64(indexes),
        "indexSize": 0.0,
        "totalSize": stored / scale,
        "scaleFactor": Int64(scale),
        "fsUsedSize": 0.0,
        "fsTotalSize": 0.0,
    }
    if call.flag("freeStorage"):
        # Pages that are free belong to the store as a whole, not to a database.
        answer |= {"freeStorageSize": 0.0, "indexFreeStorageSize": 0.0, "totalFreeStorageSize": 0.0}
    return answer


def _read_scale(call: Call) -> int:
    scale = as_int(call.get("scale", 1))
    if scale < 1:
        raise MongoFailure(2, f"BSON field '{call.command.name}.scale' value must be >= 1, actual value '{scale}'")
    return scale


_STATS_FIELDS: Final = {"scale": FieldRule(NUMBER), "verbose": FieldRule(), "waitForLock": FieldRule(BOOL),
                        "numericOnly": FieldRule(BOOL), "queryExecStats": FieldRule()}  # fmt: skip

COMMANDS = (
    Command("validate", validate, "Check a collection.", target=Target.COLLECTION, fields=_VALIDATE_FIELDS),
    Command("collStats", collection_stats, "Sizes of a collection.", aliases=("collstats",), target=Target.COLLECTION,
            access=Access.READ, fields=_STATS_FIELDS),
    Command("dbStats", database_stats, "Sizes of the database.", aliases=("dbstats",), access=Access.READ,
            fields={"scale": FieldRule(NUMBER), "freeStorage": FieldRule(NUMBER)}),
)  # fmt: skip
