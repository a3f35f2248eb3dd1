"""`customAction`: the service's own commands for databases and collections with throughput."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from asterism.apis.mongo.arguments import as_int
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.config_database import refuse_writes
from asterism.apis.mongo.errors import as_failure
from asterism.apis.mongo.indexes import check_unique
from asterism.apis.mongo.sharding import check_pattern, make_sharded, rekeyer_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.index_keys import parse_index
from asterism.languages.mongo.indexes.specification import IndexSpec
from asterism.models.collections.records import ID_INDEX, CollectionRecord, IndexRecord
from asterism.throughput.budgets import Autoscale, Manual, Throughput, effective_ru
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Document

# A collection without a shard key is one logical partition, which has no more than a partition's throughput.
UNSHARDED_RU_MAX: Final = 10_000


async def custom_action(call: Call) -> Document:
    action = call.target
    handler = _ACTIONS.get(action) if type(action) is str else None
    try:
        if handler is None:
            raise MongoFailure(2, f"Unknown custom action '{action}'; there are {', '.join(sorted(_ACTIONS))}.")
        return await handler(call)
    except Exception as problem:
        failure = as_failure(problem)
        if failure is None:
            raise
        # The service writes it with a capital letter.
        details = {**failure.details, "errMsg": failure.message}
        raise MongoFailure(failure.code, failure.message, details=details, labels=failure.labels) from None


# --- throughput -----------------------------------------------------------------------------------------------------


def _throughput(call: Call) -> Throughput | None:
    offer, autoscale = call.get("offerThroughput"), call.get("autoScaleSettings")
    if offer is not None and autoscale is not None:
        raise MongoFailure(2, "offerThroughput and autoScaleSettings cannot both be given")
    if autoscale is not None:
        most = autoscale.get("maxThroughput") if isinstance(autoscale, dict) else None
        if not is_number(most):
            raise MongoFailure(2, "autoScaleSettings needs maxThroughput, a number")
        return Autoscale(as_int(most))
    if offer is not None and not is_number(offer):
        raise MongoFailure(14, "offerThroughput must be a number")
    return None if offer is None else Manual(as_int(offer))


def _offer(call: Call, rid: bytes | None) -> Document:
    offer = None if rid is None else call.store.catalog.offer_for(rid)
    if offer is None:
        return {}
    if isinstance(offer.throughput, Autoscale):
        return {"autoScaleSettings": {"maxThroughput": offer.throughput.max_ru_per_second}}
    return {"provisionedThroughput": offer.throughput.ru_per_second}


async def _change_throughput(call: Call, rid: bytes, throughput: Throughput) -> None:
    if not await call.store.replace_throughput(rid, throughput):
        raise MongoFailure(2, "It has no throughput of its own: it shares that of its database.")


# --- databases ------------------------------------------------------------------------------------------------------


async def _create_database(call: Call) -> Document:
    refuse_writes(call.database)
    if call.store.database_record(call.account, call.database) is not None:
        raise MongoFailure(48, f"Database {call.database} already exists.")
    await call.store.create_database(call.account, call.database, _throughput(call))
    return {}


def _database_rid(call: Call) -> bytes:
    found = call.store.database_record(call.account, call.database)
    if found is None:
        raise MongoFailure(26, f"Database {call.database} does not exist.")
    return found.rid


async def _update_database(call: Call) -> Document:
    rid, throughput = _database_rid(call), _throughput(call)
    if throughput is None:
        raise MongoFailure(2, "UpdateDatabase needs offerThroughput or autoScaleSettings")
    await _change_throughput(call, rid, throughput)
    return {}


async def _get_database(call: Call) -> Document:
    return {"database": call.database, **_offer(call, _database_rid(call))}


# --- collections ----------------------------------------------------------------------------------------------------


def _name(call: Call) -> str:
    name = call.body.get("collection")
    if type(name) is not str or not name:
        raise MongoFailure(2, f"{call.target} needs a collection")
    return name


def _record(call: Call) -> CollectionRecord:
    name = _name(call)
    record = call.store.record(call.account, call.database, name)
    if record is None:
        raise MongoFailure(26, f"Collection {call.database}.{name} does not exist.")
    return record


def _indexes(call: Call, record: CollectionRecord | None) -> list[IndexSpec] | None:
    specifications = call.get("indexes")
    if specifications is None:
        return None
    if not isinstance(specifications, list) or not all(isinstance(index, dict) for index in specifications):
        raise MongoFailure(14, "indexes must be an array of documents")
    collation = None if record is None else record.options.get("collation")
    parsed = [parse_index(specification, default_collation=collation) for specification in specifications]
    if not any(list(index.key) == ["_id"] for index in parsed):
        raise MongoFailure(67, "indexes must contain the index of _id")
    return [index for index in parsed if list(index.key) != ["_id"]]


async def _create_collection(call: Call) -> Document:
    refuse_writes(call.database)
    name, throughput, indexes = _name(call), _throughput(call), _indexes(call, None)
    if call.store.record(call.account, call.database, name) is not None:
        raise MongoFailure(48, f"Collection {call.database}.{name} already exists.")
    shard_key = call.get("shardKey")
    if shard_key is not None:
        if type(shard_key) is not str:
            raise MongoFailure(14, "shardKey must be a path as text")
        pattern = {shard_key: "hashed"}
        check_pattern(pattern)
        await make_sharded(call, call.database, name, pattern, throughput)
    else:
        _check_unsharded(throughput)
        await call.store.create(call.account, call.database, name, {})
        await _raise_home(call, throughput)
    if indexes:
        await _create_indexes(call, _record(call), indexes)
    return {}


def _check_unsharded(throughput: Throughput | None) -> None:
    if throughput is not None and effective_ru(throughput) > UNSHARDED_RU_MAX:
        raise MongoFailure(2, f"Above {UNSHARDED_RU_MAX} RU/s a collection needs a shard key.")


async def _raise_home(call: Call, throughput: Throughput | None) -> None:
    """Give the collections without a shard key, which share theirs, at least this throughput."""
    home = call.store.home_keyspace(call.account, call.database)
    offer = None if home is None else call.store.catalog.offer_for(home.record.rid)
    if throughput is None or home is None or offer is None:
        return
    if effective_ru(throughput) > effective_ru(offer.throughput):
        await call.store.replace_throughput(home.record.rid, throughput)


async def _create_indexes(call: Call, record: CollectionRecord, indexes: list[IndexSpec]) -> CollectionRecord:
    for index in indexes:
        check_unique(record, index)
    made = [IndexRecord(0, index.name, index.key, index.options) for index in indexes]
    return await call.store.create_indexes(call.account, record, made)


async def _update_collection(call: Call) -> Document:
    record = _record(call)
    throughput, indexes = _throughput(call), _indexes(call, record)
    if throughput is None and indexes is None:
        raise MongoFailure(2, "UpdateCollection needs offerThroughput, autoScaleSettings or indexes")
    collection = call.store.find(call.account, call.database, record.name)
    if collection is None:
        raise MongoFailure(166, f"Namespace {record.namespace} is a view, not a collection")
    if throughput is not None:
        if not record.shard_key:
            _check_unsharded(throughput)
        await _change_throughput(call, collection.keyspace.record.rid, throughput)
    if indexes is not None:
        await _replace_indexes(call, record, indexes)
    return {}


async def _replace_indexes(call: Call, record: CollectionRecord, indexes: list[IndexSpec]) -> None:
    wanted = {index.name: index for index in indexes}
    gone: list[str] = []
    for index in record.indexes:
        if index.name == ID_INDEX:
            continue
        same = wanted.get(index.name)
        if same is not None and (same.key, same.options) == (index.key, index.options):
            del wanted[index.name]
        else:
            gone.append(index.name)
    if gone:
        record = await call.store.drop_indexes(call.account, record, gone)
    if wanted:
        await _create_indexes(call, record, list(wanted.values()))


async def _get_collection(call: Call) -> Document:
    record = _record(call)
    answer: Document = {"database": call.database, "collection": record.name}
    if record.shard_pattern:
        answer["shardKeyDefinition"] = dict.fromkeys(record.shard_key, "hashed")
    collection = call.store.find(call.account, call.database, record.name)
    if collection is not None:
        answer |= _offer(call, collection.keyspace.record.rid)
    if call.flag("showIndexes"):
        answer["indexes"] = [
            {
                "v": 1,
                "key": index.key,
                "name": index.name,
                "ns": record.namespace,
                **({} if index.is_ready else {"requiresReIndex": True}),
            }
            for index in record.indexes
        ]
    jobs = _rekeys(call, record.name)
    if jobs:
        answer["rekeying"] = jobs[0]
    return answer


def _rekeys(call: Call, name: str) -> list[Document]:
    return [
        {
            "phase": progress.job.phase.value,
            "progress": {"done": progress.copied, "total": progress.total},
            "changesFollowed": progress.followed,
        }
        for progress in rekeyer_of(call).progress()
        if progress.database == call.database and progress.job.name == name and progress.job.is_before_switch
    ]


async def _get_change_stream_tokens(call: Call) -> Document:
    from asterism.apis.mongo.change_streams.opening import change_stream_tokens

    name = _name(call)
    return {"resumeAfterTokens": await change_stream_tokens(call, name, call.get("startAtOperationTime"))}


_ACTIONS: Final[dict[str, Callable[[Call], Awaitable[Document]]]] = {
    "CreateDatabase": _create_database,
    "UpdateDatabase": _update_database,
    "GetDatabase": _get_database,
    "CreateCollection": _create_collection,
    "UpdateCollection": _update_collection,
    "GetCollection": _get_collection,
    "GetChangeStreamTokens": _get_change_stream_tokens,
}

COMMANDS = (
    Command("customAction", custom_action, "The service's own commands.", access=Access.DATABASE_ADMIN,
            ignores_unknown_fields=True),
)  # fmt: skip
