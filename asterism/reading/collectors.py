"""Collectors: the state of a query from the first item to the last, of results, orders, distinct values and groups.

A collector is fed with items; several, each fed with the items of a partition, can be merged. Merged in some order of
the partitions, they have the results of a single collector that is fed in that order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

from asterism.reading.limits import MemoryMeter, QueryMeter
from asterism.reading.order_plan import OrderPosition, RowOrder, row_order
from asterism.reading.ordered_rows import (
    GroupRow,
    OrderedRow,
    is_before,
    keys_of,
    ordered_rows_of,
    sort_groups,
    sort_rows,
)
from asterism.reading.row_source import Aggregate, OrderKey, Row, RowGroups, RowSource
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import SortKey, ValueOrder

# An ordered collector that wants ten rows discards the others once it has this many more.
_ROWS_BETWEEN_SORTS: Final = 1000


class _NumberedResult(NamedTuple):
    """A result with the number of its item."""

    number: int
    result: object


_number_of = itemgetter(0)


class Collector(ABC):
    """The results of one query, while its items are fed. Raises TooLarge when it would keep too much."""

    def __init__(self, source: RowSource, order: ValueOrder) -> None:
        """`order` is the order of the values that are compared."""
        self._source = source
        self._sort_key = order.sort_key
        self._memory = MemoryMeter(source.meter.account)
        self._begin_item = source.meter.restart

    def feed(self, item: Row, number: int = 0) -> None:
        """Take a stored item with its number; a query that reads no items is fed with an empty one."""
        self._begin_item()
        self.take(item, number)

    def feed_equal(self, item: Row, number: int, times: int) -> None:
        """Take an item that stands for `times` items that add the same; its number is the smallest of theirs."""
        del times
        self.feed(item, number)

    @abstractmethod
    def take(self, around: Row, number: int = 0) -> None:
        """Take the rows made of an item, or of a row around a subquery."""

    @property
    def is_full(self) -> bool:
        """True if more items cannot change the results."""
        return False

    @property
    def held_bytes(self) -> int:
        """The approximate memory that it takes."""
        return self._memory.held_bytes

    @abstractmethod
    def partial_state(self) -> object:
        """Return all collected state as plain values, which can be pickled and merged into another collector of the
        query."""

    @abstractmethod
    def merge_state(self, state: Any) -> None:
        """Add the state of another collector of the same query, as if its items were fed after this one's."""

    def merge(self, other: Collector) -> None:
        self.merge_state(other.partial_state())

    def results(self) -> Iterator[object]:
        """Return the query's results, in their order, within its window."""
        found = self._all_results()
        return self._source.window.cut(distinct(found, self._sort_key) if self._source.is_distinct else found)

    @abstractmethod
    def _all_results(self) -> Iterable[object]: ...


class ResultCollector(Collector):
    """Results in the order in which their items were created; distinct ones each once."""

    def __init__(self, source: RowSource, order: ValueOrder) -> None:
        super().__init__(source, order)
        self._results: list[_NumberedResult] = []
        # The index of each distinct result.
        self._seen: dict[SortKey, int] | None = {} if source.is_distinct else None
        self._results_max = source.window.results_max
        self._hold = self._memory.hold if self._seen is None else self._memory.hold_with_key

    @property
    def is_full(self) -> bool:
        return self._results_max is not None and len(self._results) >= self._results_max

    def take(self, around: Row, number: int = 0) -> None:
        if not self.is_full:
            self.merge_state(_NumberedResult(number, result) for result in self._source.row_results(around))

    def partial_state(self) -> list[_NumberedResult]:
        return list(self._results)

    def merge_state(self, state: Iterable[_NumberedResult]) -> None:
        for numbered in state:
            if self.is_full:
                return
            if self._is_new(numbered):
                self._hold(numbered.result)
                self._results.append(numbered)

    def _is_new(self, numbered: _NumberedResult) -> bool:
        if self._seen is None:
            return True
        self._source.meter.spend_on_parts(numbered.result)
        index = self._seen.setdefault(self._sort_key(numbered.result), len(self._results))
        if index == len(self._results):
            return True
        if numbered.number < self._results[index].number:
            self._results[index] = numbered
        return False

    def _all_results(self) -> Iterable[object]:
        return (numbered.result for numbered in sorted(self._results, key=_number_of))


class OrderedCollector(Collector):
    """Rows with their places in an order; sorted at the end, or now and then when only the first few are wanted."""

    def __init__(
        self,
        source: RowSource,
        order: ValueOrder,
        *,
        rows: RowOrder | None = None,
        after: OrderPosition | None = None,
    ) -> None:
        """`rows` is the order of an index, if another page may follow that index; `after` is the position that earlier
        pages have reached."""
        super().__init__(source, order)
        directions = [key.descending for key in source.order]
        self._order = rows or row_order(directions, order, are_ties_rising=source.is_by_score)
        self._rows: list[OrderedRow] = []
        # Rows with an equal result count once, so that more rows than those of the window may be needed.
        self._rows_max = None if source.is_distinct else source.window.results_max
        # The last row that was still wanted at the last sort: rows after it are not wanted.
        self._last_wanted: OrderedRow | None = None
        self._after = None if after is None else OrderedRow(after.key, after.number, None)
        self._rows_passed = 0 if after is None else after.rows

    def keep_first(self, count: int) -> None:
        """Keep only the first rows of the order, to bound the memory: callers collect the others with later pages."""
        self._rows_max = count if self._rows_max is None else min(count, self._rows_max)

    def take(self, around: Row, number: int = 0) -> None:
        self.merge_state(self._behind(ordered_rows_of(self._source, around, self._order, number)))

    def _behind(self, rows: Iterator[OrderedRow]) -> Iterator[OrderedRow]:
        """Leave out the rows that earlier pages have answered."""
        after = self._after
        if after is None:
            yield from rows
            return
        passed_here = 0
        for row in rows:
            if row.key == after.key and row.number == after.number:
                passed_here += 1
                if self._rows_passed and passed_here > self._rows_passed:
                    yield row
            elif is_before(after, row, self._order):
                yield row

    def partial_state(self) -> list[OrderedRow]:
        return list(self._rows)

    def merge_state(self, state: Iterable[OrderedRow]) -> None:
        for row in state:
            if self._last_wanted is not None and is_before(self._last_wanted, row, self._order):
                continue
            self._memory.hold(row)
            self._rows.append(row)
            if self._rows_max is not None and len(self._rows) >= self._rows_max + _ROWS_BETWEEN_SORTS:
                self._keep_first(self._rows_max)

    def _keep_first(self, count: int) -> None:
        sort_rows(self._rows, self._order)
        for row in self._rows[count:]:
            self._memory.release(row)
        del self._rows[count:]
        self._last_wanted = self._rows[-1] if self._rows else None

    def ordered_rows(self) -> list[OrderedRow]:
        """Return all rows in their order, before the window is cut."""
        sort_rows(self._rows, self._order)
        return self._rows

    def _all_results(self) -> Iterable[object]:
        return (row.result for row in self.ordered_rows())


class GroupState(NamedTuple):
    """The state of a group: the smallest number of its items, its keys, and the state of each aggregate."""

    number: int
    keys: tuple[object, ...]
    states: list[object]


@dataclass(slots=True)
class _Group:
    # The smallest number of its items.
    number: int
    keys: tuple[object, ...]
    aggregates: list[Aggregate]


class GroupCollector(Collector):
    """Groups by the identity of their keys, in an order of their own if they have one."""

    def __init__(
        self, source: RowSource, order: ValueOrder, grouping: RowGroups, group_order: Sequence[OrderKey] = ()
    ) -> None:
        super().__init__(source, order)
        self._grouping = grouping
        self._group_order = group_order
        self._groups: dict[tuple[SortKey, ...], _Group] = {}
        if not grouping.keys:
            self._group((), 0)

    def feed_equal(self, item: Row, number: int, times: int) -> None:
        self._begin_item()
        self.take(item, number, times)

    def take(self, around: Row, number: int = 0, times: int = 1) -> None:
        source, grouping = self._source, self._grouping
        columns = grouping.columns
        only_group = None if grouping.keys else self._group((), number)
        for row in source.matching_rows(around):
            group = only_group or self._group(tuple(key(row) for key in grouping.keys), number)
            for aggregate, column in zip(group.aggregates, columns, strict=True):
                aggregate.add(column.argument(row), times)

    def _group(self, keys: tuple[object, ...], number: int) -> _Group:
        identity = tuple(map(self._sort_key, keys))
        group = self._groups.get(identity)
        if group is None:
            self._memory.hold((identity, keys))
            group = _Group(number, keys, [column.make(self._memory) for column in self._grouping.columns])
            self._groups[identity] = group
        elif number < group.number:
            group.number, group.keys = number, keys
        return group

    def partial_state(self) -> list[GroupState]:
        groups = self._groups.values()
        return [GroupState(group.number, group.keys, [each.state() for each in group.aggregates]) for group in groups]

    def merge_state(self, state: list[GroupState]) -> None:
        for number, keys, states in state:
            for aggregate, known in zip(self._group(keys, number).aggregates, states, strict=True):
                aggregate.merge(known)

    def _all_results(self) -> Iterable[object]:
        groups = sorted(self._groups.values(), key=lambda group: group.number)
        rows = [self._grouping.row_of_group(group.keys, group.aggregates) for group in groups]
        project, order = self._source.project, self._group_order
        ordered = [GroupRow(keys_of(order, row, self._sort_key), project(row)) for row in rows]
        for row in ordered:
            # Lists of all rows are written as one text.
            self._source.meter.check_result(row.result)
        sort_groups(ordered, order)
        return (row.result for row in ordered if row.result is not UNDEFINED)


def distinct(
    results: Iterable[object],
    sort_key: Callable[[Any], SortKey],
    meter: QueryMeter | None = None,
    memory: MemoryMeter | None = None,
) -> Iterator[object]:
    """Yield each result once, at its first place. `meter` and `memory` count it if nothing else does."""
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
