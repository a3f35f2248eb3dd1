"""The collection of a command: its name, checked, and the collection itself, created where a write needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.config_database import refuse_writes
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.results import CollectionExists
from asterism.values.bson.kinds import type_name

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Of database and collection together, in UTF-8.
NAMESPACE_BYTES_MAX = 255
_NOT_IN_DATABASE_NAMES = frozenset('/\\. "$\x00')
DATABASE_NAME_CHARACTERS_MAX = 63
_SYSTEM_DATABASES = frozenset({"admin", "config", "local"})


def collection_name(call: Call) -> str:
    """Return the name of the command's collection: the value of its first field."""
    name = call.body[call.name]
    if type(name) is not str:
        raise MongoFailure(73, f"collection name has invalid type {type_name(name)}")
    check_namespace(call.database, name)
    return name


def check_namespace(database: str, name: str) -> None:
    """Refuse names that no collection can have."""
    if not name or name.startswith((".", "$")) or "\x00" in name:
        raise MongoFailure(73, f"Invalid namespace specified '{database}.{name}'")
    if not database or any(character in _NOT_IN_DATABASE_NAMES for character in database):
        raise MongoFailure(73, f"Invalid database name: '{database}'")


def split_namespace(namespace: str) -> tuple[str, str]:
    """Return database and collection of `database.collection`."""
    database, dot, name = namespace.partition(".")
    if not dot:
        raise MongoFailure(73, f"Invalid namespace specified '{namespace}'")
    check_namespace(database, name)
    return database, name


def find_record(call: Call, database: str, name: str) -> CollectionRecord | None:
    return call.store.record(call.account, database, name, call.unit)


def find_to_change(call: Call, database: str, name: str) -> Collection | None:
    """Return a collection to be written to, None if it does not exist; refuse a view."""
    refuse_writes(database)
    store = call.store
    collection = store.find(call.account, database, name, call.unit)
    if collection is None and store.record(call.account, database, name, call.unit) is not None:
        raise MongoFailure(166, f"Namespace {database}.{name} is a view, not a collection")
    if call.unit is not None:
        _check_in_transaction(collection, database, name)
    return collection


def _check_in_transaction(collection: Collection | None, database: str, name: str) -> None:
    if database in _SYSTEM_DATABASES:
        raise MongoFailure(263, f"Cannot write to {database}.{name} in a multi-document transaction.")
    if collection is not None and collection.record.options.get("capped"):
        raise MongoFailure(
            263, f"Collection '{database}.{name}' is a capped collection. Writes in transactions are not allowed on it."
        )


async def create_collection(
    call: Call,
    database: str,
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    indexes: Sequence[IndexRecord] = (),
) -> CollectionRecord:
    """Create a collection; within a transaction others see it when that commits. CollectionExists if there is one."""
    if call.unit is None:
        return await call.store.create(call.account, database, name, options, indexes=indexes)
    if options and "viewOn" in options:
        raise MongoFailure(263, f"Cannot create the view {database}.{name} in a multi-document transaction.")
    record = await call.store.units.create_collection(call.unit, call.account, database, name, options)
    return call.store.units.add_indexes(call.unit, call.account, record, indexes) if indexes else record


async def find_or_create(call: Call, database: str, name: str) -> Collection:
    """Return a collection to be written to, created if it does not exist; refuse a view."""
    collection = find_to_change(call, database, name)
    if collection is not None:
        return collection
    if len(f"{database}.{name}".encode()) > NAMESPACE_BYTES_MAX:
        raise MongoFailure(73, f"Fully qualified namespace is too long: {database}.{name}")
    # Another command may be faster.
    with suppress(CollectionExists):
        await create_collection(call, database, name)
    collection = find_to_change(call, database, name)
    if collection is None:
        raise MongoFailure(175, f"The collection {name} was dropped while the command was running.")
    return collection


def check_uuid(wanted: Any, record: CollectionRecord | None, database: str, name: str) -> None:
    """Refuse a command that expects another collection under this name."""
    if wanted is None or (record is not None and bytes(wanted) == record.uuid):
        return
    raise MongoFailure(
        361,
        "Collection UUID does not match that specified",
        details={"db": database, "collectionUUID": wanted, "expectedCollection": name, "actualCollection": None},
    )
