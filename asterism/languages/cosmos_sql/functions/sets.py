"""Functions of arrays as sets: each element once, in the order of its first appearance."""

from __future__ import annotations

from typing import Final

from asterism.languages.cosmos_sql.functions.arguments import RESULT_ELEMENTS_MAX, of_arrays
from asterism.languages.cosmos_sql.functions.function import Function
from asterism.values.json.order import sort_key
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import SortKey


def _by_key(elements: list[object]) -> dict[SortKey, object]:
    """Return the elements without repetition; equal values have equal keys."""
    distinct: dict[SortKey, object] = {}
    for element in elements:
        distinct.setdefault(sort_key(element), element)
    return distinct


def _difference(left: list[object], right: list[object]) -> object:
    excluded = _by_key(right)
    return [element for key, element in _by_key(left).items() if key not in excluded]


def _intersection(left: list[object], right: list[object]) -> object:
    # The service's own example shows that the order is that of the second set.
    included = _by_key(left)
    return [element for key, element in _by_key(right).items() if key in included]


def _union(left: list[object], right: list[object]) -> object:
    return list(_by_key(left + right).values()) if len(left) + len(right) <= RESULT_ELEMENTS_MAX else UNDEFINED


def _equal(left: list[object], right: list[object]) -> object:
    return _by_key(left).keys() == _by_key(right).keys()


SET_FUNCTIONS: Final[dict[str, Function]] = {
    "SETDIFFERENCE": Function(2, 2, of_arrays(_difference)),
    "SETEQUAL": Function(2, 2, of_arrays(_equal)),
    "SETINTERSECT": Function(2, 2, of_arrays(_intersection)),
    "SETUNION": Function(2, 2, of_arrays(_union)),
}
