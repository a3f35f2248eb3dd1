"""Results with their sort keys: sorting them, and comparing those of different partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from asterism.reading.order_plan import OrderPosition, RowOrder
from asterism.reading.row_source import OrderKey, Row, RowSource
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import SortKey


class OrderedRow(NamedTuple):
    """A result with its place in the order: the bytes of its sort key, then the number of its item. Rows of one item
    that are equal in both keep their order."""

    key: bytes
    number: int
    result: object


_PLACE = itemgetter(0, 1)


def ordered_rows_of(source: RowSource, around: Row, order: RowOrder, number: int) -> Iterator[OrderedRow]:
    """Yield the results of one item, not yet sorted."""
    project, encode = source.project, order.encode
    expressions = [key.evaluate for key in source.order]
    for row in source.matching_rows(around):
        key = encode([evaluate(row) for evaluate in expressions])
        result = project(row)
        if result is not UNDEFINED:
            yield OrderedRow(key, number, result)


def sort_rows(rows: list[OrderedRow], order: RowOrder) -> None:
    rows.sort(key=_PLACE, reverse=order.reverse)


def is_before(row: OrderedRow, other: OrderedRow, order: RowOrder) -> bool:
    """Return True if a row comes before another one, which does not have the same place."""
    place, other_place = row[:2], other[:2]
    return place > other_place if order.reverse else place < other_place


def positions_before(rows: Sequence[OrderedRow], before: OrderPosition | None) -> Iterator[OrderPosition | None]:
    """Yield, for each of these sorted rows, the position at which it is the next; `before` is that of the first."""
    answered = 0 if before is None else before.rows
    last = None if before is None else before[:2]
    for row in rows:
        if last is None:
            yield None
        elif last == row[:2]:
            yield OrderPosition(*last, rows=answered)
        else:
            yield OrderPosition(*last)
            answered = 0
        last = row[:2]
        answered += 1


class GroupRow(NamedTuple):
    """The result of a group, with a key for each expression that groups are ordered by; keys compare as values do."""

    keys: tuple[SortKey, ...]
    result: object


def keys_of(order: Sequence[OrderKey], row: Row, sort_key: Callable[[Any], SortKey]) -> tuple[SortKey, ...]:
    return tuple(sort_key(key.evaluate(row)) for key in order)


def sort_groups(rows: list[GroupRow], order: Sequence[OrderKey]) -> None:
    """Sort the rows of groups; those with equal keys keep their order."""
    for index in reversed(range(len(order))):
        rows.sort(key=lambda row: row.keys[index], reverse=order[index].descending)
