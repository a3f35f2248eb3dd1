"""Failures of single writes, as entries of `writeErrors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism.apis.mongo.errors import as_failure
from asterism.errors import AsterismError
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.results import (
    NoSuchCollection,
    TransactionNumberTooOld,
    TransactionOvertaken,
    TransactionTooWide,
)
from asterism.models.collections.unit import TransactionTooLarge
from asterism.values.bson.codec import InvalidBson
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Errors of the whole command: drivers look for them there, and repeat what is not inside `writeErrors` only.
_OF_THE_COMMAND = (TransactionNumberTooOld, TransactionOvertaken, TransactionTooWide, TransactionTooLarge)


def may_repeat(call: Call, index: int) -> bool:
    """Return whether a command can be repeated as a whole when the statement at `index` was not carried out: nothing
    was written before it, or all that was written is remembered under the number of a retryable write."""
    return index == 0 or (call.txn_number is not None and not call.is_in_transaction)


def failure_of_write(error: Exception, *, is_first: bool) -> MongoFailure:
    """Return the failure of one write; raise what ends the command. `is_first` is whether the command can be repeated
    as a whole (`may_repeat`), as one can that was throttled, or found no storage, before its first write."""
    if isinstance(error, MongoFailure):
        if error.code == 50:
            raise error
        return error
    if isinstance(error, _OF_THE_COMMAND) or (is_first and isinstance(error, AsterismError)):
        raise error
    if isinstance(error, InvalidBson):
        return MongoFailure(22, f"The document is not valid BSON: {error}")
    if isinstance(error, NoSuchCollection):
        return MongoFailure(175, f"The collection {error.name} was dropped while the command was running.")
    failure = as_failure(error)
    if failure is None:
        raise error
    return failure


def write_error(index: int, failure: MongoFailure) -> Document:
    """Return an entry of `writeErrors`."""
    return {"index": index, "code": failure.code, "errmsg": failure.message, **failure.details}
