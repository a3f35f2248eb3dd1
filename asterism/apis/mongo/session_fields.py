"""The fields of sessions, transactions and concerns that any command may have."""

from __future__ import annotations

from typing import Any

from asterism.apis.mongo.arguments import wrong_type
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.data.concerns import check_read_concern, check_write_concern
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import exact_value, is_nan
from asterism.values.bson.types import Timestamp

_INT32_MAX = 2**31 - 1


async def read_session_fields(call: Call) -> None:
    """Read session, transaction, time limit and concerns into the call; MongoFailure for what cannot be."""
    body = call.body
    _read_session(call, body.get("lsid"))
    _read_time(call, body.get("maxTimeMS"))
    _read_concerns(call)
    gossip = body.get("$clusterTime")
    if isinstance(gossip, dict) and isinstance(gossip.get("clusterTime"), Timestamp):
        time = gossip["clusterTime"]
        call.store.services.hybrid_clock.hear((time.time << 32) | time.inc)
    if call.txn_number is not None or "autocommit" in body or "startTransaction" in body:
        await _read_transaction(call)


def _read_session(call: Call, lsid: Any) -> None:
    if lsid is not None:
        if not isinstance(lsid, dict):
            raise wrong_type("lsid", lsid, ("object",))
        session = lsid.get("id")
        if not isinstance(session, bytes) or len(session) != 16:
            raise MongoFailure(14 if not isinstance(session, bytes) else 207, "BSON field 'lsid.id' must be a UUID")
        call.session = bytes(session) + call.connection.user.encode()
    number = call.body.get("txnNumber")
    if number is not None:
        if not isinstance(number, int) or isinstance(number, bool):
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


def _read_concerns(call: Call) -> None:
    read, write = call.body.get("readConcern"), call.body.get("writeConcern")
    check_read_concern(call, read)
    check_write_concern(call, write)
    call.read_concern, call.write_concern = read, write


async def _read_transaction(call: Call) -> None:
    body = call.body
    autocommit, starts = body.get("autocommit"), body.get("startTransaction")
    if autocommit is None and starts is None:
        return
    if call.txn_number is None:
        raise MongoFailure(72, "'autocommit' and 'startTransaction' require a transaction number")
    if autocommit is not False:
        raise MongoFailure(72, "Specifying autocommit=true is not allowed.")
    if starts is not None and starts is not True:
        raise MongoFailure(72, "Specifying startTransaction=false is not allowed.")
    call.is_in_transaction = True
    call.starts_transaction = bool(starts)
    if call.command.name in ("commitTransaction", "abortTransaction"):
        return
    if not call.command.in_transaction:
        raise MongoFailure(263, f"Cannot run '{call.command.name}' in a multi-document transaction.")
    assert call.session is not None, "a transaction number comes with a session"
    transactions = call.context.transactions
    if starts:
        call.transaction = await transactions.begin(call.session, call.txn_number)
    else:
        if call.read_concern is not None:
            raise MongoFailure(72, "Only the first command in a transaction may specify a readConcern")
        call.transaction = await transactions.find(call.session, call.txn_number)
    if call.write_concern is not None:
        raise MongoFailure(72, "writeConcern is not allowed within a multi-statement transaction")
