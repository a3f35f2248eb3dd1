"""Pages of results in an order: along an index that has it, or sorted once all rows are known."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice, takewhile
from typing import Final

from asterism.models.documents.indexes.reader import IndexEntry
from asterism.models.documents.item_record import StoredItem
from asterism.reading.access_plan import Access
from asterism.reading.collected_page import Collection
from asterism.reading.collectors import OrderedCollector
from asterism.reading.continuation import Continuation
from asterism.reading.order_plan import IndexOrder, OrderPosition, RowOrder
from asterism.reading.ordered_rows import positions_before
from asterism.reading.page_run import PageRun
from asterism.reading.query_page import Ended
from asterism.reading.turns import TURN_SECONDS

# The share of the entries examined so far that a page loads at once: if most of them do not match, more are loaded
# together, and never many more than are needed.
_LOADED_SHARE: Final = 32


async def follow_order(run: PageRun, continuation: Continuation, order: IndexOrder) -> Continuation | None:
    """Answer a page along the index that has the order."""
    progress, state = run.progress, replace(continuation, result_set=None)
    progress.indexes_used.add(order.name)
    wanted = run.query.window.results_max
    walk, examined = run.reads.ordered_walk(order, state.ordered), 0
    turn_until = progress.monotonic_seconds() + TURN_SECONDS
    while True:
        needed = progress.results_wanted
        if wanted is not None:
            needed = min(needed, wanted - state.skipped - state.returned)
        if needed <= 0:
            return None if wanted is not None and state.skipped + state.returned >= wanted else state
        entries, is_last = await run.reads.next_entries(walk, max(needed, examined // _LOADED_SHARE))
        examined += len(entries)
        for entry, stored in entries:
            if progress.is_full:
                return state
            state, ended = await progress.in_turns(_take_entry, run, state, entry, stored)
            if ended is not None:
                progress.pay(entry.reference)
                return None if ended is Ended.QUERY else state
            # Rows may call user-defined functions, which take as long as they are allowed.
            if progress.monotonic_seconds() > turn_until:
                if progress.is_out_of_time:
                    progress.pay(entry.reference)
                    return state
                await asyncio.sleep(0)
                turn_until = progress.monotonic_seconds() + TURN_SECONDS
        progress.pay(entries[-1][0].reference if entries else b"")
        if is_last:
            return None
        if progress.is_out_of_time:
            return state


def _take_entry(
    run: PageRun, state: Continuation, entry: IndexEntry, stored: StoredItem | None
) -> tuple[Continuation, Ended | None]:
    """Answer the rows of one item. If they do not fit, leave the rest to the next page, or all of them if this page has
    results already."""
    before, progress = state.ordered, run.progress
    place = OrderPosition(entry.value, entry.number)
    if stored is not None and run.container.planner.is_visible(stored.body):
        progress.load(stored.body)
        passed = before.rows if before is not None and before[:2] == place[:2] else 0
        rows = islice(run.query.rows(run.view.decode(stored.body)), passed, None)
        room = _room_for_rows(run, state)
        ahead = [] if room is None else list(islice(rows, room + 1))
        if room is not None and len(ahead) > room:
            return state, Ended.PAGE
        for number, result in enumerate(chain(ahead, rows), passed):
            if progress.is_full:
                return replace(state, ordered=place._replace(rows=number) if number else before), Ended.PAGE
            state, is_over = run.answer_within_window(state, result)
            if is_over:
                return state, Ended.QUERY
    return replace(state, ordered=place), None


async def sort(
    run: PageRun, continuation: Continuation, access: Access | None, order: RowOrder | None
) -> Continuation | None:
    """Collect the rows behind the continuation's position and sort them. The order is the same as along an index, so
    that one page may be sorted and the next one follow the index."""
    unfinished = run.take_unfinished(continuation)
    assert unfinished is None or isinstance(unfinished, OrderedCollector)
    collector = unfinished or run.query.ordered_collector(order, continuation.ordered)
    rest = await Collection(run, collector, continuation, is_resumed=unfinished is not None).feed(access)
    if rest is not None:
        return rest
    if run.scopes:
        run.progress.pay(run.start)
    rows = await run.progress.in_turns(collector.ordered_rows)
    positions = list(positions_before(rows, continuation.ordered))
    state = replace(continuation, position=None, result_set=None)
    for index, (row, before) in enumerate(zip(rows, positions, strict=True)):
        if run.progress.is_full or not has_room(run, state, positions, index):
            unanswered = (row.result for row in islice(rows, index, None))
            return await run.keep_rest(replace(state, ordered=before), unanswered, positions[index:])
        state, is_over = run.answer_within_window(state, row.result)
        if is_over:
            return None
    return None


def _room_for_rows(run: PageRun, state: Continuation) -> int | None:
    """Return how many rows of one item the page has room for; None for an empty page, which takes as many as fit.

    The JavaScript client resumes behind the last row of a page by skipping as many rows of that item as the page had:
    it would lose rows of an item that is divided between two pages.
    """
    if not run.progress.results:
        return None
    return run.progress.results_wanted + max(0, run.query.window.offset - state.skipped - state.returned)


def has_room(run: PageRun, state: Continuation, positions: Sequence[OrderPosition | None], index: int) -> bool:
    """Return True if the rows of an item that begin at this index fit on the page, or if none begin there."""
    room, position = _room_for_rows(run, state), positions[index]
    if room is None or (position is not None and position.rows):
        return True
    same = takewhile(lambda place: place is not None and place.rows > 0, positions[index + 1 : index + room + 1])
    return sum(1 for _ in same) < room
