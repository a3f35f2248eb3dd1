"""The database `config`, made of the partition maps: a stock shell shows partitions as chunks, and nodes as shards.

Nothing of it is stored, so nothing of it can be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.records import CollectionRecord
from asterism.partitioning.key_range import FULL, point_to_text
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.bson.types import Binary, Document, Int64, MaxKey, MinKey, ObjectId, Timestamp

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

NAME: Final = "config"
_VERSION: Final = "7.0.0"


def config_documents(call: Call, name: str) -> list[Document] | None:
    """Return the documents of a collection of `config`; None if there is no such collection."""
    made = _COLLECTIONS.get(name)
    return None if made is None else list(made(call))


def refuse_writes(database: str) -> None:
    if database == NAME:
        raise MongoFailure(20, "The database config shows the partitions; it cannot be written to.")


def shard_name(call: Call, partition: PartitionRange) -> str:
    record = call.store.catalog.nodes.records.get(partition.node)
    return str(partition.node) if record is None else record.name


def shards(call: Call) -> list[Document]:
    """Return the nodes of the store, as shards."""
    address = call.connection.local_address
    return [
        {"_id": record.name, "host": f"globaldb/{address}", "state": 1, "topologyTime": Timestamp(1, 0)}
        for record in call.store.catalog.nodes.records.values()
    ]


def sharded_collections(call: Call) -> Iterator[tuple[CollectionRecord, Keyspace]]:
    """Yield the account's sharded collections with the keyspaces that they have for themselves."""
    for database in call.store.databases(call.account):
        for record in call.store.records(call.account, database):
            collection = call.store.find(call.account, database, record.name) if record.shard_key else None
            if collection is not None:
                yield record, collection.keyspace


def bounds_of(record: CollectionRecord, partition: PartitionRange) -> tuple[Document, Document]:
    """Return the least point of a partition and the first behind it. A point is shown as text, as the service does."""
    first, *others = record.shard_key
    low = MinKey() if partition.range.start == FULL.start else point_to_text(partition.range.start)
    high = MaxKey() if partition.range.end == FULL.end else point_to_text(partition.range.end)
    return {first: low, **dict.fromkeys(others, MinKey())}, {
        first: high,
        **dict.fromkeys(others, MaxKey() if partition.range.end == FULL.end else MinKey()),
    }


def _version(call: Call) -> Iterator[Document]:
    yield {"_id": 1, "clusterId": ObjectId(call.services.processes.start_token[:12])}


def _mongos(call: Call) -> Iterator[Document]:
    yield {
        "_id": call.connection.local_address,
        "advisoryHostFQDNs": [],
        "mongoVersion": _VERSION,
        "ping": call.now,
        "up": Int64(int(call.context.monotonic_seconds() - call.context.started_at)),
        "waiting": True,
    }


def _databases(call: Call) -> Iterator[Document]:
    nodes = call.store.catalog.nodes.records
    for name in call.store.databases(call.account):
        home = call.store.home_keyspace(call.account, name)
        primary = shard_name(call, home.record.map.ranges[0]) if home is not None else next(iter(nodes.values())).name
        yield {"_id": name, "primary": primary, "partitioned": True}


def _collections(call: Call) -> Iterator[Document]:
    for record, keyspace in sharded_collections(call):
        yield {
            "_id": record.namespace,
            "lastmodEpoch": _object_id(keyspace.record.rid),
            "timestamp": Timestamp(keyspace.record.map.version, 0),
            "uuid": Binary(record.uuid, 4),
            "key": record.shard_pattern,
            "unique": any(index.is_unique and set(index.key) == set(record.shard_key) for index in record.indexes),
            "noBalance": False,
        }


def _chunks(call: Call) -> Iterator[Document]:
    for record, keyspace in sharded_collections(call):
        for partition in keyspace.record.map.ranges:
            low, high = bounds_of(record, partition)
            yield {
                "_id": _object_id(keyspace.record.rid + partition.id.to_bytes(8, "big")),
                "uuid": Binary(record.uuid, 4),
                "min": low,
                "max": high,
                "shard": shard_name(call, partition),
                "lastmod": Timestamp(keyspace.record.map.version, partition.id),
                "history": [],
            }


def _settings(_: Call) -> Iterator[Document]:
    yield {"_id": "balancer", "mode": "full", "stopped": False}
    yield {"_id": "autosplit", "enabled": True}


def _nothing(_: Call) -> Iterator[Document]:
    return iter(())


def _object_id(name: bytes) -> ObjectId:
    return ObjectId(blake2b(name, digest_size=12).digest())


_COLLECTIONS: Final[dict[str, Callable[[Call], Iterator[Document] | list[Document]]]] = {
    "version": _version,
    "shards": shards,
    "mongos": _mongos,
    "databases": _databases,
    "collections": _collections,
    "chunks": _chunks,
    "settings": _settings,
    "tags": _nothing,
    "locks": _nothing,
    "changelog": _nothing,
    "actionlog": _nothing,
}
