"""What a query makes of one document: rows, and what they add to results, orders and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from asterism.reading.limits import MemoryMeter, QueryMeter
from asterism.reading.window import Window

# What expressions are evaluated on: a document, or an object that holds what a query made of one.
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
        """The result of a row, or of a group's row; UNDEFINED is no result at all."""
        ...

    @property
    def order(self) -> tuple[OrderKey, ...]:
        """The order of rows."""
        ...

    @property
    def is_by_score(self) -> bool:
        """Whether the order is that of a score, of which equal ones are as the items were created."""
        ...

    def matching_rows(self, around: Row) -> Iterator[Row]:
        """Yield the rows of a document that pass the filter; use each before the next."""
        ...

    def row_results(self, around: Row) -> Iterator[object]:
        """Yield what each row gives by itself: before DISTINCT, order, groups and window."""
        ...


class Aggregate(Protocol):
    """An aggregate of one group."""

    def add(self, value: object, times: int = 1) -> None:
        """Take the value of a row, or of as many that have the same; UNDEFINED is left out."""

    def state(self) -> object:
        """Return all it knows, of plain values: can be pickled, and merged into another of its kind."""

    def merge(self, state: Any) -> None:
        """Add what another of its kind knows."""

    def result(self) -> object:
        """Return a value or UNDEFINED."""


class AggregateColumn(Protocol):
    @property
    def make(self) -> Callable[[MemoryMeter], Aggregate]: ...

    @property
    def argument(self) -> Evaluator: ...


class Grouping(Protocol):
    """What a row belongs to and what it adds there. Without keys there is one group, even of no rows."""

    @property
    def keys(self) -> Sequence[Evaluator]: ...

    @property
    def columns(self) -> Sequence[AggregateColumn]: ...

    def row_of_group(self, keys: tuple[object, ...], aggregates: list[Aggregate]) -> Row:
        """Return the row on which expressions over groups are evaluated."""
        ...
