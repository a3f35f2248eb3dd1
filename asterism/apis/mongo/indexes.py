"""Commands about indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from asterism.apis.mongo.administration.cursor_options import batch_size_of, slices_of
from asterism.apis.mongo.arguments import ARRAY, BOOL, OBJECT, TRUTH, check_new_collection_name
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Answer, Command, FieldRule, Target
from asterism.apis.mongo.data.concerns import with_write_concern
from asterism.apis.mongo.data.targets import create_collection
from asterism.apis.mongo.shell_text import shell_text
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.index_keys import IndexSpec, indexes_to_create, parse_index
from asterism.models.collections.records import ID_INDEX, CollectionRecord, IndexRecord
from asterism.models.collections.unit import Unit
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document

# --- creating -------------------------------------------------------------------------------------------------------


async def create_indexes(call: Call) -> Document:
    check_new_collection_name(call.database, call.target)
    if call.target.startswith("system.") and call.target != "system.js":
        raise MongoFailure(73, f"Cannot create an index on the system collection {call.namespace}")
    specifications = call.body["indexes"]
    if not specifications:
        raise MongoFailure(2, "Must specify at least one index to create")
    record = call.record()
    if record is not None and record.is_view:
        raise MongoFailure(166, f"Namespace {call.namespace} is a view, not a collection")
    collation = None if record is None else record.options.get("collation")
    wanted = [parse_index(specification, default_collation=collation) for specification in specifications]
    _check_clustered(record, specifications)
    if record is not None:
        for index in wanted:
            check_unique(record, index)
    if record is not None and "timeseries" in record.options:
        for index in wanted:
            _check_time_series(record, index)
    existing = [] if record is None else [spec_of(index) for index in record.indexes]
    new = indexes_to_create(existing or [spec_of(_ID)], wanted)
    was_created = record is None
    if record is None:
        record = await create_collection(call, call.database, call.target)
    before = len(shown_indexes(record))
    if new:
        records = [IndexRecord(0, index.name, index.key, index.options) for index in new]
        if call.unit is not None:
            record = _index_in_transaction(call, call.unit, record, records)
        else:
            record = await call.store.create_indexes(call.account, record, records)
    answer: Document = {
        "numIndexesBefore": before,
        "numIndexesAfter": before + len(new),
        "createdCollectionAutomatically": was_created,
    }
    if not new:
        answer["note"] = "all indexes already exist"
    return answer


def _index_in_transaction(
    call: Call, unit: Unit, record: CollectionRecord, indexes: Sequence[IndexRecord]
) -> CollectionRecord:
    """Add indexes to a collection that the transaction itself has created, and that is empty."""
    if record not in unit.created.values() or unit.has_staged(record):
        raise MongoFailure(
            263,
            f"Cannot create new indexes on {call.namespace} in a multi-document transaction, unless the transaction "
            "has created the collection and not written to it.",
        )
    return call.store.units.add_indexes(unit, call.account, record, indexes)


_ID: Final = IndexRecord(0, ID_INDEX, {"_id": 1}, {})


def spec_of(index: IndexRecord) -> IndexSpec:
    """Return an index that exists as the language of indexes compares it."""
    kind: Any = next((value for value in index.key.values() if isinstance(value, str)), "ordered")
    return IndexSpec(index.key, index.name, kind, index.options)


def check_unique(record: CollectionRecord, index: IndexSpec) -> None:
    """Refuse a unique index that could not hold over the values of the shard key."""
    if record.shard_key and index.options.get("unique") and not set(record.shard_key) <= set(index.key):
        raise MongoFailure(
            67,
            f"cannot create unique index over {shell_text(index.key)} with shard key pattern "
            f"{shell_text(record.shard_pattern)}",
        )


def _check_clustered(record: CollectionRecord | None, specifications: list[Any]) -> None:
    for specification in specifications:
        if specification.get("clustered"):
            is_id = list(specification["key"]) == ["_id"]
            if record is None or "clusteredIndex" not in record.options:
                raise MongoFailure(6100904, "Cannot create a clustered index on a collection that is not clustered")
            if not is_id:
                raise MongoFailure(6243700, "A clustered collection is clustered by _id alone")


def _check_time_series(record: CollectionRecord, index: IndexSpec) -> None:
    """Refuse what buckets of a time series cannot be indexed by."""
    for option in ("unique", "sparse"):
        if index.options.get(option):
            raise MongoFailure(72, f"The option '{option}' is not supported on a time series collection")
    if index.kind == "text":
        raise MongoFailure(72, "Text indexes are not supported on time series collections")
    if index.kind == "wildcard" and len(index.key) == 1:
        raise MongoFailure(7246201, "Wildcard indexes are not supported on time series collections")
    if index.kind in ("hashed", "2d"):
        raise MongoFailure(67, f"Indexes of the kind '{index.kind}' are not supported on time series measurements")
    if "expireAfterSeconds" not in index.options:
        return
    partial = index.options.get("partialFilterExpression")
    meta = record.options["timeseries"].get("metaField")
    own = [name for name in partial or () if meta is None or name.split(".")[0] != meta]
    if list(index.key) != [record.options["timeseries"]["timeField"]] or not partial or own:
        raise MongoFailure(
            72, "TTL indexes on time series collections are on the time field and have a filter on the meta field"
        )


# --- listing --------------------------------------------------------------------------------------------------------


def shown_indexes(record: CollectionRecord) -> list[IndexRecord]:
    """Return the indexes that are counted. The order of a clustered collection or of a time series is no index."""
    hides_id = "clusteredIndex" in record.options or "timeseries" in record.options
    return [index for index in record.indexes if not (hides_id and index.name == ID_INDEX)]


def describe_index(index: IndexRecord) -> Document:
    return {"v": 2, "key": index.key, "name": index.name, **index.options}


async def list_indexes(call: Call) -> Answer:
    with_build_info = call.flag("includeIndexBuildInfo")
    if with_build_info and call.flag("includeBuildUUIDs"):
        raise MongoFailure(72, "'includeBuildUUIDs' and 'includeIndexBuildInfo' cannot both be true")
    record = call.record()
    if record is None:
        raise MongoFailure(26, f"ns does not exist: {call.namespace}")
    if record.is_view:
        raise MongoFailure(166, f"Namespace {call.namespace} is a view, not a collection")
    shown = [describe_index(index) for index in shown_indexes(record)]
    clustered = record.options.get("clusteredIndex")
    if clustered is not None:
        shown.insert(0, {**clustered, "clustered": True})
    if with_build_info:
        shown = [{"spec": index} for index in shown]
    size = batch_size_of(call)
    return await call.context.cursors.open(
        call, call.namespace, slices_of(shown), batch_size=size, limit=len(shown) or None
    )


# --- dropping -------------------------------------------------------------------------------------------------------


async def drop_indexes(call: Call) -> Document:
    wanted = call.body["index"]
    if type(wanted) not in (str, dict, list):
        raise MongoFailure(14, f"BSON field 'dropIndexes.index' is the wrong type '{type_name(wanted)}'")
    record = call.record()
    if record is None:
        raise MongoFailure(26, f"ns not found {call.namespace}")
    if record.is_view:
        raise MongoFailure(166, f"Namespace {call.namespace} is a view, not a collection")
    names = _names_to_drop(record, wanted)
    before = len(shown_indexes(record))
    await call.store.drop_indexes(call.account, record, names)
    answer: Document = {"nIndexesWas": before}
    if wanted == "*":
        answer["msg"] = "non-_id indexes dropped for collection"
    return answer


def _names_to_drop(record: CollectionRecord, wanted: Any) -> list[str]:
    if wanted in ("*", ["*"]):
        return [index.name for index in record.indexes if index.name != ID_INDEX]
    if isinstance(wanted, dict):
        return [_name_by_key(record, wanted)]
    names: list[Any] = wanted if isinstance(wanted, list) else [wanted]
    for position, name in enumerate(names):
        if type(name) is not str:
            raise MongoFailure(14, "BSON field 'dropIndexes.index' is the wrong type")
        if name == ID_INDEX:
            raise _kept(record)
        if record.index(name) is None or name in names[:position]:
            raise MongoFailure(27, f"index not found with name [{name}]")
    return names


def _name_by_key(record: CollectionRecord, key: Document) -> str:
    found = [index.name for index in record.indexes if list(index.key) == list(key) and equal(index.key, key)]
    if not found:
        raise MongoFailure(27, f"can't find index with key: {key}")
    if len(found) > 1:
        raise MongoFailure(181, f"{len(found)} indexes found for key {key}, identify by name instead: {found}")
    if found[0] == ID_INDEX:
        raise _kept(record)
    return found[0]


def _kept(record: CollectionRecord) -> MongoFailure:
    code = 5979800 if "clusteredIndex" in record.options else 72
    return MongoFailure(code, "cannot drop the index of _id")


COMMANDS = (
    Command("createIndexes", with_write_concern(create_indexes), "Create indexes.", target=Target.COLLECTION,
            access=Access.DATABASE_ADMIN, writes=True,
            fields={"indexes": FieldRule(ARRAY, is_required=True, null_code=40414), "commitQuorum": FieldRule(),
                    "ignoreUnknownIndexOptions": FieldRule(BOOL), "returnOnStart": FieldRule(BOOL)},
            in_transaction=True, api_version_1=True),
    Command("listIndexes", list_indexes, "The indexes.", target=Target.COLLECTION, access=Access.READ,
            fields={"cursor": FieldRule(OBJECT), "includeBuildUUIDs": FieldRule(TRUTH),
                    "includeIndexBuildInfo": FieldRule(TRUTH)}, api_version_1=True),
    Command("dropIndexes", with_write_concern(drop_indexes), "Drop indexes.", aliases=("deleteIndexes",),
            target=Target.COLLECTION, access=Access.DATABASE_ADMIN, writes=True,
            fields={"index": FieldRule(is_required=True, null_code=14)}, api_version_1=True),
)  # fmt: skip
