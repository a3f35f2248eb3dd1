"""Commands that measure and check collections and databases."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from asterism.apis.mongo.arguments import ARRAY, BOOL, NUMBER, OBJECT, TRUTH, as_int, split_namespace
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule, Target
from asterism.apis.mongo.indexes import describe_index
from asterism.keyspaces.routing.statistics import Size
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import ID_INDEX
from asterism.models.collections.scans import ScanQuery
from asterism.models.collections.verification import Findings, index_size, verify
from asterism.values.bson.types import Binary, Document, Int64

# Missing entries that `validate` names.
_SHOWN_MAX: Final = 100


async def validate(call: Call) -> Document:
    """Read all documents of a collection and look for their index entries; with `metadata` only the record."""
    _check_validate_options(call)
    collection = call.collection()
    if collection is None:
        if call.record() is not None:
            raise MongoFailure(166, f"Cannot validate a view: {call.namespace}")
        raise MongoFailure(26, f"Collection '{call.namespace}' does not exist to validate.")
    record = collection.record
    is_metadata = call.flag("metadata")
    findings = Findings() if is_metadata else await verify(call.store.services, collection)
    broken = {name for name, _ in findings.missing}
    answer: Document = {"ns": call.namespace, "uuid": Binary(record.uuid, 4)}
    if not is_metadata:
        answer |= {
            "nInvalidDocuments": len(findings.invalid),
            "nNonCompliantDocuments": 0,
            "nrecords": findings.documents,
        }
    answer["nIndexes"] = len(record.indexes)
    if not is_metadata:
        answer["keysPerIndex"] = {
            index.name: findings.keys.get(index.name, findings.documents) for index in record.indexes
        }
    return answer | {
        "indexDetails": {
            index.name: {"valid": index.name not in broken, "spec": describe_index(index)} for index in record.indexes
        },
        "valid": findings.is_sound,
        "repaired": False,
        "repairMode": "None",
        "warnings": [],
        "errors": [f"{len(findings.missing)} documents lack index entries"] if findings.missing else [],
        "extraIndexEntries": [],
        "missingIndexEntries": [{"indexName": name, "id": found} for name, found in findings.missing[:_SHOWN_MAX]],
        "corruptRecords": [key.hex() if isinstance(key, bytes) else str(key) for key in findings.invalid],
    }


def _check_validate_options(call: Call) -> None:
    if call.flag("metadata"):
        for name in ("full", "repair", "fixMultikey", "checkBSONConformance", "background", "enforceFastCount"):
            if call.flag(name):
                raise MongoFailure(72, f"Running the validate command with both metadata and {name} is not supported")
    if call.flag("checkBSONConformance") and (call.flag("repair") or call.flag("fixMultikey")):
        raise MongoFailure(72, "checkBSONConformance cannot be combined with repair")
    if call.flag("repair"):
        raise MongoFailure(
            115, "This server does not repair; 'valid' tells whether there is a need. Use reIndex to build indexes."
        )


async def collection_stats(call: Call) -> Document:
    collection = call.collection()
    size = None if collection is None else await collection.size()
    items, stored = (0, 0) if size is None else (size.items, size.bytes)
    scale = _read_scale(call)
    indexes = () if collection is None else collection.record.indexes
    sizes = {} if collection is None else await _index_sizes(call, collection)
    index_bytes = sum(sizes.values())
    answer: Document = {
        "ns": call.namespace,
        "size": stored // scale,
        "count": items,
        "numOrphanDocs": 0,
        "storageSize": stored // scale,
        "nindexes": len(indexes),
        "indexSizes": {name: size // scale for name, size in sizes.items()},
        "totalIndexSize": index_bytes // scale,
        "totalSize": (stored + index_bytes) // scale,
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


async def _index_sizes(call: Call, collection: Collection) -> dict[str, int]:
    """Return the bytes of each index. That of `_id` is the order of the documents, and takes no room."""
    sizes = {ID_INDEX: 0}
    for index in collection.rules.indexes:
        if index is not collection.rules.natural:
            _, sizes[index.record.name] = await index_size(call.store.services, collection, index)
    return sizes


async def data_size(call: Call) -> Document:
    namespace: Any = call.target
    if namespace is None:
        raise MongoFailure(40414, "BSON field 'dataSize.dataSize' is missing but a required field")
    database, name = split_namespace(namespace, path="dataSize.dataSize")
    started = call.context.monotonic_seconds()
    for field in ("keyPattern", "min", "max"):
        if call.get(field):
            raise MongoFailure(115, "dataSize measures whole collections; count documents with a filter instead.")
    most_bytes, most_documents = call.get("maxSize"), call.get("maxObjects")
    collection = call.store.find(call.account, database, name)
    size = Size(0, 0) if collection is None else await collection.size()
    answer: Document = {"size": Int64(size.bytes), "numObjects": Int64(size.items)}
    if (most_bytes is not None and size.bytes > as_int(most_bytes) > 0) or (
        most_documents is not None and size.items > as_int(most_documents) > 0
    ):
        answer["maxReached"] = True
    answer["millis"] = int((call.context.monotonic_seconds() - started) * 1000)
    answer["estimate"] = call.flag("estimate")
    return answer


async def database_hash(call: Call) -> Document:
    """Return a hash of the documents of each collection, in the order of their ids."""
    started = call.context.monotonic_seconds()
    wanted = call.get("collections", [])
    for name in wanted:
        if type(name) is not str:
            raise MongoFailure(2, "collections entries have to be strings")
    hashes: Document = {}
    uuids: Document = {}
    capped: list[str] = []
    for record in call.store.records(call.account, call.database):
        collection = call.store.find(call.account, call.database, record.name)
        if collection is None or (wanted and record.name not in wanted) or record.name.startswith("system."):
            continue
        digest = hashlib.md5(usedforsecurity=False)
        scan = await collection.open_scan(ScanQuery(sort=(("_id", 1),)), spent=call.spent)
        async for found in scan.batches():
            for document in found:
                digest.update(document.body)
        hashes[record.name] = digest.hexdigest()
        uuids[record.name] = Binary(record.uuid, 4)
        if record.options.get("capped"):
            capped.append(record.name)
    whole = hashlib.md5("".join(hashes.values()).encode(), usedforsecurity=False)
    return {
        "host": call.connection.local_address,
        "collections": hashes,
        "capped": capped,
        "uuids": uuids,
        "md5": whole.hexdigest(),
        "timeMillis": int((call.context.monotonic_seconds() - started) * 1000),
    }


def _read_scale(call: Call) -> int:
    scale = as_int(call.get("scale", 1))
    if scale < 1:
        raise MongoFailure(2, f"BSON field '{call.command.name}.scale' value must be >= 1, actual value '{scale}'")
    return scale


_STATS_FIELDS: Final = {"scale": FieldRule(NUMBER), "verbose": FieldRule(), "waitForLock": FieldRule(BOOL),
                        "numericOnly": FieldRule(BOOL), "queryExecStats": FieldRule()}  # fmt: skip

COMMANDS = (
    Command("validate", validate, "Check a collection.", target=Target.COLLECTION, ignores_unknown_fields=True),
    Command("collStats", collection_stats, "Sizes of a collection.", aliases=("collstats",), target=Target.COLLECTION,
            access=Access.READ, fields=_STATS_FIELDS),
    Command("dataSize", data_size, "The size of a collection.", aliases=("datasize",), target=Target.OWN,
            access=Access.READ,
            fields={"keyPattern": FieldRule(OBJECT), "min": FieldRule(OBJECT), "max": FieldRule(OBJECT),
                    "estimate": FieldRule(TRUTH), "maxSize": FieldRule(NUMBER), "maxObjects": FieldRule(NUMBER)}),
    Command("dbHash", database_hash, "Hashes of collections.", aliases=("dbhash",), access=Access.READ,
            fields={"collections": FieldRule(ARRAY)}, ignores_unknown_fields=True),
    Command("dbStats", database_stats, "Sizes of the database.", aliases=("dbstats",), access=Access.READ,
            fields={"scale": FieldRule(NUMBER), "freeStorage": FieldRule(TRUTH)}),
)  # fmt: skip
