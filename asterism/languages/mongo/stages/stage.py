"""A stage of a pipeline, compiled, and what it may ask of its surroundings while it runs.

Documents flow in batches, because a coroutine for each document would cost more than the work on it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.languages.mongo.geo.near import Found
    from asterism.languages.mongo.stages.geo_near import GeoNear
    from asterism.languages.mongo.stages.pipeline import Pipeline

Batches = AsyncIterator[list[Document]]
Transform = Callable[[list[Document], Variables], list[Document]]

BATCH_DOCUMENTS = 1000
# Work between two returns to the event loop, so that other connections are answered meanwhile.
WORK_SECONDS_MAX = 0.005


class Uniqueness(Enum):
    """The unique indexes over the fields of `$merge`: none, one, or only one without the documents that lack them."""

    NONE = "none"
    SPARSE = "sparse"
    FULL = "full"


class RunContext(Protocol):
    """The surroundings of a running pipeline. The caller implements it, and decides about indexes and transactions."""

    # The values of the variables in scope: those of the command's `let`, or of the `$lookup` around a sub-pipeline.
    variables: Variables
    # The memory that a $sort or a $group may hold, or None if the command allows the disk to be used.
    memory_bytes_max: int | None

    def check_time(self) -> None:
        """Raise MongoFailure 50 when the command's maxTimeMS has passed."""

    def with_variables(self, variables: Variables) -> RunContext:
        """Return the same context with other variables."""

    async def in_turns(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function that may call scripts; other requests proceed while it waits for them."""

    async def read(
        self, collection: str | None, database: str | None, pipeline: Pipeline, variables: Variables
    ) -> Batches:
        """Return what a collection or view gives when run through a compiled pipeline; None for `database` is the one
        of the command. None for `collection` is for pipelines that begin with a source of their own ($documents)."""

    async def lookup(self, collection: str, database: str | None, field: str, values: list[Any]) -> list[Document]:
        """Return the documents in which `field` equals one of the values, as a filter `{field: value}` would find them:
        also in an array, and null finds missing fields."""

    async def write_out(self, database: str | None, collection: str, batches: Batches, options: dict[str, Any]) -> None:
        """Replace a collection by the documents, atomically ($out). `options` may have `timeseries`."""

    async def unique_on(self, database: str | None, collection: str, fields: Sequence[str]) -> Uniqueness:
        """Return the kind of unique index that exists over exactly these fields (always one for `_id` alone)."""

    async def merge_find(self, database: str | None, collection: str, key: Document) -> Document | None:
        """Return the document in which the fields of `key` (dotted paths) equal its values."""

    async def merge_insert(self, database: str | None, collection: str, document: Document) -> None:
        """Insert a document ($merge), creating the collection if need be. Raises MongoFailure 11000, 121."""

    async def merge_update(
        self, database: str | None, collection: str, before: Document, change: Callable[[Document], Document]
    ) -> bool:
        """Replace a found document by what `change` makes of its present state, atomically ($merge); return False if
        it is gone. Raises MongoFailure 11000, 66, 121."""

    async def collection_statistics(self, specification: dict[str, Any]) -> list[Document]:
        """Return the documents of $collStats."""

    async def index_statistics(self) -> list[Document]:
        """Return the documents of $indexStats."""

    async def current_operations(self, specification: dict[str, Any]) -> list[Document]:
        """Return the documents of $currentOp."""

    async def system_documents(self, stage: str, specification: dict[str, Any]) -> list[Document]:
        """Return the documents of a stage that describes the server: $listSessions, $listLocalSessions,
        $planCacheStats, $listClusterCatalog, $querySettings, $listCatalog, $queryStats."""

    def near(self, request: GeoNear) -> AsyncIterator[list[tuple[Document, Found]]]:
        """Yield the documents of $geoNear's collection with their nearest geometries, in the order of distance; raises
        MongoFailure when the search needs an index that does not exist."""


class Within(Enum):
    """The construct around a pipeline."""

    AGGREGATE = "aggregate"
    FACET = "$facet"
    LOOKUP = "$lookup"
    UNION = "$unionWith"
    VIEW = "view"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class PipelinePlace:
    """The place of a pipeline, for the rules of which stages may stand there."""

    database: str = "test"
    # None for `aggregate: 1`.
    collection: str | None = "collection"
    within: Within = Within.AGGREGATE
    # All constructs around the pipeline, the outermost first.
    around: tuple[Within, ...] = ()
    in_transaction: bool = False

    def inside(self, within: Within, collection: str | None) -> PipelinePlace:
        return PipelinePlace(self.database, collection, within, (*self.around, self.within), self.in_transaction)


class Position(Enum):
    ANYWHERE = "anywhere"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Scope:
    """The things that the compiler of a stage may use."""

    context: CompileContext
    place: PipelinePlace
    compile_pipeline: Callable[..., Pipeline]
    # The position of the stage in its pipeline.
    index: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """A compiled stage. It has `transform` if it handles every batch alone, else `run`."""

    name: str
    specification: Any = None
    transform: Transform | None = None
    run: Callable[[Batches, RunContext], Batches] | None = None
    # The meaning of the stage, for a planner: the ordering of a $sort, the number of a $limit or
    # $skip, the filter of a $match, the target of $out and $merge, the options of $changeStream.
    meaning: Any = None
    # The order of a $sort, which may be told of a $limit behind it.
    ordering: Any = None
    # Sub-pipelines, for the checks of what they may contain.
    inner: tuple[Pipeline, ...] = ()
    # Collections that the stage reads beside its input, as (database or None, collection).
    reads: tuple[tuple[str | None, str], ...] = ()


class StageRow(NamedTuple):
    """A row of the table of stages."""

    name: str
    compile: Callable[[Any, Scope], Stage]
    position: Position = Position.ANYWHERE
    # Places where the stage is refused.
    refused_in: frozenset[Within] = frozenset()
    in_transaction: bool = True
    # True if the stage makes documents by itself, so that it needs no collection to read.
    is_source: bool = False


class Pacer:
    """Returns to the event loop now and then, and notices that the command's time has passed."""

    __slots__ = ("context", "until")

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.until = time.perf_counter() + WORK_SECONDS_MAX

    async def pause(self) -> None:
        if time.perf_counter() > self.until:
            self.context.check_time()
            await asyncio.sleep(0)
            self.until = time.perf_counter() + WORK_SECONDS_MAX


async def batches_of(documents: list[Document]) -> Batches:
    """Yield a list as batches."""
    for start in range(0, len(documents), BATCH_DOCUMENTS):
        yield documents[start : start + BATCH_DOCUMENTS]


async def collect(batches: Batches) -> list[Document]:
    documents: list[Document] = []
    async for batch in batches:
        documents.extend(batch)
    return documents


def each(name: str, function: Callable[[Document, Variables], Document], specification: Any = None) -> Stage:
    """A stage that makes one document of each."""

    def transform(documents: list[Document], variables: Variables) -> list[Document]:
        return [function(document, variables) for document in documents]

    return Stage(name, specification, transform=transform)


def evaluate_many(specification: Any, context: CompileContext) -> Callable[[list[Document], Variables], list[Any]]:
    """Compile an expression for lists of documents; a plain field is read without a call for each document."""
    from asterism.values.bson.types import MISSING

    evaluate = context.compile(specification)
    if is_plain_field(specification, context):
        name = specification[1:]
        return lambda documents, variables: [document.get(name, MISSING) for document in documents]
    return many(evaluate)


def many(evaluate: Evaluate) -> Callable[[list[Document], Variables], list[Any]]:
    return lambda documents, variables: [evaluate(document, variables) for document in documents]


def is_plain_field(specification: Any, context: CompileContext) -> bool:
    return (
        type(specification) is str
        and specification[:1] == "$"
        and specification[1:2] != "$"
        and "." not in specification
        and "CURRENT" not in context.variables
    )


class MemoryMeter:
    """Estimates the memory that a stage holds, from a sample of its documents."""

    __slots__ = ("bytes_max", "held_bytes", "name")

    def __init__(self, name: str, context: RunContext) -> None:
        self.name = name
        self.bytes_max = context.memory_bytes_max
        self.held_bytes = 0

    def add(self, documents: list[Document]) -> None:
        if self.bytes_max is None or not documents:
            return
        step = max(1, len(documents) // 16)
        sample = documents[::step]
        self.held_bytes += sum(map(estimate_bytes, sample)) * len(documents) // len(sample)
        if self.held_bytes > self.bytes_max:
            raise MongoFailure(
                292,
                f"{self.name} exceeded memory limit of {self.bytes_max} bytes, but did not opt in to external sorting. "
                "Pass allowDiskUse:true to opt in.",
            )


def estimate_bytes(value: Any) -> int:
    """Return about the size of a value in BSON."""
    if type(value) is str or type(value) is bytes:
        return len(value) + 8
    if type(value) is dict:
        return 8 + sum(len(name) + 2 for name in value) + sum(map(estimate_bytes, value.values()))
    if type(value) is list:
        return 8 + 4 * len(value) + sum(map(estimate_bytes, value))
    return 12


def refuse_unless(condition: bool, code: int, message: str) -> None:
    if not condition:
        raise MongoFailure(code, message)


@dataclass(slots=True)
class MemoryContext:
    """A run context without collections: for pipelines of updates, for tests, and for what needs no source."""

    variables: Variables = field(default_factory=dict)
    memory_bytes_max: int | None = 100 * 1024 * 1024

    def check_time(self) -> None:
        return

    async def in_turns(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def with_variables(self, variables: Variables) -> MemoryContext:
        return MemoryContext(variables, self.memory_bytes_max)


def chunks(documents: Iterable[Document]) -> Iterable[list[Document]]:
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) >= BATCH_DOCUMENTS:
            yield batch
            batch = []
    if batch:
        yield batch
