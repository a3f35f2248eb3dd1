"""The fields of sessions, transactions and concerns that any command may have."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import check_document, wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Command, FieldRule
from asterism.apis.mongo.data.concerns import check_read_concern, check_write_concern
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import exact_value, is_nan
from asterism.values.bson.types import Binary, Document, Int64, Timestamp

_INT32_MAX = 2**31 - 1
_UUID_SUBTYPE = 4
_UUID_BYTES = 16
SESSION_FIELDS: Final = {
    "id": FieldRule(("binData",), is_required=True),
    "uid": FieldRule(("binData",)),
    "txnNumber": FieldRule(("long",)),
    "txnUUID": FieldRule(("binData",)),
}
_RETRYABLE: Final = frozenset({"insert", "update", "delete", "findAndModify", "bulkWrite"})
_ENDING: Final = frozenset({"commitTransaction", "abortTransaction"})
# They go on with what an earlier command of the transaction has begun.
_NEVER_FIRST: Final = frozenset({"getMore", "killCursors"})


def check_in_transaction(command: Command, body: Document) -> None:
    """Refuse a command that cannot be part of a transaction, before anything else about it is looked at."""
    if body.get("autocommit") is False and not command.in_transaction:
        raise MongoFailure(263, f"Cannot run '{command.name}' in a multi-document transaction.")


def read_session_fields(call: Call) -> None:
    """Read session, transaction number, time limit and concerns into the call; MongoFailure for what cannot be."""
    body = call.body
    lsid = body.get("lsid")
    if lsid is not None:
        call.session = session_of(lsid, "lsid", call.connection.user)
        call.context.sessions.use(call.session, call.connection)
    _read_number(call, body.get("txnNumber"))
    _read_time(call, body.get("maxTimeMS"))
    read, write = body.get("readConcern"), body.get("writeConcern")
    check_read_concern(call, read)
    check_write_concern(call, write)
    call.read_concern, call.write_concern = read, write
    gossip = body.get("$clusterTime")
    if isinstance(gossip, dict) and isinstance(gossip.get("clusterTime"), Timestamp):
        time = gossip["clusterTime"]
        call.store.services.hybrid_clock.hear((time.time << 32) | time.inc)
    if call.txn_number is not None or "autocommit" in body or "startTransaction" in body:
        _read_transaction(call)


def session_of(lsid: Any, path: str, user: str) -> bytes:
    """Return the name of a session: its id and its user."""
    if not isinstance(lsid, dict):
        raise wrong_type(path, lsid, ("object",))
    check_document(path, lsid, SESSION_FIELDS)
    identity = lsid["id"]
    if not isinstance(identity, Binary) or identity.subtype != _UUID_SUBTYPE:
        raise MongoFailure(14, f"BSON field '{path}.id' is the wrong binData type, expected type 'UUID'")
    if len(identity) != _UUID_BYTES:
        raise MongoFailure(207, f"BSON field '{path}.id' must be a UUID of {_UUID_BYTES} bytes")
    return bytes(identity) + user.encode()


def _read_number(call: Call, number: Any) -> None:
    if number is None:
        return
    if type(number) is not Int64:
        raise wrong_type("txnNumber", number, ("long",))
    if call.session is None:
        raise MongoFailure(72, "Transaction number requires a session ID to also be specified")
    if number < 0:
        raise MongoFailure(72, "Transaction number cannot be negative")
    call.txn_number = int(number)


def _read_time(call: Call, limit: Any) -> None:
    if limit is None:
        return
    if not is_number(limit):
        raise MongoFailure(14, "BSON field 'maxTimeMS' is the wrong type, expected a number")
    exact = None if is_nan(limit) else exact_value(limit)
    if exact is None or exact in (float("inf"), float("-inf")) or exact != int(exact) or not -(2**63) <= exact < 2**63:
        raise MongoFailure(9, "maxTimeMS has non-integral value")
    milliseconds = int(exact)
    if not 0 <= milliseconds <= _INT32_MAX:
        raise MongoFailure(2, f"{milliseconds} value for maxTimeMS is out of range [0, {_INT32_MAX}]")
    call.max_time_ms = milliseconds or None
    if milliseconds and call.command.name != "getMore":
        call.deadline = call.context.monotonic_seconds() + milliseconds / 1000


def _read_transaction(call: Call) -> None:
    body = call.body
    autocommit, starts = body.get("autocommit"), body.get("startTransaction")
    for name, value in (("autocommit", autocommit), ("startTransaction", starts)):
        if value is not None and type(value) is not bool:
            raise wrong_type(name, value, ("bool",))
    if autocommit is None and starts is None:
        if call.txn_number is not None and call.command.name not in _RETRYABLE:
            raise MongoFailure(
                50768,
                "txnNumber may only be provided for multi-document transactions and retryable write commands. "
                f"autocommit:false was not provided, and {call.command.name} is not a retryable write command.",
            )
        return
    if call.txn_number is None:
        raise MongoFailure(72, "'autocommit' and 'startTransaction' require a transaction number")
    if autocommit is not False:
        raise MongoFailure(72, "Specifying autocommit=true is not allowed.")
    if starts is False:
        raise MongoFailure(72, "Specifying startTransaction=false is not allowed.")
    call.is_in_transaction = True
    call.starts_transaction = bool(starts)
    call.ends_transaction = call.command.name in _ENDING
    if call.ends_transaction:
        if starts:
            raise MongoFailure(72, f"A transaction cannot begin with {call.command.name}")
        return
    if starts and call.command.name in _NEVER_FIRST:
        raise MongoFailure(263, f"Cannot run '{call.command.name}' as the first operation of a transaction.")
    if not starts and call.read_concern is not None:
        raise MongoFailure(72, "Only the first command in a transaction may specify a readConcern")
    if call.write_concern is not None:
        raise MongoFailure(72, "writeConcern is not allowed within a multi-statement transaction")


async def enter_transaction(call: Call) -> None:
    """Find the transaction that a command belongs to, or begin it; a write of a later number ends an older one."""
    if call.txn_number is None or call.ends_transaction:
        return
    assert call.session is not None, "a transaction number comes with a session"
    transactions = call.context.transactions
    if not call.is_in_transaction:
        await transactions.pass_by(call.session, call.txn_number)
    elif call.starts_transaction:
        call.transaction = await transactions.begin(call.session, call.txn_number)
    else:
        call.transaction = await transactions.find(call.session, call.txn_number)
