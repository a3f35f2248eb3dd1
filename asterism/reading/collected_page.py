"""Pages of results that need all items: groups, aggregates, distinct values, orders that no index has."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Final

from asterism.models.documents.creation_order import Slice, cut_at
from asterism.models.documents.indexes.reader import MapChanged
from asterism.models.documents.item_position import Piece, Position, pieces_of
from asterism.models.documents.results import Scope
from asterism.partitioning.partition_map import PartitionRange
from asterism.reading.access_plan import Access
from asterism.reading.collectors import Collector, GroupState
from asterism.reading.conditions import Condition
from asterism.reading.continuation import Continuation
from asterism.reading.index_answers import IndexAnswer, answering_reader, index_answer
from asterism.reading.page_run import PageRun

# A page that must read all items before its first result ends after this long. The service, too, gives a page five
# seconds; and clients give up on a request after about a minute.
COLLECT_SECONDS_MAX: Final = 5.0
# A long collection is charged while it runs, so that the partition's other clients notice it in time.
ITEMS_BETWEEN_PAYMENTS: Final = 1_000


async def collect(
    run: PageRun, continuation: Continuation, access: Access | None, condition: Condition
) -> Continuation | None:
    """Answer a page of results that need all items; keep the results that the page has no room for."""
    unfinished = run.take_unfinished(continuation)
    query = run.query
    collection = Collection(run, unfinished or query.new_collector(), continuation, is_resumed=unfinished is not None)
    answer = index_answer(run, condition)
    # The same items are left out whichever way is taken.
    run.reads.hides_unindexed = run.reads.hides_unindexed or answer is not None
    # Statistics and indexes still have items that are expired.
    expires = run.container.planner.time_to_live is not None
    counted = query.index_use.counted_paths
    if unfinished is None and counted is not None and not any(counted) and not query.has_filter and not expires:
        # Statistics have the number of items.
        count = await run.reads.count_items()
        collection.collector.merge_state([GroupState(0, (), [count] * len(counted))])
        rest = None
    else:
        feeding = collection.feed(access) if answer is None or expires else collection.feed_by_index(answer, access)
        rest = await feeding
    if rest is not None:
        return rest
    if run.scopes:
        run.progress.pay(run.start)
    results = await run.progress.in_turns(lambda: list(collection.collector.results()))
    state = await run.progress.in_turns(run.answer_list, results, continuation)
    return None if state is None else await run.keep_rest(state, islice(results, state.returned, None))


class Collection:
    """The feed of a query's items into a collector. If the page's time expires before all are fed, the collector is
    kept, and a continuation says where to resume."""

    def __init__(self, run: PageRun, collector: Collector, continuation: Continuation, *, is_resumed: bool) -> None:
        self._run = run
        self.collector = collector
        self._continuation = continuation
        self._position = continuation.position if is_resumed else None
        # A collection that was lost between pages restarts, and then runs to its end: it might be lost every time.
        self._is_bounded = run.result_sets is not None and (is_resumed or continuation.position is None)
        self._finish_at = run.progress.monotonic_seconds() + COLLECT_SECONDS_MAX
        self._unpaid = 0

    async def feed(self, access: Access | None) -> Continuation | None:
        """Feed the remaining items; return where to resume if there is no time for all."""
        for scope in self._run.scopes:
            rest = await self._feed_scope(scope, access)
            if rest is not None or self.collector.is_full:
                return rest
        return None

    async def feed_by_index(self, answer: IndexAnswer, access: Access | None) -> Continuation | None:
        """Feed the index's answers for whole partitions, and the items of partitions that it cannot answer for."""
        run = self._run
        for scope in run.scopes:
            pieces = pieces_of(scope, self._position)
            while pieces and not self.collector.is_full:
                piece, partition = pieces[0], run.container.keyspace.record.map.find(pieces[0].start)
                left = cut_at(pieces, partition.range.end)
                # Before the first partition there is nothing to keep.
                rest = self._rest_at(Position.of(left)) if run.progress.ranges_read else None
                if rest is not None:
                    return rest
                is_whole = not piece.least and left[0] == Piece(partition.range.start, partition.range.end)
                is_answered = await self._feed_answer(answer, partition) if is_whole else False
                if is_answered is None:
                    continue
                if not is_answered:
                    rest = await self._feed_scope(Scope(left[0].start, left[0].end), access)
                    if rest is not None:
                        return rest
                pieces = left[1:]
        return None

    async def _feed_answer(self, answer: IndexAnswer, partition: PartitionRange) -> bool | None:
        """Feed the index's answer for a partition; return False if its items must be read, None if it was split
        meanwhile."""
        run = self._run
        run.progress.enter(partition)
        try:
            async with answering_reader(run, answer, partition) as reader:
                is_answered = await answer.feed(run, reader, self.collector)
                run.progress.index_lookups += reader.index_lookups
        except MapChanged:
            return None
        if is_answered:
            run.progress.indexes_used |= answer.names
            run.progress.pay(partition.range.start)
        return is_answered

    async def _feed_scope(self, scope: Scope, access: Access | None) -> Continuation | None:
        run, progress = self._run, self._run.progress
        in_key_order = run.query.takes_items_in_any_order
        async for items in run.reads.items(scope, self._position, access, in_key_order=in_key_order):
            rest = self._rest_at(items.before(0)) if progress.items_loaded else None
            if rest is not None:
                return rest
            if not await progress.in_turns(_feed_slice, run, self.collector, items):
                return None
            self._unpaid += len(items.items)
            if self._unpaid >= ITEMS_BETWEEN_PAYMENTS:
                progress.pay(items.items[-1][0])
                self._unpaid = 0
        return None

    def _rest_at(self, position: Position) -> Continuation | None:
        """Keep the collector and return where to resume, if the page's time has expired and there is room for it."""
        run = self._run
        if not self._is_bounded or run.progress.monotonic_seconds() < self._finish_at:
            return None
        assert run.result_sets is not None
        name = run.result_sets.keep_unfinished(run.identity, run.query, self.collector)
        if name is None:
            self._is_bounded = False
            return None
        run.progress.pay(position.start)
        return replace(self._continuation, position=position, result_set=name)


def _feed_slice(run: PageRun, collector: Collector, items: Slice) -> bool:
    """Feed these items; return False once the collector is full."""
    feed_item, item_of = collector.feed, run.item_reader(items, len(items.items))
    body = b""
    try:
        for index, (_, body) in enumerate(items.items):
            if collector.is_full:
                run.progress.load_all(items.items[:index])
                return False
            feed_item(item_of(body), items.number(index))
    except run.view.parse_error:
        # Raises an error that says what is wrong with the body.
        run.view.decode(body)
        raise
    run.progress.load_all(items.items)
    return True
