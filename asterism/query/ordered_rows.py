"""Results with what they are ordered by: sorting them, and comparing those of different partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from asterism.query.pipeline import OrderKey, Pipeline
from asterism.query.scope import Row
from asterism.values.ordering import SortKey, sort_key
from asterism.values.undefined import UNDEFINED

UNDEFINED_KEY = sort_key(UNDEFINED)


class OrderedRow(NamedTuple):
    """One result; `keys` has one entry for each expression of ORDER BY and compares as the values do."""

    keys: tuple[SortKey, ...]
    result: object


def ordered_rows_of(pipeline: Pipeline, around: Row, *, with_undefined: bool) -> Iterator[OrderedRow]:
    """The results of one item, in no order yet."""
    project = pipeline.project
    for row in pipeline.matching_rows(around):
        keys = keys_of(pipeline.order, row)
        if with_undefined or UNDEFINED_KEY not in keys:
            result = project(row)
            if result is not UNDEFINED:
                yield OrderedRow(keys, result)


def keys_of(order: Sequence[OrderKey], row: Row) -> tuple[SortKey, ...]:
    return tuple(sort_key(key.evaluate(row)) for key in order)


def sort_in_place(rows: list[OrderedRow], order: Sequence[OrderKey]) -> None:
    """Rows with equal keys stay in the order they came in."""
    directions = [key.descending for key in order]
    if len(set(directions)) == 1:
        rows.sort(key=itemgetter(0), reverse=directions[0])
        return
    for index in reversed(range(len(directions))):
        rows.sort(key=lambda row: row.keys[index], reverse=directions[index])


def compare_keys(left: Sequence[SortKey], right: Sequence[SortKey], order: Sequence[OrderKey]) -> int:
    """-1, 0 or 1 as a row with the keys `left` comes before, with or after one with the keys `right`."""
    for one, other, key in zip(left, right, order, strict=True):
        if one != other:
            return -1 if (one < other) is not key.descending else 1
    return 0
