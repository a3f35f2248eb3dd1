"""$exists and $type: whether there is a value, and of which kind."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.predicate import Predicate, Scope, bad_value, does_not_hold
from asterism.values.bson.kinds import NAMES_TO_NUMBERS, type_name, type_number
from asterism.values.bson.types import MISSING, Decimal128, Int64

_NUMBER_NAMES = ("double", "int", "long", "decimal")
# Types that no value of ours has, but that a filter may name.
_UNMODELED_NAMES = {"undefined": 6, "dbPointer": 12, "symbol": 14}


def is_truthy(value: Any) -> bool:
    """Return whether a value counts as true: all but null, no value, false and zero."""
    if value is None or value is MISSING or value is False:
        return False
    if type(value) in (int, Int64, float):
        return bool(value != 0)
    if type(value) is Decimal128:
        exact = value.to_decimal()
        return exact.is_nan() or not exact.is_zero()
    return True


def compile_exists(operand: Any, _scope: Scope) -> Predicate:
    exists = Predicate("exists", lambda value: value is not MISSING, True, enter_last_array=False)
    return exists if is_truthy(operand) else does_not_hold(exists)


def compile_type(operand: Any, _scope: Scope) -> Predicate:
    numbers = type_numbers(operand, "$type")
    return Predicate(
        "type", lambda value: value is not MISSING and type_number(value) in numbers, tuple(sorted(numbers))
    )


def type_numbers(operand: Any, name: str) -> frozenset[int]:
    """Return the numbers of the types that an operand names: a name, a number, or an array of them."""
    elements = operand if type(operand) is list else [operand]
    if not elements:
        raise MongoFailure(9, f"{name} must match at least one type")
    found: set[int] = set()
    for element in elements:
        found.update(_type_number_of(element, name))
    return frozenset(found)


def _type_number_of(element: Any, name: str) -> tuple[int, ...]:
    if type(element) is str:
        if element == "number":
            return tuple(NAMES_TO_NUMBERS[number] for number in _NUMBER_NAMES)
        number = NAMES_TO_NUMBERS.get(element, _UNMODELED_NAMES.get(element))
        if number is None or element == "missing":
            raise bad_value(f"Unknown type name alias: {element}")
        return (number,)
    if type(element) is Decimal128:
        exact = element.to_decimal()
        is_small = exact.is_finite() and exact.adjusted() < 10
        element = int(exact) if is_small and exact == int(exact) else 0.5
    if type(element) not in (int, Int64, float):
        raise MongoFailure(14, f"{name} must be represented as a number or a string, not {type_name(element)}")
    if element not in _KNOWN_NUMBERS:
        raise bad_value(f"Invalid numerical type code: {element}")
    return (int(element),)


_KNOWN_NUMBERS = frozenset({*(NAMES_TO_NUMBERS[name] for name in NAMES_TO_NUMBERS if name != "missing"), 6, 12, 14})
