"""The rows that a query makes of one document, and what they add to results, orders and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from asterism.reading.limits import MemoryMeter, QueryMeter
from asterism.reading.window import Window

# The object that expressions are evaluated on: a document, or an object with the values that a query made of one.
Row: TypeAlias = dict[str, object]
Evaluator: TypeAlias = Callable[[Row], object]


@dataclass(frozen=True, slots=True)
class OrderKey:
    evaluate: Evaluator
    descending: bool


class RowSource(Protocol):
    """A compiled query, as collectors see it."""

    @property
    def meter(self) -> QueryMeter: ...

    @property
    def window(self) -> Window: ...

    @property
    def is_distinct(self) -> bool: ...

    @property
    def project(self) -> Evaluator:
        """The evaluator of a row's result, or of a group's; UNDEFINED is left out of the results."""
        ...

    @property
    def order(self) -> tuple[OrderKey, ...]:
        """The order of rows."""
        ...

    @property
    def is_by_score(self) -> bool:
        """True if the order is that of a score; rows of equal score are then in the order of creation."""
        ...

    def matching_rows(self, around: Row) -> Iterator[Row]:
        """Yield the rows of a document that pass the filter; use each before the next."""
        ...

    def row_results(self, around: Row) -> Iterator[object]:
        """Yield the result of each row by itself: before DISTINCT, order, groups and window."""
        ...


class Aggregate(Protocol):
    """An aggregate of one group."""

    def add(self, value: object, times: int = 1) -> None:
        """Take the value of a row, or of `times` rows that have the same; UNDEFINED is left out."""

    def state(self) -> object:
        """Return the whole state as plain values, which can be pickled and merged into another of its kind."""

    def merge(self, state: Any) -> None:
        """Add the state of another of its kind."""

    def result(self) -> object:
        """Return a value or UNDEFINED."""


class AggregateColumn(Protocol):
    @property
    def make(self) -> Callable[[MemoryMeter], Aggregate]: ...

    @property
    def argument(self) -> Evaluator: ...


class RowGroups(Protocol):
    """The keys by which rows are grouped, and the aggregates of a group. Without keys there is one group, even of no
    rows."""

    @property
    def keys(self) -> Sequence[Evaluator]: ...

    @property
    def columns(self) -> Sequence[AggregateColumn]: ...

    def row_of_group(self, keys: tuple[object, ...], aggregates: list[Aggregate]) -> Row:
        """Return the row on which expressions over groups are evaluated."""
        ...
