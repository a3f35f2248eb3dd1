"""The command `renameCollection`: within a database one change of the catalog, across databases a copy."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import BOOL, MISSING_FIELD, TEXT, wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule
from asterism.apis.mongo.data.concerns import with_write_concern
from asterism.apis.mongo.data.targets import check_uuid
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.copying import move_collection
from asterism.models.collections.records import CollectionRecord
from asterism.models.collections.results import CollectionExists
from asterism.values.bson.types import Binary, Document

_NAMESPACE_BYTES_MAX: Final = 255
_DATABASE_BYTES_MAX: Final = 63
_NOT_IN_DATABASES: Final = frozenset('/\\. "\0')
_UUID_SUBTYPE: Final = 4
_FIELDS: Final = {
    "to": FieldRule(TEXT, is_required=True, null_code=MISSING_FIELD),
    "dropTarget": FieldRule(("bool", "binData")),
    "stayTemp": FieldRule(BOOL),
    "collectionUUID": FieldRule(("binData",)),
}


async def rename_collection(call: Call) -> Document:
    store, account = call.store, call.account
    database, name = _split(call.target, "renameCollection")
    to_database, to_name = _split(call.body["to"], "to")
    own, wanted = call.get("collectionUUID"), call.get("dropTarget", False)
    if own is not None:
        _check_is_uuid(own, "collectionUUID", code=14)
    if isinstance(wanted, bytes):
        _check_is_uuid(wanted, "dropTarget", code=207)
    _check_names(database, name, to_database, to_name)
    source = store.record(account, database, name)
    target = store.record(account, to_database, to_name)
    check_uuid(own, source, database, name)
    if isinstance(wanted, bytes):
        if database != to_database:
            raise MongoFailure(72, "'dropTarget' can be a UUID only within a database")
        check_uuid(wanted, target, to_database, to_name)
    if source is None:
        raise MongoFailure(26, f"Source collection {database}.{name} does not exist")
    _check_kinds(source, target, drops=bool(wanted))
    if (database, name) == (to_database, to_name):
        raise MongoFailure(20, "Can't rename a collection to itself")
    try:
        if database == to_database:
            await store.rename(account, database, name, to_name, drop_target=bool(wanted))
        else:
            await move_collection(store, account, source, to_database, to_name, drop_target=bool(wanted))
    except CollectionExists:
        raise MongoFailure(48, "target namespace exists") from None
    return {}


def _split(namespace: Any, field: str) -> tuple[str, str]:
    if namespace is None:
        raise MongoFailure(MISSING_FIELD, f"BSON field 'renameCollection.{field}' is missing but a required field")
    if type(namespace) is not str:
        raise wrong_type(f"renameCollection.{field}", namespace, TEXT)
    database, _, name = namespace.partition(".")
    if not database or not name or name.startswith(".") or "\0" in name:
        raise MongoFailure(73, f"Invalid namespace specified '{namespace}'")
    if len(database.encode()) > _DATABASE_BYTES_MAX or not _NOT_IN_DATABASES.isdisjoint(database):
        raise MongoFailure(73, f"Invalid database name: '{database}'")
    return database, name


def _check_is_uuid(value: Any, field: str, *, code: int) -> None:
    if not isinstance(value, Binary) or value.subtype != _UUID_SUBTYPE:
        raise MongoFailure(code, f"BSON field 'renameCollection.{field}' is the wrong binData type, expected a UUID")
    if len(value) != 16:
        raise MongoFailure(207, f"BSON field 'renameCollection.{field}' must be a UUID of 16 bytes")


def _check_names(database: str, name: str, to_database: str, to_name: str) -> None:
    for own_database, own_name in ((database, name), (to_database, to_name)):
        whole = f"{own_database}.{own_name}"
        if "$" in whole:
            raise MongoFailure(20, f"Cannot rename: the namespace {whole} contains '$'")
        if len(whole.encode()) > _NAMESPACE_BYTES_MAX:
            raise MongoFailure(20, f"Fully qualified namespace is too long. Namespace: {whole} Max: 255")
        if own_name.startswith("system."):
            raise MongoFailure(20, f"renaming to or from a system collection is not allowed: {whole}")
    if to_database == "local" and to_name.startswith("oplog."):
        raise MongoFailure(20, "Cannot rename a collection to an oplog")
    if database != to_database and database.lower() == to_database.lower():
        raise MongoFailure(13297, f"db already exists with different case already have: [{database}]")


def _check_kinds(source: CollectionRecord, target: CollectionRecord | None, *, drops: bool) -> None:
    if source.is_view or "timeseries" in source.options:
        raise MongoFailure(166, f"Namespace {source.namespace} is a view or a time series, which cannot be renamed")
    if target is not None and drops and (target.is_view or "timeseries" in target.options):
        raise MongoFailure(48, f"a view or a time series already exists: {target.namespace}")


COMMANDS = (
    Command("renameCollection", with_write_concern(rename_collection), "Rename a collection.", admin_only=True,
            access=Access.DATABASE_ADMIN, fields=_FIELDS, writes=True),
)  # fmt: skip
