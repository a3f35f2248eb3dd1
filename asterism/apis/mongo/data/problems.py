"""Failures of single writes, as entries of `writeErrors`."""

from __future__ import annotations

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

# Errors of the whole command: drivers look for them there, and repeat what is not inside `writeErrors` only.
_OF_THE_COMMAND = (TransactionNumberTooOld, TransactionOvertaken, TransactionTooWide, TransactionTooLarge)


def failure_of_write(error: Exception, *, is_first: bool) -> MongoFailure:
    """Return the failure of one write; raise what ends the command. `is_first` is whether nothing was written yet: a
    command that was throttled, or found no storage, before its first write can be repeated as a whole."""
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
