"""Commands about chunks, which are partitions here: really split, merged and moved."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.arguments import split_namespace
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.config_database import shards
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.rules import CollectionRules
from asterism.partitioning.effective_key import border_at
from asterism.partitioning.key_range import FULL, point_from_text
from asterism.partitioning.partition_map import PartitionRange
from asterism.partitioning.split_merge import SplitPlan, SplitReason
from asterism.values.bson.types import MISSING, Document, Int64, MaxKey, MinKey


async def split(call: Call) -> Document:
    """Split a partition: where its data is best halved, or at the place of a key."""
    keyspace, rules = _sharded(call)
    reshaper = call.store.services.reshaper
    middle = call.get("middle")
    if middle is not None:
        point = _place(rules, middle)
        partition = keyspace.record.map.find(point)
        if partition.range.start == point:
            raise MongoFailure(2, "The partition begins at this key already")
        at = border_at(keyspace.record.definition, point)
        job = await reshaper.split_at(keyspace, SplitPlan(partition.id, at, SplitReason.DEMAND))
    else:
        job = await reshaper.split(keyspace, _partition(call, keyspace, rules).id)
    await reshaper.finished(job)
    return {}


async def merge_chunks(call: Call) -> Document:
    """Merge all partitions between two bounds, as `config.chunks` shows them."""
    keyspace, rules = _sharded(call)
    low, high = _bounds(call, rules)
    reshaper = call.store.services.reshaper
    inside = [part for part in keyspace.record.map.ranges if low <= part.range.start and part.range.end <= high]
    if len(inside) < 2:
        raise MongoFailure(2, "There are no two partitions between these bounds")
    while len(inside) > 1:
        job = await reshaper.merge(keyspace, inside[0].id, inside[1].id)
        await reshaper.finished(job)
        inside = [part for part in keyspace.record.map.ranges if low <= part.range.start and part.range.end <= high]
    return {}


async def move_chunk(call: Call) -> Document:
    """Move a partition to another node of the fleet."""
    keyspace, rules = _sharded(call)
    wanted = call.get("to", call.get("toShard"))
    nodes = call.store.catalog.nodes.records.values()
    node = next((record for record in nodes if record.name == wanted), None)
    if node is None:
        raise MongoFailure(70, f"Shard {wanted} not found; there are {', '.join(record.name for record in nodes)}")
    partition = _partition(call, keyspace, rules)
    if partition.node != node.number:
        job = await call.services.mover.move(keyspace, partition.id, node)
        await call.store.services.reshaper.finished(job)
    return {"millis": Int64(0)}


def _sharded(call: Call) -> tuple[Keyspace, CollectionRules]:
    if type(call.target) is not str:
        raise MongoFailure(14, f'{call.name} needs a namespace: "database.collection"')
    database, name = split_namespace(call.target, path=call.name)
    collection = call.store.find(call.account, database, name)
    if collection is None:
        raise MongoFailure(26, f"Namespace {database}.{name} not found")
    rules = collection.rules
    if not rules.is_sharded:
        raise MongoFailure(118, f"Namespace {database}.{name} is not sharded")
    return collection.keyspace, rules


def _partition(call: Call, keyspace: Keyspace, rules: CollectionRules) -> PartitionRange:
    found = call.get("find")
    if found is not None:
        return keyspace.record.map.find(_place(rules, found))
    return keyspace.record.map.find(_bounds(call, rules)[0])


def _bounds(call: Call, rules: CollectionRules) -> tuple[bytes, bytes]:
    bounds = call.get("bounds")
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(isinstance(bound, dict) for bound in bounds):
        raise MongoFailure(2, f"{call.name} needs 'find', or 'bounds' with the least key and the first one behind")
    return _bound(rules, bounds[0]), _bound(rules, bounds[1])


def _bound(rules: CollectionRules, bound: Document) -> bytes:
    """Return the point that a bound of `config.chunks` spells."""
    value: Any = bound.get(rules.record.shard_key[0])
    if isinstance(value, MinKey):
        return FULL.start
    if isinstance(value, MaxKey):
        return FULL.end
    if type(value) is not str:
        raise MongoFailure(2, "A bound is MinKey, MaxKey or the text that config.chunks shows")
    return point_from_text(value)


def _place(rules: CollectionRules, key: Any) -> bytes:
    """Return the point of a shard key."""
    if not isinstance(key, dict):
        raise MongoFailure(14, "A shard key is a document")
    values = rules.shard_values(key)
    if any(value is MISSING for value in values):
        values = [key.get(path, MISSING) for path in rules.record.shard_key]
    if any(value is MISSING for value in values):
        raise MongoFailure(2, f"The key must have {', '.join(rules.record.shard_key)}")
    return rules.point_at(values)


# --- shards ---------------------------------------------------------------------------------------------------------


async def list_shards(call: Call) -> Document:
    return {"shards": shards(call)}


async def shard_map(call: Call) -> Document:
    address = call.connection.local_address
    names = [shard["_id"] for shard in shards(call)]
    return {
        "map": dict.fromkeys(names, f"globaldb/{address}"),
        "hosts": {address: names[0]},
        "connStrings": {f"globaldb/{address}": names[0]},
    }


async def balancer_status(call: Call) -> Document:
    progress = call.store.services.reshaper.progress
    return {"mode": "full", "inBalancerRound": bool(progress), "numBalancerRounds": Int64(0)}


async def start_balancer(_: Call) -> Document:
    """Answer that partitions are balanced: that never stops."""
    return {}


async def stop_balancer(_: Call) -> Document:
    raise MongoFailure(
        115,
        "Partitions split as they grow, whatever is asked: a full one could not be written to.",
    )


COMMANDS = (
    Command("split", split, "Split a partition.", access=Access.CLUSTER_ADMIN, ignores_unknown_fields=True),
    Command("mergeChunks", merge_chunks, "Merge partitions.", access=Access.CLUSTER_ADMIN,
            ignores_unknown_fields=True),
    Command("moveChunk", move_chunk, "Move a partition to another node.", aliases=("moveRange",),
            access=Access.CLUSTER_ADMIN, ignores_unknown_fields=True),
    Command("listShards", list_shards, "The nodes of the store.", admin_only=True),
    Command("getShardMap", shard_map, "The nodes of the store.", admin_only=True),
    Command("balancerStatus", balancer_status, "Partitions are balanced all the time.", admin_only=True),
    Command("balancerStart", start_balancer, "Nothing: partitions are balanced all the time.", admin_only=True,
            access=Access.CLUSTER_ADMIN, ignores_unknown_fields=True),
    Command("balancerStop", stop_balancer, "Refused: splits cannot be stopped.", admin_only=True,
            access=Access.CLUSTER_ADMIN, ignores_unknown_fields=True),
)  # fmt: skip
