"""Commands under way, idle connections, idle cursors and idle transactions, as `currentOp` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from asterism.values.bson.types import Binary, DatetimeMS, Document, Int64

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.connection import Connection
    from asterism.apis.mongo.cursors import Cursor

# Commands above this size are cut off, if the client wants that.
COMMAND_BYTES_MAX: Final = 1024


def running_operations(call: Call, options: Document) -> list[Document]:
    """Return the documents of `$currentOp` for the options of the stage."""
    shown = list(_active(call, options))
    if options.get("idleConnections"):
        shown += _idle_connections(call, options)
    if options.get("idleCursors"):
        shown += [_idle_cursor(call, cursor) for cursor in call.context.cursors.idle(call.account)]
    if options.get("idleSessions", True):
        shown += _idle_sessions(call)
    return shown


def _is_shown(call: Call, connection: Connection, options: Document) -> bool:
    if connection.account != call.account:
        return False
    return bool(options.get("allUsers")) or connection.user == call.connection.user


def _active(call: Call, options: Document) -> Iterator[Document]:
    # The commands' module knows this one by way of the run context of pipelines.
    from asterism.apis.mongo.monitoring.current_operations import describe_operations

    for shown in describe_operations(call):
        operation = call.context.operations.under_way.get(shown.get("opid", 0))
        if operation is None:
            yield shown
            continue
        other = operation.call
        if not _is_shown(call, other.connection, options):
            continue
        if options.get("truncateOps") and len(other.raw) > COMMAND_BYTES_MAX:
            shown["command"] = _cut(shown["command"])
        if other.session is not None:
            shown["lsid"] = _session(other.session)
        if other.command.name == "getMore":
            shown["cursor"] = {"cursorId": other.target, "operationUsingCursorId": Int64(shown["opid"])}
        if other.transaction is not None:
            shown["transaction"] = {"parameters": {"txnNumber": Int64(other.transaction.number), "autocommit": False}}
        yield shown


def _connection(call: Call, connection: Connection) -> Document:
    shown: Document = {
        "type": "op",
        "host": connection.local_address,
        "desc": f"conn{connection.number}",
        "connectionId": connection.number,
        "client": connection.peer_address,
        "active": False,
        "currentOpTime": call.context.now(),
    }
    if connection.application:
        shown["appName"] = connection.application
    if connection.user:
        shown["effectiveUsers"] = [{"user": connection.user, "db": "admin"}]
    return shown


def _idle_connections(call: Call, options: Document) -> Iterator[Document]:
    operations = call.context.operations
    busy = {operation.call.connection.number for operation in operations.under_way.values()}
    for connection in list(operations.open_connections.values()):
        if connection.number not in busy and _is_shown(call, connection, options):
            yield _connection(call, connection)


def _cut(command: Document) -> Document:
    cut: Document = {"$truncated": repr(command)[:COMMAND_BYTES_MAX]}
    if "comment" in command:
        cut["comment"] = command["comment"]
    return cut


def _session(session: bytes) -> Document:
    return {"id": Binary(session[:16], 4)}


def _idle_cursor(call: Call, cursor: Cursor) -> Document:
    idle_seconds = call.context.monotonic_seconds() - cursor.used_at
    shown: Document = {
        "type": "idleCursor",
        "host": call.connection.local_address,
        "ns": cursor.namespace,
        "cursor": {
            "cursorId": Int64(cursor.number),
            "lastAccessDate": DatetimeMS(int(call.now) - int(idle_seconds * 1000)),
            "noCursorTimeout": cursor.never_times_out,
            "tailable": cursor.waits,
            "awaitData": cursor.patience is not None,
        },
    }
    if cursor.session is not None:
        shown["lsid"] = _session(cursor.session)
    return shown


def _idle_sessions(call: Call) -> list[Document]:
    busy = {id(operation.call.transaction) for operation in call.context.operations.under_way.values()}
    return [
        {
            "type": "idleSession",
            "host": call.connection.local_address,
            "active": False,
            "lsid": _session(transaction.session),
            "transaction": {"parameters": {"txnNumber": Int64(transaction.number), "autocommit": False}},
        }
        for transaction in call.context.transactions.opened()
        if id(transaction) not in busy
    ]
