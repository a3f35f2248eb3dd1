"""The operations that a script asks for, carried out on the unit of work that it runs in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, cast

from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import TRANSLATION
from asterism.apis.nosql.items.indexing_directive import indexing_of
from asterism.apis.nosql.paging import decode_position, encode_position
from asterism.apis.user_functions import ContainerFunctions
from asterism.errors import (
    AsterismError,
    ItemExists,
    ItemNotFound,
    MalformedRequest,
    PartitionKeyMismatch,
    PreconditionFailed,
    QueryMemoryInUse,
    QueryTookTooLong,
    TooLarge,
    UniqueKeyViolation,
)
from asterism.languages.cosmos_sql import CompiledQuery, Kind, compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.computed import document_view
from asterism.languages.cosmos_sql.compiling.container_policies import distance_functions
from asterism.languages.cosmos_sql.functions.context import EvaluationContext
from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.request import parameters_of
from asterism.languages.cosmos_sql.service_refusals import check_text_as_service
from asterism.limits import ITEM_NESTING_LEVELS_MAX, MIB, PAGE_BYTES_MAX
from asterism.models.documents.container import Container
from asterism.models.documents.creation_order import walk_bodies
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_position import Position
from asterism.models.documents.transaction import Conditions, Outcome, Transaction
from asterism.models.documents.unit_reads import UnitReads
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.limits import RESULT_BYTES_MAX
from asterism.reading.pinned_scopes import scopes_of
from asterism.reading.turns import Turns
from asterism.scripts.operations import (
    FeedOptions,
    FeedOutcome,
    ItemOutcome,
    ItemReference,
    OperationRefused,
    ScriptQuery,
    WriteOptions,
)
from asterism.throughput import charge
from asterism.values.item import Item, check_nesting
from asterism.values.json.text import dumps, loads_stored

# Errors that a script can cause and may handle; any other ends its run.
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
# The first byte of a continuation: a position of a feed follows, or the query's own continuation.
_OF_FEED: Final = b"f"
_OF_QUERY: Final = b"q"
# One batch holds all that a script writes, and numbers its items with 16 bits.
_STAGED_ITEMS_MAX: Final = 50_000
_WRITTEN_BYTES_MAX: Final = 64 * MIB
_FULL: Final = OperationRefused(413, "The script has written as much as one transaction may hold.")


class UnitOperations:
    """An implementation of `scripts.operations.ScriptOperations` with a transaction and the reads of its unit."""

    def __init__(self, context: Context, container: Container, work: Transaction, reads: UnitReads) -> None:
        self._context = context
        self._container = container
        self._work = work
        self._reads = reads
        self._document_view = document_view(container)
        self._handed_over = work.savepoint()
        self._written_bytes = 0
        # The position of the item that was found by its resource id last.
        self._found_at: Position | None = None
        self._monotonic_seconds = context.clock.monotonic_seconds

    def roll_back(self) -> None:
        self._work.return_to(self._handed_over)

    # --- single items -----------------------------------------------------------------------------------------------

    async def create(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused:
        async def act() -> Outcome:
            return await self._work.create(self._work.key_of(_valid_item(body)), body)

        return await self._write(act, options)

    async def create_many(self, bodies: Sequence[dict[str, object]]) -> list[ItemOutcome] | None:
        if len(self._work.staged) + len(bodies) > _STAGED_ITEMS_MAX or self._written_bytes >= _WRITTEN_BYTES_MAX // 2:
            return None
        try:
            done = await self._work.create_many([_valid_item(body) for body in bodies])
        except MalformedRequest:
            return None
        if done is None:
            return None
        self._written_bytes += sum(len(outcome.body) for outcome in done)
        return [ItemOutcome(201, outcome.body) for outcome in done]

    async def upsert(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused:
        async def act() -> Outcome:
            return await self._work.upsert(self._work.key_of(_valid_item(body)), body, Conditions(options.etag))

        return await self._write(act, options)

    async def replace(
        self, reference: ItemReference, body: dict[str, object], options: WriteOptions
    ) -> ItemOutcome | OperationRefused:
        async def act() -> Outcome:
            item_key = await self._key_of(reference)
            return await self._work.replace(
                item_key, self._work.key_of(_valid_item(body)), body, Conditions(options.etag)
            )

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
            return _refusal_of(error)
        self._written_bytes += len(done.body)
        return ItemOutcome(201 if done.created else 200, done.body)

    async def read(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused:
        try:
            found = await self._work.read(await self._key_of(reference))
        except _SCRIPTS_OWN as error:
            return _refusal_of(error)
        if options.if_none_match is not None and options.if_none_match in ("*", found.etag):
            return ItemOutcome(304, None)
        return ItemOutcome(200, found.body)

    async def delete(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused:
        if len(self._work.staged) >= _STAGED_ITEMS_MAX:
            return _FULL
        try:
            await self._work.delete(await self._key_of(reference), Conditions(options.etag))
        except _SCRIPTS_OWN as error:
            return _refusal_of(error)
        return ItemOutcome(204, None)

    async def _key_of(self, reference: ItemReference) -> ItemKey:
        """Return an item's key. Items are stored by id, so a resource id alone costs a scan."""
        if reference.item_id is not None:
            return self._work.item_key(reference.item_id.encode())
        resource_id = str(reference.resource_id)
        # A script that walks the results of a query asks in the order of creation: the next item is not far.
        found = await self._find(resource_id, self._found_at)
        if found is None and self._found_at is not None:
            found = await self._find(resource_id, None)
        if found is None:
            raise ItemNotFound(item_id=resource_id)
        return self._work.item_key(found.encode())

    async def _find(self, resource_id: str, start: Position | None) -> str | None:
        wanted = f'"_rid":"{resource_id}"'.encode()
        async for position, body in self._items(start):
            if wanted in body:
                item = cast("dict[str, Any]", loads_stored(body, key=resource_id))
                if item.get("_rid") == resource_id:
                    self._found_at = position
                    return str(item["id"])
        return None

    def _items(self, start: Position | None) -> AsyncIterator[tuple[Position, bytes]]:
        container = self._container
        return walk_bodies(self._reads, container, container.logical_scope(self._work.key), start)

    # --- pages ------------------------------------------------------------------------------------------------------

    async def read_feed(self, options: FeedOptions) -> FeedOutcome | OperationRefused:
        try:
            token = _position(options, _OF_FEED)
            start = None if token is None else Position.from_bytes(token)
        except MalformedRequest as error:
            return _refusal_of(error)
        return await self._page(self._items(start), options)

    async def query(self, query: ScriptQuery, options: FeedOptions) -> FeedOutcome | OperationRefused:
        try:
            clock = self._context.clock
            parameters = parameters_of(list(query.parameters))
            compiled = compile_query(
                parse_query(query.text),
                parameters,
                udfs=ContainerFunctions(self._context.store, self._context.scripts, self._container),
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
            return _refusal_of(error)

    async def _by_id(self, query: CompiledQuery, item_id: str) -> FeedOutcome:
        """Answer a query for a single item, as triggers often send it: its key is known, so no index is read."""
        body = await self._reads.find_body(item_id.encode())
        results: list[bytes] = []
        if body is not None:
            item = self._document_view.decode(body)
            turns = Turns(self._monotonic_seconds)
            query.meter.account.draw_on(self._context.result_sets.memory)
            query.meter.watch(turns)
            if query.is_plain and query.answers_whole:
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
        """Run a query as those of clients are run, on the data that this unit of work sees."""
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
            encode_result=dumps,
            view=self._document_view,
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
        """Return a page in the order of creation."""
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
    """Return the id of the only item that can match, or None if the query may have results of others."""
    if not query.reads_items or query.kind is not Kind.STREAMING or not query.window.is_open:
        return None
    ids = [value for path, value in query.equalities() if path == ("id",)]
    return ids[0] if ids and isinstance(ids[0], str) else None


def _position(options: FeedOptions, mark: bytes) -> bytes | None:
    if options.continuation is None:
        return None
    position = decode_position(options.continuation)
    if position[:1] != mark:
        raise MalformedRequest(reason="Invalid Continuation Token: it belongs to another query.")
    return position[1:]


def _valid_item(body: dict[str, object]) -> Item:
    check_nesting(body, levels_max=ITEM_NESTING_LEVELS_MAX)
    return body


def _refusal_of(error: AsterismError) -> OperationRefused:
    rule = TRANSLATION.row(error)
    return OperationRefused(rule.status, rule.message(error))
