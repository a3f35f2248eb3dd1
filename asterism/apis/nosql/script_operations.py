"""What a script asks for, carried out on the unit of work that it runs in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, cast

from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import TABLE
from asterism.apis.nosql.indexing_directive import indexing_of
from asterism.apis.nosql.paging import decode_position, encode_position
from asterism.apis.nosql.partition_view import PartitionView
from asterism.apis.nosql.script_functions import udfs_of
from asterism.documents.container import Container
from asterism.documents.item_position import Position
from asterism.documents.transaction import Conditions, Outcome, Transaction
from asterism.documents.unit_reads import UnitReads
from asterism.errors import (
    AsterismError,
    ItemExists,
    ItemNotFound,
    MalformedQuery,
    MalformedRequest,
    PartitionKeyMismatch,
    PreconditionFailed,
    QueryMemoryInUse,
    QueryTookTooLong,
    TooLarge,
    UniqueKeyViolation,
)
from asterism.limits import ITEM_NESTING_LEVELS_MAX, MIB, PAGE_BYTES_MAX
from asterism.query import CompiledQuery, Kind, compile_query, parse_query
from asterism.query.asked import parameters_of
from asterism.query.computed import computed_properties
from asterism.query.container_policies import distance_functions
from asterism.query.continuation import BEGINNING, Continuation
from asterism.query.execute import run_page
from asterism.query.functions.context import EvaluationContext
from asterism.query.limits import RESULT_BYTES_MAX
from asterism.query.pinned_scopes import scopes_of
from asterism.query.service_refusals import check_text_as_service
from asterism.query.turns import Turns
from asterism.scripts.operations import (
    FeedOptions,
    FeedOutcome,
    ItemOutcome,
    ItemReference,
    OperationRefused,
    ScriptQuery,
    WriteOptions,
)
from asterism.storage.contract import Snapshot
from asterism.throughput import charge
from asterism.values.item import Item, check_nesting
from asterism.values.json_text import dumps, loads_stored

# What a script can cause and may handle; anything else ends its run.
_SCRIPTS_OWN: Final = (
    ItemExists,
    ItemNotFound,
    MalformedQuery,
    MalformedRequest,
    PartitionKeyMismatch,
    PreconditionFailed,
    QueryMemoryInUse,
    QueryTookTooLong,
    TooLarge,
    UniqueKeyViolation,
)
# A page of a feed ends after this long; a query that needs all items is given up after the other.
_PAGE_SECONDS_MAX: Final = 1.0
_QUERY_SECONDS_MAX: Final = 4.0
# What a continuation goes on with: a position of a feed, or whatever the query's own says.
_OF_FEED: Final = b"f"
_OF_QUERY: Final = b"q"
# One batch holds all that a script writes, and numbers its items with 16 bits.
_STAGED_ITEMS_MAX: Final = 50_000
_WRITTEN_BYTES_MAX: Final = 64 * MIB
_FULL: Final = OperationRefused(413, "The script has written as much as one transaction may hold.")


class UnitOperations:
    """The promise of `scripts.operations.ScriptOperations`, kept with a transaction and its snapshot."""

    def __init__(self, context: Context, container: Container, work: Transaction, snapshot: Snapshot) -> None:
        self._context = context
        self._container = container
        self._work = work
        self._reads = UnitReads(work, snapshot)
        self._view = PartitionView(container, work, snapshot, self._reads)
        self._computed = computed_properties(container)
        self._handed_over = work.mark()
        self._written_bytes = 0
        # The position of the item that was found by its resource id last.
        self._found_at: Position | None = None
        self._monotonic_seconds = context.clock.monotonic_seconds

    def roll_back(self) -> None:
        self._work.return_to(self._handed_over)

    # --- single items -----------------------------------------------------------------------------------------------

    async def create(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused:
        return await self._write(lambda: self._work.create(_checked(body)), options)

    async def create_many(self, bodies: Sequence[dict[str, object]]) -> list[ItemOutcome] | None:
        if len(self._work.staged) + len(bodies) > _STAGED_ITEMS_MAX or self._written_bytes >= _WRITTEN_BYTES_MAX // 2:
            return None
        try:
            done = await self._work.create_many([_checked(body) for body in bodies])
        except MalformedRequest:
            return None
        if done is None:
            return None
        self._written_bytes += sum(len(one.body) for one in done)
        return [ItemOutcome(201, one.body) for one in done]

    async def upsert(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused:
        return await self._write(lambda: self._work.upsert(_checked(body), Conditions(options.etag)), options)

    async def replace(
        self, reference: ItemReference, body: dict[str, object], options: WriteOptions
    ) -> ItemOutcome | OperationRefused:
        async def act() -> Outcome:
            item_id = await self._id_of(reference)
            return await self._work.replace(item_id, _checked(body), Conditions(options.etag))

        return await self._write(act, options)

    async def _write(
        self, act: Callable[[], Awaitable[Outcome]], options: WriteOptions
    ) -> ItemOutcome | OperationRefused:
        if len(self._work.staged) >= _STAGED_ITEMS_MAX or self._written_bytes >= _WRITTEN_BYTES_MAX:
            return _FULL
        try:
            self._work.indexes = indexing_of(options.index_action)
            done = await act()
        except _SCRIPTS_OWN as error:
            return _refused(error)
        self._written_bytes += len(done.body)
        return ItemOutcome(201 if done.created else 200, done.body)

    async def read(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused:
        try:
            found = await self._work.read(await self._id_of(reference))
        except _SCRIPTS_OWN as error:
            return _refused(error)
        if options.if_none_match is not None and options.if_none_match in ("*", found.etag):
            return ItemOutcome(304, None)
        return ItemOutcome(200, found.body)

    async def delete(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused:
        if len(self._work.staged) >= _STAGED_ITEMS_MAX:
            return _FULL
        try:
            await self._work.delete(await self._id_of(reference), Conditions(options.etag))
        except _SCRIPTS_OWN as error:
            return _refused(error)
        return ItemOutcome(204, None)

    async def _id_of(self, reference: ItemReference) -> str:
        """Items are kept by id, so one that is known by its resource id alone is looked for."""
        if reference.item_id is not None:
            return reference.item_id
        resource_id = str(reference.resource_id)
        # A script that goes through what a query gave it asks in the order of creation: the next one is not far.
        found = await self._find(resource_id, self._found_at)
        if found is None and self._found_at is not None:
            found = await self._find(resource_id, None)
        if found is None:
            raise ItemNotFound(item_id=resource_id)
        return found

    async def _find(self, resource_id: str, start: Position | None) -> str | None:
        wanted = f'"_rid":"{resource_id}"'.encode()
        async for position, body in self._view.scan(start):
            if wanted in body:
                item = cast("dict[str, Any]", loads_stored(body, key=resource_id))
                if item.get("_rid") == resource_id:
                    self._found_at = position
                    return str(item["id"])
        return None

    # --- pages ------------------------------------------------------------------------------------------------------

    async def read_feed(self, options: FeedOptions) -> FeedOutcome | OperationRefused:
        try:
            token = _position(options, _OF_FEED)
            start = None if token is None else Position.from_bytes(token)
        except MalformedRequest as error:
            return _refused(error)
        return await self._page(self._view.scan(start), options)

    async def query(self, query: ScriptQuery, options: FeedOptions) -> FeedOutcome | OperationRefused:
        try:
            clock = self._context.clock
            parameters = parameters_of(list(query.parameters))
            compiled = compile_query(
                parse_query(query.text),
                parameters,
                udfs=udfs_of(self._context, self._container),
                context=EvaluationContext(clock.wall_seconds(), random.random, clock.wall_seconds),
                distance_function_of=distance_functions(self._container),
            )
            if not self._context.lenient_sql:
                check_text_as_service(query.text, parameters)
            if (item_id := _only_id(compiled)) is not None:
                return await self._by_id(compiled, item_id)
            async with asyncio.timeout(_QUERY_SECONDS_MAX):
                return await self._by_executor(compiled, options)
        except TimeoutError:
            return OperationRefused(408, "The query took longer than one in a script may.")
        except _SCRIPTS_OWN as error:
            return _refused(error)

    async def _by_id(self, query: CompiledQuery, item_id: str) -> FeedOutcome:
        """A query for one item, which is often that of a trigger: its place is known, so no index is asked."""
        body = await self._view.find(item_id)
        results: list[bytes] = []
        if body is not None:
            item = self._computed.item_of(body)
            turns = Turns(self._monotonic_seconds)
            query.meter.account.draw_on(self._context.result_sets.memory)
            query.meter.watch(turns)
            if query.is_plain and query.is_select_star:
                results = [body] if await turns.run(query.matches, item) else []
            else:
                results = await turns.run(_texts_of_rows, query, item)
        self._work.cost += charge.query(
            index_lookups=0,
            items_loaded=0 if body is None else 1,
            bytes_loaded=0 if body is None else len(body),
            results=len(results),
            bytes_returned=sum(map(len, results)),
            steps=query.meter.steps,
            bytes_built=query.meter.bytes_built,
        )
        return FeedOutcome(results, None)

    async def _by_executor(self, query: CompiledQuery, options: FeedOptions) -> FeedOutcome:
        """As clients' queries are run, on what this unit of work sees."""
        container = self._container
        position = _position(options, _OF_QUERY)
        page = await run_page(
            self._reads,
            container,
            query,
            scopes_of(container, query, container.logical_scope(self._work.key)),
            continuation=BEGINNING if position is None else Continuation.from_bytes(position),
            items_max=options.page_size,
            monotonic_seconds=self._monotonic_seconds,
            computed=self._computed,
            is_paid_later=True,
            memory=self._context.result_sets.memory,
        )
        self._work.cost += page.charge
        rest = page.continuation
        return FeedOutcome(page.results, None if rest is None else encode_position(_OF_QUERY + rest.to_bytes()))

    async def _page(
        self,
        items: AsyncIterator[tuple[Position, bytes]],
        options: FeedOptions,
    ) -> FeedOutcome:
        """A page in the order of creation."""
        found: list[bytes] = []
        found_bytes = 0
        continuation = None
        finish_at = self._monotonic_seconds() + _PAGE_SECONDS_MAX
        async for position, body in items:
            is_full = len(found) >= options.page_size or found_bytes + len(body) > PAGE_BYTES_MAX
            if found and (is_full or self._monotonic_seconds() >= finish_at):
                continuation = encode_position(_OF_FEED + position.to_bytes())
                break
            found.append(body)
            found_bytes += len(body)
        self._work.cost += charge.query(
            index_lookups=0,
            items_loaded=len(found),
            bytes_loaded=found_bytes,
            results=len(found),
            bytes_returned=found_bytes,
        )
        return FeedOutcome(found, continuation)


def _texts_of_rows(query: CompiledQuery, item: Item) -> list[bytes]:
    texts, total_bytes = [], 0
    for result in query.rows(item):
        query.meter.check_result(result)
        texts.append(text := dumps(result))
        total_bytes += len(text)
        if total_bytes > RESULT_BYTES_MAX:
            raise TooLarge(what="result of the query", bytes_max=RESULT_BYTES_MAX)
    return texts


def _only_id(query: CompiledQuery) -> str | None:
    """The id of the one item that can match, of a query whose results are that item's alone."""
    is_cut = query.top is not None or query.limit is not None or query.offset
    if not query.reads_items or query.kind is not Kind.STREAMING or is_cut:
        return None
    ids = [value for path, value in query.equalities() if path == ("id",)]
    return ids[0] if ids and isinstance(ids[0], str) else None


def _position(options: FeedOptions, mark: bytes) -> bytes | None:
    if options.continuation is None:
        return None
    position = decode_position(options.continuation)
    if position[:1] != mark:
        raise MalformedRequest(reason="Invalid Continuation Token: it is one of another query.")
    return position[1:]


def _checked(body: dict[str, object]) -> Item:
    check_nesting(body, levels_max=ITEM_NESTING_LEVELS_MAX)
    return body


def _refused(error: AsterismError) -> OperationRefused:
    rule: Any = TABLE[type(error)]
    return OperationRefused(rule.status, rule.words(error))
