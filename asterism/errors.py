"""Every way the database says no.

A closed list: each error has a constant text and its variables as fields, and each door translates the list to its
own codes with one table (a test holds every table complete).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(eq=False)
class AsterismError(Exception):
    """The root of the list; never raised itself."""

    text: ClassVar[str] = "The database could not do what was asked."

    def __str__(self) -> str:
        told = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
        return f"{self.text} ({told})" if told else self.text


# --- what the caller asked for is malformed -------------------------------------------------------------------------


@dataclass(eq=False)
class MalformedRequest(AsterismError):
    """The request cannot be understood; `reason` is a sentence for the person who sent it."""

    text: ClassVar[str] = "The request is malformed."
    reason: str


@dataclass(eq=False)
class MalformedQuery(AsterismError):
    """A query text that does not compile: the service's SC code and where it is, as character offsets."""

    text: ClassVar[str] = "The query does not compile."
    code: str
    reason: str
    start: int
    end: int
    # What else is wrong with the same text.
    more: tuple[MalformedQuery, ...] = ()


@dataclass(eq=False)
class PartitionKeyMismatch(AsterismError):
    text: ClassVar[str] = "The partition key does not fit the container's definition, or not the values in the item."


@dataclass(eq=False)
class CrossPartitionNotEnabled(AsterismError):
    text: ClassVar[str] = "The query needs more than one partition and the request does not allow that."


@dataclass(eq=False)
class NeedsQueryPlan(AsterismError):
    """The client must ask for a plan and merge the partitions' results itself; `plan_json` is that plan."""

    text: ClassVar[str] = "The query cannot be answered without a plan on the client's side."
    plan_json: str


@dataclass(eq=False)
class TooLarge(AsterismError):
    text: ClassVar[str] = "The request is larger than allowed."
    what: str
    bytes_max: int


# --- who may ask ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Unauthorized(AsterismError):
    text: ClassVar[str] = "The request carries no signature that any of the account's keys produces."
    reason: str


@dataclass(eq=False)
class Forbidden(AsterismError):
    text: ClassVar[str] = "The credentials do not permit this operation."
    reason: str


# --- what is not there, or there already ----------------------------------------------------------------------------


@dataclass(eq=False)
class ResourceNotFound(AsterismError):
    """A database, container, offer or other named thing that does not exist."""

    text: ClassVar[str] = "The resource does not exist."
    kind: str
    name: str


@dataclass(eq=False)
class OwnerNotFound(AsterismError):
    """The container or database that should hold the wanted thing does not exist."""

    text: ClassVar[str] = "The owner of the resource does not exist."
    kind: str
    name: str


@dataclass(eq=False)
class ResourceExists(AsterismError):
    text: ClassVar[str] = "A resource of this name exists already."
    kind: str
    name: str


@dataclass(eq=False)
class ItemNotFound(AsterismError):
    text: ClassVar[str] = "The item does not exist."
    item_id: str


@dataclass(eq=False)
class ItemExists(AsterismError):
    text: ClassVar[str] = "An item with this id exists already in its logical partition."
    item_id: str


@dataclass(eq=False)
class UniqueKeyViolation(AsterismError):
    text: ClassVar[str] = "Another item of the logical partition has the same unique key."
    paths: tuple[str, ...]


@dataclass(eq=False)
class ContainerRecreated(AsterismError):
    """The client's cached identity of the container is that of an older one of the same name."""

    text: ClassVar[str] = "The container was deleted and created again."
    name: str


@dataclass(eq=False)
class SessionNotAvailable(AsterismError):
    text: ClassVar[str] = "The partition has not reached the session token of the request."


# --- conditions -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class PreconditionFailed(AsterismError):
    text: ClassVar[str] = "The item's etag is not the one the request expects."


@dataclass(eq=False)
class TooMuchContention(AsterismError):
    """Writers of one item kept overtaking each other; the client should try again."""

    text: ClassVar[str] = "The item was changed by others on every attempt."


# --- capacity -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class RequestRateTooLarge(AsterismError):
    text: ClassVar[str] = "The partition has spent its request units for now."
    retry_after_seconds: float


@dataclass(eq=False)
class QueryMemoryInUse(AsterismError):
    """The queries under way hold all the memory that queries may have; the client should try again."""

    text: ClassVar[str] = "The memory for queries is in use."
    retry_after_seconds: float


@dataclass(eq=False)
class QueryTookTooLong(AsterismError):
    text: ClassVar[str] = "The query needs more work for a single item than one may take."


@dataclass(eq=False)
class LogicalPartitionFull(AsterismError):
    text: ClassVar[str] = "The logical partition has reached its maximum size."
    bytes_max: int


@dataclass(eq=False)
class PhysicalPartitionFull(AsterismError):
    text: ClassVar[str] = "The physical partition has reached its maximum size and cannot split."
    bytes_max: int


@dataclass(eq=False)
class StorageFull(AsterismError):
    """The disk (or the configured size of the store) has no room; reads and deletes go on."""

    text: ClassVar[str] = "The store has no room left."


@dataclass(eq=False)
class StorageUnavailable(AsterismError):
    text: ClassVar[str] = "The store did not answer."
    reason: str


@dataclass(eq=False)
class StoredDamage(AsterismError):
    """Something in the store is not what was written there: nothing that a client did, and nothing it can mend.

    `what` says what kind of record it is and `key` names it, as far as that is known, for the server's log; neither
    holds any of the data. Clients are told of neither.
    """

    text: ClassVar[str] = "Stored data is damaged."
    what: str
    key: str = ""

    def __post_init__(self) -> None:
        # What could not be read, by which its key can be found; never shown.
        self.value = b""


# --- reshaping ------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class ReshapeRefused(AsterismError):
    """A split, merge or move that cannot be done; `reason` says why and what to do instead."""

    text: ClassVar[str] = "The partitions cannot be reshaped as asked."
    reason: str


@dataclass(eq=False)
class ThroughputRefused(AsterismError):
    text: ClassVar[str] = "The throughput cannot be set to this value."
    reason: str
