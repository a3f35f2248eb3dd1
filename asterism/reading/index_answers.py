"""Answers of indexes to queries, without their items: the choice of the indexes, and the results of each partition.

The choice depends on the query and the policy alone. Only reading a partition shows if its entries are enough; if they
are not, its items are read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from asterism.keyspaces.routing.families import ITEM_NUMBER_BYTES
from asterism.models.documents.codec import Document
from asterism.models.documents.indexes.reader import LOAD_ITEMS, PartitionReader
from asterism.models.documents.item_position import Numbered
from asterism.models.documents.item_record import StoredItem, body_of
from asterism.partitioning.partition_map import PartitionRange
from asterism.reading.access_plan import Access, AllLookups, AnyLookup, Lookup, exact_access, path_conditions, path_text
from asterism.reading.collectors import Collector, GroupState
from asterism.reading.conditions import AllOf, Condition, Defined, Unrestricted
from asterism.reading.covering_index import CoveringIndex, covering_index
from asterism.reading.index_aggregates import column_states
from asterism.reading.index_counts import count_items, counts_one_value
from asterism.reading.index_samples import Sample, counted_samples, skipped_samples
from asterism.reading.index_use import Column
from asterism.reading.page_run import PageRun
from asterism.reading.runnable import Kind
from asterism.reading.snapshot_reads import snapshot_reader

# For a query that wants few distinct results: with more values than this, reading the first items is faster.
SAMPLES_BEFORE_ITEMS_MAX: Final = 1_000


class IndexAnswer(Protocol):
    """An answer from indexes to a query, a whole partition at a time."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the indexes in explanations."""
        ...

    @property
    def needs_snapshot(self) -> bool:
        """True if a write can move entries while they are read, so that all reads must see one snapshot."""
        ...

    async def feed(self, run: PageRun, reader: PartitionReader, collector: Collector) -> bool:
        """Feed the answer for a partition; return False, with nothing fed, if its items must be read."""
        ...


def index_answer(run: PageRun, condition: Condition) -> IndexAnswer | None:
    """Return the answer from indexes to a query that collects; None if only items can answer it."""
    query, rules, hidden = run.query, run.container.rules, run.view.hidden
    if query.index_use.path_aggregates is not None and not query.has_filter:
        columns = query.index_use.path_aggregates
        is_known = all(path[0] not in hidden and rules.covers_scalar(path) for _, path in columns)
        return _ColumnAnswer(columns) if is_known else None
    if query.index_use.counted_paths is not None:
        return _count_answer(run)
    if query.index_use.covered_paths is not None:
        index = covering_index(query.index_use.covered_paths, path_conditions(condition, hidden), rules, hidden)
        return None if index is None else _SampleAnswer(index)
    return None


@asynccontextmanager
async def answering_reader(
    run: PageRun, answer: IndexAnswer, partition: PartitionRange
) -> AsyncIterator[PartitionReader]:
    """Open the reader that an answer needs. Raises MapChanged if the map does not have the partition any more."""
    keyspace, record = run.container.keyspace, run.container.keyspace.record
    if not answer.needs_snapshot:
        yield PartitionReader(run.reads.router, keyspace, record, partition)
        return
    async with snapshot_reader(run.reads.router, keyspace, record, partition) as reader:
        yield reader


# --- aggregates of paths over all items -----------------------------------------------------------------------------


class _ColumnAnswer:
    needs_snapshot = True

    def __init__(self, columns: Sequence[Column]) -> None:
        self.names = frozenset(path_text(path) for _, path in columns)
        self._columns = columns

    async def feed(self, run: PageRun, reader: PartitionReader, collector: Collector) -> bool:
        def load(stored: StoredItem) -> Document:
            run.progress.load(stored.body)
            return run.view.decode(stored.body)

        check = run.progress.client.check
        states = await column_states(reader, self._columns, run.container.rules.order, load=load, check=check)
        if states is not None:
            collector.merge_state([GroupState(0, (), states)])
        return states is not None


# --- counts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CountAnswer:
    """For each aggregate, the access plan of the items that it counts."""

    accesses: tuple[Access, ...]
    names: frozenset[str]
    needs_snapshot: bool

    async def feed(self, run: PageRun, reader: PartitionReader, collector: Collector) -> bool:
        counts: dict[Access, int] = {}
        for access in dict.fromkeys(self.accesses):
            count = await count_items(reader, access, check=run.progress.client.check)
            if count is None:
                return False
            counts[access] = count
        collector.merge_state([GroupState(0, (), [counts[access] for access in self.accesses])])
        return True


def _count_answer(run: PageRun) -> _CountAnswer | None:
    condition = run.query.exact_conditions()
    if condition is None or isinstance(condition, Unrestricted):
        return None
    conditions = condition.conditions if isinstance(condition, AllOf) else (condition,)
    accesses = []
    for path in run.query.index_use.counted_paths or ():
        wanted = condition if path is None else AllOf((*conditions, Defined(path)))
        access = exact_access(wanted, run.container.rules, run.view.hidden)
        if access is None:
            return None
        accesses.append(access)
    is_settled = len(set(accesses)) == 1 and counts_one_value(accesses[0])
    names = frozenset(name for access in accesses for name in _names(access))
    return _CountAnswer(tuple(accesses), names, needs_snapshot=not is_settled)


def _names(access: Access) -> list[str]:
    if isinstance(access, AnyLookup | AllLookups):
        return [name for part in access.lookups for name in _names(part)]
    return [access.name] if isinstance(access, Lookup) else []


# --- distinct results and groups ------------------------------------------------------------------------------------


class _SampleAnswer:
    needs_snapshot = True

    def __init__(self, index: CoveringIndex) -> None:
        self.names = frozenset({index.index.name})
        self._index = index

    async def feed(self, run: PageRun, reader: PartitionReader, collector: Collector) -> bool:
        missing = await self._without_values(run, reader)
        if missing is None:
            return False
        if run.query.kind is Kind.DISTINCT and run.query.window.results_max is not None:
            return await self._feed_oldest_first(run, reader, collector, missing)
        await self._feed_samples(run, reader, collector, missing)
        async for samples in self._samples(run, reader):
            await self._feed_samples(run, reader, collector, samples)
        return True

    def _samples(self, run: PageRun, reader: PartitionReader) -> AsyncIterator[list[Sample]]:
        check = run.progress.client.check
        if run.query.kind is Kind.GROUPED or not self._index.is_whole:
            return counted_samples(reader, self._index, check=check)
        # Among equal results, the first in the order of the query is answered.
        are_last = bool(run.query.directions) and run.query.directions[0]
        return skipped_samples(reader, self._index, are_last=are_last, check=check)

    async def _without_values(self, run: PageRun, reader: PartitionReader) -> list[Sample] | None:
        """Return samples of the items that the index does not have; None if they are many."""
        path = self._index.incomplete_path
        if path is None or run.query.adds_nothing({}):
            return []
        missing = await run.container.missing_values.few(reader, path, is_remembered=run.reads.is_remembered)
        if not missing:
            return None if missing is None else []
        if run.query.kind is Kind.GROUPED:
            return [self._undefined(missing[0], times=len(missing))]
        return [self._undefined(missing[0]), self._undefined(missing[-1])]

    def _undefined(self, numbered: Numbered, times: int = 1) -> Sample:
        number, reference = numbered[:ITEM_NUMBER_BYTES], numbered[ITEM_NUMBER_BYTES:]
        return Sample(number, reference, self._index.index.order.undefined, times)

    async def _feed_oldest_first(
        self, run: PageRun, reader: PartitionReader, collector: Collector, missing: list[Sample]
    ) -> bool:
        """Feed samples in the order of creation until the collector is full, as items would be fed."""
        found = list(missing)
        async for samples in self._samples(run, reader):
            found += samples
            if len(found) > SAMPLES_BEFORE_ITEMS_MAX:
                return False
        found.sort(key=lambda sample: sample.number)
        await self._feed_samples(run, reader, collector, found)
        return True

    async def _feed_samples(
        self, run: PageRun, reader: PartitionReader, collector: Collector, samples: Sequence[Sample]
    ) -> None:
        for start in range(0, len(samples), LOAD_ITEMS):
            part = samples[start : start + LOAD_ITEMS]
            items = await self._items(run, reader, part)
            await run.progress.in_turns(_feed_items, collector, part, items)

    async def _items(self, run: PageRun, reader: PartitionReader, samples: Sequence[Sample]) -> list[Document]:
        """Return the items of samples: built from the index entry if it has all values, loaded otherwise."""
        items = [None if sample.value is None else self._index.item_of(sample.value) for sample in samples]
        unknown = [sample.reference for sample, item in zip(samples, items, strict=True) if item is None]
        loaded: dict[bytes, Document] = {}
        if unknown:
            for reference, record in await reader.load_stored(unknown):
                body = body_of(record)
                run.progress.load(body)
                loaded[reference] = run.view.decode(body)
        return [loaded[sample.reference] if item is None else item for sample, item in zip(samples, items, strict=True)]


def _feed_items(collector: Collector, samples: Sequence[Sample], items: Sequence[Document]) -> None:
    for sample, item in zip(samples, items, strict=True):
        if collector.is_full:
            return
        collector.feed_equal(item, int.from_bytes(sample.number, "big"), sample.times)
