"""Pages of a query over documents that have no index here: another model's, in another form than they are stored in.

The source yields documents in the order of their keys. A query that needs to know nothing before its first result is
answered while they are read; all others are collected, and what does not fit the page is kept for the next one. Time,
memory and charges are bounded as they are for containers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, cast

from asterism.errors import MalformedRequest
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.documents.item_position import invalid_token
from asterism.partitioning.partition_map import PartitionRange
from asterism.reading.collected_page import COLLECT_SECONDS_MAX, ITEMS_BETWEEN_PAYMENTS
from asterism.reading.collectors import Collector, OrderedCollector
from asterism.reading.execute import PAGE_SECONDS_MAX
from asterism.reading.limits import QueryMemory
from asterism.reading.order_plan import OrderPosition
from asterism.reading.ordered_rows import positions_before
from asterism.reading.page_progress import ClientWatch, PageProgress
from asterism.reading.result_sets import ResultSets
from asterism.reading.row_source import Row
from asterism.reading.runnable import Kind, Runnable
from asterism.values.json.text import dumps, loads

# Rows of an order that are collected together: more than a page has (`PAGE_ITEMS_MAX`), and about as many as are kept
# for later pages (`SET_BYTES_MAX`).
ORDERED_ROWS_MAX: Final = 4000


class SourceDocument(NamedTuple):
    # The key at which it lies, and its number: both are its own for as long as it exists.
    place: bytes
    number: int
    size_bytes: int
    # Converts it. Called once at most.
    read: Callable[[], Row]


class SourceSlice(NamedTuple):
    partition: PartitionRange
    documents: Sequence[SourceDocument]


class DocumentSource(Protocol):
    """Documents in the order of their places."""

    @property
    def keyspace(self) -> Keyspace: ...

    def slices(self, start: bytes) -> AsyncGenerator[SourceSlice, None]:
        """Yield the documents from a place on; other requests run between slices."""
        ...


@dataclass(frozen=True, slots=True)
class SourceContinuation:
    """The state that a page hands to the next one; a query that begins has the default of every field."""

    # The place of the first document that was not read, and the number of its rows that were answered.
    place: bytes = b""
    rows: int = 0
    # The position of the last row that was answered or skipped, in the order of ORDER BY.
    ordered: OrderPosition | None = None
    # Results that OFFSET skipped, and results that were answered.
    skipped: int = 0
    returned: int = 0
    result_set: str | None = None
    # The position behind the kept results of an order, of which more rows are collected then.
    cut: OrderPosition | None = None

    def to_bytes(self) -> bytes:
        ordered, cut = (None if at is None else [at.key.hex(), *at[1:]] for at in (self.ordered, self.cut))
        return dumps([self.place.hex(), self.rows, ordered, self.skipped, self.returned, self.result_set, cut])

    @classmethod
    def from_bytes(cls, token: bytes) -> SourceContinuation:
        try:
            fields = cast(list[Any], loads(token))
            place, rows, ordered, skipped, returned, result_set, cut = fields
            if result_set is not None and not isinstance(result_set, str):
                raise ValueError
            return cls(
                bytes.fromhex(place),
                _count(rows),
                _position(ordered),
                _count(skipped),
                _count(returned),
                result_set,
                _position(cut),
            )
        except (MalformedRequest, ValueError, TypeError):
            raise invalid_token() from None


BEGINNING: Final = SourceContinuation()


def _position(given: Any) -> OrderPosition | None:
    if given is None:
        return None
    key, number, answered = given
    return OrderPosition(bytes.fromhex(key), _count(number), _count(answered))


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError
    return value


@dataclass(frozen=True, slots=True)
class SourcePage:
    """Results as JSON texts. `continuation` is absent only at the end of the data."""

    results: list[bytes]
    continuation: SourceContinuation | None
    progress: PageProgress

    @property
    def charge(self) -> float:
        return round(self.progress.charge, 2)

    # As `explain.explanation` reads them.

    @property
    def ranges_read(self) -> set[int]:
        return self.progress.ranges_read

    @property
    def indexes_used(self) -> set[str]:
        return self.progress.indexes_used

    @property
    def has_scanned(self) -> bool:
        return self.progress.has_scanned

    @property
    def index_lookups(self) -> int:
        return self.progress.index_lookups

    @property
    def items_loaded(self) -> int:
        return self.progress.items_loaded

    @property
    def bytes_loaded(self) -> int:
        return self.progress.bytes_loaded


async def run_source_page(
    source: DocumentSource,
    query: Runnable,
    *,
    start: bytes,
    continuation: SourceContinuation = BEGINNING,
    items_max: int,
    monotonic_seconds: Callable[[], float],
    encode_result: Callable[[object], bytes],
    client_gone: Callable[[], Awaitable[None]] | None = None,
    result_sets: ResultSets,
    identity: bytes,
    memory: QueryMemory,
) -> SourcePage:
    """Return the next page of a query over all documents of a source; `start` is the place that pays for a page without
    documents. The other arguments are those of `execute.run_page`."""
    keyspace, client = source.keyspace, ClientWatch(client_gone)
    progress = PageProgress(
        keyspace,
        items_max,
        monotonic_seconds() + PAGE_SECONDS_MAX,
        monotonic_seconds,
        keyspace.record.map.find(start),
        client,
        encode_result,
    )
    progress.measure(query.meter, memory=memory, in_turns=True)
    run = _Run(source, query, progress, result_sets, identity, start)
    with keyspace.in_flight, client, progress.paying_when_refused(start):
        rest = await run.page(continuation)
    if not progress.charge:
        progress.pay(start)
    return SourcePage(progress.results, rest, progress)


@dataclass(slots=True)
class _Run:
    """A page in progress."""

    source: DocumentSource
    query: Runnable
    progress: PageProgress
    result_sets: ResultSets
    identity: bytes
    start: bytes

    async def page(self, state: SourceContinuation) -> SourceContinuation | None:
        kept = self.result_sets.find(state.result_set, self.identity, first=state.returned)
        if kept is not None:
            return self._answer_kept(*kept, state)
        if not self.query.reads_items:
            collector = self.query.new_collector()
            collector.feed({})
            return self._answer_list(list(collector.results()), state)
        if self.query.kind is Kind.STREAMING:
            return await self._stream(state)
        if self.query.kind is Kind.ORDERED and not self.query.is_distinct:
            return await self._sort(state)
        return await self._collect(state)

    # --- while documents are read -----------------------------------------------------------------------------------

    async def _stream(self, state: SourceContinuation) -> SourceContinuation | None:
        progress = self.progress
        async for documents in self._slices(state.place):
            state, ended = await progress.in_turns(self._take_slice, state, documents)
            if ended is not None:
                progress.pay(self.start)
                return None if ended is _OVER else ended
        return None

    def _take_slice(
        self, state: SourceContinuation, documents: Sequence[SourceDocument]
    ) -> tuple[SourceContinuation, SourceContinuation | None]:
        progress = self.progress
        for document in documents:
            if progress.is_full or progress.is_out_of_time:
                return state, state if state.place == document.place else replace(state, place=document.place, rows=0)
            state, ended = self._take(state, document)
            if ended is not None:
                return state, ended
        return state, None

    def _take(
        self, state: SourceContinuation, document: SourceDocument
    ) -> tuple[SourceContinuation, SourceContinuation | None]:
        """Answer the rows of a document; also return where the page ends, if it does."""
        progress, query = self.progress, self.query
        passed = state.rows if state.place == document.place else 0
        progress.items_loaded += 1
        progress.bytes_loaded += document.size_bytes
        for number, result in enumerate(query.rows(document.read())):
            if number < passed:
                continue
            if progress.is_full or (number > passed and progress.is_out_of_time):
                return state, replace(state, place=document.place, rows=number)
            state, is_over = self._answer_within_window(state, result)
            if is_over:
                return state, _OVER
        return replace(state, place=document.place + b"\x00", rows=0), None

    def _answer_within_window(self, state: SourceContinuation, result: object) -> tuple[SourceContinuation, bool]:
        window = self.query.window
        wanted, seen = window.results_max, state.skipped + state.returned
        if wanted is not None and seen >= wanted:
            return state, True
        if seen < window.offset:
            return replace(state, skipped=state.skipped + 1), False
        self.progress.answer(result)
        return replace(state, returned=state.returned + 1), wanted is not None and seen + 1 >= wanted

    # --- once all documents are read --------------------------------------------------------------------------------

    async def _sort(self, state: SourceContinuation) -> SourceContinuation | None:
        """Collect the rows behind the continuation's position, and sort them."""
        wanted = ORDERED_ROWS_MAX
        ordered = self.query.ordered_collector(None, state.ordered)
        ordered.keep_first(wanted)
        collector, rest = await self._feed(ordered, state)
        if rest is not None:
            return rest
        assert isinstance(collector, OrderedCollector)
        rows = (await self.progress.in_turns(collector.ordered_rows))[:wanted]
        positions = list(positions_before(rows, state.ordered))
        state = replace(state, place=b"", rows=0, result_set=None, cut=None)
        if len(rows) == wanted:
            # There may be more rows: the last is left to them, and says where they begin.
            rows.pop()
            state = replace(state, cut=positions.pop())
        for index, row in enumerate(rows):
            if self.progress.is_full:
                left = (row.result for row in islice(rows, index, None))
                return await self._keep(replace(state, ordered=positions[index]), left, positions[index:])
            state, is_over = self._answer_within_window(state, row.result)
            if is_over:
                return None
        return _behind_cut(state)

    async def _collect(self, state: SourceContinuation) -> SourceContinuation | None:
        collector, rest = await self._feed(self.query.new_collector(), state)
        if rest is not None:
            return rest
        results = await self.progress.in_turns(lambda: list(collector.results()))
        rest = self._answer_list(results, state)
        return None if rest is None else await self._keep(rest, islice(results, rest.returned, None))

    async def _feed(
        self, collector: Collector, state: SourceContinuation
    ) -> tuple[Collector, SourceContinuation | None]:
        """Feed the remaining documents; also return where to resume if there is no time for all. A collection that was
        lost between pages restarts, and then runs to its end: it might be lost every time."""
        progress = self.progress
        unfinished = self.result_sets.take_unfinished(state.result_set, self.identity) if state.place else None
        if unfinished is not None:
            self.query, collector = unfinished
            progress.measure(self.query.meter, memory=None, in_turns=True)
        is_bounded = unfinished is not None or not state.place
        finish_at, unpaid = progress.monotonic_seconds() + COLLECT_SECONDS_MAX, 0
        async for documents in self._slices(state.place if unfinished is not None else b""):
            if collector.is_full:
                break
            if documents and is_bounded and progress.items_loaded and progress.monotonic_seconds() >= finish_at:
                name = self.result_sets.keep_unfinished(self.identity, self.query, collector)
                is_bounded = name is not None
                if name is not None:
                    progress.pay(self.start)
                    return collector, replace(state, place=documents[0].place, result_set=name)
            await progress.in_turns(self._feed_slice, collector, documents)
            unpaid += len(documents)
            if unpaid >= ITEMS_BETWEEN_PAYMENTS:
                progress.pay(self.start)
                unpaid = 0
        progress.pay(self.start)
        return collector, None

    def _feed_slice(self, collector: Collector, documents: Sequence[SourceDocument]) -> None:
        for document in documents:
            if collector.is_full:
                return
            self.progress.items_loaded += 1
            self.progress.bytes_loaded += document.size_bytes
            collector.feed(document.read(), document.number)

    async def _slices(self, start: bytes) -> AsyncGenerator[Sequence[SourceDocument], None]:
        slices = self.source.slices(start)
        try:
            async for found in slices:
                self.progress.enter(found.partition)
                self.progress.has_scanned = True
                self.progress.client.check()
                yield found.documents
        finally:
            await slices.aclose()

    # --- results ----------------------------------------------------------------------------------------------------

    def _answer_list(self, results: list[object], state: SourceContinuation) -> SourceContinuation | None:
        for answered, result in enumerate(results[state.returned :], state.returned):
            if self.progress.is_full:
                return SourceContinuation(returned=answered)
            self.progress.answer(result)
        return None

    def _answer_kept(
        self, results: Sequence[bytes], positions: Sequence[OrderPosition | None], state: SourceContinuation
    ) -> SourceContinuation | None:
        for number, encoded in enumerate(results):
            if self.progress.is_full:
                ordered = positions[number] if positions else None
                return replace(state, returned=state.returned + number, ordered=ordered)
            self.progress.answer_encoded(encoded)
        return _behind_cut(replace(state, returned=state.returned + len(results)))

    async def _keep(
        self, state: SourceContinuation, results: Iterable[object], positions: Sequence[OrderPosition | None] = ()
    ) -> SourceContinuation:
        """Keep results for the pages that follow. If they are lost, they are collected again."""
        limit = self.query.window.results_max
        left = None if limit is None else limit - state.skipped - state.returned
        encoded = map(self.progress.encode, islice(results, left))
        name = await self.result_sets.keep(self.identity, encoded, first=state.returned, positions=positions[:left])
        return replace(state, result_set=name)


def _behind_cut(state: SourceContinuation) -> SourceContinuation | None:
    """Return the continuation behind rows that were cut from an order; None if they were all."""
    return None if state.cut is None else replace(state, ordered=state.cut, cut=None, result_set=None)


# The end of a query's window.
_OVER: Final = SourceContinuation(rows=-1)
