"""What the door and its store say to each other: stored entities, writes, pages, and why a write was refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

# The kind of a table: `storage` tables lie in ranges of PartitionKey, `cosmos` tables by its hash.
TableKind = Literal["storage", "cosmos"]

# A condition on the version of a stored entity: none, any version, or the one with these ticks.
IfMatch = int | Literal["*"] | None

# Timestamps count in steps of 100 nanoseconds, as the service's do.
TICKS_PER_SECOND = 10_000_000


class StoredEntity(NamedTuple):
    """An entity as it is kept. A tuple, because a page makes a thousand of them."""

    partition_key: str
    row_key: str
    # 100 ns ticks since 1970: the Timestamp, and what the etag is made of. Rises with every write of the entity.
    etag_time: int
    # The user's properties, as entity_codec writes them. The store keeps them as they are.
    properties: bytes


class EntityPage(NamedTuple):
    """Entities in the order of the scan, and where it goes on; `next_key` is None only at the end of the span."""

    entities: list[StoredEntity]
    next_key: tuple[str, str] | None


# Enumerations of texts, because those are found in dictionaries without a call into Python.
class WriteKind(StrEnum):
    INSERT = "insert"
    REPLACE = "replace"
    MERGE = "merge"
    INSERT_OR_REPLACE = "insert or replace"
    INSERT_OR_MERGE = "insert or merge"
    DELETE = "delete"


@dataclass(slots=True)
class EntityWrite:
    kind: WriteKind
    partition_key: str
    row_key: str
    properties: bytes = b""
    if_match: IfMatch = None


class FailureReason(StrEnum):
    EXISTS = "exists"
    NOT_FOUND = "not found"
    ETAG_MISMATCH = "etag mismatch"
    # A merge gave more properties or bytes than an entity may have.
    TOO_MANY_PROPERTIES = "too many properties"
    TOO_LARGE = "too large"


class OperationFailed(Exception):
    """One operation of a group could not be done, so none was."""

    def __init__(self, index: int, reason: FailureReason) -> None:
        super().__init__(f"operation {index}: {reason.value}")
        self.index = index
        self.reason = reason


class Spent:
    """What a request has cost so far, in request units; the store adds, the door tells."""

    __slots__ = ("charge",)

    def __init__(self) -> None:
        self.charge = 0.0
