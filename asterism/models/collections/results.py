"""Answers of the calls of collections, and the ways in which they fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from asterism.models.collections.layout import DocumentKey
from asterism.values.bson.types import Document


class DuplicateKey(Exception):
    """Another document has the same values of a unique index."""

    def __init__(self, namespace: str, index: str, key_pattern: Document, key_value: Document, place: int = 0) -> None:
        super().__init__(index)
        # The position of the document in its call.
        self.place = place
        self.namespace = namespace
        self.index = index
        self.key_pattern = key_pattern
        self.key_value = key_value


class IndexEntryProblem(Exception):
    """A document cannot have entries in an index, because of `error`, which the language of indexes raised."""

    def __init__(self, place: int, error: Exception) -> None:
        super().__init__(str(error))
        # The position of the document in its call.
        self.place = place
        self.error = error


class ShardKeyProblem(Exception):
    """A document has no value, or no sound one, at a path of the shard key."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


class CollectionExists(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class NoSuchCollection(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class RekeyUnderWay(Exception):
    """The collection gets another shard key; until that is done, nothing else about it can be changed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class RekeyProblem(Enum):
    # Two documents would have the same `_id`, or the same unique key, under one value of the new key.
    DUPLICATE = "duplicate"
    # A document has an array or an expression at a path of the new key.
    SHARD_KEY = "shard key"
    DROPPED = "dropped"
    OTHER = "other"


class RekeyFailed(Exception):
    """A collection cannot have the shard key that was asked for. Nothing has changed."""

    def __init__(self, problem: RekeyProblem, reason: str) -> None:
        super().__init__(reason)
        self.problem = problem
        self.reason = reason


class RetriedStatement(NamedTuple):
    """The outcome of a statement of a retryable write that was carried out before."""

    outcome: Document


class TransactionNumberTooOld(Exception):
    """The session has used a higher transaction number already."""


class TransactionOvertaken(Exception):
    """Another writer has changed a document that the transaction has changed, too."""


class TransactionTooWide(Exception):
    """The documents of a transaction are not all in one physical partition."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first}, {second}")
        self.first = first
        self.second = second


class Action(Enum):
    KEEP = "keep"
    PUT = "put"
    DELETE = "delete"


@dataclass(slots=True)
class Change:
    """A decision on one document. `operation` and `description` are for readers of changes."""

    action: Action
    body: bytes = b""
    document: Document | None = None
    description: Document | None = None
    operation: str = ""

    @classmethod
    def keep(cls) -> Change:
        return cls(Action.KEEP)

    @classmethod
    def put(
        cls,
        body: bytes,
        description: Document | None = None,
        *,
        document: Document | None = None,
        operation: str = "replace",
    ) -> Change:
        """`document` is the decoded body, if the caller has it."""
        return cls(Action.PUT, body, document, description, operation)

    @classmethod
    def delete(cls) -> Change:
        return cls(Action.DELETE, operation="delete")


@dataclass(slots=True)
class RetryToken:
    """A retryable write: the session, its number, and the statement that is carried out. `outcome` makes the document
    that a repeated statement is answered from, of the decisions that were carried out. `before_write` is called when
    the write is about to be written, and may raise."""

    session: bytes
    number: int
    statement: int = 0
    outcome: Callable[[Sequence[Change]], Document] = field(default=lambda _: {})
    before_write: Callable[[], None] = field(default=lambda: None)
    # True if the filter does not name the shard key, so that the repeated statement cannot know where it was written.
    is_anywhere: bool = False


@dataclass(frozen=True, slots=True)
class WriteProblem:
    """The document at `index` of a call was not written, because of `error`."""

    index: int
    error: Exception


@dataclass(slots=True)
class InsertResult:
    inserted: int = 0
    problems: list[WriteProblem] = field(default_factory=list)
    # Statements that had been carried out before.
    retried: list[int] = field(default_factory=list)
    # Documents that are not written because the collection was dropped or re-keyed meanwhile.
    left: list[int] = field(default_factory=list)


class FoundDocument(NamedTuple):
    key: DocumentKey
    body: bytes


@dataclass(slots=True)
class ScanPlan:
    """How the documents of a scan are found, for `explain`."""

    stage: str = "COLLSCAN"
    index: str | None = None
    key_pattern: Mapping[str, Any] | None = None
    is_sorted: bool = False
    keys_examined: int = 0
    documents_examined: int = 0
    partitions: set[int] = field(default_factory=set)
    direction: str = "forward"
    # True once an entry was met of a document with an array at a field of the index.
    is_multikey: bool = False
    # True if every document of the last batch fulfills the conditions, so that no filter has to decide.
    is_exact: bool = False
