"""Conditions on paths of an item, joined by AND and OR: the part of a filter that an index can use, as plain data.

Every item that passes a filter meets the conditions made of it; an item that meets them need not pass. Readers that
find items by an index check the filter again on each, unless the conditions are known to be exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from asterism.models.documents.indexes.cells import Box

# The names of properties, from the item down.
PropertyPath: TypeAlias = tuple[str, ...]
Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The value at `path` compares with a primitive by `operator`; values of different types do not compare."""

    path: PropertyPath
    operator: Operator
    value: object


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value at `path` equals one of these primitives."""

    path: PropertyPath
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """The value at `path` is a string with this prefix, case-sensitive."""

    path: PropertyPath
    prefix: str


@dataclass(frozen=True, slots=True)
class ArrayHolds:
    """The value at `path` is an array, and this primitive is an element of it."""

    path: PropertyPath
    value: object


@dataclass(frozen=True, slots=True)
class Defined:
    """There is a value at `path`."""

    path: PropertyPath


@dataclass(frozen=True, slots=True)
class Touches:
    """The value at `path` is a geometry, and some of it lies in one of these boxes."""

    path: PropertyPath
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Unrestricted:
    """No restriction is known: any item may pass."""


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """No item passes."""


Condition: TypeAlias = (
    Comparison | OneOf | Prefix | ArrayHolds | Defined | Touches | AllOf | AnyOf | Unrestricted | Unsatisfiable
)


def bounds_of(condition: Condition) -> dict[PropertyPath, tuple[object, object]]:
    """Return a lower and an upper bound of the values at each path that the conditions bound on both sides."""
    lows: dict[PropertyPath, object] = {}
    highs: dict[PropertyPath, object] = {}
    for part in condition.conditions if isinstance(condition, AllOf) else (condition,):
        if isinstance(part, Comparison) and part.operator != "=":
            (lows if part.operator in (">", ">=") else highs).setdefault(part.path, part.value)
    return {path: (low, highs[path]) for path, low in lows.items() if path in highs}


# Conditions on the value at one path, of which an item has one.
PathCondition: TypeAlias = Comparison | OneOf | Prefix | Defined
