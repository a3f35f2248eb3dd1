"""Read and write concerns: checked as MongoDB does. Every read sees every acknowledged write, and every acknowledged
write is durable, whatever is asked for; only the checks and the answers differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import TRUTH, as_int, check_document, wrong_type
from asterism.apis.mongo.commands import Access, FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.codec import encode
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import exact_value, is_nan
from asterism.values.bson.raw_documents import document_of
from asterism.values.bson.types import Document, Timestamp

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.commands import Answer, Handler

_LEVELS: Final = frozenset({"local", "available", "majority", "linearizable", "snapshot"})
_PROVENANCES: Final = frozenset(
    {"clientSupplied", "implicitDefault", "customDefault", "getLastErrorDefaults", "internalWriteDefault"}
)
_READ_FIELDS: Final = {
    "level": FieldRule(("string",)),
    "afterClusterTime": FieldRule(("timestamp",), null_code=14),
    "atClusterTime": FieldRule(("timestamp",), null_code=14),
    "afterOpTime": FieldRule(("object",)),
    "provenance": FieldRule(("string",)),
    "allowTransactionTableSnapshot": FieldRule(("bool",)),
    "$waitLastStableRecoveryTimestamp": FieldRule(("bool",)),
}
_WRITE_FIELDS: Final = {
    "w": FieldRule(),
    "j": FieldRule(TRUTH),
    "fsync": FieldRule(TRUTH),
    "wtimeout": FieldRule(),
    "provenance": FieldRule(("string",)),
}
# Commands that read, but not at a moment of the past.
_WITHOUT_SNAPSHOTS: Final = frozenset({"count"})
# MongoDB's own limit of members of a set.
_MEMBERS_MAX = 50
_INT32_MAX = 2**31 - 1
# This server is the only member of its set.
_MEMBERS = 1
NO_TIME: Final = Timestamp(0, 0)


def check_read_concern(call: Call, concern: Any) -> None:
    """Refuse a read concern that is not sound, or that the command does not support."""
    if concern is None:
        return
    if not isinstance(concern, dict):
        raise wrong_type("readConcern", concern, ("object",))
    check_document("readConcern", concern, _READ_FIELDS)
    level = concern.get("level")
    if level is not None and level not in _LEVELS:
        raise MongoFailure(2, f"Enumeration value '{level}' for field 'readConcern.level' is not a valid value.")
    _check_provenance(concern, "readConcern")
    if "atClusterTime" in concern:
        if level != "snapshot":
            raise MongoFailure(72, "atClusterTime field can be set only if level is equal to snapshot")
        if "afterClusterTime" in concern:
            raise MongoFailure(72, "afterClusterTime and atClusterTime cannot both be specified")
    if concern.get("afterClusterTime") == NO_TIME or concern.get("atClusterTime") in (NO_TIME, Timestamp(0, 1)):
        raise MongoFailure(72, "A cluster time of a read concern cannot be a null timestamp")
    if "afterClusterTime" in concern and level == "linearizable":
        raise MongoFailure(72, "afterClusterTime field can be set only if level is not linearizable")
    command = call.command
    # Within a transaction the level is that of its first command.
    if level in (None, "local") or "autocommit" in call.body:
        return
    if not command.reads and not command.is_write:
        raise MongoFailure(72, f"Command {command.name} does not support the read concern level {level}")
    if level == "snapshot" and command.name in _WITHOUT_SNAPSHOTS:
        raise MongoFailure(72, f"{command.name} does not support read concern snapshot")
    if command.is_write and level != "available":
        raise MongoFailure(72, f"Command {command.name} does not support the read concern level {level}")


def _check_provenance(concern: Document, where: str) -> None:
    provenance = concern.get("provenance")
    if provenance is not None and provenance not in _PROVENANCES:
        raise MongoFailure(2, f"Enumeration value '{provenance}' for field '{where}.provenance' is not a valid value.")


def check_write_concern(call: Call, concern: Any) -> None:
    """Refuse a write concern that is not sound, or that the command does not support."""
    if concern is None:
        return
    if not isinstance(concern, dict):
        raise wrong_type("writeConcern", concern, ("object",))
    check_document("writeConcern", concern, _WRITE_FIELDS)
    _check_provenance(concern, "writeConcern")
    if "w" in concern and concern["w"] is not None:
        _check_acknowledgment(concern["w"])
    timeout = concern.get("wtimeout")
    if is_number(timeout) and not is_nan(timeout) and exact_value(timeout) > _INT32_MAX:
        raise MongoFailure(9, "wtimeout must be a 32-bit integer")
    command = call.command
    if command.access is Access.READ and not command.writes and not command.is_write:
        raise MongoFailure(72, f"Command {command.name} does not support writeConcern")


def _check_acknowledgment(wanted: Any) -> None:
    if type(wanted) is str:
        return
    if isinstance(wanted, dict):
        if not wanted or not all(is_number(value) for value in wanted.values()):
            raise MongoFailure(9, "tagged write concern requires tags with numbers")
        return
    if not is_number(wanted):
        raise MongoFailure(9, "w has to be a number, string, or object")
    exact = 0 if is_nan(wanted) else exact_value(wanted)
    if is_nan(wanted) or exact in (float("inf"), float("-inf")) or not 0 <= as_int(wanted) <= _MEMBERS_MAX:
        raise MongoFailure(9, f"w has to be a non-negative number and not greater than {_MEMBERS_MAX}")


def unmet_concern(concern: Document | None) -> Document | None:
    """Return the error of a write concern that this set cannot meet; the write is done all the same."""
    wanted = None if concern is None else concern.get("w")
    if type(wanted) is str:
        if wanted in ("majority", ""):
            return None
        return {
            "code": 79,
            "codeName": "UnknownReplWriteConcern",
            "errmsg": f"No write concern mode named '{wanted}' found in replica set configuration",
            "errInfo": {"writeConcern": concern},
        }
    if is_number(wanted) and as_int(wanted) > _MEMBERS:
        return {
            "code": 100,
            "codeName": "UnsatisfiableWriteConcern",
            "errmsg": "Not enough data-bearing nodes",
            "errInfo": {"writeConcern": concern},
        }
    return None


def is_unacknowledged(concern: Document | None) -> bool:
    """Return whether the client wants to hear of no error: `w: 0`, unless `j` asks for more."""
    if not concern or concern.get("j"):
        return False
    wanted = concern.get("w")
    return is_number(wanted) and as_int(wanted) == 0


def with_write_concern(handler: Handler) -> Handler:
    """Return the handler of a write command whose answer tells of a write concern that could not be met. A transaction
    that one of its statements has failed in is over."""

    async def handle(call: Call) -> Answer:
        answer = await handler(call)
        if call.transaction is not None and isinstance(answer, dict) and "writeErrors" in answer:
            await call.context.transactions.fail(call.transaction)
        if call.write_concern is None:
            return answer
        if is_unacknowledged(call.write_concern) and isinstance(answer, dict):
            answer.pop("writeErrors", None)
        unmet = unmet_concern(call.write_concern)
        if unmet is None:
            return answer
        if isinstance(answer, bytes):
            return document_of(answer[4:-1], encode({"writeConcernError": unmet})[4:-1])
        return {**answer, "writeConcernError": unmet}

    return handle
