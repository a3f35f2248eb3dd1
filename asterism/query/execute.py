"""Running a compiled query over a container, one page at a time.

Three ways, by what the query needs to know before its first result: nothing (`_stream`), the order of an index
(`_in_order`), or all items (`_collect`). Each reads through an index when one names few items, and all items of its
scope, in slices, when none does; the filter is always checked on the item itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile

from asterism.documents.answers import Scope
from asterism.documents.container import Container
from asterism.documents.creation_order import Slice
from asterism.documents.index_reader import IndexEntry
from asterism.documents.item_record import StoredItem
from asterism.errors import MalformedRequest, StoredDamage
from asterism.keyspaces.owner import Owner, Reads
from asterism.query.collectors import Collector, GroupState, OrderedCollector
from asterism.query.compile import CompiledQuery, Item
from asterism.query.computed import NOTHING_COMPUTED, Computed
from asterism.query.continuation import BEGINNING, Continuation
from asterism.query.index_order import OrderPosition
from asterism.query.index_plan import (
    Access,
    IndexOrder,
    RowOrder,
    access_for,
    bounded_order,
    is_answered_by,
    order_for,
    path_text,
)
from asterism.query.item_reads import TURN_SECONDS, ItemReads
from asterism.query.limits import QueryMemory
from asterism.query.ordered_rows import positions_before
from asterism.query.pinned_scopes import pinned_keys
from asterism.query.pipeline import Kind
from asterism.query.query_page import Ended, QueryPage
from asterism.query.result_sets import ResultSets
from asterism.query.work import ClientWatch, Work
from asterism.values.json_text import NotJson, loads_stored, parse_stored, unreadable
from asterism.values.undefined import UNDEFINED

# A page that finds little in much data answers with what it has after this long, and the client asks on.
PAGE_SECONDS_MAX = 1.0
# The same for a page that must read all items before its first result. The service, too, gives a page five seconds; and
# clients give up on a request after about a minute.
COLLECT_SECONDS_MAX = 5.0
# With at most this many candidates, sorting them is cheaper than following an index through items that do not match.
SORTED_CANDIDATES_MAX = 1_000
# A long collection pays as it goes, so that the partition's other clients notice it while it runs.
ITEMS_BETWEEN_PAYMENTS = 1_000
# Rows of one item between two looks at the clock.
ROWS_BETWEEN_LOOKS = 64


async def run_page(
    owner: Reads,
    container: Container,
    query: CompiledQuery,
    scopes: Sequence[Scope],
    *,
    continuation: Continuation = BEGINNING,
    items_max: int,
    monotonic_seconds: Callable[[], float],
    computed: Computed | None = None,
    client_gone: Callable[[], Awaitable[None]] | None = None,
    is_paid_later: bool = False,
    result_sets: ResultSets | None = None,
    identity: bytes = b"",
    memory: QueryMemory | None = None,
) -> QueryPage:
    """The next page of a query over `scopes`, which are in order and do not overlap. The caller takes its charge from
    a budget if `is_paid_later`. `identity` tells what is asked from all else that `result_sets` may have; `memory` is
    what all queries of the process share.

    Raises QueryAbandoned when `client_gone` comes to its end before a long page does.
    """
    at = continuation.position
    start = at.start if at is not None else (scopes[0].start if scopes else b"")
    settings = None
    # What was found after another process changed the settings may lack entries: such a page is made again.
    while settings is not container.keyspace.record.settings:
        finish_at, client = monotonic_seconds() + PAGE_SECONDS_MAX, ClientWatch(client_gone)
        settings = container.keyspace.record.settings
        partition = container.keyspace.record.map.find(start)
        work = Work(container, items_max, finish_at, monotonic_seconds, partition, client, is_paid_later)
        # What a computed property needs is known to nobody here.
        is_long = query.is_metered or (computed is not None and bool(computed.names))
        work.measure(query.meter, memory=memory, in_turns=is_long)
        # What a unit of work has staged has no LSN yet, by which things are remembered.
        reads = ItemReads(owner, container, scopes, work, is_remembered=isinstance(owner, Owner))
        run = _Run(container, query, scopes, reads, work, computed or NOTHING_COMPUTED, result_sets, identity)
        # While this goes on, no index entry is taken away.
        with container.keyspace.at_work, client, work.paying_when_refused(start):
            try:
                rest = await run.page(continuation)
            except StoredDamage as damage:
                reads.name_damage(damage)
                raise
    if not work.charge:
        work.pay(start)
    newest = container.keyspace.record.map.get(max(work.ranges_read, default=partition.id)) or partition
    told, lsn, _ = await owner.read(container.keyspace, newest.range.start, ())
    return QueryPage(
        results=work.results,
        continuation=rest,
        charge=round(work.charge, 2),
        range_id=told.id,
        lsn=lsn,
        items_loaded=work.items_loaded,
        bytes_loaded=work.bytes_loaded,
        bytes_returned=work.bytes_returned,
        index_lookups=work.index_lookups,
        indexes_used=tuple(sorted(work.indexes_used)),
        ranges_read=tuple(sorted(work.ranges_read)),
        has_scanned=work.has_scanned,
    )


@dataclass(slots=True)
class _Run:
    """One page being made."""

    container: Container
    query: CompiledQuery
    scopes: Sequence[Scope]
    reads: ItemReads
    work: Work
    computed: Computed
    result_sets: ResultSets | None
    identity: bytes

    async def page(self, continuation: Continuation) -> Continuation | None:
        query, rules = self.query, self.container.rules
        kept = None
        if self.result_sets is not None:
            kept = self.result_sets.find(continuation.result_set, self.identity, first=continuation.returned)
        if kept is not None:
            return self._answer_kept(*kept, continuation)
        if not query.reads_items:
            return await self.work.in_turns(self._answer_without_items, continuation)
        hidden = self.computed.names
        access = None
        # Of a search, items that do not match count as well: they say how rare its words are.
        if query.has_filter and query.kind is not Kind.RANKED:
            is_pinned = pinned_keys(self.container, query) is not None
            pinned = frozenset(self.container.record.definition.segments if is_pinned else ())
            access = access_for(query.index_conditions(), rules, hidden, pinned)
            self.reads.hides_unindexed = access is not None
        if query.kind is Kind.STREAMING:
            return await self._stream(continuation, access)
        if query.kind is Kind.ORDERED and not query.is_distinct:
            order = order_for(query.order_paths, rules, hidden)
            self._check_composite(order)
            self.reads.hides_unindexed = self.reads.hides_unindexed or order is not None
            if order is not None and continuation.position is None:
                others = None if is_answered_by(order, access) else access
                if not await self.reads.are_few(others, SORTED_CANDIDATES_MAX):
                    return await self._in_order(continuation, bounded_order(order, access))
            return await self._sort(continuation, access, None if order is None else order.rows)
        return await self._collect(continuation, access)

    def _answer_without_items(self, continuation: Continuation) -> Continuation | None:
        collector = self.query.new_collector()
        collector.feed({})
        return self._answer_list(list(collector.results()), continuation)

    def _check_composite(self, order: IndexOrder | None) -> None:
        if order is None and len(self.query.order_by) > 1 and self.query.order_paths is not None:
            raise MalformedRequest(
                reason="The order by query does not have a corresponding composite index that it can be served from."
            )

    # --- results as they come ---------------------------------------------------------------------------------------

    async def _stream(self, continuation: Continuation, access: Access | None) -> Continuation | None:
        query, work, state = self.query, self.work, continuation
        take = self._take_plain if query.is_plain and not _has_window(query) else self._take_rows
        effective_key = self.scopes[0].start if self.scopes else b""
        for scope in self.scopes:
            async for items in self.reads.items(scope, continuation.position, access):
                if work.is_out_of_time:
                    work.pay(effective_key)
                    return replace(state, position=items.before(0))
                state, ended = await work.in_turns(take, state, items)
                if ended is not None:
                    work.pay(effective_key)
                    return None if ended is Ended.QUERY else state
        return None

    def _take_plain(self, state: Continuation, items: Slice) -> tuple[Continuation, Ended | None]:
        """Answers the items that match: the way of most queries, and of every scan that finds little in much."""
        query, work, item_of = self.query, self.work, self._reader(items, self.work.results_wanted)
        matches, project, is_whole = query.matches, query.project, query.is_select_star
        is_read = query.has_filter or not is_whole
        if not is_read:
            bodies = [body for _, body in items.items]
            text_bytes = sum(map(len, bodies))
            if work.has_room_for(bodies, text_bytes):
                work.answer_texts(bodies, text_bytes)
                work.load_all(items.items)
                return state, None
        if item_of is loads_stored:
            item_of = parse_stored
        is_full, body = work.is_full, b""
        try:
            for index, (_, body) in enumerate(items.items):
                if is_full:
                    work.load_all(items.items[:index])
                    return replace(state, position=items.before(index)), Ended.PAGE
                if is_read and not matches(item := item_of(body)):
                    continue
                if is_whole:
                    work.answer_text(body)
                elif (result := project(item)) is not UNDEFINED:
                    work.answer(result)
                is_full = work.is_full
        except NotJson:
            raise unreadable(body) from None
        work.load_all(items.items)
        return state, None

    def _take_rows(self, state: Continuation, items: Slice) -> tuple[Continuation, Ended | None]:
        """Answers items' rows, as many as TOP and OFFSET LIMIT let through."""
        work, item_of = self.work, self._reader(items, self.work.results_wanted)
        for index, (_, body) in enumerate(items.items):
            if work.is_full or work.is_out_of_time:
                return replace(state, position=items.before(index)), Ended.PAGE
            number = items.number(index)
            passed = state.begun.get(number, 0)
            work.load(body)
            for row, result in enumerate(self.query.rows(item_of(body))):
                if row < passed:
                    continue
                if work.is_full or (row > passed and not row % ROWS_BETWEEN_LOOKS and work.is_out_of_time):
                    begun = {**state.begun, number: row}
                    return replace(state, position=items.before(index), begun=begun), Ended.PAGE
                state, is_over = self._count(state, result)
                if is_over:
                    return state, Ended.QUERY
            if passed:
                state = replace(state, begun={item: rows for item, rows in state.begun.items() if item != number})
        return state, None

    def _count(self, state: Continuation, result: object) -> tuple[Continuation, bool]:
        """Answers a result or passes over it, as TOP and OFFSET LIMIT say; says whether it was the last."""
        query = self.query
        wanted = query.results_max
        seen = state.skipped + state.returned
        if wanted is not None and seen >= wanted:
            return state, True
        if seen < query.offset:
            return replace(state, skipped=state.skipped + 1), False
        self.work.answer(result)
        return replace(state, returned=state.returned + 1), wanted is not None and seen + 1 >= wanted

    # --- in the order of an index -----------------------------------------------------------------------------------

    async def _in_order(self, continuation: Continuation, order: IndexOrder) -> Continuation | None:
        work, state = self.work, replace(continuation, result_set=None)
        work.indexes_used.add(order.path)
        wanted = self.query.results_max
        turn_until = work.monotonic_seconds() + TURN_SECONDS
        while True:
            needed = work.results_wanted
            if wanted is not None:
                needed = min(needed, wanted - state.skipped - state.returned)
            if needed <= 0:
                return None if wanted is not None and state.skipped + state.returned >= wanted else state
            entries, is_last = await self.reads.next_entries(order, after=state.ordered, count=needed)
            for entry, stored in entries:
                if work.is_full:
                    return state
                state, ended = await work.in_turns(self._take_entry, state, entry, stored)
                if ended is not None:
                    work.pay(entry.reference)
                    return None if ended is Ended.QUERY else state
                # Rows may call functions of the user, which take as long as they are allowed.
                if work.monotonic_seconds() > turn_until:
                    if work.is_out_of_time:
                        work.pay(entry.reference)
                        return state
                    await asyncio.sleep(0)
                    turn_until = work.monotonic_seconds() + TURN_SECONDS
            work.pay(entries[-1][0].reference if entries else b"")
            if is_last:
                return None
            if work.is_out_of_time:
                return state

    def _take_entry(
        self, state: Continuation, entry: IndexEntry, stored: StoredItem | None
    ) -> tuple[Continuation, Ended | None]:
        """Answers the rows of one item; those of an item that does not fit are left to the next page, as a whole if
        there is something on this one."""
        before, work = state.ordered, self.work
        place = OrderPosition(entry.value, entry.number)
        if stored is not None and self.container.planner.is_visible(stored.body):
            work.load(stored.body)
            passed = before.rows if before is not None and before[:2] == place[:2] else 0
            rows = islice(self.query.rows(self.computed.item_of(stored.body)), passed, None)
            room = self._room_for_rows(state)
            ahead = [] if room is None else list(islice(rows, room + 1))
            if room is not None and len(ahead) > room:
                return state, Ended.PAGE
            for number, result in enumerate(chain(ahead, rows), passed):
                if work.is_full:
                    return replace(state, ordered=place._replace(rows=number) if number else before), Ended.PAGE
                state, is_over = self._count(state, result)
                if is_over:
                    return state, Ended.QUERY
        return replace(state, ordered=place), None

    async def _sort(
        self, continuation: Continuation, access: Access | None, order: RowOrder | None
    ) -> Continuation | None:
        """Collects the rows behind the continuation's position and sorts them; the order is the same by which an index
        would be followed, so that pages may change from one to the other."""
        begun = self._take_begun(continuation)
        assert begun is None or isinstance(begun, OrderedCollector)
        collector = begun or self.query.ordered_collector(order, continuation.ordered)
        rest = await self._feed(collector, access, continuation, is_begun=begun is not None)
        if rest is not None:
            return rest
        if self.scopes:
            self.work.pay(self.scopes[0].start)
        rows = await self.work.in_turns(collector.ordered_rows)
        positions = list(positions_before(rows, continuation.ordered))
        state = replace(continuation, position=None, result_set=None)
        for index, (row, before) in enumerate(zip(rows, positions, strict=True)):
            if self.work.is_full or not self._has_room(state, positions, index):
                unanswered = (row.result for row in islice(rows, index, None))
                return await self._keep_rest(replace(state, ordered=before), unanswered, positions[index:])
            state, is_over = self._count(state, row.result)
            if is_over:
                return None
        return None

    def _room_for_rows(self, state: Continuation) -> int | None:
        """How many rows of one item the page has room for; None for an empty one, which takes what it can.

        The JavaScript client goes on behind the last row of a page by passing over as many rows of that item as the
        page had: it would lose rows of an item that is divided between two pages.
        """
        if not self.work.results:
            return None
        return self.work.results_wanted + max(0, self.query.offset - state.skipped - state.returned)

    def _has_room(self, state: Continuation, positions: Sequence[OrderPosition | None], index: int) -> bool:
        """Whether the rows of an item that begin at this index fit on the page, or it is none that begins there."""
        room, position = self._room_for_rows(state), positions[index]
        if room is None or (position is not None and position.rows):
            return True
        same = takewhile(lambda place: place is not None and place.rows > 0, positions[index + 1 : index + room + 1])
        return sum(1 for _ in same) < room

    async def _keep_rest(
        self, state: Continuation, results: Iterable[object], positions: Sequence[OrderPosition | None] = ()
    ) -> Continuation:
        """Keeps results for the pages that follow. Where they are not found any more, they are collected again."""
        if self.result_sets is None:
            return state
        limit = self.query.results_max
        left = None if limit is None else limit - state.skipped - state.returned
        name = await self.result_sets.keep(
            self.identity, islice(results, left), first=state.returned, positions=positions[:left]
        )
        return replace(state, result_set=name)

    # --- when all items must be known -------------------------------------------------------------------------------

    async def _collect(self, continuation: Continuation, access: Access | None) -> Continuation | None:
        begun = self._take_begun(continuation)
        collector = begun or self.query.new_collector()
        query = self.query
        # Where items expire, statistics and indexes still know some that are there for nobody.
        expires = self.container.planner.time_to_live is not None
        self.reads.hides_unindexed = self.reads.hides_unindexed or self._has_indexed_columns()
        if begun is None and query.counts_items and query.kind is Kind.AGGREGATE and not expires:
            count = await self.reads.count_items()
            collector.merge_state([GroupState(0, (), [count] * query.aggregate_columns)])
        elif begun is not None or expires or not await self._ask_index(collector):
            rest = await self._feed(collector, access, continuation, is_begun=begun is not None)
            if rest is not None:
                return rest
        if self.scopes:
            self.work.pay(self.scopes[0].start)
        results = await self.work.in_turns(lambda: list(collector.results()))
        rest = await self.work.in_turns(self._answer_list, results, continuation)
        return None if rest is None else await self._keep_rest(rest, islice(results, rest.returned, None))

    def _take_begun(self, continuation: Continuation) -> Collector | None:
        """Return what the pages before have collected, if they did not come to the end, and go on with its query."""
        if self.result_sets is None or continuation.position is None or not self.scopes:
            return None
        # The only payment that may be refused, and then what was collected stays there for the next attempt.
        self.work.pay(self.scopes[0].start)
        begun = self.result_sets.take_begun(continuation.result_set, self.identity)
        if begun is None:
            return None
        self.query, collector = begun
        self.work.measure(self.query.meter, memory=None, in_turns=self.query.is_metered)
        return collector

    def _answer_kept(
        self, texts: Sequence[bytes], positions: Sequence[OrderPosition | None], continuation: Continuation
    ) -> Continuation | None:
        for number, text in enumerate(texts):
            if self.work.is_full or (positions and not self._has_room(continuation, positions, number)):
                ordered = positions[number] if positions else None
                return replace(continuation, returned=continuation.returned + number, ordered=ordered)
            self.work.answer_text(text)
        return None

    def _has_indexed_columns(self) -> bool:
        columns, rules, hidden = self.query.path_aggregates or (), self.container.rules, self.computed.names
        return bool(columns) and all(path[0] not in hidden and rules.covers_scalar(path) for _, path in columns)

    async def _ask_index(self, collector: Collector) -> bool:
        """Answers aggregates of paths from the index of whole partitions; False when the items must be read."""
        columns = self.query.path_aggregates
        if not columns or not self._has_indexed_columns():
            return False
        states = await self.reads.column_states(columns)
        if states is None:
            return False
        collector.merge_state([GroupState(0, (), state) for state in states])
        self.work.indexes_used.update(path_text(path) for _, path in columns)
        return True

    async def _feed(
        self, collector: Collector, access: Access | None, continuation: Continuation, *, is_begun: bool
    ) -> Continuation | None:
        """Feeds all items, or those from the continuation's place on if the collection `is_begun`. Where the page's
        time is over before, what was collected is kept, and the continuation says where to go on."""
        work = self.work
        position = continuation.position if is_begun else None
        in_key_order = self.query.takes_items_in_any_order
        # A collection that was lost on the way is carried to its end, so that it gets there.
        is_bounded = self.result_sets is not None and (is_begun or continuation.position is None)
        finish_at = work.monotonic_seconds() + COLLECT_SECONDS_MAX
        unpaid = 0
        for scope in self.scopes:
            async for items in self.reads.items(scope, position, access, in_key_order=in_key_order):
                if is_bounded and work.items_loaded and work.monotonic_seconds() >= finish_at:
                    assert self.result_sets is not None
                    name = self.result_sets.keep_begun(self.identity, self.query, collector)
                    if name is not None:
                        work.pay(items.items[0][0])
                        return replace(continuation, position=items.before(0), result_set=name)
                    is_bounded = False
                if not await work.in_turns(self._feed_all, collector, items):
                    return None
                unpaid += len(items.items)
                if unpaid >= ITEMS_BETWEEN_PAYMENTS:
                    work.pay(items.items[-1][0])
                    unpaid = 0
        return None

    def _feed_all(self, collector: Collector, items: Slice) -> bool:
        """Feeds these items; False when the collector wants no more."""
        feed, item_of = collector.feed, self._reader(items, len(items.items))
        for index, (_, body) in enumerate(items.items):
            if collector.is_full:
                self.work.load_all(items.items[:index])
                return False
            feed(item_of(body), items.number(index))
        self.work.load_all(items.items)
        return True

    def _answer_list(self, results: list[object], continuation: Continuation) -> Continuation | None:
        answered = continuation.returned
        for result in results[answered:]:
            if self.work.is_full:
                return Continuation(returned=answered)
            self.work.answer(result)
            answered += 1
        return None

    def _reader(self, items: Slice, wanted: int) -> Callable[[bytes], Item]:
        """What reads the items of a slice, in their order; results of calls that each needs may be there before it."""
        item_of, foreseen = self.computed.item_of, self.query.foreseen
        return item_of if foreseen is None else foreseen.reader(items.items, item_of, wanted)


def _has_window(query: CompiledQuery) -> bool:
    return query.top is not None or query.limit is not None or query.offset > 0
