"""The stages `$collStats` and `$indexStats`: numbers about a collection and its indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.config_database import shard_name
from asterism.apis.mongo.data.views import Source
from asterism.apis.mongo.usage import CollectionUse
from asterism.keyspaces.routing.statistics import Size
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.describing import read_scale
from asterism.models.collections.collection import Collection
from asterism.values.bson.numbers import int_of_size
from asterism.values.bson.types import DatetimeMS, Document, Int64

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Sections that only a collection has.
_OF_COLLECTIONS = ("storageStats", "count", "queryExecStats")


async def collection_statistics(call: Call, source: Source, name: str, specification: dict[str, Any]) -> list[Document]:
    """Return the document of $collStats, of a sharded collection one for each shard. `name` is the command's
    collection or view."""
    namespace = f"{source.database}.{name}"
    found: Document = {"ns": namespace, "host": call.connection.local_address, "localTime": call.context.now()}
    use = call.context.usage.of(call.account, source.database, name)
    if "latencyStats" in specification:
        with_histogram = bool(specification["latencyStats"].get("histograms"))
        found["latencyStats"] = {
            kind: latency.to_document(with_histogram=with_histogram) for kind, latency in use.latencies.items()
        }
    wanted = [section for section in _OF_COLLECTIONS if section in specification]
    if not wanted:
        return [found]
    if source.is_view:
        raise MongoFailure(166, f"Namespace {namespace} is a view, not a collection: it has no {wanted[0]}")
    collection = source.collection
    if collection is None:
        raise MongoFailure(26, f"$collStats: the collection {namespace} does not exist")
    if "queryExecStats" in specification:
        found["queryExecStats"] = _executions(use)
    if not collection.record.shard_key:
        return [{**found, **_of_size(collection, await collection.size(), specification)}]
    sizes: dict[str, Size] = {}
    for partition, size in await collection.partition_sizes():
        shard = shard_name(call, partition)
        before = sizes.get(shard, Size(0, 0))
        sizes[shard] = Size(before.bytes + size.bytes, before.items + size.items)
    return [{"shard": shard, **found, **_of_size(collection, size, specification)} for shard, size in sizes.items()]


def _of_size(collection: Collection, size: Size, specification: dict[str, Any]) -> Document:
    found: Document = {}
    if "storageStats" in specification:
        found["storageStats"] = _storage(collection, size, read_scale(specification["storageStats"].get("scale")))
    if "count" in specification:
        found["count"] = int_of_size(size.items)
    return found


def _executions(use: CollectionUse) -> Document:
    scans = Int64(use.scans)
    return {"collectionScans": {"total": scans, "nonTailable": scans}}


def _storage(collection: Collection, size: Size, scale: int) -> Document:
    record = collection.record
    shown: Document = {
        "size": int_of_size(size.bytes // scale),
        "count": int_of_size(size.items),
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
    if size.items:
        shown["avgObjSize"] = int_of_size(size.bytes // size.items)
    if record.options.get("capped"):
        shown["maxSize"] = int_of_size(int(record.options.get("size", 0)) // scale)
        shown["max"] = record.options.get("max", 0)
    return shown


def index_statistics(call: Call, source: Source) -> list[Document]:
    """Return a document for each index, with the commands of this process that have used it."""
    record = source.record
    if record is None:
        return []
    use = call.context.usage.of(call.account, record.database, record.name)
    context = call.context
    started = DatetimeMS(int(context.now()) - int((context.monotonic_seconds() - context.started_at) * 1000))
    return [
        {
            "name": index.name,
            "key": index.key,
            "host": call.connection.local_address,
            "accesses": {"ops": Int64(use.index_uses[record.uuid, index.number]), "since": started},
            "spec": {"v": 2, "key": index.key, "name": index.name, **index.options},
            **({} if index.is_ready else {"building": True}),
        }
        for index in record.indexes
    ]
