"""The actions that a command needs, and on which resources, compared with the rights of its sender."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.commands import Access
from asterism.apis.mongo.shell_text import shell_text
from asterism.apis.mongo.users.rights import Resource
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import InvalidBson, decode
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# An action and where it is carried out.
Need = tuple[str, Resource]
Needs = Iterator[Need]

# The action of a command on the collection that it names.
_ON_COLLECTION: Final = {
    "find": "find", "count": "find", "distinct": "find", "insert": "insert", "delete": "remove",
    "create": "createCollection", "drop": "dropCollection", "collMod": "collMod", "listIndexes": "listIndexes",
    "createIndexes": "createIndex", "dropIndexes": "dropIndex", "reIndex": "reIndex", "compact": "compact",
    "convertToCapped": "convertToCapped", "validate": "validate", "collStats": "collStats",
    "planCacheClear": "planCacheWrite", "planCacheListFilters": "planCacheIndexFilter",
    "planCacheSetFilter": "planCacheIndexFilter", "planCacheClearFilters": "planCacheIndexFilter",
}  # fmt: skip
_ON_DATABASE: Final = {
    "dropDatabase": "dropDatabase", "listCollections": "listCollections", "dbStats": "dbStats", "dbHash": "dbHash",
    "profile": "enableProfiler", "createUser": "createUser", "dropUser": "dropUser",
    "dropAllUsersFromDatabase": "dropUser", "grantRolesToUser": "grantRole", "revokeRolesFromUser": "revokeRole",
    "createRole": "createRole", "updateRole": "createRole", "dropRole": "dropRole",
    "dropAllRolesFromDatabase": "dropRole", "grantRolesToRole": "grantRole", "revokeRolesFromRole": "revokeRole",
    "grantPrivilegesToRole": "grantRole", "revokePrivilegesFromRole": "revokeRole",
}  # fmt: skip
_ON_CLUSTER: Final = {
    "serverStatus": "serverStatus", "getParameter": "getParameter", "setParameter": "setParameter",
    "hostInfo": "hostInfo", "getLog": "getLog", "getCmdLineOpts": "getCmdLineOpts", "top": "top",
    "killOp": "killop", "listShards": "listShards", "getShardMap": "getShardMap", "fsync": "fsync",
    "fsyncUnlock": "unlock", "setDefaultRWConcern": "setDefaultRWConcern", "logRotate": "logRotate",
    "getDefaultRWConcern": "getDefaultRWConcern", "setFeatureCompatibilityVersion": "setFeatureCompatibilityVersion",
    "killAllSessions": "killAnySession", "replSetGetStatus": "replSetGetStatus",
    "replSetGetConfig": "replSetGetConfig", "configureFailPoint": "setParameter",
    "invalidateUserCache": "invalidateUserCache", "connPoolStats": "connPoolStats",
}  # fmt: skip
# These check the owner of what they name, or show a sender its own only.
_OPEN_TO_USERS: Final = frozenset(
    {"getMore", "killCursors", "listDatabases", "currentOp", "usersInfo", "updateUser", "rolesInfo"}
)
# For rows without an action of their own.
_BY_ACCESS: Final = {
    Access.READ: ("find",),
    Access.WRITE: ("insert", "update", "remove"),
    Access.DATABASE_ADMIN: ("collMod",),
    Access.USER_ADMIN: ("createUser",),
}


def check_rights(call: Call) -> None:
    """Refuse a command that the logged-in user has no right to (13)."""
    rights = call.connection.rights
    for action, resource in needs_of(call):
        if rights is None or not rights.allow(action, resource):
            raise refusal(call)


def refusal(call: Call) -> MongoFailure:
    shown = f"{{ {call.name}: {shell_text(call.target)}, ... }}"[:300]
    return MongoFailure(13, f"not authorized on {call.database} to execute command {shown}")


def may(call: Call, action: str, resource: Resource) -> bool:
    """True if the sender has a right; the account itself has all."""
    rights = call.connection.rights
    return call.connection.is_owner or (rights is not None and rights.allow(action, resource))


def needs_of(call: Call) -> Needs:
    """Yield what a command needs beyond a login."""
    yield from _needs(call, call.command.name, call.body)


def _needs(call: Call, name: str, body: Document) -> Needs:
    special = _SPECIAL.get(name)
    if special is not None:
        yield from special(call, body)
    elif name in _ON_COLLECTION:
        yield _ON_COLLECTION[name], _place(call.database, body)
    elif name in _ON_DATABASE:
        yield _ON_DATABASE[name], (call.database, "")
    elif name in _ON_CLUSTER:
        yield _ON_CLUSTER[name], None
    elif name in _OPEN_TO_USERS:
        return
    elif call.command.access is Access.CLUSTER_ADMIN:
        yield "setClusterParameter", None
    else:
        for action in _BY_ACCESS.get(call.command.access, ()):
            yield action, _place(call.database, body)


def _place(database: str, body: Document) -> Resource:
    target = next(iter(body.values()), "")
    return (database, target) if type(target) is str else (database, "")


def _split(namespace: Any) -> Resource:
    database, _, collection = str(namespace).partition(".")
    return database, collection


# --- commands that touch several places -----------------------------------------------------------------------------


def _update(call: Call, body: Document) -> Needs:
    place = _place(call.database, body)
    yield "update", place
    if any(statement.get("upsert") for statement in _documents(call, body, "updates")):
        yield "insert", place


def _find_and_modify(call: Call, body: Document) -> Needs:
    place = _place(call.database, body)
    yield "find", place
    yield "remove" if body.get("remove") else "update", place
    if body.get("upsert"):
        yield "insert", place


_BULK_ACTIONS: Final = {"insert": "insert", "update": "update", "delete": "remove"}


def _bulk_write(call: Call, body: Document) -> Needs:
    places = [_split(entry.get("ns", "")) for entry in _documents(call, body, "nsInfo")]
    for operation in _documents(call, body, "ops"):
        name = next(iter(operation), "")
        number = operation.get(name)
        # Wrong ones are refused by the command itself.
        if name in _BULK_ACTIONS and type(number) is int and 0 <= number < len(places):
            yield _BULK_ACTIONS[name], places[number]
            if operation.get("upsert"):
                yield "insert", places[number]


def _aggregate(call: Call, body: Document) -> Needs:
    place = _place(call.database, body)
    pipeline = body.get("pipeline")
    stages = [stage for stage in pipeline if isinstance(stage, dict)] if isinstance(pipeline, list) else []
    first = next(iter(stages[0]), "") if stages else ""
    if first == "$changeStream":
        options = stages[0][first]
        is_whole = isinstance(options, dict) and bool(options.get("allChangesForCluster"))
        place = ("", "") if is_whole else place
        yield "changeStream", place
        yield "find", place
    elif first == "$currentOp":
        if not (isinstance(stages[0][first], dict) and not stages[0][first].get("allUsers")):
            yield "inprog", None
    elif first == "$collStats":
        yield "collStats", place
    elif first == "$indexStats":
        yield "indexStats", place
    elif first not in ("$documents", "$listLocalSessions", "$listSessions"):
        yield "find", place
    yield from _stages(call.database, stages, depth=0)


_JOINS: Final = {"$lookup": "from", "$graphLookup": "from", "$unionWith": "coll"}
# Deeper pipelines are refused by their compiler.
_DEPTH_MAX: Final = 100


def _stages(database: str, stages: list[Any], *, depth: int) -> Needs:
    for stage in stages:
        if not isinstance(stage, dict) or depth > _DEPTH_MAX:
            continue
        for name, options in stage.items():
            if name in _JOINS:
                yield from _join(database, name, options, depth)
            elif name == "$facet" and isinstance(options, dict):
                for part in options.values():
                    yield from _stages(database, part if isinstance(part, list) else [], depth=depth + 1)
            elif name == "$out":
                place = _target(database, options)
                yield "insert", place
                yield "remove", place
            elif name == "$merge":
                into = options.get("into") if isinstance(options, dict) else options
                place = _target(database, into)
                yield "insert", place
                yield "update", place


def _join(database: str, name: str, options: Any, depth: int) -> Needs:
    if type(options) is str:
        yield "find", (database, options)
        return
    if not isinstance(options, dict):
        return
    source = options.get(_JOINS[name])
    if source is not None:
        yield "find", _target(database, source)
    pipeline = options.get("pipeline")
    yield from _stages(database, pipeline if isinstance(pipeline, list) else [], depth=depth + 1)


def _target(database: str, target: Any) -> Resource:
    if isinstance(target, dict):
        return str(target.get("db", database)), str(target.get("coll", ""))
    return database, str(target) if type(target) is str else ""


def _explain(call: Call, body: Document) -> Needs:
    inner = next(iter(body.values()), None)
    if isinstance(inner, dict) and inner:
        from asterism.apis.mongo.table import COMMANDS

        name = next(iter(inner))
        yield from _needs(call, COMMANDS[name].name if name in COMMANDS else name, inner)


def _map_reduce(call: Call, body: Document) -> Needs:
    yield "find", _place(call.database, body)
    out = body.get("out")
    names = [out] if isinstance(out, str) else list(out.values()) if isinstance(out, dict) else []
    for name in names:
        if isinstance(name, str):
            place = (str(out.get("db", call.database)) if isinstance(out, dict) else call.database, name)
            yield "insert", place
            yield "remove", place


def _rename(_: Call, body: Document) -> Needs:
    source, target = _split(next(iter(body.values()))), _split(body.get("to"))
    if source is not None and target is not None and source[0] == target[0]:
        yield "renameCollectionSameDB", source
        yield "renameCollectionSameDB", target
        return
    yield "find", source
    yield "dropCollection", source
    yield "insert", target
    yield "createIndex", target


def _data_size(_: Call, body: Document) -> Needs:
    yield "find", _split(next(iter(body.values())))


def _sharding(_: Call, body: Document) -> Needs:
    yield "enableSharding", _split(next(iter(body.values())))


def _documents(call: Call, body: Document, name: str) -> list[Document]:
    """Return the documents of an array of a command, from its body or from beside it."""
    beside = call.sections.get(name)
    if beside is None:
        found = body.get(name)
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    try:
        return [decode(raw) for raw in beside]
    except InvalidBson:
        # The command refuses it.
        return []


_SPECIAL: Final[dict[str, Callable[[Any, Document], Needs]]] = {
    "update": _update,
    "findAndModify": _find_and_modify,
    "bulkWrite": _bulk_write,
    "aggregate": _aggregate,
    "explain": _explain,
    "mapReduce": _map_reduce,
    "renameCollection": _rename,
    "dataSize": _data_size,
    "enableSharding": _sharding,
    "shardCollection": _sharding,
    "reshardCollection": _sharding,
    "refineCollectionShardKey": _sharding,
    "split": _sharding,
    "moveChunk": _sharding,
    "mergeChunks": _sharding,
}
