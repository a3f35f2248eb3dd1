"""The service's own commands, and those about shards: partitions under MongoDB's names."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.arguments import as_int, split_namespace
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.languages.mongo.failure import MongoFailure
from asterism.throughput.budgets import Autoscale, Manual, Throughput
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Document, Int64

_LEVELS_MAX = 3


async def shard_collection(call: Call) -> Document:
    """Create a sharded collection; one that exists must be empty."""
    database, name = split_namespace(call.target, path="shardCollection")
    pattern = call.body.get("key")
    if not isinstance(pattern, dict) or not pattern:
        raise MongoFailure(2, "shardCollection needs a key")
    check_pattern(pattern)
    await make_sharded(call, database, name, pattern, None)
    return {"_t": "ShardCollectionResponse", "collectionsharded": f"{database}.{name}"}


def check_pattern(pattern: Document) -> None:
    if len(pattern) > _LEVELS_MAX:
        raise MongoFailure(2, f"A shard key has at most {_LEVELS_MAX} fields")
    for path, kind in pattern.items():
        if kind != "hashed" and not (is_number(kind) and kind == 1):
            raise MongoFailure(2, f"The shard key field '{path}' must be 1 or \"hashed\"")
        if not path or path.startswith("$") or ".." in path or path.startswith(".") or path.endswith("."):
            raise MongoFailure(2, f"'{path}' cannot be a shard key")


async def make_sharded(call: Call, database: str, name: str, pattern: Document, throughput: Throughput | None) -> None:
    store, account = call.store, call.account
    record = store.record(account, database, name)
    if record is not None:
        if record.shard_pattern == pattern:
            return
        collection = store.find(account, database, name)
        if collection is None or record.shard_key or (await collection.size()).items:
            raise MongoFailure(
                20, f"{database}.{name} has documents or another shard key; copy it into a collection with the new key."
            )
        await store.drop(account, database, name)
    options = {} if record is None else record.options
    await store.create(account, database, name, options, shard_pattern=pattern, throughput=throughput)


async def _done(_: Call) -> Document:
    return {}


async def list_shards(call: Call) -> Document:
    return {"shards": [{"_id": "globaldb", "host": call.connection.local_address, "state": 1}]}


async def balancer_status(_: Call) -> Document:
    return {"mode": "full", "inBalancerRound": False, "numBalancerRounds": Int64(0)}


async def shard_map(call: Call) -> Document:
    address = f"globaldb/{call.connection.local_address}"
    return {"map": {"globaldb": address}, "hosts": {call.connection.local_address: "globaldb"}, "connStrings": {}}


async def custom_action(call: Call) -> Document:
    action = call.target
    handler = _ACTIONS.get(action) if isinstance(action, str) else None
    if handler is None:
        raise MongoFailure(2, f"Unknown custom action '{action}'; there are {', '.join(sorted(_ACTIONS))}.")
    answer: Document = await handler(call)
    return answer


def _throughput(call: Call) -> Throughput | None:
    offer, autoscale = call.get("offerThroughput"), call.get("autoScaleSettings")
    if autoscale is not None:
        return Autoscale(as_int(autoscale.get("maxThroughput", 0)))
    return None if offer is None else Manual(as_int(offer))


async def _create_collection(call: Call) -> Document:
    name = call.body.get("collection")
    if not isinstance(name, str):
        raise MongoFailure(2, "CreateCollection needs a collection")
    if call.store.record(call.account, call.database, name) is not None:
        raise MongoFailure(48, f"Collection {call.database}.{name} already exists.")
    shard_key = call.get("shardKey")
    if shard_key is not None:
        pattern = {str(shard_key): "hashed"}
        check_pattern(pattern)
        await make_sharded(call, call.database, name, pattern, _throughput(call))
    else:
        await call.store.create(call.account, call.database, name, {})
    return {}


async def _get_collection(call: Call) -> Document:
    name = call.body.get("collection")
    record = call.store.record(call.account, call.database, str(name))
    if record is None:
        raise MongoFailure(26, f"Collection {call.database}.{name} does not exist.")
    answer: Document = {"database": call.database, "collection": record.name}
    if record.shard_pattern:
        answer["shardKeyDefinition"] = dict.fromkeys(record.shard_key, "hashed")
    collection = call.store.find(call.account, call.database, record.name)
    answer |= _offer(call, None if collection is None else collection.keyspace.record.rid)
    if call.flag("showIndexes"):
        answer["indexes"] = [
            {"v": 1, "key": index.key, "name": index.name, "ns": record.namespace} for index in record.indexes
        ]
    return answer


def _offer(call: Call, rid: bytes | None) -> Document:
    offer = None if rid is None else call.store.catalog.governing_offer(rid)
    if offer is None:
        return {}
    if isinstance(offer.throughput, Autoscale):
        return {"autoScaleSettings": {"maxThroughput": offer.throughput.max_ru_per_second}}
    return {"provisionedThroughput": offer.throughput.ru_per_second}


async def _get_database(call: Call) -> Document:
    found = call.store.database_record(call.account, call.database)
    return {"database": call.database, **_offer(call, None if found is None else found.rid)}


async def _create_database(call: Call) -> Document:
    if call.store.database_record(call.account, call.database) is not None:
        raise MongoFailure(48, f"Database {call.database} already exists.")
    await call.store.create_database(call.account, call.database, _throughput(call))
    return {}


async def _get_change_stream_tokens(call: Call) -> Document:
    from asterism.apis.mongo.change_streams.opening import change_stream_tokens

    name = call.body.get("collection")
    if not isinstance(name, str):
        raise MongoFailure(2, "GetChangeStreamTokens needs a collection")
    return {"resumeAfterTokens": await change_stream_tokens(call, name, call.get("startAtOperationTime"))}


_ACTIONS: dict[str, Any] = {
    "CreateDatabase": _create_database,
    "GetDatabase": _get_database,
    "CreateCollection": _create_collection,
    "GetCollection": _get_collection,
    "GetChangeStreamTokens": _get_change_stream_tokens,
}

COMMANDS = (
    Command("shardCollection", shard_collection, "Create a collection with a shard key.",
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True),
    Command("enableSharding", _done, "Nothing: every database may have sharded collections.",
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True),
    Command("listShards", list_shards, "The set as one shard.", admin_only=True),
    Command("balancerStatus", balancer_status, "Partitions are balanced all the time.", admin_only=True),
    Command("getShardMap", shard_map, "The set as one shard.", admin_only=True),
    Command("customAction", custom_action, "The service's own commands.", access=Access.DATABASE_ADMIN,
            ignores_unknown_fields=True),
)  # fmt: skip
