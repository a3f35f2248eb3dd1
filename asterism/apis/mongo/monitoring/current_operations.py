"""Commands under way: shown by `currentOp` and the stage `$currentOp`, ended by `killOp`."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.administration.cursor_options import matcher_of
from asterism.apis.mongo.arguments import as_int
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.index_build import BuildProgress
from asterism.models.collections.store import ACCOUNT_PREFIX
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import exact_value, is_nan
from asterism.values.bson.types import Document, Int64

_INT32_MAX: Final = 2**31 - 1
# The kind of a command, as the profiler and `currentOp` name it.
_KINDS: Final = {
    "find": "query",
    "insert": "insert",
    "update": "update",
    "delete": "remove",
    "getMore": "getmore",
}
# Fields of the command that choose, and are no conditions on what is shown.
_CHOICES: Final = frozenset({"currentOp", "lsid", "comment", "apiVersion", "apiStrict", "maxTimeMS"})


def operation_kind(command: str) -> str:
    return _KINDS.get(command, "command")


def describe_operations(call: Call) -> list[Document]:
    """Return the commands and index builds of the account that are under way in this process."""
    context = call.context
    now = context.monotonic_seconds()
    shown: list[Document] = []
    for number, operation in context.operations.under_way.items():
        other = operation.call
        if other.account != call.account:
            continue
        seconds = now - operation.started_at
        entry: Document = {
            "type": "op",
            "host": other.connection.local_address,
            "desc": f"conn{other.connection.number}",
            "connectionId": other.connection.number,
            "client": other.connection.peer_address,
            "appName": other.connection.application,
            "active": True,
            "currentOpTime": context.now(),
            "opid": number,
            "secs_running": Int64(int(seconds)),
            "microsecs_running": Int64(int(seconds * 1_000_000)),
            "op": operation_kind(other.command.name),
            "ns": namespace_of(other),
            "command": _shown_command(other),
            "numYields": 0,
            "waitingForLock": False,
        }
        if other.is_killed:
            entry["killPending"] = True
        shown.append(entry)
    own = {
        record.rid
        for record in call.store.catalog.databases.values()
        if record.account == ACCOUNT_PREFIX + call.account
    }
    builds = [build for build in call.store.indexes.builder.under_way if build.keyspace.record.database_rid in own]
    return shown + [_describe_build(build) for build in builds]


def _describe_build(build: BuildProgress) -> Document:
    names = ", ".join(build.names)
    return {
        "type": "op",
        "desc": "IndexBuildsCoordinator",
        "active": True,
        "op": "command",
        "ns": build.namespace,
        "command": {"createIndexes": build.namespace.partition(".")[2], "indexes": list(build.names)},
        "msg": f"Index Build: {names}: {build.done}/{build.total}",
        "progress": {"done": Int64(build.done), "total": Int64(build.total)},
    }


def namespace_of(call: Call) -> str:
    target = call.body.get(call.name)
    return f"{call.database}.{target}" if isinstance(target, str) else f"{call.database}.$cmd"


def _shown_command(call: Call) -> Document:
    """Return a command without its documents, which may be many."""
    return {name: value for name, value in call.body.items() if name not in ("documents", "$clusterTime", "lsid")}


async def current_op(call: Call) -> Document:
    conditions = {name: value for name, value in call.body.items() if name not in _CHOICES and name[:1] != "$"}
    matches = matcher_of(call, conditions)
    return {"inprog": [entry for entry in describe_operations(call) if matches(entry)]}


async def kill_op(call: Call) -> Document:
    """Ask a command to end; it does so at its next pause."""
    if "op" not in call.body:
        raise MongoFailure(4, 'Missing expected field "op"')
    wanted: Any = call.body["op"]
    if not is_number(wanted):
        raise MongoFailure(14, 'Expected field "op" to be a number')
    if is_nan(wanted) or exact_value(wanted) != as_int(wanted):
        raise MongoFailure(2, 'Expected field "op" to have a value exactly representable as a 64-bit integer')
    number = as_int(wanted)
    if not -_INT32_MAX - 1 <= number <= _INT32_MAX:
        raise MongoFailure(26823, f"invalid op : {number}")
    operation = call.context.operations.under_way.get(number)
    if operation is not None and operation.call.account == call.account:
        operation.call.is_killed = True
    return {"info": "attempting to kill op"}


COMMANDS = (
    Command("currentOp", current_op, "Commands under way.", admin_only=True, ignores_unknown_fields=True),
    Command("killOp", kill_op, "End a command.", admin_only=True, ignores_unknown_fields=True,
            access=Access.CLUSTER_ADMIN),
)  # fmt: skip
