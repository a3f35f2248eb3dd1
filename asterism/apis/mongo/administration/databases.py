"""Commands about databases."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.administration.cursor_options import matcher
from asterism.apis.mongo.arguments import BOOL, MISSING_FIELD, NUMBER, OBJECT, TRUTH, as_int, wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Document, Int64

_PROTECTED: Final = frozenset({"admin", "config", "local"})


async def list_databases(call: Call) -> Document:
    store = call.store
    matches = matcher(call)
    is_name_only = call.flag("nameOnly")
    shown: list[Document] = []
    total = 0
    rights = call.connection.rights
    for name in store.databases(call.account):
        if rights is not None and not rights.sees_database(name):
            continue
        size = 0
        for record in store.records(call.account, name):
            collection = store.find(call.account, name, record.name)
            size += 0 if collection is None else (await collection.size()).bytes
        # A database is there because of a collection, and a collection, however empty, takes a record of the catalog.
        entry: Document = {"name": name, "sizeOnDisk": Int64(size), "empty": False}
        if is_name_only:
            entry = {"name": name}
        if matches(entry):
            shown.append(entry)
            total += size
    if is_name_only:
        return {"databases": shown}
    return {"databases": shown, "totalSize": Int64(total), "totalSizeMb": Int64(total // (1024 * 1024))}


async def drop_database(call: Call) -> Document:
    _check_is_1(call.target)
    if call.database in _PROTECTED:
        raise MongoFailure(20, f"Dropping the '{call.database}' database is prohibited.")
    await call.store.drop_database(call.account, call.database)
    return {}


def _check_is_1(value: Any) -> None:
    """Refuse all but 1, so that a database is not dropped by a mistake in the command."""
    if value is None:
        raise MongoFailure(MISSING_FIELD, "BSON field 'dropDatabase.dropDatabase' is missing but a required field")
    if type_name(value) not in NUMBER:
        raise wrong_type("dropDatabase.dropDatabase", value, NUMBER)
    if as_int(value) != 1:
        raise MongoFailure(5255100, "Have to pass 1 as 'dropDatabase' parameter")


COMMANDS = (
    Command("listDatabases", list_databases, "The databases.", admin_only=True, access=Access.READ, reads=True,
            fields={"filter": FieldRule(OBJECT), "nameOnly": FieldRule(TRUTH),
                    "authorizedDatabases": FieldRule(BOOL)}, api_version_1=True),
    Command("dropDatabase", drop_database, "Drop the database.", access=Access.DATABASE_ADMIN, api_version_1=True,
            writes=True),
)  # fmt: skip
