"""Equality, comparability and order of values, as TinkerPop 3.8 defines them.

Values of different types are never equal and cannot be compared, but have an order: first by type, then by value.
Numbers of all types compare by value. NaN is equal to nothing and comes last among numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import MapEntry


class Rank(IntEnum):
    """The types in the order that they sort."""

    NULL = 1
    BOOLEAN = 2
    NUMBER = 3
    DATE = 4
    TEXT = 5
    UUID = 6
    VERTEX = 7
    EDGE = 8
    VERTEX_PROPERTY = 9
    PROPERTY = 10
    PATH = 11
    SET = 12
    LIST = 13
    MAP = 14
    ENTRY = 15
    OTHER = 16


# The first that fits counts: a boolean is an int of Python.
_RANKS_OF_BASES: tuple[tuple[type | tuple[type, ...], Rank], ...] = (
    (bool, Rank.BOOLEAN),
    ((int, float, Decimal), Rank.NUMBER),
    (str, Rank.TEXT),
    (date, Rank.DATE),
    (UUID, Rank.UUID),
    (Vertex, Rank.VERTEX),
    (Edge, Rank.EDGE),
    (VertexProperty, Rank.VERTEX_PROPERTY),
    (Property, Rank.PROPERTY),
    (Path, Rank.PATH),
    ((set, frozenset), Rank.SET),
    ((list, tuple), Rank.LIST),
    (dict, Rank.MAP),
    (MapEntry, Rank.ENTRY),
    (object, Rank.OTHER),
)
_ranks: dict[type, Rank] = {type(None): Rank.NULL}


def rank_of(value: object) -> Rank:
    """Return the type that a value has for comparisons."""
    kind = type(value)
    rank = _ranks.get(kind)
    if rank is None:
        rank = _ranks[kind] = next(rank for bases, rank in _RANKS_OF_BASES if issubclass(kind, bases))
    return rank


def is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def are_equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal: what `P.eq` and `P.within` go by."""
    kind = type(left)
    if kind is type(right) and (kind is str or kind is int):
        return bool(left == right)
    if isinstance(left, list | tuple | set | frozenset) and isinstance(right, list | tuple | set | frozenset):
        # Most containers that differ do so in length, which spares the members.
        if len(left) != len(right):
            return False
    elif isinstance(left, Vertex | Edge | VertexProperty):
        return bool(left == right)
    return compare(left, right) == 0


def compare(left: Any, right: Any) -> int | None:
    """Return a number below, equal to or above 0 as `left` compares with `right`; None if the two cannot be compared.

    This is what `P.lt`, `P.lte`, `P.gt` and `P.gte` go by, which are false for values that cannot be compared.
    """
    rank = rank_of(left)
    if rank is not rank_of(right):
        return None
    return _COMPARERS[rank](left, right)


def _compare_natural(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def compare_numbers(left: Any, right: Any) -> int | None:
    """Compare two numbers by value; None if either is NaN."""
    if left != left or right != right:
        return None
    # A fraction equals the decimal that it prints as, as in TinkerPop: 0.1 and 0.1m are the same number.
    if isinstance(left, Decimal) and isinstance(right, float) and not right.is_integer() and math.isfinite(right):
        right = Decimal(float.__repr__(right))
    elif isinstance(right, Decimal) and isinstance(left, float) and not left.is_integer() and math.isfinite(left):
        left = Decimal(float.__repr__(left))
    return int(left > right) - int(left < right)


def _compare_dates(left: date, right: date) -> int:
    return _compare_natural(_instant(left), _instant(right))


def _compare_elements(left: Any, right: Any) -> int:
    return _compare_natural(_element_order(left), _element_order(right))


def _compare_properties(left: Any, right: Any) -> int | None:
    return _compare_sequences((left.key, left.value), (right.key, right.value))


def _compare_sequences(left: Sequence[Any], right: Sequence[Any]) -> int | None:
    decided = 0
    # All pairs must be comparable, even those after the pair that decides.
    for left_item, right_item in zip(left, right, strict=False):
        order = compare(left_item, right_item)
        if order is None:
            return None
        decided = decided or order
    return decided or _compare_natural(len(left), len(right))


def _compare_paths(left: Path, right: Path) -> int | None:
    return _compare_sequences(left.objects, right.objects)


def _compare_sets(left: Any, right: Any) -> int | None:
    return _compare_sequences(sorted(left, key=order_key), sorted(right, key=order_key))


def _compare_maps(left: dict[Any, Any], right: dict[Any, Any]) -> int | None:
    return _compare_sequences(_sorted_entries(left), _sorted_entries(right))


def _compare_others(left: Any, right: Any) -> int | None:
    if left == right:
        return 0
    if type(left) is not type(right):
        return None
    try:
        return int(left > right) - int(left < right)
    except TypeError:
        return None


def _never_differ(_left: Any, _right: Any) -> int:
    return 0


_COMPARERS: dict[Rank, Callable[[Any, Any], int | None]] = {
    Rank.NULL: _never_differ,
    Rank.BOOLEAN: _compare_natural,
    Rank.NUMBER: compare_numbers,
    Rank.DATE: _compare_dates,
    Rank.TEXT: _compare_natural,
    Rank.UUID: _compare_natural,
    Rank.VERTEX: _compare_elements,
    Rank.EDGE: _compare_elements,
    Rank.VERTEX_PROPERTY: _compare_elements,
    Rank.PROPERTY: _compare_properties,
    Rank.PATH: _compare_paths,
    Rank.SET: _compare_sets,
    Rank.LIST: _compare_sequences,
    Rank.MAP: _compare_maps,
    Rank.ENTRY: _compare_properties,
    Rank.OTHER: _compare_others,
}


def order_key(value: Any) -> tuple[Any, ...]:
    """Return a tuple that sorts as the value does in `order()`: every two values have an order."""
    rank = rank_of(value)
    if rank is Rank.TEXT:
        return (5, value)
    if rank is Rank.NUMBER:
        return (3, 1) if value != value else (3, 0, value)
    if rank is Rank.OTHER and isinstance(value, Token):
        # Keys of element maps: T.id sorts among the names of properties.
        return (5, value.name)
    return (int(rank), *_ORDER_PARTS[rank](value))


def _instant(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


def _element_order(element: Any) -> tuple[Any, ...]:
    # Ids are unique within a partition key only.
    owner = element.vertex if isinstance(element, VertexProperty) else element
    return (element.id, *order_key(owner.key), *((owner.id,) if owner is not element else ()))


def _sorted_entries(entries: dict[Any, Any]) -> list[MapEntry]:
    return sorted((MapEntry(key, value) for key, value in entries.items()), key=order_key)


def _members(values: Iterable[Any]) -> tuple[Any, ...]:
    return (tuple(map(order_key, values)),)


_ORDER_PARTS: dict[Rank, Callable[[Any], tuple[Any, ...]]] = {
    Rank.NULL: lambda _: (),
    Rank.BOOLEAN: lambda value: (value,),
    Rank.DATE: lambda value: (_instant(value),),
    Rank.UUID: lambda value: (value,),
    Rank.VERTEX: _element_order,
    Rank.EDGE: _element_order,
    Rank.VERTEX_PROPERTY: _element_order,
    Rank.PROPERTY: lambda value: (value.key, order_key(value.value)),
    Rank.PATH: lambda value: _members(value.objects),
    Rank.SET: lambda value: (tuple(sorted(map(order_key, value))),),
    Rank.LIST: _members,
    Rank.MAP: lambda value: (tuple(sorted((order_key(key), order_key(entry)) for key, entry in value.items())),),
    Rank.ENTRY: lambda value: (order_key(value.key), order_key(value.value)),
    Rank.OTHER: lambda value: (type(value).__name__, str(value)),
}
