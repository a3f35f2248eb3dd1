"""One page being made: what is asked, where it is read, and what all ways of answering share."""

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
        """The place on the hash line that pays for what has no other."""
        return self.scopes[0].start if self.scopes else b""

    def item_reader(self, items: Slice, wanted: int) -> Callable[[bytes], Document]:
        """Return what reads the items of a slice, in their order; work that each needs may be done before it. It may
        raise the view's `parse_error`."""
        view, foreseen = self.view, self.query.foreseen
        return view.parse if foreseen is None else foreseen.reader(items.items, view.decode, wanted)

    # --- answering --------------------------------------------------------------------------------------------------

    def answer_within_window(self, state: Continuation, result: object) -> tuple[Continuation, bool]:
        """Answer a result or pass over it, as the window says; and say whether it was the last."""
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
        """Answer as many of all results as fit, behind those that were answered."""
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
        """Keep results for the pages that follow. Where they are not found any more, they are collected again."""
        if self.result_sets is None:
            return state
        limit = self.query.window.results_max
        left = None if limit is None else limit - state.skipped - state.returned
        encoded = map(self.progress.encode, islice(results, left))
        name = await self.result_sets.keep(self.identity, encoded, first=state.returned, positions=positions[:left])
        return replace(state, result_set=name)

    def take_begun(self, continuation: Continuation) -> Collector | None:
        """Return what the pages before have collected, if they did not come to the end, and go on with its query."""
        if self.result_sets is None or continuation.position is None or not self.scopes:
            return None
        # The only payment that may be refused, and then what was collected stays there for the next attempt.
        self.progress.pay(self.start)
        begun = self.result_sets.take_begun(continuation.result_set, self.identity)
        if begun is None:
            return None
        self.query, collector = begun
        self.progress.measure(self.query.meter, memory=None, in_turns=self.query.is_metered)
        return collector
