"""Comparison of a result with the expectation of a scenario."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from gremlin_python.statics import BigDecimal
from gremlin_python.structure.graph import Edge, Path, Property, Vertex, VertexProperty

from conformance.gremlin.notation import AnyOrder, Element, OfVertex, PathOf


def same(expected: Any, actual: Any, *, any_order: bool = False) -> bool:
    """`any_order`: lists inside a value need not be in order (a store is free to iterate as it likes)."""
    match expected:
        case Element(kind="v"):
            return isinstance(actual, Vertex) and _same_id(expected.id, actual.id)
        case Element():
            return isinstance(actual, Edge) and _same_id(expected.id, actual.id)
        case OfVertex():
            return (
                isinstance(actual, VertexProperty | Property)
                and getattr(actual, "key", getattr(actual, "label", None)) == expected.key
                and same(expected.value, actual.value)
            )
        case PathOf():
            return isinstance(actual, Path) and _same_lists(expected.objects, actual.objects, any_order=False)
        case AnyOrder():
            return _is_many(actual) and same_in_any_order(expected.members, list(actual), any_order=any_order)
        case dict():
            return isinstance(actual, dict) and same_in_any_order(
                list(expected.items()), list(actual.items()), any_order=any_order
            )
        case list() | tuple():
            return _is_many(actual) and _same_lists(expected, list(actual), any_order=any_order)
        case bool() | None:
            return expected is actual
    return _same_scalar(expected, actual)


def same_in_any_order(expected: Sequence[Any], actual: Iterable[Any], *, any_order: bool) -> bool:
    left = list(actual)
    if len(left) != len(expected):
        return False
    for item in expected:
        place = next((at for at, found in enumerate(left) if same(item, found, any_order=any_order)), None)
        if place is None:
            return False
        del left[place]
    return True


def _same_lists(expected: Sequence[Any], actual: Sequence[Any], *, any_order: bool) -> bool:
    if any_order:
        return same_in_any_order(expected, actual, any_order=True)
    return len(expected) == len(actual) and all(same(e, a) for e, a in zip(expected, actual, strict=True))


def _same_scalar(expected: Any, actual: Any) -> bool:
    if isinstance(expected, Enum) or isinstance(actual, Enum):
        return bool(getattr(expected, "name", expected) == getattr(actual, "name", actual))
    if isinstance(actual, bool):
        return False
    wanted, found = _plain_number(expected), _plain_number(actual)
    if isinstance(wanted, float) and isinstance(found, float):
        return (math.isnan(wanted) and math.isnan(found)) or math.isclose(wanted, found, rel_tol=1e-7)
    return bool(wanted == found)


def _plain_number(value: Any) -> Any:
    if isinstance(value, BigDecimal):
        return float(value.value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value


def _same_id(expected: Any, actual: Any) -> bool:
    """A store whose ids are texts answers "1" where TinkerGraph answers 1."""
    return expected == actual or str(expected) == str(actual)


def _is_many(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)
