"""Commands about the server itself, which drivers, shells and tools send when they connect."""

from __future__ import annotations

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.hello import DOCUMENT_BYTES_MAX, SESSION_MINUTES, hello
from asterism.apis.mongo.monitoring.server_status import VERSION
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Binary, Document


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
