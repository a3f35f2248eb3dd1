"""A change stream under a cursor: it reads, waits, runs the stages of the client, and knows the token of each batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from asterism.apis.mongo.change_streams.events import Event, invalidate
from asterism.apis.mongo.change_streams.watches import OthersWatch
from asterism.apis.mongo.cursors import Patience
from asterism.apis.mongo.errors import as_failure
from asterism.errors import RequestRateTooLarge
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.change_streams import SPLIT_LARGE_EVENT, split_event
from asterism.languages.mongo.stages.pipeline import Pipeline
from asterism.languages.mongo.stages.resume_tokens import ResumeToken, TokenKind
from asterism.languages.mongo.stages.stage import RunContext
from asterism.models.collections.change_reader import ChangeReader, HistoryLost
from asterism.values.bson.codec import encode
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.models.collections.store import CollectionStore

# Errors after which a driver opens the stream again behind the last event it has seen.
_RESUMABLE_CODES = frozenset(
    {6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436}
)
_RESUMABLE = "ResumableChangeStreamError"
_FATAL = "NonResumableChangeStreamError"


class ChangeStream:
    """The source of a cursor. Slices are answered in order; an empty one says that there is nothing for now."""

    def __init__(
        self,
        store: CollectionStore,
        reader: ChangeReader[Event],
        stages: Pipeline,
        run_context: RunContext,
        monotonic_seconds: Callable[[], float],
        *,
        opening: Event | None = None,
        fatal: MongoFailure | None = None,
        skipped_fragments: int = 0,
    ) -> None:
        """`opening` is an `invalidate` that is all the stream has to say. `fatal` is raised by the first getMore: the
        stream was to begin behind an event that is not one of its own."""
        self._store = store
        self._reader = reader
        self._stages = stages
        self._splits = bool(stages.stages) and stages.stages[-1].name == SPLIT_LARGE_EVENT
        self._run_context = run_context
        self._monotonic_seconds = monotonic_seconds
        self._opening = opening
        self._fatal = fatal
        self._skipped_fragments = skipped_fragments
        self._others = OthersWatch(store, reader.scope)
        self.patience = Patience()
        # The tokens of the last slice, and the one behind it.
        self._tokens: list[ResumeToken] = []
        self._mark = self._high_water_mark()
        self._before = self._mark
        self._is_closed = False
        store.readers.add(reader)

    # --- the words of a cursor --------------------------------------------------------------------------------------

    def __aiter__(self) -> ChangeStream:
        return self

    async def __anext__(self) -> Sequence[bytes | Document]:
        if self._is_closed or self.patience.is_over:
            raise StopAsyncIteration
        if self._opening is not None:
            self.patience.is_over = True
            self._tokens, self._mark = [self._opening.token], self._opening.token
            return [self._opening.document]
        if self._fatal is not None and self.patience.seconds:
            raise self._fatal
        try:
            documents = await self._next_documents()
        except HistoryLost:
            raise MongoFailure(
                286,
                "Resume of change stream was not possible, as the resume point may no longer be in the log: the log of "
                "a database or of a sharded collection goes with it.",
            ) from None
        return [encode(document) for document in documents]

    def stop(self) -> None:
        """End a wait: the cursor was killed."""
        self._is_closed = True
        self._store.services.signal.notify()

    async def aclose(self) -> None:
        self.stop()
        self._others.end()
        self._store.readers.discard(self._reader)

    def extra(self, pending: int) -> Document:
        """Return the token from which a client goes on that has seen all but the last `pending` of the slice."""
        token = self._mark
        if pending:
            taken = len(self._tokens) - pending
            token = self._tokens[taken - 1] if taken else self._before
        return {"postBatchResumeToken": token.document}

    def explain_failure(self, problem: Exception) -> Exception:
        """Return an error of a getMore with the label that tells drivers what to do."""
        failure = as_failure(problem)
        if failure is None:
            return problem
        labels = failure.labels
        if failure.code in _RESUMABLE_CODES:
            labels = (*labels, _RESUMABLE)
        elif failure.code in (280, 286):
            labels = (*labels, _FATAL)
        return MongoFailure(failure.code, failure.message, details=failure.details, labels=labels)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _next_documents(self) -> list[Document]:
        signal = self._store.services.signal
        deadline = self._monotonic_seconds() + self.patience.seconds
        while not self._is_closed:
            seen = signal.count
            left = deadline - self._monotonic_seconds()
            try:
                events = await self._reader.next()
            except RequestRateTooLarge as throttled:
                # As the service does: an empty batch, and the client asks again.
                await asyncio.sleep(max(0.0, min(throttled.retry_after_seconds, left)))
                return []
            self._before = self._mark
            documents = await self._shaped(events)
            self._mark = self._last_token(events)
            if documents or self.patience.is_over or left <= 0:
                return documents
            if events or self._reader.has_more:
                await asyncio.sleep(0)
            else:
                await signal.wait(seconds_max=self._others.begin(left), seen=seen)
        return []

    def _last_token(self, events: Sequence[Event]) -> ResumeToken:
        if self.patience.is_over:
            return self._tokens[-1] if self._tokens else invalidate(events[-1]).token
        return self._high_water_mark()

    def _high_water_mark(self) -> ResumeToken:
        clock = self._store.services.hybrid_clock
        return ResumeToken(TokenKind.HIGH_WATER_MARK, clock.now, self._reader.position.to_bytes())

    async def _shaped(self, events: Sequence[Event]) -> list[Document]:
        """Return what the client's stages make of events. An event is dropped or changed, but keeps its `_id`."""
        self._tokens = []
        documents: list[Document] = []
        before = self._before
        for event in events:
            await self._shape(event, before, documents)
            before = event.token
            if event.token.kind is TokenKind.LAST_EVENT:
                self.patience.is_over = True
                await self._shape(invalidate(event), before, documents)
        return documents

    async def _shape(self, event: Event, before: ResumeToken, documents: list[Document]) -> None:
        found = await self._stages.run_on([event.document], self._run_context) if self._stages.stages else None
        for document in [event.document] if found is None else found:
            if document.get("_id") != event.document["_id"]:
                raise MongoFailure(
                    280,
                    "Encountered an event whose _id field, which contains the resume token, was modified by the "
                    "pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that "
                    "point. Only transformations that retain the unmodified _id field are allowed.",
                )
            fragments = split_event(document) if self._splits else [document]
            self._add_fragments(event, before, fragments, documents)

    def _add_fragments(
        self, event: Event, before: ResumeToken, fragments: Sequence[Document], documents: list[Document]
    ) -> None:
        skipped, self._skipped_fragments = self._skipped_fragments, 0
        for number, fragment in enumerate(fragments, 1):
            if number <= skipped:
                continue
            token = event.token
            if number < len(fragments):
                # A client that has not seen all fragments begins in front of the event again.
                token = ResumeToken(
                    TokenKind.EVENT, token.time, before.position, token.database, token.collection, fragments=number
                )
            documents.append(fragment if token is event.token else {**fragment, "_id": token.document})
            self._tokens.append(token)
