"""The keys of values: what `dedup`, `group`, sets and the merging of equal traversers go by.

Unlike equality, 1 and 1L and 1.0 are three values here, and NaN is the same as NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.values.comparison import Rank, rank_of
from asterism.languages.gremlin.values.numbers import INT_MAX, INT_MIN, number_type
from asterism.languages.gremlin.values.results import Path


def identity_key(value: Any) -> Hashable:
    """Return a key that two values share exactly if they are the same value to Gremlin."""
    kind = type(value)
    if kind is str or (kind is int and INT_MIN <= value <= INT_MAX):
        return value  # type: ignore[no-any-return]  # A text or a number.
    if kind is Vertex:
        # The key, not the vertex: a set of keys must not keep all documents in memory.
        return (Vertex, value.id, _partition(value.key))
    return _KEYS[rank_of(value)](value)


def _partition(key: Hashable) -> Hashable:
    # True equals 1 in Python, but they are two partition keys.
    return (bool, key) if type(key) is bool else key


def _of_number(value: int | float | Decimal) -> Hashable:
    name = number_type(value)
    if name == "Integer":
        return int(value)
    if isinstance(value, float) and (value != value or value == 0.0):
        # Java tells 0.0 from -0.0 here, and NaN must equal itself.
        return (name, float.__repr__(value))
    return (name, value)


def _of_members(mark: str, members: Any) -> Hashable:
    return (mark, tuple(map(identity_key, members)))


def _of_date(value: date) -> Hashable:
    return (datetime, value.isoformat()) if isinstance(value, datetime) and value.tzinfo is None else (date, value)


def _of_other(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))
    return (type(value), value)


_KEYS: dict[Rank, Callable[[Any], Hashable]] = {
    Rank.NULL: lambda _: None,
    Rank.BOOLEAN: lambda value: (bool, value),
    Rank.NUMBER: _of_number,
    Rank.DATE: _of_date,
    Rank.TEXT: str,
    Rank.UUID: lambda value: (UUID, value),
    Rank.VERTEX: lambda value: (Vertex, value.id, _partition(value.key)),
    Rank.EDGE: lambda value: (Edge, value.id, _partition(value.key)),
    Rank.VERTEX_PROPERTY: lambda value: (VertexProperty, value.id, identity_key(value.vertex)),
    Rank.PROPERTY: lambda value: (Property, value.key, identity_key(value.value)),
    Rank.PATH: lambda value: (
        Path,
        tuple(map(identity_key, value.objects)),
        tuple(frozenset(names) for names in value.labels),
    ),
    Rank.SET: lambda value: ("set", frozenset(map(identity_key, value))),
    Rank.LIST: lambda value: _of_members("list", value),
    Rank.MAP: lambda value: (
        "map",
        frozenset((identity_key(key), identity_key(entry)) for key, entry in value.items()),
    ),
    Rank.ENTRY: lambda value: ("entry", identity_key(value.key), identity_key(value.value)),
    Rank.OTHER: _of_other,
}
