"""The stages `$collStats` and `$indexStats`: numbers about a collection and its indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.arguments import as_int
from asterism.apis.mongo.data.views import Source
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.numbers import int_of_size
from asterism.values.bson.types import Document, Int64

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call


async def collection_statistics(call: Call, source: Source, specification: dict[str, Any]) -> list[Document]:
    """Return the one document of $collStats."""
    namespace = f"{source.database}.{source.name}"
    found: Document = {"ns": namespace, "host": call.connection.local_address, "localTime": call.context.now()}
    collection = source.collection
    if collection is None:
        if "storageStats" in specification or "count" in specification:
            raise MongoFailure(26, f"$collStats: the collection {namespace} does not exist")
        return [found]
    size = await collection.size()
    if "latencyStats" in specification:
        nothing = {"latency": Int64(0), "ops": Int64(0)}
        found["latencyStats"] = {kind: dict(nothing) for kind in ("reads", "writes", "commands", "transactions")}
    if "storageStats" in specification:
        scale = as_int((specification["storageStats"] or {}).get("scale") or 1)
        record = collection.record
        found["storageStats"] = {
            "size": int_of_size(size.bytes // scale),
            "count": int_of_size(size.items),
            **({"avgObjSize": int_of_size(size.bytes // size.items)} if size.items else {}),
            "numOrphanDocs": 0,
            "storageSize": int_of_size(size.bytes // scale),
            "freeStorageSize": 0,
            "capped": bool(record.options.get("capped")),
            "nindexes": len(record.indexes),
            "indexBuilds": [index.name for index in record.indexes if not index.is_ready],
            "totalIndexSize": 0,
            "totalSize": int_of_size(size.bytes // scale),
            "indexSizes": {index.name: 0 for index in record.indexes},
            "scaleFactor": scale,
        }
    if "count" in specification:
        found["count"] = int_of_size(size.items)
    if "queryExecStats" in specification:
        found["queryExecStats"] = {"collectionScans": {"total": Int64(0), "nonTailable": Int64(0)}}
    return [found]


def index_statistics(call: Call, source: Source) -> list[Document]:
    """Return a document for each index."""
    record = source.record
    if record is None:
        return []
    return [
        {
            "name": index.name,
            "key": index.key,
            "host": call.connection.local_address,
            "accesses": {"ops": Int64(0), "since": call.context.now()},
            "spec": {"v": 2, "key": index.key, "name": index.name, **index.options},
            **({} if index.is_ready else {"building": True}),
        }
        for index in record.indexes
    ]
