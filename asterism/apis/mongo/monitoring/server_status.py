"""`serverStatus`: counters of the process, in sections that the client may leave out."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from asterism.apis.mongo.arguments import as_bool
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Command
from asterism.values.bson.kinds import is_number
from asterism.values.bson.types import Document, Int64

VERSION: Final = "7.0.0"
_CONNECTIONS_MAX: Final = 100_000
_MEGABYTE: Final = 1024 * 1024


async def server_status(call: Call) -> Document:
    context = call.context
    uptime = context.monotonic_seconds() - context.started_at
    answer: Document = {
        "host": platform.node(),
        "version": VERSION,
        "process": "mongod",
        "service": ["mongod"],
        "pid": Int64(os.getpid()),
        "uptime": uptime,
        "uptimeMillis": Int64(int(uptime * 1000)),
        "uptimeEstimate": Int64(int(uptime)),
        "localTime": context.now(),
    }
    for name, section in _SECTIONS.items():
        if _is_wanted(call.body, name, by_default=name not in _ON_DEMAND):
            answer[name] = section(call)
    return answer


def _is_wanted(body: Document, name: str, *, by_default: bool) -> bool:
    if name not in body:
        return by_default
    value: Any = body[name]
    return as_bool(value) if is_number(value) or isinstance(value, bool) else value is not None


def _connections(call: Call) -> Document:
    operations = call.context.operations
    return {
        "current": operations.connections,
        "available": _CONNECTIONS_MAX - operations.connections,
        "totalCreated": operations.connections_created,
        "active": len(operations.under_way),
    }


def _network(call: Call) -> Document:
    operations = call.context.operations
    return {
        "bytesIn": Int64(operations.bytes_in),
        "bytesOut": Int64(operations.bytes_out),
        "numRequests": Int64(sum(operations.counts.values())),
    }


def _operation_counters(call: Call) -> Document:
    counts = call.context.operations.counts
    named = {"insert": "insert", "query": "find", "update": "update", "delete": "delete", "getmore": "getMore"}
    shown: Document = {name: Int64(counts[command]) for name, command in named.items()}
    return shown | {"command": Int64(sum(counts.values()) - sum(counts[command] for command in named.values()))}


def _global_lock(call: Call) -> Document:
    """No lock stands in front of all commands, so that none waits for it."""
    context = call.context
    active = len(context.operations.under_way)
    return {
        "totalTime": Int64(int((context.monotonic_seconds() - context.started_at) * 1_000_000)),
        "currentQueue": {"total": 0, "readers": 0, "writers": 0},
        "activeClients": {"total": active, "readers": active, "writers": 0},
    }


def _catalog(call: Call) -> Document:
    counts = dict.fromkeys(("collections", "capped", "clustered", "timeseries", "views"), 0)
    for database in call.store.databases(call.account):
        for record in call.store.records(call.account, database):
            options = record.options
            counts["views" if record.is_view else "collections"] += 1
            counts["capped"] += bool(options.get("capped"))
            counts["clustered"] += "clusteredIndex" in options
            counts["timeseries"] += "timeseries" in options
    return {**counts, "internalCollections": 0, "internalViews": 0}


def _memory(_: Call) -> Document:
    try:
        pages = [int(part) for part in Path("/proc/self/statm").read_text().split()[:2]]
        virtual, resident = (count * os.sysconf("SC_PAGE_SIZE") for count in pages)
    except (OSError, ValueError):
        resident = virtual = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"bits": 64, "resident": resident // _MEGABYTE, "virtual": virtual // _MEGABYTE, "supported": True}


def _extra(_: Call) -> Document:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "note": "fields vary by platform",
        "user_time_us": Int64(int(usage.ru_utime * 1_000_000)),
        "system_time_us": Int64(int(usage.ru_stime * 1_000_000)),
        "maximum_resident_set_kb": Int64(usage.ru_maxrss),
        "page_faults": Int64(usage.ru_majflt),
    }


def _metrics(call: Call) -> Document:
    counts = call.context.operations.counts
    return {
        "commands": {name: {"total": Int64(count)} for name, count in sorted(counts.items())},
        "cursor": {"open": {"total": Int64(len(call.context.cursors))}},
    }


_SECTIONS: Final[Mapping[str, Callable[[Call], Any]]] = {
    "asserts": lambda _: {"regular": 0, "warning": 0, "msg": 0, "user": 0, "rollovers": 0},
    "catalogStats": _catalog,
    "connections": _connections,
    "extra_info": _extra,
    "globalLock": _global_lock,
    "locks": lambda _: {},
    "logicalSessionRecordCache": lambda call: {"activeSessionsCount": len(call.context.sessions)},
    "mem": _memory,
    "metrics": _metrics,
    # Nothing is read a second time for the sake of other members.
    "mirroredReads": lambda _: {"seen": Int64(0), "sent": Int64(0)},
    "network": _network,
    "opcounters": _operation_counters,
    "opcountersRepl": lambda _: {
        name: Int64(0) for name in ("insert", "query", "update", "delete", "getmore", "command")
    },
    "repl": lambda _: {"setName": "globaldb", "isWritablePrimary": True},
    "storageEngine": lambda _: {"name": "asterism", "supportsCommittedReads": True, "persistent": True},
    "transactions": lambda call: {"currentOpen": Int64(len(call.context.transactions))},
}
# Sections that are shown only to clients that ask for them.
_ON_DEMAND: Final = frozenset({"mirroredReads"})

COMMANDS = (Command("serverStatus", server_status, "Counters of the server.", ignores_unknown_fields=True),)
