"""The service's own commands, and those about shards: partitions under MongoDB's names."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from asterism.apis.mongo.arguments import check_database_name, split_namespace
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.shell_text import shell_text
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.rekey.rekeyer import CollectionRekeyer
from asterism.models.collections.results import CollectionExists
from asterism.throughput.budgets import Throughput
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Document

_LEVELS_MAX = 3
# Databases that are no place for documents of clients.
VIRTUAL = frozenset({"admin", "config", "local"})


async def shard_collection(call: Call) -> Document:
    """Give a collection a shard key: a new one, or one with documents, which is re-keyed while clients go on."""
    database, name = _namespace(call)
    pattern = _pattern(call.body.get("key"))
    record = call.store.record(call.account, database, name)
    if record is not None and record.shard_key and record.shard_pattern != pattern:
        raise MongoFailure(
            23, f"{database}.{name} is sharded already, by {shell_text(record.shard_pattern)}. Use reshardCollection."
        )
    await make_sharded(call, database, name, pattern, None, is_unique=call.flag("unique"))
    return {"_t": "ShardCollectionResponse", "collectionsharded": f"{database}.{name}"}


async def reshard_collection(call: Call) -> Document:
    """Give a sharded collection another key, while clients go on."""
    database, name = _namespace(call)
    pattern = _pattern(call.body.get("key"))
    record = call.store.record(call.account, database, name)
    if record is None:
        raise MongoFailure(26, f"Namespace {database}.{name} not found")
    if not record.shard_key:
        raise MongoFailure(118, f"Namespace {database}.{name} is not sharded")
    await make_sharded(call, database, name, pattern, None, is_unique=call.flag("unique"))
    return {}


async def unshard_collection(call: Call) -> Document:
    """Take the shard key from a collection, while clients go on."""
    database, name = _namespace(call)
    record = call.store.record(call.account, database, name)
    if record is None:
        raise MongoFailure(26, f"Namespace {database}.{name} not found")
    if not record.shard_key:
        raise MongoFailure(118, f"Namespace {database}.{name} is not sharded")
    await rekeyer_of(call).rekey(call.account, replace(record, shard_key=(), shard_pattern={}))
    return {}


def _namespace(call: Call) -> tuple[str, str]:
    if type(call.target) is not str:
        raise MongoFailure(14, f'{call.name} needs a namespace: "database.collection"')
    database, name = split_namespace(call.target, path=call.name)
    check_database_name(database)
    if database in VIRTUAL:
        raise MongoFailure(20, f"Collections of the database {database} cannot be sharded")
    return database, name


def _pattern(key: object) -> Document:
    if key is None:
        raise MongoFailure(40414, "BSON field 'key' is missing but a required field")
    if not isinstance(key, dict):
        raise MongoFailure(14, "BSON field 'key' is the wrong type, expected type 'object'")
    check_pattern(key)
    return key


def check_pattern(pattern: Document) -> None:
    """Refuse a pattern that no shard key can have."""
    if not pattern:
        raise MongoFailure(2, "Shard key is empty")
    if len(pattern) > _LEVELS_MAX:
        raise MongoFailure(2, f"A shard key has at most {_LEVELS_MAX} fields")
    if [*pattern.values()].count("hashed") > 1:
        raise MongoFailure(2, "A shard key has at most one hashed field")
    for path, kind in pattern.items():
        if kind != "hashed" and not (is_number(kind) and kind == 1):
            raise MongoFailure(2, f"The shard key field '{path}' must be 1 or \"hashed\"")
        if not all(part and not part.startswith("$") for part in path.split(".")):
            raise MongoFailure(2, f"'{path}' cannot be a shard key")


def rekeyer_of(call: Call) -> CollectionRekeyer:
    rekeyer = call.store.rekeyer
    assert rekeyer is not None, "a served store has its rekeyer"
    return rekeyer


async def make_sharded(
    call: Call,
    database: str,
    name: str,
    pattern: Document,
    throughput: Throughput | None,
    *,
    is_unique: bool = False,
) -> None:
    """Create a collection with a shard key, or give it to one that exists."""
    store, account = call.store, call.account
    if is_unique and "hashed" in pattern.values():
        raise MongoFailure(72, "hashed shard keys cannot be declared unique.")
    record = store.record(account, database, name)
    own = IndexRecord(0, index_name(pattern), dict(pattern), {"unique": True})
    if record is None:
        indexes = (replace(own, number=1),) if is_unique else ()
        with suppress(CollectionExists):
            await store.create(account, database, name, shard_pattern=pattern, throughput=throughput, indexes=indexes)
            return
        record = store.record(account, database, name)
    if record is None:
        raise MongoFailure(26, f"Namespace {database}.{name} was dropped meanwhile")
    if record.is_view:
        raise MongoFailure(166, f"Namespace {database}.{name} is a view, not a collection")
    if record.shard_pattern == pattern:
        return
    if record.options.get("capped"):
        raise MongoFailure(72, f"{database}.{name} is capped: capped collections cannot be sharded")
    for index in record.indexes:
        if index.is_unique and not set(pattern) <= set(index.key):
            raise MongoFailure(
                72,
                f"can't shard collection '{database}.{name}' with unique index on {shell_text(index.key)} and shard "
                f"key {shell_text(pattern)}: a unique index must contain the shard key",
            )
    kept = record.indexes
    next_index = record.next_index
    if is_unique and not any(index.is_unique and set(index.key) == set(pattern) for index in kept):
        kept = (*kept, replace(own, number=next_index))
        next_index += 1
    target = replace(record, shard_key=tuple(pattern), shard_pattern=dict(pattern), indexes=kept, next_index=next_index)
    await rekeyer_of(call).rekey(account, target, throughput=throughput or _own_throughput(call, record))


def _own_throughput(call: Call, record: CollectionRecord) -> Throughput | None:
    """Return the throughput that a sharded collection has for itself, which it keeps under another key."""
    collection = call.store.find(call.account, record.database, record.name)
    if not record.shard_key or collection is None:
        return None
    offer = call.store.catalog.offer_for(collection.keyspace.record.rid)
    return None if offer is None else offer.throughput


def index_name(pattern: Document) -> str:
    return "_".join(f"{path}_{kind}" for path, kind in pattern.items())


async def _done(_: Call) -> Document:
    return {}


COMMANDS = (
    Command("shardCollection", shard_collection, "Create a collection with a shard key.",
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True),
    Command("reshardCollection", reshard_collection, "Give a collection another shard key, while clients go on.",
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True),
    Command("unshardCollection", unshard_collection, "Take the shard key from a collection, while clients go on.",
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True),
    Command("enableSharding", _done, "Nothing: every database may have sharded collections.",
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True),
)  # fmt: skip
