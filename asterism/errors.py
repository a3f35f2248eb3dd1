"""Every way the database says no.

Each error has a constant text, its variables as fields and a category. A door translates categories, and those single
errors for which its protocol has its own words, with one table (`apis/translation.py`): a new error needs a category
and no change in any door. Errors that only one language or one protocol has stand in its folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import ClassVar


class Category(Enum):
    """The kinds of refusal that every protocol has a code for, by what the caller can do about them."""

    # The request makes no sense as it stands: send another one.
    MALFORMED = "malformed"
    # The request, or what it would store or keep in memory, exceeds a limit: ask for less at once.
    TOO_LARGE = "too large"
    # The sender is unknown: sign the request with a key of the account.
    UNAUTHENTICATED = "unauthenticated"
    # The sender is known and lacks the permission: use other credentials.
    DENIED = "denied"
    # The thing that the request names does not exist.
    ABSENT = "absent"
    # The thing that the request would create exists already.
    EXISTS = "exists"
    # A condition that the caller attached to the request is not met: read again, then decide.
    PRECONDITION = "precondition"
    # The request is sound and permitted, and the present state or settings rule it out: the error says why.
    REFUSED = "refused"
    # Other writers were faster on every attempt: send the same request again.
    CONTENTION = "contention"
    # A budget is spent for now: send the same request after the time in the error.
    THROTTLED = "throttled"
    # The work exceeds the time or the steps that a single request may take: ask for less work.
    TIMED_OUT = "timed out"
    # There is no room for more data: delete some, or add room.
    FULL = "full"
    # A part that the request needs does not answer at present: send the same request again.
    UNAVAILABLE = "unavailable"
    # The server is at fault; its log has the details.
    INTERNAL = "internal"


@dataclass(eq=False)
class AsterismError(Exception):
    """The root of the list; never raised itself."""

    text: ClassVar[str] = "The database could not do what was asked."
    category: ClassVar[Category]

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "category"):
            raise TypeError(f"{cls.__name__} needs a category: doors have no words for it otherwise")

    @property
    def sentence(self) -> str:
        """The explanation for the caller: the reason, where the error has one, or else the constant text."""
        return str(getattr(self, "reason", self.text))

    def __str__(self) -> str:
        shown = (variable.name for variable in fields(self) if variable.repr)
        variables = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.text} ({variables})" if variables else self.text


# --- malformed requests ---------------------------------------------------------------------------------------------


@dataclass(eq=False)
class MalformedRequest(AsterismError):
    """The request cannot be understood; `reason` is a sentence for the person who sent it."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The request is malformed."
    reason: str


@dataclass(eq=False)
class PartitionKeyMismatch(AsterismError):
    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The partition key does not fit the container's definition, or not the values in the item."


@dataclass(eq=False)
class TooLarge(AsterismError):
    category: ClassVar[Category] = Category.TOO_LARGE
    text: ClassVar[str] = "The request is larger than allowed."
    what: str
    bytes_max: int


# --- credentials ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Unauthorized(AsterismError):
    category: ClassVar[Category] = Category.UNAUTHENTICATED
    text: ClassVar[str] = "The request carries no signature that any of the account's keys produces."
    reason: str


@dataclass(eq=False)
class Forbidden(AsterismError):
    category: ClassVar[Category] = Category.DENIED
    text: ClassVar[str] = "The credentials do not permit this operation."
    reason: str


# --- absent and existing things -------------------------------------------------------------------------------------


@dataclass(eq=False)
class ResourceNotFound(AsterismError):
    """A database, container, offer or other named thing that does not exist."""

    category: ClassVar[Category] = Category.ABSENT
    text: ClassVar[str] = "The resource does not exist."
    kind: str
    name: str


@dataclass(eq=False)
class OwnerNotFound(AsterismError):
    """The container or database that should hold the wanted thing does not exist."""

    category: ClassVar[Category] = Category.ABSENT
    text: ClassVar[str] = "The owner of the resource does not exist."
    kind: str
    name: str


@dataclass(eq=False)
class ResourceExists(AsterismError):
    category: ClassVar[Category] = Category.EXISTS
    text: ClassVar[str] = "A resource of this name exists already."
    kind: str
    name: str


@dataclass(eq=False)
class ItemNotFound(AsterismError):
    category: ClassVar[Category] = Category.ABSENT
    text: ClassVar[str] = "The item does not exist."
    item_id: str
    # The cost of looking: more than that of one read where several logical partitions were asked.
    request_units: float = field(default=1.0, repr=False)


@dataclass(eq=False)
class ItemExists(AsterismError):
    category: ClassVar[Category] = Category.EXISTS
    text: ClassVar[str] = "An item with this id exists already in its logical partition."
    item_id: str


@dataclass(eq=False)
class UniqueKeyViolation(AsterismError):
    category: ClassVar[Category] = Category.EXISTS
    text: ClassVar[str] = "Another item of the logical partition has the same unique key."
    paths: tuple[str, ...]


# --- conditions -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class PreconditionFailed(AsterismError):
    category: ClassVar[Category] = Category.PRECONDITION
    text: ClassVar[str] = "The item's etag is not the one the request expects."


@dataclass(eq=False)
class TooMuchContention(AsterismError):
    """Writers of one item kept overtaking each other; the client should try again."""

    category: ClassVar[Category] = Category.CONTENTION
    text: ClassVar[str] = "The item was changed by others on every attempt."


# --- capacity -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Throttled(AsterismError):
    """The root of the errors that tell the caller when to send the same request again; never raised itself."""

    category: ClassVar[Category] = Category.THROTTLED
    retry_after_seconds: float


@dataclass(eq=False)
class RequestRateTooLarge(Throttled):
    text: ClassVar[str] = "The partition has spent its request units for now."


@dataclass(eq=False)
class QueryMemoryInUse(Throttled):
    """The queries under way hold all the memory that queries may have; the client should try again."""

    text: ClassVar[str] = "The memory for queries is in use."


@dataclass(eq=False)
class QueryTookTooLong(AsterismError):
    category: ClassVar[Category] = Category.TIMED_OUT
    text: ClassVar[str] = "The query needs more work for a single item than one may take."


@dataclass(eq=False)
class QuotaExceeded(AsterismError):
    """An account would own more than its quota allows."""

    category: ClassVar[Category] = Category.DENIED
    text: ClassVar[str] = "The account's quota does not allow this."
    account: str
    quota: str
    limit: int
    total: int

    @property
    def reason(self) -> str:
        return (
            f"The account '{self.account}' has a quota of {self.limit:,} ({self.quota}), and this would bring "
            f"it to {self.total:,}. Delete something, or ask the operator to raise the quota."
        )


@dataclass(eq=False)
class AccountRefused(AsterismError):
    """A change of an account that cannot be made; `reason` says why and what to do instead."""

    text: ClassVar[str] = "The account cannot be changed as asked."
    category: ClassVar[Category] = Category.REFUSED
    reason: str


@dataclass(eq=False)
class LogicalPartitionFull(AsterismError):
    category: ClassVar[Category] = Category.FULL
    text: ClassVar[str] = "The logical partition has reached its maximum size."
    bytes_max: int


@dataclass(eq=False)
class PhysicalPartitionFull(AsterismError):
    category: ClassVar[Category] = Category.FULL
    text: ClassVar[str] = "The physical partition has reached its maximum size and cannot split."
    bytes_max: int


@dataclass(eq=False)
class StorageFull(AsterismError):
    """The disk (or the configured size of the store) has no room; reads and deletes go on."""

    category: ClassVar[Category] = Category.FULL
    text: ClassVar[str] = "The store has no room left."


@dataclass(eq=False)
class StorageUnavailable(AsterismError):
    category: ClassVar[Category] = Category.UNAVAILABLE
    text: ClassVar[str] = "The store did not answer."
    reason: str


@dataclass(eq=False)
class StoredDamage(AsterismError):
    """Something in the store is not what was written there: no client caused it, and no client can mend it.

    `what` is the kind of record and `key` names it, as far as that is known, for the server's log; neither holds any
    of the data, and clients see neither.
    """

    category: ClassVar[Category] = Category.INTERNAL
    text: ClassVar[str] = "Stored data is damaged."
    what: str
    key: str = ""

    def __post_init__(self) -> None:
        # The bytes that could not be read, by which their key can be found; never shown.
        self.value = b""


@dataclass(eq=False)
class LsnNotReached(AsterismError):
    """A read asks for a state that this copy of the partition has not reached yet."""

    category: ClassVar[Category] = Category.UNAVAILABLE
    text: ClassVar[str] = "The partition has not reached the log sequence number that the read asks for."


# --- reshaping ------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class ReshapeRefused(AsterismError):
    """A split, merge or move that cannot be done; `reason` says why and what to do instead."""

    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The partitions cannot be reshaped as asked."
    reason: str


@dataclass(eq=False)
class CaptureRefused(AsterismError):
    """A capture that cannot be started, stopped or shown; `reason` says why and what to do instead."""

    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The requests of the container cannot be captured as asked."
    reason: str


@dataclass(eq=False)
class ThroughputRefused(AsterismError):
    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The throughput cannot be set to this value."
    reason: str
