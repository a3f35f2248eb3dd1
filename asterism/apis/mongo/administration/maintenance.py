"""Commands that look after collections: `compact`, `reIndex`, `validateDBMetadata`."""

from __future__ import annotations

from typing import Final

from asterism.apis.mongo.arguments import (
    BOOL,
    MISSING_FIELD,
    NUMBER,
    OBJECT,
    TEXT,
    as_int,
    check_collection_name,
    check_document,
)
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule, Target
from asterism.apis.mongo.indexes import describe_index, shown_indexes
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.index_changes import rebuild_index
from asterism.models.collections.records import ID_INDEX, CollectionRecord
from asterism.values.bson.types import Document

_COMPACT_FIELDS: Final = {
    "force": FieldRule(BOOL),
    "dryRun": FieldRule(BOOL),
    "freeSpaceTargetMB": FieldRule(NUMBER),
}
_METADATA_FIELDS: Final = {
    "apiParameters": FieldRule(OBJECT, is_required=True, null_code=MISSING_FIELD),
    "db": FieldRule(TEXT),
    "collection": FieldRule(TEXT),
}
_API_FIELDS: Final = {
    "version": FieldRule(TEXT, is_required=True),
    "strict": FieldRule(BOOL),
    "deprecationErrors": FieldRule(BOOL),
}
_DATABASE_BYTES_MAX: Final = 63


async def compact(call: Call) -> Document:
    """Free no bytes: the store uses the room of deleted documents again, and has no files of a single collection."""
    target = call.get("freeSpaceTargetMB")
    if target is not None and as_int(target) < 1:
        raise MongoFailure(2, "BSON field 'compact.freeSpaceTargetMB' value must be >= 1")
    record = call.record()
    if record is None:
        raise MongoFailure(26, f"collection does not exist: {call.namespace}")
    if record.is_view:
        raise MongoFailure(166, f"Namespace {call.namespace} is a view, not a collection")
    if call.flag("dryRun"):
        return {"estimatedBytesFreed": 0}
    return {"bytesFreed": 0}


async def re_index(call: Call) -> Document:
    """Build all indexes anew, each beside the old one."""
    record = call.record()
    if record is None:
        raise MongoFailure(26, f"ns does not exist: {call.namespace}")
    if record.is_view:
        raise MongoFailure(166, f"Namespace {call.namespace} is a view, not a collection")
    before = shown_indexes(record)
    for index in record.indexes:
        if index.name != ID_INDEX:
            await rebuild_index(call.store, call.account, record, index, index.options)
    after = call.record()
    shown = [] if after is None else [describe_index(index) for index in shown_indexes(after)]
    return {"nIndexesWas": len(before), "nIndexes": len(shown), "indexes": shown}


async def validate_metadata(call: Call) -> Document:
    """Return the indexes that are outside of version 1 of the stable API."""
    parameters = call.body["apiParameters"]
    check_document("validateDBMetadata.apiParameters", parameters, _API_FIELDS)
    for name in call.body:
        if name.startswith("$") and name not in ("$db", "$clusterTime", "$readPreference"):
            raise MongoFailure(40415, f"BSON field 'validateDBMetadata.{name}' is an unknown field.")
    database, collection = call.get("db"), call.get("collection")
    if database is not None:
        _check_database(database)
    if collection is not None:
        check_collection_name(collection)
    errors: list[Document] = []
    if parameters["version"] == "1" and parameters.get("strict"):
        names = call.store.databases(call.account) if database is None else [database]
        for name in names:
            for record in call.store.records(call.account, name):
                if collection in (None, record.name):
                    errors += _unstable(record)
    return {"apiVersionErrors": errors}


def _unstable(record: CollectionRecord) -> list[Document]:
    return [
        {
            "ns": record.namespace,
            "code": 323,
            "codeName": "APIStrictError",
            "errmsg": f"The index with name {index.name} is not allowed in API version 1.",
        }
        for index in record.indexes
        if index.options.get("sparse") or "text" in index.key.values()
    ]


def _check_database(name: str) -> None:
    if not name:
        raise MongoFailure(28539, "The name of a database cannot be empty")
    if "." in name or "\0" in name or len(name.encode()) > _DATABASE_BYTES_MAX:
        raise MongoFailure(73, f"Invalid database name: '{name}'")
    if not {*' /\\"'}.isdisjoint(name):
        raise MongoFailure(13280, f"Invalid database name: '{name}'")


COMMANDS = (
    Command("compact", compact, "Free room.", target=Target.COLLECTION, fields=_COMPACT_FIELDS,
            access=Access.DATABASE_ADMIN, writes=True),
    Command("reIndex", re_index, "Build indexes anew.", target=Target.COLLECTION, access=Access.DATABASE_ADMIN,
            ignores_unknown_fields=True),
    Command("validateDBMetadata", validate_metadata, "Check metadata for the stable API.", fields=_METADATA_FIELDS,
            access=Access.READ, writes=True),
)  # fmt: skip
