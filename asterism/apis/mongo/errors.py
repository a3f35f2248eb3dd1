"""Errors in the words of the protocol: `ok: 0.0`, a sentence, a code with its name, and labels for drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asterism.apis.mongo.error_labels import OVERLOADED
from asterism.apis.translation import Translation
from asterism.errors import (
    AsterismError,
    Category,
    LogicalPartitionFull,
    RequestRateTooLarge,
    StorageFull,
    TooMuchContention,
)
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.results import (
    CollectionExists,
    DuplicateKey,
    IndexEntryProblem,
    NoSuchCollection,
    RekeyFailed,
    RekeyProblem,
    RekeyUnderWay,
    ShardKeyProblem,
    TransactionNumberTooOld,
    TransactionOvertaken,
    TransactionTooWide,
)
from asterism.models.collections.unit import TransactionTooLarge
from asterism.values.bson.types import Document

CODE_NAMES: Final[dict[int, str]] = {
    1: "InternalError", 2: "BadValue", 4: "NoSuchKey", 5: "GraphContainsCycle", 6: "HostUnreachable",
    7: "HostNotFound", 8: "UnknownError", 9: "FailedToParse", 11: "UserNotFound", 12: "UnsupportedFormat",
    13: "Unauthorized", 14: "TypeMismatch", 15: "Overflow", 16: "InvalidLength", 17: "ProtocolError",
    18: "AuthenticationFailed", 20: "IllegalOperation", 22: "InvalidBSON", 24: "LockTimeout", 26: "NamespaceNotFound",
    27: "IndexNotFound", 28: "PathNotViable", 31: "RoleNotFound", 40: "ConflictingUpdateOperators",
    43: "CursorNotFound", 47: "NoMatchingDocument", 48: "NamespaceExists", 50: "MaxTimeMSExpired",
    51: "ManualInterventionRequired", 52: "DollarPrefixedFieldName", 53: "InvalidIdField",
    54: "NotSingleValueField", 55: "InvalidDBRef", 56: "EmptyFieldName", 57: "DottedFieldName",
    59: "CommandNotFound", 61: "ShardKeyNotFound", 64: "WriteConcernFailed", 66: "ImmutableField",
    67: "CannotCreateIndex", 68: "IndexAlreadyExists", 72: "InvalidOptions", 73: "InvalidNamespace",
    79: "UnknownReplWriteConcern", 85: "IndexOptionsConflict", 86: "IndexKeySpecsConflict",
    89: "NetworkTimeout", 91: "ShutdownInProgress", 96: "OperationFailed", 100: "UnsatisfiableWriteConcern",
    112: "WriteConflict", 115: "CommandNotSupported", 121: "DocumentValidationFailure", 139: "JSInterpreterFailure",
    125: "CommandFailed", 136: "CappedPositionLost", 146: "ExceededMemoryLimit", 165: "ViewDepthLimitExceeded",
    166: "CommandNotSupportedOnView", 167: "OptionNotSupportedOnView", 168: "InvalidPipelineOperator",
    171: "CannotIndexParallelArrays", 180: "InvalidNamespace", 189: "PrimarySteppedDown",
    197: "InvalidIndexSpecificationOption", 211: "KeyNotFound", 222: "CloneFailed",
    207: "InvalidUUID", 225: "TransactionTooOld",
    231: "ChangeStreamFatalError", 237: "CursorKilled", 238: "NotImplemented", 241: "ConversionFailure",
    246: "SnapshotUnavailable",
    251: "NoSuchTransaction", 256: "TransactionCommitted", 257: "TransactionTooLarge",
    260: "InvalidResumeToken", 262: "ExceededTimeLimit", 263: "OperationNotSupportedInTransaction",
    267: "PreparedTransactionInProgress",
    280: "ChangeStreamFatalError", 286: "ChangeStreamHistoryLost", 290: "TransactionExceededLifetimeLimitSeconds",
    291: "NoQueryExecutionPlans", 292: "QueryExceededMemoryLimitNoDiskUseAllowed", 314: "ObjectIsBusy",
    319: "InterruptedDueToStorageChange", 322: "APIVersionError", 323: "APIStrictError",
    369: "FailPointSetFailed",
    327: "ChangeStreamTopLevelProjectRequired", 352: "UnsupportedOpQueryCommand", 9001: "SocketException",
    10003: "CannotGrowDocumentInCappedNamespace", 10107: "NotWritablePrimary", 10334: "BSONObjectTooLarge",
    11000: "DuplicateKey", 11600: "InterruptedAtShutdown", 11601: "Interrupted",
    11602: "InterruptedDueToReplStateChange", 13435: "NotPrimaryNoSecondaryOk", 13436: "NotPrimaryOrSecondary",
    16500: "RequestRateTooLarge",
}  # fmt: skip

WRITE_CONFLICT: Final = (
    "Caused by :: Write conflict during plan execution and yielding is disabled. "
    "Please retry your operation or multi-document transaction."
)


def code_name(code: int) -> str:
    return CODE_NAMES.get(code, f"Location{code}")


@dataclass(frozen=True, slots=True)
class _Row:
    code: int


_REKEY_CODES: Final = {
    RekeyProblem.DUPLICATE: 11000,
    RekeyProblem.SHARD_KEY: 61,
    RekeyProblem.DROPPED: 26,
    RekeyProblem.OTHER: 96,
}

_TABLE: Final = Translation(
    {category: _Row(96) for category in Category}
    | {
        Category.MALFORMED: _Row(2),
        Category.TOO_LARGE: _Row(10334),
        Category.UNAUTHENTICATED: _Row(18),
        Category.DENIED: _Row(13),
        Category.ABSENT: _Row(26),
        Category.EXISTS: _Row(48),
        Category.CONTENTION: _Row(112),
        Category.TIMED_OUT: _Row(50),
        Category.UNAVAILABLE: _Row(91),
        Category.INTERNAL: _Row(8),
    },
    {LogicalPartitionFull: _Row(96), StorageFull: _Row(96), TooMuchContention: _Row(112)},
)


def as_failure(problem: Exception) -> MongoFailure | None:
    """Return the protocol's form of an error of the floors below; None for one that no code foresaw."""
    if isinstance(problem, MongoFailure):
        return problem
    if isinstance(problem, RequestRateTooLarge):
        return _throttled(problem.retry_after_seconds)
    if isinstance(problem, AsterismError):
        row = _TABLE.row(problem)
        return MongoFailure(row.code, str(problem))
    if isinstance(problem, IndexEntryProblem):
        return as_failure(problem.error)
    if isinstance(problem, DuplicateKey):
        return duplicate_key(problem)
    if isinstance(problem, ShardKeyProblem):
        return MongoFailure(61, problem.reason)
    if isinstance(problem, NoSuchCollection):
        return MongoFailure(26, f"ns does not exist: {problem.name}")
    if isinstance(problem, RekeyUnderWay):
        return MongoFailure(117, f"The collection {problem.name} gets another shard key; repeat this afterwards.")
    if isinstance(problem, RekeyFailed):
        return MongoFailure(_REKEY_CODES[problem.problem], problem.reason)
    if isinstance(problem, CollectionExists):
        return MongoFailure(48, f"Collection {problem.name} already exists.")
    if isinstance(problem, TransactionNumberTooOld):
        return MongoFailure(225, "Retryable write with an older transaction number than the session's last one")
    if isinstance(problem, TransactionOvertaken):
        return MongoFailure(112, WRITE_CONFLICT)
    if isinstance(problem, TransactionTooLarge):
        return MongoFailure(257, "The changes of the transaction exceed 16 MB; divide it into several.")
    if isinstance(problem, TransactionTooWide):
        return MongoFailure(
            263,
            "A transaction must stay within one physical partition: all collections without a shard key of one "
            f"database, or one shard key value. It began in {problem.first} and then used {problem.second}.",
        )
    return None


# Drivers wait a random part of it and try twice only, so a few milliseconds would be none. It is their own default.
_BACKOFF_MILLISECONDS_MIN: Final = 100


def _throttled(retry_after_seconds: float) -> MongoFailure:
    milliseconds = max(1, round(retry_after_seconds * 1000))
    message = (
        f"Error=16500, RetryAfterMs={milliseconds}, Details='Response status code does not indicate success: "
        'TooManyRequests (429); Substatus: 3200; Reason: ({"Errors":["Request rate is large. More Request Units '
        "may be needed, so no changes were made. Please retry this request later.\"]})'"
    )
    return MongoFailure(
        16500, message, labels=OVERLOADED, details={"baseBackoffMS": max(milliseconds, _BACKOFF_MILLISECONDS_MIN)}
    )


def duplicate_key(problem: DuplicateKey) -> MongoFailure:
    from asterism.apis.mongo.shell_text import shell_text

    shown = ", ".join(f"{name}: {shell_text(value)}" for name, value in problem.key_value.items())
    message = (
        f"E11000 duplicate key error collection: {problem.namespace} index: {problem.index} dup key: {{ {shown} }}"
    )
    return MongoFailure(11000, message, details={"keyPattern": problem.key_pattern, "keyValue": problem.key_value})


def failure_document(failure: MongoFailure, labels: Sequence[str] = ()) -> Document:
    """Return the answer to a command that failed."""
    answer: Document = {
        "ok": 0.0,
        "errmsg": failure.message,
        "code": failure.code,
        "codeName": code_name(failure.code),
        **failure.details,
    }
    if labels:
        answer["errorLabels"] = list(labels)
    return answer
