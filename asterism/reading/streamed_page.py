"""Pages of results in the order of creation, answered while their items are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from asterism.models.documents.creation_order import Slice
from asterism.reading.access_plan import Access
from asterism.reading.candidate_sets import CandidateSets
from asterism.reading.continuation import Continuation
from asterism.reading.page_run import PageRun
from asterism.reading.query_page import Ended
from asterism.values.undefined import UNDEFINED

# Rows of one item between two checks of the clock.
ROWS_BETWEEN_CHECKS: Final = 64


async def stream(run: PageRun, continuation: Continuation, access: Access | None) -> Continuation | None:
    """Answer a page of a query that needs to know nothing before its first result."""
    query, progress, state = run.query, run.progress, continuation
    take = _take_plain if query.is_plain and query.window.is_open else _take_rows
    run.reads.candidates = _candidates(run, continuation)
    for scope in run.scopes:
        async for items in run.reads.items(scope, continuation.position, access):
            if progress.is_out_of_time:
                progress.pay(run.start)
                return _with_candidates(run, replace(state, position=items.before(0)))
            state, ended = await progress.in_turns(take, run, state, items)
            if ended is not None:
                progress.pay(run.start)
                return None if ended is Ended.QUERY else _with_candidates(run, state)
    return None


def _candidates(run: PageRun, continuation: Continuation) -> CandidateSets:
    """Return the candidates of this page, with those that the previous page has kept."""
    sets, wanted = run.result_sets, run.query.window.results_max
    return CandidateSets(
        run.progress.items_max if wanted is None else wanted - continuation.skipped - continuation.returned,
        are_kept=sets is not None and wanted is None,
        known=None if sets is None else sets.find_candidates(continuation.result_set, run.identity),
        was_scanned=continuation.is_scanned,
    )


def _with_candidates(run: PageRun, state: Continuation) -> Continuation:
    """Keep the candidates of the piece in which the page ends, for the next one."""
    found, name = run.reads.candidates, state.result_set
    if found.latest is None or found.latest is not found.known:
        name = None
        if found.latest is not None and run.result_sets is not None:
            name = run.result_sets.keep_candidates(run.identity, found.latest)
    return replace(state, result_set=name, is_scanned=found.is_scanned)


def _take_plain(run: PageRun, state: Continuation, items: Slice) -> tuple[Continuation, Ended | None]:
    """Answer the items that match: the path of most queries, and of every scan that finds little in much data."""
    query, progress = run.query, run.progress
    item_of = run.item_reader(items, progress.results_wanted)
    matches, project, is_whole = query.matches, query.project, query.answers_whole
    is_read = query.has_filter or not is_whole
    if not is_read:
        bodies = [body for _, body in items.items]
        bodies_bytes = sum(map(len, bodies))
        if progress.has_room_for(bodies, bodies_bytes):
            progress.answer_all_encoded(bodies, bodies_bytes)
            progress.load_all(items.items)
            return state, None
    is_full, body = progress.is_full, b""
    try:
        for index, (_, body) in enumerate(items.items):
            if is_full:
                progress.load_all(items.items[:index])
                return replace(state, position=items.before(index)), Ended.PAGE
            if is_read and not matches(item := item_of(body)):
                continue
            if is_whole:
                progress.answer_encoded(body)
            elif (result := project(item)) is not UNDEFINED:
                progress.answer(result)
            is_full = progress.is_full
    except run.view.parse_error:
        # Raises an error that says what is wrong with the body.
        run.view.decode(body)
        raise
    progress.load_all(items.items)
    return state, None


def _take_rows(run: PageRun, state: Continuation, items: Slice) -> tuple[Continuation, Ended | None]:
    """Answer the rows of items, as many as the window lets through."""
    progress, foreseen = run.progress, run.query.foreseen
    item_of = run.view.decode if foreseen is None else run.item_reader(items, progress.results_wanted)
    for index, (_, body) in enumerate(items.items):
        if progress.is_full or progress.is_out_of_time:
            return replace(state, position=items.before(index)), Ended.PAGE
        number = items.number(index)
        passed = state.begun.get(number, 0)
        progress.load(body)
        for row, result in enumerate(run.query.rows(item_of(body))):
            if row < passed:
                continue
            if progress.is_full or (row > passed and not row % ROWS_BETWEEN_CHECKS and progress.is_out_of_time):
                begun = {**state.begun, number: row}
                return replace(state, position=items.before(index), begun=begun), Ended.PAGE
            state, is_over = run.answer_within_window(state, result)
            if is_over:
                return state, Ended.QUERY
        if passed:
            state = replace(state, begun={item: rows for item, rows in state.begun.items() if item != number})
    return state, None
