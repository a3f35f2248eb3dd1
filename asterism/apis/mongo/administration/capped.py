"""Commands that make capped collections of others."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.administration.create import check_system_name
from asterism.apis.mongo.administration.options.sizes import read_size, shown_number
from asterism.apis.mongo.arguments import as_int, check_new_collection_name, wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, Target
from asterism.apis.mongo.data.capped import trim
from asterism.apis.mongo.data.concerns import with_write_concern
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.copying import copy_documents
from asterism.models.collections.index_changes import keep_natural_order
from asterism.models.collections.records import ID_INDEX, CollectionRecord
from asterism.models.collections.results import CollectionExists
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Document


async def convert_to_capped(call: Call) -> Document:
    """Cap a collection where it is. All of its indexes but that of `_id` go, as MongoDB's do."""
    record = _source(call, call.target)
    size = _read_size(call)
    names = [index.name for index in record.indexes if index.name != ID_INDEX]
    record = await call.store.drop_indexes(call.account, record, names)
    options = {name: value for name, value in record.options.items() if name not in ("clusteredIndex", "max")}
    await keep_natural_order(call.store, call.account, record, {**options, "capped": True, "size": shown_number(size)})
    collection = call.collection()
    if collection is not None:
        await trim(call, collection)
    return {}


async def clone_as_capped(call: Call) -> Document:
    """Copy the newest documents of a collection into a new capped one."""
    target = call.body.get("toCollection")
    if type(target) is not str:
        raise wrong_type("cloneCollectionAsCapped.toCollection", target, ("string",))
    if "$" in call.target:
        raise MongoFailure(73, f"Invalid source collection name: {call.target}")
    check_new_collection_name(call.database, target)
    check_system_name(call, target)
    size = _read_size(call)
    record = _source(call, call.target)
    existing = call.record(target)
    if existing is not None and existing.is_view:
        raise MongoFailure(166, f"Namespace {existing.namespace} is a view, not a collection")
    if existing is not None:
        raise MongoFailure(48, f"cloneCollectionAsCapped failed - destination collection {target} already exists.")
    options = {"capped": True, "size": shown_number(size)}
    try:
        await call.store.create(call.account, call.database, target, options)
    except CollectionExists as problem:
        raise MongoFailure(48, f"Collection {target} already exists.") from problem
    source, copy = call.collection(record.name), call.collection(target)
    if source is not None and copy is not None:
        await copy_documents(source, copy)
        await trim(call, copy)
    return {}


def _source(call: Call, name: str) -> CollectionRecord:
    record = call.record(name)
    if record is None:
        raise MongoFailure(26, f"source collection {call.database}.{name} does not exist")
    if record.is_view or "timeseries" in record.options:
        raise MongoFailure(166, f"Namespace {record.namespace} is a view or a time series, not a collection")
    if record.shard_key:
        raise MongoFailure(20, f"A sharded collection cannot be capped: {record.namespace}")
    return record


def _read_size(call: Call) -> int:
    size: Any = call.body.get("size")
    if not is_number(size) or as_int(size) <= 0:
        raise MongoFailure(72, f"{call.command.name} requires a 'size' that is a positive number of bytes")
    return read_size(f"{call.command.name}.size", size)


COMMANDS = (
    Command("convertToCapped", with_write_concern(convert_to_capped), "Cap a collection.", target=Target.COLLECTION,
            access=Access.DATABASE_ADMIN, ignores_unknown_fields=True, writes=True),
    Command("cloneCollectionAsCapped", with_write_concern(clone_as_capped), "Copy into a capped collection.",
            target=Target.COLLECTION, target_type_code=14, access=Access.DATABASE_ADMIN,
            ignores_unknown_fields=True, writes=True),
)  # fmt: skip
