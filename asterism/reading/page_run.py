"""A page in progress: its query, its reads, and the steps that all ways of answering share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from asterism.models.documents.codec import Document
from asterism.models.documents.container import Container
from asterism.models.documents.creation_order import Slice
from asterism.models.documents.results import Scope
from asterism.reading.collectors import Collector
from asterism.reading.continuation import Continuation
from asterism.reading.document_view import DocumentView
from asterism.reading.item_reads import ItemReads
from asterism.reading.order_plan import OrderPosition
from asterism.reading.page_progress import PageProgress
from asterism.reading.result_sets import ResultSets
from asterism.reading.runnable import Runnable


@dataclass(slots=True)
class PageRun:
    container: Container
    query: Runnable
    scopes: Sequence[Scope]
    reads: ItemReads
    progress: PageProgress
    view: DocumentView
    result_sets: ResultSets | None
    identity: bytes

    @property
    def start(self) -> bytes:
        """The effective key that is charged for work that belongs to no other."""
        return self.scopes[0].start if self.scopes else b""

    def item_reader(self, items: Slice, wanted: int) -> Callable[[bytes], Document]:
        """Return the decoder of a slice's items, to be called in their order; work that each needs may be done ahead.
        It may raise the view's `parse_error`."""
        view, foreseen = self.view, self.query.foreseen
        return view.parse if foreseen is None else foreseen.reader(items.items, view.decode, wanted)

    # --- answering --------------------------------------------------------------------------------------------------

    def answer_within_window(self, state: Continuation, result: object) -> tuple[Continuation, bool]:
        """Answer a result or skip it, as the window says; also return True if it was the last."""
        window = self.query.window
        wanted = window.results_max
        seen = state.skipped + state.returned
        if wanted is not None and seen >= wanted:
            return state, True
        if seen < window.offset:
            return replace(state, skipped=state.skipped + 1), False
        self.progress.answer(result)
        return replace(state, returned=state.returned + 1), wanted is not None and seen + 1 >= wanted

    def answer_list(self, results: list[object], continuation: Continuation) -> Continuation | None:
        """Answer as many of all results as fit, after those that earlier pages have answered."""
        answered = continuation.returned
        for result in results[answered:]:
            if self.progress.is_full:
                return Continuation(returned=answered)
            self.progress.answer(result)
            answered += 1
        return None

    # --- results and collections between pages ----------------------------------------------------------------------

    async def keep_rest(
        self, state: Continuation, results: Iterable[object], positions: Sequence[OrderPosition | None] = ()
    ) -> Continuation:
        """Keep results for the pages that follow. If they are lost, they are collected again."""
        if self.result_sets is None:
            return state
        limit = self.query.window.results_max
        left = None if limit is None else limit - state.skipped - state.returned
        encoded = map(self.progress.encode, islice(results, left))
        name = await self.result_sets.keep(self.identity, encoded, first=state.returned, positions=positions[:left])
        return replace(state, result_set=name)

    def take_unfinished(self, continuation: Continuation) -> Collector | None:
        """Return the unfinished collector of earlier pages, if one is kept, and continue with its query."""
        if self.result_sets is None or continuation.position is None or not self.scopes:
            return None
        # The only payment that may be refused; the collector then stays kept for the next attempt.
        self.progress.pay(self.start)
        unfinished = self.result_sets.take_unfinished(continuation.result_set, self.identity)
        if unfinished is None:
            return None
        self.query, collector = unfinished
        self.progress.measure(self.query.meter, memory=None, in_turns=self.query.is_metered)
        return collector
