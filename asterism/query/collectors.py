"""What is kept from the first item to the last: results, order, distinct values, groups.

A collector is fed with items; several, fed with the items of a partition each, can be merged. Merged in some order of
the partitions, they give what one collector gives that is fed in that order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from asterism.query.aggregates import Aggregate
from asterism.query.limits import MemoryMeter, QueryMeter
from asterism.query.ordered_rows import UNDEFINED_KEY, OrderedRow, compare_keys, keys_of, ordered_rows_of, sort_in_place
from asterism.query.pipeline import Kind, Pipeline
from asterism.query.ranking import RankedRow, Statistics
from asterism.query.scope import Row
from asterism.values.ordering import SortKey, sort_key
from asterism.values.undefined import UNDEFINED

# An ordered collector that wants ten rows throws the others away once it has this many more.
_ROWS_BETWEEN_SORTS = 1000


class Collector(ABC):
    """Collects the results of one query. Raises TooLarge when it would keep too much."""

    def __init__(self, pipeline: Pipeline, *, include_undefined: bool | None = None) -> None:
        self._pipeline = pipeline
        self._memory = MemoryMeter(pipeline.meter.account)
        self._begin_item = pipeline.meter.restart
        self._with_undefined = pipeline.places_undefined(include_undefined)

    def feed(self, item: Row) -> None:
        """Takes one stored item; a query without FROM is fed with one empty item."""
        self._begin_item()
        self.take(item)

    @abstractmethod
    def take(self, around: Row) -> None:
        """Takes the rows made of one item, or of one row around a subquery."""

    @property
    def is_full(self) -> bool:
        """Whether more items can change nothing."""
        return False

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return self._memory.held_bytes

    @abstractmethod
    def partial_state(self) -> object:
        """All it has collected, of plain values: can be pickled, and merged into another collector of the query."""

    @abstractmethod
    def merge_state(self, state: Any) -> None:
        """Adds what another collector of the same query has, as if its items were fed after this one's."""

    def merge(self, other: Collector) -> None:
        self.merge_state(other.partial_state())

    def results(self) -> Iterator[object]:
        """The query's results, in their order, within TOP and OFFSET LIMIT."""
        found = self._all_results()
        return self._pipeline.window.cut(distinct(found) if self._pipeline.is_distinct else found)

    @abstractmethod
    def _all_results(self) -> Iterable[object]: ...


class ResultCollector(Collector):
    """Results as they come; with DISTINCT, each once."""

    def __init__(self, pipeline: Pipeline, *, include_undefined: bool | None = None) -> None:
        super().__init__(pipeline, include_undefined=include_undefined)
        self._results: list[object] = []
        self._seen: set[SortKey] | None = set() if pipeline.is_distinct else None
        self._results_max = pipeline.window.results_max
        self._hold = self._memory.hold if self._seen is None else self._memory.hold_with_key

    @property
    def is_full(self) -> bool:
        return self._results_max is not None and len(self._results) >= self._results_max

    def take(self, around: Row) -> None:
        if not self.is_full:
            self.merge_state(self._pipeline.row_results(around))

    def partial_state(self) -> list[object]:
        return list(self._results)

    def merge_state(self, state: Iterable[object]) -> None:
        for result in state:
            if self.is_full:
                return
            if self._is_new(result):
                self._hold(result)
                self._results.append(result)

    def _is_new(self, result: object) -> bool:
        if self._seen is None:
            return True
        self._pipeline.meter.spend_on_parts(result)
        identity = sort_key(result)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True

    def _all_results(self) -> Iterable[object]:
        return self._results


class OrderedCollector(Collector):
    """Rows with their keys; sorted at the end, or now and then when only the first few are wanted."""

    def __init__(self, pipeline: Pipeline, *, include_undefined: bool | None = None) -> None:
        super().__init__(pipeline, include_undefined=include_undefined)
        self._rows: list[OrderedRow] = []
        # Rows with an equal result count once, so that more of them than the window's may be needed.
        self._rows_max = None if pipeline.is_distinct else pipeline.window.results_max
        # The last row that was still wanted at the last sort: what comes with it or after it is not.
        self._last_wanted: OrderedRow | None = None

    def take(self, around: Row) -> None:
        self.merge_state(ordered_rows_of(self._pipeline, around, with_undefined=self._with_undefined))

    def partial_state(self) -> list[OrderedRow]:
        return list(self._rows)

    def merge_state(self, state: Iterable[OrderedRow]) -> None:
        for row in state:
            if self._last_wanted and compare_keys(row.keys, self._last_wanted.keys, self._pipeline.order) >= 0:
                continue
            self._memory.hold(row)
            self._rows.append(row)
            if self._rows_max is not None and len(self._rows) >= self._rows_max + _ROWS_BETWEEN_SORTS:
                self._keep_first(self._rows_max)

    def _keep_first(self, count: int) -> None:
        sort_in_place(self._rows, self._pipeline.order)
        for row in self._rows[count:]:
            self._memory.release(row)
        del self._rows[count:]
        self._last_wanted = self._rows[-1] if self._rows else None

    def _all_results(self) -> Iterable[object]:
        sort_in_place(self._rows, self._pipeline.order)
        return (row.result for row in self._rows)


class RankedCollector(Collector):
    """Rows with what their scores are made of. All rows count in the scores, those that the filter leaves out too."""

    def __init__(self, pipeline: Pipeline, *, include_undefined: bool | None = None) -> None:
        super().__init__(pipeline, include_undefined=include_undefined)
        assert pipeline.ranking is not None
        self._ranking = pipeline.ranking
        self._statistics = pipeline.ranking.new_statistics()
        self._rows: list[RankedRow] = []

    def take(self, around: Row) -> None:
        pipeline, ranking, make_rows = self._pipeline, self._ranking, self._pipeline.sources.make_rows
        for row in (around,) if make_rows is None else make_rows(around):
            measures = ranking.measure(row)
            self._statistics.add(measures)
            has_place = any(measure is not None for measure in measures)
            if has_place and pipeline.matches(row) and (result := pipeline.project(row)) is not UNDEFINED:
                self._keep(RankedRow(measures, result))

    def _keep(self, row: RankedRow) -> None:
        self._memory.hold(row)
        self._rows.append(row)

    def partial_state(self) -> tuple[Statistics, list[RankedRow]]:
        return self._statistics, list(self._rows)

    def merge_state(self, state: tuple[Statistics, list[RankedRow]]) -> None:
        statistics, rows = state
        self._statistics.merge(statistics)
        for row in rows:
            self._keep(row)

    def _all_results(self) -> Iterable[object]:
        return (row.result for row in self._ranking.ranked(self._rows, self._statistics))


class _Group(NamedTuple):
    keys: tuple[object, ...]
    aggregates: list[Aggregate]


class GroupCollector(Collector):
    """Groups by the identity of their keys; without GROUP BY there is one, even of no rows."""

    def __init__(self, pipeline: Pipeline, *, include_undefined: bool | None = None) -> None:
        super().__init__(pipeline, include_undefined=include_undefined)
        assert pipeline.grouping is not None
        self._grouping = pipeline.grouping
        self._groups: dict[tuple[SortKey, ...], _Group] = {}
        if pipeline.kind is Kind.AGGREGATE:
            self._group(())

    def take(self, around: Row) -> None:
        pipeline, grouping = self._pipeline, self._grouping
        columns = grouping.columns
        only_group = None if grouping.keys else self._group(())
        leaves_out = bool(pipeline.order) and not self._with_undefined
        for row in pipeline.matching_rows(around):
            if leaves_out and UNDEFINED_KEY in keys_of(pipeline.order, row):
                continue
            group = only_group or self._group(tuple(key(row) for key in grouping.keys))
            for aggregate, column in zip(group.aggregates, columns, strict=True):
                aggregate.add(column.argument(row))

    def _group(self, keys: tuple[object, ...]) -> _Group:
        identity = tuple(map(sort_key, keys))
        group = self._groups.get(identity)
        if group is None:
            self._memory.hold((identity, keys))
            group = _Group(keys, [column.make(self._memory) for column in self._grouping.columns])
            self._groups[identity] = group
        return group

    def partial_state(self) -> list[tuple[tuple[object, ...], list[object]]]:
        return [(group.keys, [one.state() for one in group.aggregates]) for group in self._groups.values()]

    def merge_state(self, state: list[tuple[tuple[object, ...], list[object]]]) -> None:
        for keys, states in state:
            for aggregate, one in zip(self._group(keys).aggregates, states, strict=True):
                aggregate.merge(one)

    def _all_results(self) -> Iterable[object]:
        rows = [self._grouping.row_of_group(*group) for group in self._groups.values()]
        project, order = self._pipeline.project, self._pipeline.group_order
        ordered = [OrderedRow(keys_of(order, row), project(row)) for row in rows]
        for row in ordered:
            # Lists of all rows are written as one text.
            self._pipeline.meter.check_result(row.result)
        if order:
            sort_in_place(ordered, order)
        return (row.result for row in ordered if row.result is not UNDEFINED)


def new_collector(pipeline: Pipeline, *, include_undefined: bool | None = None) -> Collector:
    """The collector of the query's kind."""
    make = _COLLECTORS[pipeline.kind]
    return make(pipeline, include_undefined=include_undefined)


def distinct(
    results: Iterable[object], meter: QueryMeter | None = None, memory: MemoryMeter | None = None
) -> Iterator[object]:
    """Each result once, at its first place; counted as work and in memory where nothing else counts it."""
    seen: set[SortKey] = set()
    for result in results:
        if meter is not None:
            meter.spend_on_parts(result)
        identity = sort_key(result)
        if identity not in seen:
            if memory is not None:
                memory.hold_with_key(result)
            seen.add(identity)
            yield result


_COLLECTORS: dict[
    Kind, type[ResultCollector] | type[OrderedCollector] | type[RankedCollector] | type[GroupCollector]
] = {
    Kind.STREAMING: ResultCollector,
    Kind.DISTINCT: ResultCollector,
    Kind.ORDERED: OrderedCollector,
    Kind.RANKED: RankedCollector,
    Kind.AGGREGATE: GroupCollector,
    Kind.GROUPED: GroupCollector,
}
