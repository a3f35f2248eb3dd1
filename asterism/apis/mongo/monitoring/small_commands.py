"""Small commands about the process, and those that are refused with a sentence about why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.apis.mongo.arguments import ARRAY, as_bool
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Access, Command, FieldRule, Handler
from asterism.apis.mongo.operations import Usage
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document, Int64

_PORT_MAX: Final = 65_535


async def list_commands(_: Call) -> Document:
    from asterism.apis.mongo.table import COMMANDS as ALL

    rows = {command.name: command for command in ALL.values()}
    return {
        "commands": {
            name: {
                "help": row.help,
                "requiresAuth": row.access is not Access.NOBODY,
                "secondaryOk": not row.is_write,
                "adminOnly": row.admin_only,
                "apiVersions": ["1"] if row.api_version_1 else [],
                "deprecatedApiVersions": [],
            }
            for name, row in sorted(rows.items())
        }
    }


# --- top ------------------------------------------------------------------------------------------------------------

# The kinds that `top` shows, with the commands that belong to each.
_TOP: Final[dict[str, Callable[[str], bool]]] = {
    "total": lambda _: True,
    "readLock": lambda name: name in ("find", "aggregate", "count", "distinct", "getMore"),
    "writeLock": lambda name: name in ("insert", "update", "delete", "findAndModify"),
    "queries": lambda name: name == "find",
    "getmore": lambda name: name == "getMore",
    "insert": lambda name: name == "insert",
    "update": lambda name: name == "update",
    "remove": lambda name: name == "delete",
    "commands": lambda name: name not in ("find", "getMore", "insert", "update", "delete"),
}


async def top(call: Call) -> Document:
    """Return how often and how long each collection was used since the start of the process."""
    totals: Document = {"note": "all times in microseconds"}
    for (account, namespace), usage in sorted(call.context.operations.usage.items()):
        if account == call.account:
            totals[namespace] = {kind: _sum(usage, belongs) for kind, belongs in _TOP.items()}
    return {"totals": totals}


def _sum(usage: Usage, belongs: Callable[[str], bool]) -> Document:
    names = [name for name in usage.counts if belongs(name)]
    microseconds = int(sum(usage.seconds.get(name, 0.0) for name in names) * 1_000_000)
    return {"time": Int64(microseconds), "count": Int64(sum(usage.counts[name] for name in names))}


# --- connections to other servers, of which there are none ----------------------------------------------------------


async def connection_pools(_: Call) -> Document:
    counts = ("numClientConnections", "numAScopedConnections")
    totals = ("totalInUse", "totalAvailable", "totalLeased", "totalCreated", "totalRefreshing", "totalRefreshed")
    answer: Document = dict.fromkeys(counts + totals, 0)
    return {**answer, "pools": {}, "hosts": {}, "replicaSets": {}}


async def drop_connections(call: Call) -> Document:
    """Check the addresses. There are no connections to other servers that could be dropped."""
    for address in call.body["hostAndPort"]:
        if address is None:
            continue
        if type(address) is not str:
            raise MongoFailure(14, "BSON field 'dropConnections.hostAndPort' must be an array of strings")
        _check_address(address)
    return {}


def _check_address(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if address.startswith("["):
        host, colon, port = address.rpartition("]:")
    if not colon:
        host, port = address, "27017"
    is_number = port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX
    if not host or not is_number or (":" in host and not host.startswith("[")):
        raise MongoFailure(9, f"'{address}' is no host and port")


async def lock_info(_: Call) -> Document:
    """Return no locks: writers meet at versions of documents, not at locks."""
    return {"lockInfo": []}


# --- the version of features ----------------------------------------------------------------------------------------

_VERSION: Final = "7.0"


async def set_feature_version(call: Call) -> Document:
    """Confirm the only version there is."""
    wanted: Any = call.target
    if wanted is None:
        raise MongoFailure(40414, "BSON field 'setFeatureCompatibilityVersion' is missing but a required field")
    if type(wanted) is not str:
        raise MongoFailure(14, "BSON field 'setFeatureCompatibilityVersion' is the wrong type, expected type 'string'")
    confirm = call.get("confirm")
    if confirm is None or not as_bool(confirm):
        raise MongoFailure(7369100, "Once you have changed the version, add 'confirm: true' to the command")
    if wanted != _VERSION:
        raise MongoFailure(4926900, f"The only version of features is '{_VERSION}'")
    return {}


# --- refused --------------------------------------------------------------------------------------------------------


def _refusing(sentence: str) -> Handler:
    async def refuse(call: Call) -> Document:
        raise MongoFailure(115, f"{call.command.name} is not served: {sentence}")

    return refuse


_REFUSED: Final = {
    "autoCompact": "the store uses the room of deleted documents again by itself.",
    "rotateCertificates": "restart the server to read its certificate again.",
    "setClusterParameter": "give options to `asterism serve` instead.",
    "getClusterParameter": "there are none; `getParameter` shows those of the process.",
    "setIndexCommitQuorum": "an index is built when createIndexes answers.",
    "replSetGetConfig": "the set has one member; `hello` shows it.",
    "replSetReconfig": "the set has one member and cannot be changed.",
    "shutdown": "stop the process that runs `asterism serve`.",
}

COMMANDS = (
    Command("listCommands", list_commands, "All commands.", ignores_unknown_fields=True),
    Command("top", top, "The use of each collection.", admin_only=True, ignores_unknown_fields=True),
    Command("connPoolStats", connection_pools, "Connections to other servers.", ignores_unknown_fields=True),
    Command("dropConnections", drop_connections, "Drop connections to other servers.", admin_only=True,
            fields={"hostAndPort": FieldRule(ARRAY, is_required=True, null_code=40414)},
            access=Access.CLUSTER_ADMIN),
    Command("lockInfo", lock_info, "Locks.", admin_only=True, ignores_unknown_fields=True),
    Command("setFeatureCompatibilityVersion", set_feature_version, "Confirm the version of features.",
            admin_only=True, access=Access.CLUSTER_ADMIN,
            fields={"confirm": FieldRule(("bool", "int", "long", "double", "decimal"))}),
    *(
        Command(name, _refusing(sentence), "Refused.", admin_only=True, ignores_unknown_fields=True,
                access=Access.CLUSTER_ADMIN)
        for name, sentence in _REFUSED.items()
    ),
)  # fmt: skip
