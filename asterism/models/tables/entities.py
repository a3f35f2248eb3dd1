"""Entities, writes and pages of a table, and the reasons for which a write is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple

from asterism.errors import AsterismError, Category

# The kind of a table: `storage` tables lie in ranges of PartitionKey, `cosmos` tables by its hash.
TableKind = Literal["storage", "cosmos"]

# A condition on the version of a stored entity: none, any version, or the version with these ticks.
IfMatch = int | Literal["*"] | None


class StoredEntity(NamedTuple):
    """An entity as it is kept. A tuple, because a page makes a thousand of them."""

    partition_key: str
    row_key: str
    # The Timestamp, from which etags are made. It rises with every write of the entity.
    etag_time: int
    # The user's properties, as `codec` writes them. The store keeps them as they are.
    properties: bytes


class EntityPage(NamedTuple):
    """Entities in the order of the scan, and the key to resume at; `next_key` is None only at the end of the span."""

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


@dataclass(eq=False)
class OperationFailed(AsterismError):
    """A write of a group cannot be done, so none was. `index` counts the writes of the group from 0."""

    category: ClassVar[Category] = Category.REFUSED
    text: ClassVar[str] = "The entity does not permit the operation."
    index: int
    failure: FailureReason
