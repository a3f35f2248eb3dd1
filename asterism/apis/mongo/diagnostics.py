"""Commands about the server itself, which drivers, shells and tools send when they connect."""

from __future__ import annotations

import os
import platform

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.hello import DOCUMENT_BYTES_MAX, SESSION_MINUTES, hello
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Binary, Document, Int64

VERSION = "7.0.0"
_MEGABYTE = 1024 * 1024
_PARAMETERS: Document = {
    "enableTestCommands": False,
    "authenticationMechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"],
    "featureCompatibilityVersion": {"version": "7.0"},
    "requireApiVersion": False,
    "transactionLifetimeLimitSeconds": 60,
    "maxTransactionLockRequestTimeoutMillis": 5,
    "internalQueryMaxBlockingSortMemoryUsageBytes": 100 * _MEGABYTE,
    "ttlMonitorEnabled": True,
    "ttlMonitorSleepSecs": 2,
    "logLevel": 0,
    "quiet": False,
}


async def _nothing(_: Call) -> Document:
    return {}


async def build_info(_: Call) -> Document:
    return {
        "version": VERSION,
        "gitVersion": "asterism",
        "modules": [],
        "allocator": "system",
        "javascriptEngine": "none",
        "sysInfo": "deprecated",
        "versionArray": [int(part) for part in VERSION.split(".")] + [0],
        "openssl": {"running": "python", "compiled": "python"},
        "bits": 64,
        "debug": False,
        "maxBsonObjectSize": DOCUMENT_BYTES_MAX,
        "storageEngines": ["asterism"],
    }


async def whats_my_uri(call: Call) -> Document:
    return {"you": call.connection.peer_address}


async def get_command_line(call: Call) -> Document:
    is_open = call.context.authenticator.is_open_to(call.connection)
    parsed = {} if is_open else {"security": {"authorization": "enabled"}}
    return {"argv": ["asterism", "serve"], "parsed": parsed}


async def server_status(call: Call) -> Document:
    context, operations = call.context, call.context.operations
    uptime = context.monotonic_seconds() - context.started_at
    counts = operations.counts
    return {
        "host": platform.node(),
        "version": VERSION,
        "process": "mongod",
        "service": ["mongod"],
        "pid": Int64(os.getpid()),
        "uptime": uptime,
        "uptimeMillis": Int64(int(uptime * 1000)),
        "uptimeEstimate": Int64(int(uptime)),
        "localTime": context.now(),
        "asserts": {"regular": 0, "warning": 0, "msg": 0, "user": 0, "rollovers": 0},
        "connections": {
            "current": operations.connections,
            "available": 100_000 - operations.connections,
            "totalCreated": operations.connections_created,
            "active": len(operations.under_way),
        },
        "network": {"bytesIn": Int64(0), "bytesOut": Int64(0), "numRequests": Int64(sum(counts.values()))},
        "opcounters": {
            "insert": Int64(counts["insert"]),
            "query": Int64(counts["find"]),
            "update": Int64(counts["update"]),
            "delete": Int64(counts["delete"]),
            "getmore": Int64(counts["getMore"]),
            "command": Int64(sum(counts.values())),
        },
        "logicalSessionRecordCache": {"activeSessionsCount": 0},
        "mem": {"bits": 64, "resident": 0, "virtual": 0, "supported": True},
        "metrics": {"cursor": {"open": {"total": Int64(len(context.cursors))}}},
        "repl": {"setName": "globaldb", "isWritablePrimary": True},
        "storageEngine": {"name": "asterism", "supportsCommittedReads": True, "persistent": True},
    }


async def get_parameter(call: Call) -> Document:
    wanted = call.target
    known = {**_PARAMETERS, **call.context.parameters}
    known["enableTestCommands"] = call.context.fail_points is not None
    if wanted == "*" or (isinstance(wanted, dict) and wanted.get("allParameters")):
        return known
    found = {name: known[name] for name in call.body if name in known}
    if not found:
        raise MongoFailure(72, "no option found to get")
    return found


async def set_parameter(call: Call) -> Document:
    names = [name for name in call.body if name in _PARAMETERS]
    if not names:
        raise MongoFailure(72, "no option found to set, use help:true to see options")
    before = {**_PARAMETERS, **call.context.parameters}
    for name in names:
        call.context.parameters[name] = call.body[name]
    return {"was": before[names[0]]}


async def host_info(call: Call) -> Document:
    return {
        "system": {
            "currentTime": call.context.now(),
            "hostname": platform.node(),
            "cpuAddrSize": 64,
            "numCores": os.cpu_count() or 1,
            "cpuArch": platform.machine(),
        },
        "os": {"type": platform.system(), "name": platform.system(), "version": platform.release()},
        "extra": {},
    }


async def get_log(call: Call) -> Document:
    if call.target == "*":
        return {"names": ["global", "startupWarnings"]}
    if call.target not in ("global", "startupWarnings"):
        raise MongoFailure(96, f"no RamLog named: {call.target}")
    return {"totalLinesWritten": 0, "log": []}


async def list_commands(_: Call) -> Document:
    from asterism.apis.mongo.table import COMMANDS

    rows = {command.name: command for command in COMMANDS.values()}
    return {
        "commands": {
            name: {"help": row.help, "adminOnly": row.admin_only, "requiresAuth": row.access is not Access.NOBODY}
            for name, row in sorted(rows.items())
        }
    }


async def current_op(call: Call) -> Document:
    shown = [
        {"type": "op", "opid": number, "active": True, "ns": other.database, "command": {other.command.name: 1}}
        for number, other in call.context.operations.under_way.items()
        if other.account == call.account
    ]
    return {"inprog": shown}


async def get_default_concerns(call: Call) -> Document:
    return {
        "defaultReadConcern": {"level": "local"},
        "defaultWriteConcern": {"w": "majority", "wtimeout": 0},
        "defaultReadConcernSource": "implicit",
        "defaultWriteConcernSource": "implicit",
        "localUpdateWallClockTime": call.context.now(),
    }


# --- sessions and transactions --------------------------------------------------------------------------------------


async def start_session(call: Call) -> Document:
    identity = bytearray(call.services.random_bytes(16))
    identity[6], identity[8] = identity[6] & 0x0F | 0x40, identity[8] & 0x3F | 0x80
    return {"id": {"id": Binary(bytes(identity), 4)}, "timeoutMinutes": SESSION_MINUTES}


async def end_sessions(call: Call) -> Document:
    for lsid in call.target if isinstance(call.target, list) else ():
        session = lsid.get("id") if isinstance(lsid, dict) else None
        if isinstance(session, bytes):
            named = bytes(session) + call.connection.user.encode()
            await call.context.transactions.end_session(named)
            await call.context.cursors.end_session(named)
    return {}


async def commit_transaction(call: Call) -> Document:
    session, number = _transaction_of(call)
    await call.context.transactions.commit(session, number)
    return {}


async def abort_transaction(call: Call) -> Document:
    session, number = _transaction_of(call)
    await call.context.transactions.abort(session, number)
    return {}


def _transaction_of(call: Call) -> tuple[bytes, int]:
    if call.session is None or call.txn_number is None or not call.is_in_transaction:
        raise MongoFailure(125, f"{call.command.name} must be run within a transaction")
    return call.session, call.txn_number


async def configure_fail_point(call: Call) -> Document:
    if call.context.fail_points is None:
        raise MongoFailure(59, "no such command: 'configureFailPoint' (start the server with --test-controls)")
    if call.target != "failCommand":
        raise MongoFailure(2, f"The only fail point is failCommand, not {call.target}")
    call.context.fail_points.configure(call.body.get("mode"), call.get("data", {}))
    return {}


async def last_request_statistics(call: Call) -> Document:
    connection = call.connection
    return {
        "_t": "GetRequestStatisticsResponse",
        "ok": 1.0,
        "CommandName": connection.last_command,
        "RequestCharge": round(connection.last_charge, 2),
        "RequestDurationInMilliSeconds": connection.last_milliseconds,
    }


_OPEN = Access.NOBODY

COMMANDS = (
    Command("hello", hello, "The server and its set.", aliases=("isMaster", "ismaster"), access=_OPEN,
            ignores_unknown_fields=True, api_version_1=True),
    Command("ping", _nothing, "Nothing, from a server that is there.", access=_OPEN, api_version_1=True),
    Command("buildInfo", build_info, "The version.", aliases=("buildinfo",), access=_OPEN, api_version_1=True),
    Command("whatsmyuri", whats_my_uri, "The address of the client.", access=_OPEN, ignores_unknown_fields=True),
    Command("getCmdLineOpts", get_command_line, "How the server was started.", admin_only=True),
    Command("serverStatus", server_status, "Counters of the server.", ignores_unknown_fields=True),
    Command("getParameter", get_parameter, "Parameters.", admin_only=True, ignores_unknown_fields=True),
    Command("setParameter", set_parameter, "Change a parameter.", admin_only=True, ignores_unknown_fields=True),
    Command("hostInfo", host_info, "The machine."),
    Command("getLog", get_log, "Lines of the log.", admin_only=True),
    Command("listCommands", list_commands, "All commands."),
    Command("currentOp", current_op, "Commands under way.", admin_only=True, ignores_unknown_fields=True),
    Command("getDefaultRWConcern", get_default_concerns, "Default concerns.", admin_only=True,
            ignores_unknown_fields=True),
    Command("startSession", start_session, "A new session.", api_version_1=True),
    Command("endSessions", end_sessions, "End sessions.", aliases=("killSessions",), api_version_1=True,
            access=_OPEN),
    Command("refreshSessions", _nothing, "Keep sessions.", api_version_1=True),
    Command("killAllSessions", _nothing, "End sessions of users.", aliases=("killAllSessionsByPattern",)),
    Command("commitTransaction", commit_transaction, "Commit.", admin_only=True, in_transaction=True,
            api_version_1=True, ignores_unknown_fields=True),
    Command("abortTransaction", abort_transaction, "Abort.", admin_only=True, in_transaction=True, api_version_1=True,
            ignores_unknown_fields=True),
    Command("configureFailPoint", configure_fail_point, "Failures for tests.", admin_only=True,
            ignores_unknown_fields=True),
    Command("getLastRequestStatistics", last_request_statistics, "The charge of the last command."),
)  # fmt: skip
