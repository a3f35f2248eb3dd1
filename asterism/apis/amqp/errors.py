"""The table from the database's errors to the conditions of AMQP, and from conditions to statuses of `$management`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asterism.apis.amqp.nodes import (
    INTERNAL_ERROR,
    INVALID_FIELD,
    NOT_ALLOWED,
    NOT_FOUND,
    RESOURCE_LIMIT,
    SIZE_EXCEEDED,
    UNAUTHORIZED,
    AmqpError,
)
from asterism.apis.translation import Translation
from asterism.errors import AsterismError, Category
from asterism.models.messages.messages import Failure, MessagingRefused

ARGUMENT_ERROR: Final = "com.microsoft:argument-error"
ARGUMENT_OUT_OF_RANGE: Final = "com.microsoft:argument-out-of-range"
AUTH_FAILED: Final = "com.microsoft:auth-failed"
DECODE_ERROR: Final = "amqp:decode-error"
ENTITY_DISABLED: Final = "com.microsoft:entity-disabled"
ENTITY_EXISTS: Final = "com.microsoft:entity-already-exists"
MESSAGE_LOCK_LOST: Final = "com.microsoft:message-lock-lost"
MESSAGE_NOT_FOUND: Final = "com.microsoft:message-not-found"
PRECONDITION_FAILED: Final = "com.microsoft:precondition-failed"
SERVER_BUSY: Final = "com.microsoft:server-busy"
SESSION_CANNOT_BE_LOCKED: Final = "com.microsoft:session-cannot-be-locked"
SESSION_LOCK_LOST: Final = "com.microsoft:session-lock-lost"
SESSION_NOT_FOUND: Final = "com.microsoft:session-not-found"
TIMEOUT: Final = "com.microsoft:timeout"
TRANSACTION_ROLLBACK: Final = "amqp:transaction:rollback"
TRANSACTION_TIMEOUT: Final = "amqp:transaction:timeout"
TRANSACTION_UNKNOWN: Final = "amqp:transaction:unknown-id"
NOT_IMPLEMENTED: Final = "amqp:not-implemented"

_CONDITIONS: Final = Translation[str](
    {
        Category.MALFORMED: ARGUMENT_ERROR,
        Category.TOO_LARGE: SIZE_EXCEEDED,
        Category.UNAUTHENTICATED: AUTH_FAILED,
        Category.DENIED: UNAUTHORIZED,
        Category.ABSENT: NOT_FOUND,
        Category.EXISTS: ENTITY_EXISTS,
        Category.PRECONDITION: PRECONDITION_FAILED,
        Category.REFUSED: NOT_ALLOWED,
        Category.CONTENTION: SERVER_BUSY,
        Category.THROTTLED: SERVER_BUSY,
        Category.TIMED_OUT: TIMEOUT,
        Category.FULL: RESOURCE_LIMIT,
        Category.UNAVAILABLE: SERVER_BUSY,
        Category.INTERNAL: INTERNAL_ERROR,
    },
    {},
)

CONDITION_OF_FAILURE: Final[Mapping[Failure, str]] = {
    Failure.LOCK_LOST: MESSAGE_LOCK_LOST,
    Failure.MESSAGE_NOT_FOUND: MESSAGE_NOT_FOUND,
    Failure.SESSION_LOCK_LOST: SESSION_LOCK_LOST,
    Failure.SESSION_CANNOT_BE_LOCKED: SESSION_CANNOT_BE_LOCKED,
    Failure.ENTITY_FULL: RESOURCE_LIMIT,
    Failure.ENTITY_DISABLED: ENTITY_DISABLED,
    Failure.NOT_ALLOWED: NOT_ALLOWED,
    # The clients send again after some seconds.
    Failure.FRAGMENT_DOWN: SERVER_BUSY,
    Failure.TIMED_OUT: TIMEOUT,
    Failure.TRANSACTION_UNKNOWN: TRANSACTION_UNKNOWN,
}

SENTENCE_OF_FAILURE: Final[Mapping[Failure, str]] = {
    Failure.LOCK_LOST: (
        "The lock of the message has expired, or the message was settled already. Receive the message again."
    ),
    Failure.MESSAGE_NOT_FOUND: "There is no message with this sequence number in the state that the operation needs.",
    Failure.SESSION_LOCK_LOST: "The lock of the session has expired. Accept the session again.",
    Failure.SESSION_CANNOT_BE_LOCKED: "Another receiver holds the session. Accept another session, or try again later.",
    Failure.ENTITY_FULL: "The entity has reached its maximum size. Receive messages, or give it a larger size.",
    Failure.ENTITY_DISABLED: "The entity is disabled for this operation. Change its status to use it.",
    Failure.NOT_ALLOWED: "The operation is not allowed on this entity.",
    Failure.FRAGMENT_DOWN: "The fragment of the entity that holds the key does not answer. Try again later.",
    Failure.TIMED_OUT: "The operation did not complete in time.",
    Failure.TRANSACTION_UNKNOWN: "There is no such transaction.",
}

# The status of `$management` answers; clients go by the condition [contract, section J].
_STATUS_OF_CONDITION: Final[Mapping[str, int]] = {
    MESSAGE_LOCK_LOST: 410,
    SESSION_LOCK_LOST: 410,
    SESSION_CANNOT_BE_LOCKED: 409,
    MESSAGE_NOT_FOUND: 404,
    NOT_FOUND: 404,
    UNAUTHORIZED: 401,
    AUTH_FAILED: 401,
    NOT_ALLOWED: 403,
    RESOURCE_LIMIT: 403,
    ENTITY_DISABLED: 403,
    ENTITY_EXISTS: 409,
    PRECONDITION_FAILED: 412,
    ARGUMENT_ERROR: 400,
    ARGUMENT_OUT_OF_RANGE: 400,
    DECODE_ERROR: 400,
    INVALID_FIELD: 400,
    SIZE_EXCEEDED: 400,
    NOT_IMPLEMENTED: 501,
    SERVER_BUSY: 503,
    TIMEOUT: 408,
}


def words(error: AsterismError) -> AmqpError:
    """Word an error of the database for a client of AMQP."""
    if isinstance(error, MessagingRefused):
        return AmqpError(CONDITION_OF_FAILURE[error.failure], error.reason or SENTENCE_OF_FAILURE[error.failure])
    return AmqpError(_CONDITIONS.row(error), error.sentence)


def words_of_failure(failure: Failure) -> AmqpError:
    return AmqpError(CONDITION_OF_FAILURE[failure], SENTENCE_OF_FAILURE[failure])


def status_of(condition: str) -> int:
    return _STATUS_OF_CONDITION.get(condition, 500)
