"""Order plans: the index that has the order of ORDER BY, and the order of rows if no index has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from asterism.models.documents.indexes.composite import INVERTED, CompositeIndex
from asterism.models.documents.indexes.reader import IndexSpan
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.indexes.terms import VALUE_BYTES_MAX
from asterism.reading.access_plan import (
    PathConditions,
    ValueIndex,
    bounds_within,
    composite_index,
    order_text,
    single_index,
)
from asterism.reading.conditions import PropertyPath
from asterism.reading.value_spans import ANY_VALUE, ValueSpan
from asterism.values.value_order import ValueOrder

# Bytes of each expression that rows are ordered by without an index: rows that differ only behind them are in the order
# of creation. A continuation holds them, in a header.
ORDER_BYTES_MAX: Final = 1_000


class OrderPosition(NamedTuple):
    """A position in an order of rows: the bytes of a sort key, and the number of an item. The rows at it have been
    answered: all of them, or, if `rows` is not zero, only that many."""

    key: bytes
    number: int
    rows: int = 0


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order of rows: by the bytes of their sort key, then by the number of their item, all of it reversed if
    `reverse`."""

    # Encodes a sort key: one value for each expression of ORDER BY.
    encode: Callable[[Sequence[object]], bytes]
    reverse: bool


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """An index whose entries are in the order of a query, read forwards or backwards."""

    index: ValueIndex
    rows: RowOrder
    # The name in explanations: with the directions that the query asks for.
    name: str
    # The spans of it that the filter leaves, in the order of the index, and the paths that the filter bounds.
    spans: tuple[ValueSpan, ...] = (ANY_VALUE,)
    bounded_paths: frozenset[PropertyPath] = frozenset()
    # The path whose index has no entry for an item without a value there; None if every item that is wanted has one.
    incomplete_path: PropertyPath | None = None

    @property
    def reverse(self) -> bool:
        return self.rows.reverse

    def index_spans(self) -> list[IndexSpan]:
        """Return the spans in the order in which they are read."""
        spans = [IndexSpan(self.index.token, span.low, span.high) for span in self.spans]
        return spans[::-1] if self.reverse else spans


def order_for(
    paths: Sequence[tuple[PropertyPath, bool]] | None, rules: IndexingRules, hidden: frozenset[str] = frozenset()
) -> IndexOrder | None:
    """Return the index that has the order of ORDER BY, or its reverse: a path's own, or a composite one."""
    if paths is None or any(path[0] in hidden for path, _ in paths):
        return None
    if len(paths) == 1:
        path, descending = paths[0]
        if not rules.covers_scalar(path):
            return None
        index = single_index(path, rules.order)
        rows = RowOrder(_index_values(rules.order), descending)
        return IndexOrder(index, rows, index.name, incomplete_path=path)
    composite, reverse = matching_composite(paths, rules.composites)
    if composite is None:
        return None
    return IndexOrder(composite_index(composite), RowOrder(composite.encode, reverse), order_text(paths))


def bounded_order(order: IndexOrder, conditions: PathConditions) -> IndexOrder:
    """Return an order bounded by a filter: it begins and ends where the conditions on the leading paths of its index
    do."""
    bounds = bounds_within(order.index, conditions)
    if not bounds.paths:
        return order
    return replace(order, spans=bounds.spans, bounded_paths=bounds.paths, incomplete_path=None)


def row_order(descending: Sequence[bool], order: ValueOrder, *, are_ties_rising: bool = False) -> RowOrder:
    """Return the order of rows by expressions without an index, read in the direction of the first: expressions in the
    other direction are inverted. With `are_ties_rising`, equal rows are in the order of creation even if the first
    descends."""
    reverse = descending[0] and not are_ties_rising
    is_inverted = [descends is not reverse for descends in descending]

    def encode_row(values: Sequence[object]) -> bytes:
        encoded = [order.encode(value, bytes_max=ORDER_BYTES_MAX) for value in values]
        return b"".join(
            part.translate(INVERTED) if inverts else part for part, inverts in zip(encoded, is_inverted, strict=True)
        )

    return RowOrder(encode_row, reverse)


def _index_values(order: ValueOrder) -> Callable[[Sequence[object]], bytes]:
    """Return the encoder of values as the index of a path has them: of an array or object it has only the type."""

    def encode_value(values: Sequence[object]) -> bytes:
        (value,) = values
        if isinstance(value, dict | list):
            return order.any_object if isinstance(value, dict) else order.any_array
        return order.encode(value, bytes_max=VALUE_BYTES_MAX)

    return encode_value


def matching_composite(
    paths: Sequence[tuple[PropertyPath, bool]], composites: Sequence[CompositeIndex]
) -> tuple[CompositeIndex | None, bool]:
    """Return the composite index with exactly these paths and directions, or with every direction reversed; and True
    in the second case."""
    wanted = tuple(paths)
    opposite = tuple((path, not descending) for path, descending in paths)
    for composite in composites:
        if composite.paths == wanted:
            return composite, False
        if composite.paths == opposite:
            return composite, True
    return None, False
