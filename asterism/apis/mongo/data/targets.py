"""The collection of a command: its name, checked, and the collection itself, created where a write needs it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import CollectionRecord
from asterism.models.collections.results import CollectionExists
from asterism.values.bson.kinds import type_name

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Of database and collection together, in UTF-8.
NAMESPACE_BYTES_MAX = 255
_NOT_IN_DATABASE_NAMES = frozenset('/\\. "$\x00')
DATABASE_NAME_CHARACTERS_MAX = 63


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
    return call.store.record(call.account, database, name)


def find_to_change(call: Call, database: str, name: str) -> Collection | None:
    """Return a collection to be written to, None if it does not exist; refuse a view."""
    store = call.store
    collection = store.find(call.account, database, name)
    if collection is None and store.record(call.account, database, name) is not None:
        raise MongoFailure(166, f"Namespace {database}.{name} is a view, not a collection")
    return collection


async def find_or_create(call: Call, database: str, name: str) -> Collection:
    """Return a collection to be written to, created if it does not exist; refuse a view."""
    collection = find_to_change(call, database, name)
    if collection is not None:
        return collection
    store = call.store
    if len(f"{database}.{name}".encode()) > NAMESPACE_BYTES_MAX:
        raise MongoFailure(73, f"Fully qualified namespace is too long: {database}.{name}")
    # Another command may be faster.
    with suppress(CollectionExists):
        await store.create(call.account, database, name)
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
