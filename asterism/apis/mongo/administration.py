"""Commands about databases and collections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from asterism.apis.mongo.arguments import NUMBER, TRUTH, as_bool, as_int, check_new_collection_name, split_namespace
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Answer, Command, FieldRule, Target
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.models.collections.records import ID_INDEX, CollectionRecord
from asterism.models.collections.results import CollectionExists
from asterism.values.bson.kinds import is_number
from asterism.values.bson.order import equal
from asterism.values.bson.types import Binary, Document, Int64

_OBJECT, _TEXT, _BOOL, _ARRAY = ("object",), ("string",), ("bool",), ("array",)


# --- databases ------------------------------------------------------------------------------------------------------


async def list_databases(call: Call) -> Document:
    store = call.store
    matches = _matcher(call)
    shown: list[Document] = []
    total = 0
    for name in store.databases(call.account):
        size = 0
        for record in store.records(call.account, name):
            collection = store.find(call.account, name, record.name)
            size += 0 if collection is None else (await collection.size()).bytes
        entry: Document = {"name": name, "sizeOnDisk": Int64(size), "empty": False}
        if call.flag("nameOnly"):
            entry = {"name": name}
        if matches(entry):
            shown.append(entry)
            total += size
    if call.flag("nameOnly"):
        return {"databases": shown}
    return {"databases": shown, "totalSize": Int64(total), "totalSizeMb": Int64(total // (1024 * 1024))}


async def drop_database(call: Call) -> Document:
    if call.database in ("admin", "config", "local"):
        raise MongoFailure(20, f"Dropping the '{call.database}' database is prohibited.")
    dropped = await call.store.drop_database(call.account, call.database)
    return {"dropped": call.database} if dropped else {}


def _matcher(call: Call) -> Any:
    wanted = call.get("filter")
    if not wanted:
        return lambda _: True
    return compile_filter(wanted, new_context(call.now, call.cluster_time)).matches


# --- collections ----------------------------------------------------------------------------------------------------

_CREATE_FIELDS = {
    "capped": FieldRule(TRUTH),
    "autoIndexId": FieldRule(TRUTH),
    "size": FieldRule(NUMBER),
    "max": FieldRule(NUMBER),
    "viewOn": FieldRule(_TEXT),
    "pipeline": FieldRule(_ARRAY),
    "collation": FieldRule(_OBJECT),
    "validator": FieldRule(_OBJECT),
    "validationLevel": FieldRule(_TEXT),
    "validationAction": FieldRule(_TEXT),
    "storageEngine": FieldRule(_OBJECT),
    "indexOptionDefaults": FieldRule(_OBJECT),
    "timeseries": FieldRule(_OBJECT),
    "clusteredIndex": FieldRule(("object", "bool")),
    "changeStreamPreAndPostImages": FieldRule(_OBJECT),
    "expireAfterSeconds": FieldRule(("string", *NUMBER)),
    "encryptedFields": FieldRule(_OBJECT),
    "idIndex": FieldRule(_OBJECT),
    "temp": FieldRule(_BOOL),
    "flags": FieldRule(NUMBER),
}
_KEPT_OPTIONS = (
    "capped", "size", "max", "viewOn", "pipeline", "collation", "validator", "validationLevel", "validationAction",
    "timeseries", "clusteredIndex", "changeStreamPreAndPostImages", "expireAfterSeconds", "storageEngine",
)  # fmt: skip


async def create(call: Call) -> Document:
    name = call.target
    check_new_collection_name(call.database, name)
    options = _create_options(call)
    existing = call.record()
    if existing is not None:
        if existing.options == options:
            return {}
        raise MongoFailure(
            48, f"namespace {call.namespace} already exists, but with different options: {existing.options}"
        )
    try:
        await call.store.create(call.account, call.database, name, options)
    except CollectionExists as problem:
        raise MongoFailure(48, f"Collection {call.namespace} already exists.") from problem
    return {}


def _create_options(call: Call) -> Document:
    body = call.body
    options = {name: body[name] for name in _KEPT_OPTIONS if body.get(name) is not None}
    if "capped" in options:
        options["capped"] = as_bool(options["capped"])
        if not options["capped"]:
            del options["capped"]
    if options.get("capped"):
        if "size" not in options:
            raise MongoFailure(72, "the 'size' field is required when 'capped' is true")
        if as_int(options["size"]) <= 0:
            raise MongoFailure(51024, "the 'size' field must be a positive number")
    elif "size" in options or "max" in options:
        raise MongoFailure(72, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
    if "viewOn" in options:
        if not options["viewOn"]:
            raise MongoFailure(2, "'viewOn' cannot be empty")
        if "validator" in options or "capped" in options:
            raise MongoFailure(72, "a view has neither a validator nor a size")
        options.setdefault("pipeline", [])
    elif "pipeline" in options:
        raise MongoFailure(72, "'pipeline' requires 'viewOn' to also be specified")
    for name, allowed in (("validationLevel", ("off", "strict", "moderate")), ("validationAction", ("error", "warn"))):
        if name in options and options[name] not in allowed:
            raise MongoFailure(2, f"Enumeration value '{options[name]}' for field '{name}' is not a valid value.")
    if options.get("validator"):
        compile_filter(options["validator"], new_context(call.now, call.cluster_time))
    if "collation" in options:
        options["collation"] = read_specified_collation(options["collation"])
        if not options["collation"]:
            del options["collation"]
    return options


def read_specified_collation(specification: Document) -> Document | None:

    from asterism.apis.mongo.data.scopes import read_collation

    found = read_collation(specification).specification
    return None if found is None else dict(found)


async def drop(call: Call) -> Document:
    record = await call.store.drop(call.account, call.database, call.target)
    if record is None:
        return {}
    return (
        {"nIndexesWas": max(1, len(record.indexes)), "ns": record.namespace}
        if not record.is_view
        else {"ns": record.namespace}
    )


async def list_collections(call: Call) -> Answer:
    matches = _matcher(call)
    shown = []
    for record in call.store.records(call.account, call.database):
        entry = describe(record, name_only=call.flag("nameOnly"))
        if matches(entry):
            shown.append(entry)
    return await call.context.cursors.open(
        call, f"{call.database}.$cmd.listCollections", slices_of(shown), batch_size=batch_size_of(call)
    )


def describe(record: CollectionRecord, *, name_only: bool) -> Document:
    kind = "view" if record.is_view else "timeseries" if "timeseries" in record.options else "collection"
    if name_only:
        return {"name": record.name, "type": kind}
    shown: Document = {"name": record.name, "type": kind, "options": record.options}
    if record.is_view:
        return {**shown, "info": {"readOnly": True}}
    return {
        **shown,
        "info": {"readOnly": False, "uuid": Binary(record.uuid, 4)},
        "idIndex": {"v": 2, "key": {"_id": 1}, "name": ID_INDEX},
    }


async def slices_of(documents: list[Document]) -> AsyncIterator[list[bytes | Document]]:
    yield list(documents)


def batch_size_of(call: Call) -> int | None:
    cursor = call.get("cursor", {})
    if "batchSize" not in cursor:
        return None
    size = cursor["batchSize"]
    if not is_number(size):
        raise MongoFailure(14, "BSON field 'cursor.batchSize' is the wrong type, expected a number")
    if as_int(size) < 0:
        raise MongoFailure(2, "BSON field 'cursor.batchSize' value must be >= 0")
    return as_int(size)


async def coll_mod(call: Call) -> Document:
    record = call.record()
    if record is None:
        raise MongoFailure(26, f"ns does not exist: {call.namespace}")
    body, answer = call.body, {}
    options = dict(record.options)
    for name in ("validator", "validationLevel", "validationAction", "viewOn", "pipeline",
                 "changeStreamPreAndPostImages", "expireAfterSeconds"):  # fmt: skip
        if body.get(name) is not None:
            options[name] = body[name]
    if record.is_view != ("viewOn" in options):
        raise MongoFailure(72, "'viewOn' is only for views")
    if options != record.options:
        record = await call.store.change_options(call.account, record, options)
    index = call.get("index")
    if index is not None:
        answer = await _change_index(call, record, index)
    return answer


async def _change_index(call: Call, record: CollectionRecord, wanted: Document) -> Document:
    found = None
    for index in record.indexes:
        if index.name == wanted.get("name") or equal(index.key, wanted.get("keyPattern", {})):
            found = index
    if found is None:
        raise MongoFailure(27, f"cannot find index {wanted.get('name') or wanted.get('keyPattern')}")
    answer: Document = {}
    options = dict(found.options)
    if "expireAfterSeconds" in wanted:
        if not is_number(wanted["expireAfterSeconds"]):
            raise MongoFailure(14, "BSON field 'collMod.index.expireAfterSeconds' is the wrong type")
        if "expireAfterSeconds" in options:
            answer["expireAfterSeconds_old"] = Int64(as_int(options["expireAfterSeconds"]))
        options["expireAfterSeconds"] = as_int(wanted["expireAfterSeconds"])
        answer["expireAfterSeconds_new"] = Int64(as_int(wanted["expireAfterSeconds"]))
    if "hidden" in wanted:
        answer["hidden_old"] = bool(options.get("hidden"))
        answer["hidden_new"] = as_bool(wanted["hidden"])
        options["hidden"] = as_bool(wanted["hidden"])
        if not options["hidden"]:
            del options["hidden"]
    changed = replace(found, options=options)

    def change(before: CollectionRecord) -> CollectionRecord:
        indexes = tuple(changed if kept.number == changed.number else kept for kept in before.indexes)
        return replace(before, indexes=indexes)

    await call.store.change_record(call.account, record, change)
    return answer


async def rename_collection(call: Call) -> Document:
    database, name = split_namespace(call.target, path="renameCollection")
    to_database, to_name = split_namespace(call.body.get("to"), path="renameCollection.to")
    check_new_collection_name(to_database, to_name)
    if call.store.record(call.account, database, name) is None:
        raise MongoFailure(26, f"Source collection {database}.{name} does not exist")
    if (database, name) == (to_database, to_name):
        raise MongoFailure(20, "Can't rename a collection to itself")
    if database != to_database:
        raise MongoFailure(115, "A collection can be renamed within its database only; copy it with $out.")
    try:
        await call.store.rename(call.account, database, name, to_name, drop_target=call.flag("dropTarget"))
    except CollectionExists:
        raise MongoFailure(48, "target namespace exists") from None
    return {}


async def validate(call: Call) -> Document:
    collection = call.collection()
    if collection is None:
        raise MongoFailure(26, f"Collection '{call.namespace}' does not exist to validate.")
    size = await collection.size()
    return {
        "ns": call.namespace,
        "nInvalidDocuments": 0,
        "nrecords": size.items,
        "nIndexes": len(collection.record.indexes),
        "keysPerIndex": {index.name: size.items for index in collection.record.indexes},
        "indexDetails": {index.name: {"valid": True} for index in collection.record.indexes},
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
    scale = max(1, as_int(call.get("scale", 1)))
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
    scale = max(1, as_int(call.get("scale", 1)))
    stored = items = indexes = 0
    for record in records:
        collection = call.store.find(call.account, call.database, record.name)
        if collection is not None:
            size = await collection.size()
            stored, items, indexes = stored + size.bytes, items + size.items, indexes + len(record.indexes)
    views = sum(record.is_view for record in records)
    return {
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


_CURSOR = {"cursor": FieldRule(_OBJECT), "filter": FieldRule(_OBJECT), "nameOnly": FieldRule(TRUTH),
           "authorizedCollections": FieldRule(TRUTH)}  # fmt: skip
_COLLECTION = Target.COLLECTION

COMMANDS = (
    Command("listDatabases", list_databases, "The databases.", admin_only=True, access=Access.READ,
            fields={"filter": FieldRule(_OBJECT), "nameOnly": FieldRule(TRUTH),
                    "authorizedDatabases": FieldRule(TRUTH)}, api_version_1=True),
    Command("dropDatabase", drop_database, "Drop the database.", access=Access.DATABASE_ADMIN, api_version_1=True),
    Command("create", create, "Create a collection or a view.", fields=_CREATE_FIELDS, target=_COLLECTION,
            access=Access.DATABASE_ADMIN, in_transaction=True, api_version_1=True),
    Command("drop", drop, "Drop a collection.", target=_COLLECTION, access=Access.DATABASE_ADMIN,
            fields={"collectionUUID": FieldRule()}, api_version_1=True),
    Command("listCollections", list_collections, "The collections.", fields=_CURSOR, access=Access.READ,
            api_version_1=True),
    Command("collMod", coll_mod, "Change a collection.", target=_COLLECTION, access=Access.DATABASE_ADMIN,
            ignores_unknown_fields=True, api_version_1=True),
    Command("renameCollection", rename_collection, "Rename a collection.", admin_only=True,
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True),
    Command("validate", validate, "Check a collection.", target=_COLLECTION, ignores_unknown_fields=True),
    Command("collStats", collection_stats, "Sizes of a collection.", aliases=("collstats",), target=_COLLECTION,
            access=Access.READ, ignores_unknown_fields=True),
    Command("dbStats", database_stats, "Sizes of the database.", aliases=("dbstats",), access=Access.READ,
            ignores_unknown_fields=True),
)  # fmt: skip
