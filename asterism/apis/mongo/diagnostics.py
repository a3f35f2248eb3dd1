"""Commands about the server itself, which drivers, shells and tools send when they connect."""

from __future__ import annotations

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.fail_points import configure_fail_point
from asterism.apis.mongo.hello import DOCUMENT_BYTES_MAX, hello
from asterism.apis.mongo.monitoring.server_status import VERSION
from asterism.values.bson.types import Document


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
    Command("configureFailPoint", configure_fail_point, "Failures for tests.", admin_only=True,
            ignores_unknown_fields=True),
    Command("getLastRequestStatistics", last_request_statistics, "The charge of the last command."),
)  # fmt: skip
