"""Functions of arrays: membership, slices, and aggregates of their elements."""

from __future__ import annotations

from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.semantics import is_primitive
from asterism.languages.cosmos_sql.functions.arguments import (
    RESULT_ELEMENTS_MAX,
    Run,
    all_hold,
    any_holds,
    integer_of,
    of_arrays,
    of_numbers,
)
from asterism.languages.cosmos_sql.functions.function import ANY_NUMBER, Function
from asterism.values.json.order import sort_key, values_equal
from asterism.values.undefined import UNDEFINED


def _concatenate(*arrays: list[object]) -> object:
    if sum(map(len, arrays)) > RESULT_ELEMENTS_MAX:
        return UNDEFINED
    return [element for array in arrays for element in array]


def _contains(array: object, sought: object, partial: object = UNDEFINED) -> object:
    """Return whether an element equals `sought` or, with `partial`, has all the properties of the object `sought`."""
    if type(array) is not list or sought is UNDEFINED or (partial is not UNDEFINED and type(partial) is not bool):
        return UNDEFINED
    if partial is True and type(sought) is dict:
        return any(_has_properties(element, sought) for element in array)
    return any(values_equal(element, sought) for element in array)


def _has_properties(element: object, wanted: dict[str, object]) -> bool:
    if type(element) is not dict:
        return False
    return all(name in element and values_equal(element[name], value) for name, value in wanted.items())


def _slice(array: object, start: object, count: object = RESULT_ELEMENTS_MAX) -> object:
    """Return at most `count` elements from `start`, which counts from the end if negative."""
    first, length = integer_of(start), integer_of(count)
    if type(array) is not list or first is None or length is None:
        return UNDEFINED
    first = max(first + len(array), 0) if first < 0 else first
    return array[first : first + max(length, 0)]


# --- elements as numbers, or as values of one order ------------------------------------------------------------------


def _sum(*numbers: float) -> float:
    # From the first to the last, as in the service; a more exact sum would have other last digits.
    total = 0.0
    for number in numbers:
        total += number
    return total


def _average(*numbers: float) -> float:
    return _sum(*numbers) / len(numbers)


def _median(*numbers: float) -> float:
    ordered, middle = sorted(numbers), len(numbers) // 2
    if not ordered:
        raise ValueError("an empty array has no median")
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _of_elements(run: Run) -> Function:
    """Return a function of one array whose elements are the arguments of `run`."""
    return Function(1, 1, of_arrays(lambda array: run(*_defined(array))))


def _defined(array: list[object]) -> list[object]:
    return [element for element in array if element is not UNDEFINED]


def _least(*elements: object) -> object:
    return min(elements, key=sort_key) if elements and all(map(is_primitive, elements)) else UNDEFINED


def _greatest(*elements: object) -> object:
    return max(elements, key=sort_key) if elements and all(map(is_primitive, elements)) else UNDEFINED


def _to_pairs(value: object, name_property: object = "k", value_property: object = "v") -> object:
    """Return an array of objects, each with the name and the value of a property."""
    if type(value) is not dict or type(name_property) is not str or type(value_property) is not str:
        return UNDEFINED
    return [{name_property: name, value_property: member} for name, member in cast("dict[str, object]", value).items()]


ARRAY_FUNCTIONS: Final[dict[str, Function]] = {
    "ARRAY_AVG": _of_elements(of_numbers(_average)),
    "ARRAY_CONCAT": Function(2, ANY_NUMBER, of_arrays(_concatenate)),
    "ARRAY_CONTAINS": Function(2, 3, _contains),
    "ARRAY_CONTAINS_ALL": Function(
        2, ANY_NUMBER, lambda array, *sought: all_hold([_contains(array, value) for value in sought])
    ),
    "ARRAY_CONTAINS_ANY": Function(
        2, ANY_NUMBER, lambda array, *sought: any_holds([_contains(array, value) for value in sought])
    ),
    "ARRAY_LENGTH": Function(1, 1, of_arrays(len)),
    "ARRAY_MAX": _of_elements(_greatest),
    "ARRAY_MEDIAN": _of_elements(of_numbers(_median)),
    "ARRAY_MIN": _of_elements(_least),
    "ARRAY_SLICE": Function(2, 3, _slice),
    "ARRAY_SUM": _of_elements(of_numbers(_sum)),
    "OBJECTTOARRAY": Function(1, 3, _to_pairs),
}
