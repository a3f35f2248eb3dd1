"""Messages as callers give and get them, the ways to settle them, and the reasons for which a call is refused.

Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from asterism.errors import AsterismError, Category

NO_PROPERTIES: Final[Mapping[str, Any]] = MappingProxyType({})
# Application properties that a dead letter gets.
DEAD_LETTER_REASON: Final = "DeadLetterReason"
DEAD_LETTER_DESCRIPTION: Final = "DeadLetterErrorDescription"


class SubQueue(IntEnum):
    MAIN = 0
    DEAD_LETTER = 1
    TRANSFER_DEAD_LETTER = 2


class MessageState(IntEnum):
    ACTIVE = 0
    DEFERRED = 1
    SCHEDULED = 2


@dataclass(slots=True)
class NewMessage:
    """A message to be sent."""

    # The sections header, message-annotations, and properties to footer, as sent; no delivery-annotations.
    content: bytes
    message_id: str = ""
    session_id: str | None = None
    partition_key: str | None = None
    ttl_ms: int | None = None
    # The moment at which the message becomes active.
    scheduled_ms: int | None = None
    # The rest is set for messages that are forwarded.
    enqueued_sequence_number: int | None = None
    dead_letter_source: str | None = None
    hops: int = 0
    overlay: Mapping[str, Any] = field(default_factory=lambda: NO_PROPERTIES)


@dataclass(slots=True)
class Received:
    """A message as a receiver gets it, or as it is peeked."""

    # With the fragment in its upper 16 bits, if the entity is partitioned.
    sequence_number: int
    enqueued_ms: int
    expires_ms: int | None
    locked_until_ms: int | None
    # The number of deliveries that have failed before.
    delivery_count: int
    state: MessageState
    message_id: str
    session_id: str | None
    partition_key: str | None
    fragment: int
    enqueued_sequence_number: int | None
    dead_letter_source: str | None
    scheduled_ms: int | None
    # 16 bytes in the order of RFC 4122; None if the message is not locked for the caller.
    lock_token: bytes | None
    content: bytes
    # Application properties to set when the message is delivered.
    overlay: Mapping[str, Any] = field(default_factory=lambda: NO_PROPERTIES)
    # How often the message has been forwarded.
    hops: int = 0


class Counts(NamedTuple):
    """The messages of a channel; active ones include those under lock."""

    active: int = 0
    deferred: int = 0
    scheduled: int = 0
    bytes: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(self, other, strict=True)))


class FragmentState(StrEnum):
    UP = "up"
    # Its store did not answer a moment ago.
    DOWN = "down"
    # Closed by an operator.
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class FragmentStatus:
    number: int
    state: FragmentState
    # The sum of all its channels; zeros if it does not answer.
    counts: Counts


# --- settlement -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Complete:
    """The message has been processed, and is removed."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """The message is available again, and the delivery counts as failed."""

    properties: Mapping[str, Any] = field(default_factory=lambda: NO_PROPERTIES)


@dataclass(frozen=True, slots=True)
class Defer:
    """The message is set aside, to be received by its sequence number."""

    properties: Mapping[str, Any] = field(default_factory=lambda: NO_PROPERTIES)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    reason: str | None = None
    description: str | None = None
    properties: Mapping[str, Any] = field(default_factory=lambda: NO_PROPERTIES)
    # To the dead letters of transfers: the message could not be forwarded.
    is_transfer: bool = False

    def overlay(self) -> dict[str, Any]:
        """Return the application properties that the message gets."""
        overlay = dict(self.properties)
        if self.reason is not None:
            overlay[DEAD_LETTER_REASON] = self.reason
        if self.description is not None:
            overlay[DEAD_LETTER_DESCRIPTION] = self.description
        return overlay


@dataclass(frozen=True, slots=True)
class Unlock:
    """The message is available again, as if it had not been delivered."""


Action = Complete | Abandon | Defer | DeadLetter | Unlock
COMPLETE: Final = Complete()
UNLOCK: Final = Unlock()

# The service's own words (contract G and the vendor's list of reasons).
EXPIRED: Final = DeadLetter("TTLExpiredException", "The message expired and was dead lettered.")
TOO_MANY_HOPS: Final = DeadLetter(
    "MaxTransferHopCountExceeded",
    "The maximum number of allowed hops when forwarding between queues is exceeded.",
)
NO_SESSION: Final = DeadLetter(
    "Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null."
)


def too_many_deliveries(max_delivery_count: int) -> DeadLetter:
    return DeadLetter(
        "MaxDeliveryCountExceeded",
        f"Message could not be consumed after {max_delivery_count} delivery attempts.",
    )


# --- refusals -------------------------------------------------------------------------------------------------------


class Failure(StrEnum):
    # The lock has ended, or the token is of no message.
    LOCK_LOST = "lock lost"
    MESSAGE_NOT_FOUND = "message not found"
    SESSION_LOCK_LOST = "session lock lost"
    # Another receiver holds the session.
    SESSION_CANNOT_BE_LOCKED = "session cannot be locked"
    ENTITY_FULL = "entity full"
    # The status of the entity does not permit sending, or receiving.
    ENTITY_DISABLED = "entity disabled"
    NOT_ALLOWED = "not allowed"
    # The fragment that the key selects does not answer, or is closed.
    FRAGMENT_DOWN = "fragment down"
    # No session became available in time.
    TIMED_OUT = "timed out"
    # The transaction is over, or was never begun.
    TRANSACTION_UNKNOWN = "transaction unknown"


@dataclass(eq=False)
class MessagingRefused(AsterismError):
    """A call that the state of the messages, or the terms of the entity, rule out. `reason` is a sentence."""

    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The messages do not permit the operation."
    failure: Failure
    reason: str = field(default="")
