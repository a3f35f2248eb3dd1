"""Stages that list collections and sessions: `$listClusterCatalog`, `$listLocalSessions`, `$listSessions`."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.data.views import Source
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.records import ID_INDEX, CollectionRecord
from asterism.values.bson.types import Binary, DatetimeMS, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# The one shard that a client sees: this server.
SHARD = "globaldb"


def list_catalog(call: Call, options: dict[str, Any]) -> list[Document]:
    """Return a document for each collection of the database; of all databases, when asked on `admin`."""
    names = call.store.databases(call.account) if call.database == "admin" else [call.database]
    return [
        _entry(record, database, options) for database in names for record in call.store.records(call.account, database)
    ]


def _entry(record: CollectionRecord, database: str, options: dict[str, Any]) -> Document:
    kind = "view" if record.is_view else "timeseries" if "timeseries" in record.options else "collection"
    info: Document = {"readOnly": record.is_view}
    shown: Document = {
        "ns": record.namespace,
        "db": database,
        "type": kind,
        "options": record.options,
        "info": info,
        "sharded": bool(record.shard_key),
    }
    if not record.is_view:
        info["uuid"] = Binary(record.uuid, 4)
        shown["idIndex"] = {"v": 2, "key": {"_id": 1}, "name": ID_INDEX}
    if record.shard_key:
        shown["shardKey"] = record.shard_pattern
    if options.get("shards"):
        shown["shards"] = [SHARD]
    return shown


def list_sessions(call: Call, options: dict[str, Any]) -> list[Document]:
    """Return the sessions that clients of this process have used: those of the named users, of all, or one's own."""
    users = {user["user"] for user in options["users"]} or {call.connection.user}
    return [
        {
            "_id": {"id": Binary(session[:16], 4), "uid": sha256(use.user.encode()).digest()},
            "lastUse": DatetimeMS(int(use.seconds * 1000)),
        }
        for session, use in call.context.sessions.of_account(call.account)
        if options["allUsers"] or use.user in users
    ]


def check_plan_cache(source: Source) -> None:
    """Refuse the question for plans where there can be none. Plans are made anew for every command: none is kept."""
    if source.collection is None:
        raise MongoFailure(50933, f"The collection {source.database}.{source.name} does not exist.")
    if "timeseries" in source.collection.record.options:
        raise MongoFailure(40602, "$planCacheStats is only valid as the first stage in a pipeline")
