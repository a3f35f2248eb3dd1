"""Run a query over a container, one page at a time.

Three ways, by what the query needs to know before its first result: nothing (`streamed_page`), the order of an index
(`ordered_page`), or all items (`collected_page`). Each reads through an index if one names few items, and otherwise all
items of its scope, in slices; the filter is always checked on the item itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from asterism.errors import MalformedRequest, StoredDamage
from asterism.keyspaces.routing.router import PartitionRouter, Reads
from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.reading.access_plan import Access, access_for, path_conditions
from asterism.reading.collected_page import collect
from asterism.reading.conditions import AllOf, Condition, PathCondition, Unrestricted
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.document_view import DocumentView, stored_view
from asterism.reading.item_reads import ItemReads
from asterism.reading.limits import QueryMemory
from asterism.reading.order_plan import IndexOrder, OrderPosition, bounded_order, order_for
from asterism.reading.ordered_page import follow_order, has_room, sort
from asterism.reading.page_progress import ClientWatch, PageProgress
from asterism.reading.page_run import PageRun
from asterism.reading.pinned_scopes import pinned_keys
from asterism.reading.query_page import QueryPage
from asterism.reading.result_sets import ResultSets
from asterism.reading.runnable import Kind, Runnable
from asterism.reading.streamed_page import stream

# A page that finds little in much data ends after this long with the results it has, and the client asks for the next.
PAGE_SECONDS_MAX = 1.0
# With at most this many candidates, sorting them is cheaper than following an index through items that do not match.
SORTED_CANDIDATES_MAX = 1_000

_UNRESTRICTED: Final = Unrestricted()


async def run_page(
    router: Reads,
    container: Container,
    query: Runnable,
    scopes: Sequence[Scope],
    *,
    continuation: Continuation = BEGINNING,
    items_max: int,
    monotonic_seconds: Callable[[], float],
    encode_result: Callable[[object], bytes],
    view: DocumentView | None = None,
    client_gone: Callable[[], Awaitable[None]] | None = None,
    is_paid_later: bool = False,
    result_sets: ResultSets | None = None,
    identity: bytes = b"",
    memory: QueryMemory | None = None,
) -> QueryPage:
    """Return the next page of a query over `scopes`, which are in order and do not overlap.

    `encode_result` encodes a result that the query made; a result that is a stored item is its body. `view` is the
    query's view of items, by default as they are stored. The caller takes the charge from a budget if `is_paid_later`.
    `identity` distinguishes the query and its parameters from all others in `result_sets`; `memory` is the memory that
    all queries of the process share.

    Raises QueryAbandoned if `client_gone` returns before a long page is finished.
    """
    document_view = view or stored_view(container.codec)
    position = continuation.position
    start = position.start if position is not None else (scopes[0].start if scopes else b"")
    settings = None
    # A page that was read while another process changed the settings may lack entries: it is read again.
    while settings is not container.keyspace.record.settings:
        finish_at, client = monotonic_seconds() + PAGE_SECONDS_MAX, ClientWatch(client_gone)
        settings = container.keyspace.record.settings
        partition = container.keyspace.record.map.find(start)
        progress = PageProgress(
            container.keyspace,
            items_max,
            finish_at,
            monotonic_seconds,
            partition,
            client,
            encode_result,
            is_paid_later,
        )
        # A view may compute properties, and how long that takes is not known.
        is_long = query.is_metered or bool(document_view.hidden)
        progress.measure(query.meter, memory=memory, in_turns=is_long)
        # Facts are remembered by LSN, which the staged changes of a unit of work do not have yet.
        reads = ItemReads(router, container, scopes, progress, is_remembered=isinstance(router, PartitionRouter))
        run = PageRun(container, query, scopes, reads, progress, document_view, result_sets, identity)
        # While the page is in flight, no index entry is removed.
        with container.keyspace.in_flight, client, progress.paying_when_refused(start):
            try:
                rest = await _page(run, continuation)
            except StoredDamage as damage:
                reads.name_damage(damage)
                raise
    if not progress.charge:
        progress.pay(start)
    newest = container.keyspace.record.map.get(max(progress.ranges_read, default=partition.id)) or partition
    partition, lsn, _ = await router.read(container.keyspace, newest.range.start, ())
    return QueryPage(
        results=progress.results,
        continuation=rest,
        charge=round(progress.charge, 2),
        range_id=partition.id,
        lsn=lsn,
        items_loaded=progress.items_loaded,
        bytes_loaded=progress.bytes_loaded,
        bytes_returned=progress.bytes_returned,
        index_lookups=progress.index_lookups,
        indexes_used=tuple(sorted(progress.indexes_used)),
        ranges_read=tuple(sorted(progress.ranges_read)),
        has_scanned=progress.has_scanned,
    )


async def _page(run: PageRun, continuation: Continuation) -> Continuation | None:
    kept = None
    if run.result_sets is not None:
        kept = run.result_sets.find(continuation.result_set, run.identity, first=continuation.returned)
    if kept is not None:
        return _answer_kept(run, *kept, continuation)
    if not run.query.reads_items:
        return await run.progress.in_turns(_answer_without_items, run, continuation)
    condition = _index_condition(run)
    access = _access(run, condition)
    run.reads.hides_unindexed = access is not None
    if run.query.kind is Kind.STREAMING:
        return await stream(run, continuation, access)
    if run.query.kind is Kind.ORDERED and not run.query.is_distinct:
        return await _ordered_page(run, continuation, access, condition)
    return await collect(run, continuation, access, condition)


def _index_condition(run: PageRun) -> Condition:
    # For a search, items that do not match count as well: they determine how rare its words are.
    is_used = run.query.has_filter and run.query.kind is not Kind.RANKED
    return run.query.index_conditions() if is_used else _UNRESTRICTED


def _access(run: PageRun, condition: Condition) -> Access | None:
    if isinstance(condition, Unrestricted):
        return None
    is_pinned = pinned_keys(run.container, run.query) is not None
    pinned = frozenset(run.container.record.definition.segments if is_pinned else ())
    return access_for(condition, run.container.rules, run.view.hidden, pinned)


async def _ordered_page(
    run: PageRun, continuation: Continuation, access: Access | None, condition: Condition
) -> Continuation | None:
    """Answer a page in an order: along its index, or sorted if no index has it or few items are left."""
    hidden = run.view.hidden
    order = order_for(run.query.index_use.order_paths, run.container.rules, hidden)
    if order is None:
        if run.query.unindexed_order_refusal is not None:
            raise MalformedRequest(reason=run.query.unindexed_order_refusal)
        return await sort(run, continuation, access, None)
    run.reads.hides_unindexed = True
    if continuation.position is None:
        bounded = bounded_order(order, path_conditions(condition, hidden))
        others = None if _is_answered_by(bounded, condition) else access
        if not await run.reads.are_few(others, SORTED_CANDIDATES_MAX):
            return await follow_order(run, continuation, bounded)
    return await sort(run, continuation, access, order.rows)


def _is_answered_by(order: IndexOrder, condition: Condition) -> bool:
    """Return True if the filter has no other conditions than those that bound the order's index."""
    if isinstance(condition, Unrestricted):
        return True
    parts = condition.conditions if isinstance(condition, AllOf) else (condition,)
    return all(isinstance(part, PathCondition) and part.path in order.bounded_paths for part in parts)


def _answer_without_items(run: PageRun, continuation: Continuation) -> Continuation | None:
    collector = run.query.new_collector()
    collector.feed({})
    return run.answer_list(list(collector.results()), continuation)


def _answer_kept(
    run: PageRun, results: Sequence[bytes], positions: Sequence[OrderPosition | None], continuation: Continuation
) -> Continuation | None:
    for number, encoded in enumerate(results):
        if run.progress.is_full or (positions and not has_room(run, continuation, positions, number)):
            ordered = positions[number] if positions else None
            return replace(continuation, returned=continuation.returned + number, ordered=ordered)
        run.progress.answer_encoded(encoded)
    return None
