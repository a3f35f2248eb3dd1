"""Closures that run once for every item: reads of a path, and comparisons of its value with constants."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from asterism.languages.cosmos_sql.compiling.scope import Steps
from asterism.languages.cosmos_sql.compiling.semantics import is_number, step_into
from asterism.reading.row_source import Evaluator
from asterism.values.json.order import as_double, values_equal
from asterism.values.undefined import UNDEFINED

# Below this, integers and doubles are equal in Python exactly when they are the same double.
_PLAINLY_COMPARED_BELOW = 2**53
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def path_reader(steps: Steps) -> Evaluator:
    """Return a reader of the value at the end of `steps`, or UNDEFINED."""
    if not steps:
        return lambda item: item
    if len(steps) == 1 and isinstance(steps[0], str):
        name = steps[0]
        return lambda item: item.get(name, UNDEFINED)
    if len(steps) == 2 and isinstance(steps[0], str) and isinstance(steps[1], str):
        return _two_names_reader(steps[0], steps[1])

    def read(item: dict[str, object]) -> object:
        value: object = item
        for step in steps:
            value = step_into(value, step)
            if value is UNDEFINED:
                return UNDEFINED
        return value

    return read


def _two_names_reader(first: str, second: str) -> Evaluator:
    def read(item: dict[str, object]) -> object:
        target = item.get(first)
        return target.get(second, UNDEFINED) if type(target) is dict else UNDEFINED

    return read


def equality_test(steps: Steps, constant: object) -> Evaluator:
    """Return the test `path = constant`, the most common filter, without the general comparison if the type allows."""
    if constant is UNDEFINED:
        return lambda _item: UNDEFINED
    read = path_reader(steps)
    if type(constant) is str:
        return _string_equality(steps, read, constant)
    if is_number(constant) and abs(cast(float, constant)) < _PLAINLY_COMPARED_BELOW:
        return _number_equality(read, cast(float, constant))

    def test(item: dict[str, object]) -> object:
        value = read(item)
        return UNDEFINED if value is UNDEFINED else values_equal(value, constant)

    return test


def _string_equality(steps: Steps, read: Evaluator, constant: str) -> Evaluator:
    def test(item: dict[str, object]) -> object:
        value = read(item)
        # No other JSON value equals a string in Python, so the types need no check.
        return UNDEFINED if value is UNDEFINED else value == constant

    def test_property(item: dict[str, object]) -> object:
        value = item.get(name, UNDEFINED)
        return UNDEFINED if value is UNDEFINED else value == constant

    name = str(steps[0]) if steps else ""
    return test_property if len(steps) == 1 and isinstance(steps[0], str) else test


def _number_equality(read: Evaluator, constant: float) -> Evaluator:
    def test(item: dict[str, object]) -> object:
        value = read(item)
        if value is UNDEFINED:
            return UNDEFINED
        return value == constant and type(value) is not bool

    return test


def order_test(steps: Steps, operator_symbol: str, constant: object) -> Evaluator | None:
    """Return the test `path < constant` (or >, <=, >=) without the general comparison; None if the type needs it."""
    accepts = _ORDERS[operator_symbol]
    read = path_reader(steps)
    if type(constant) is str:

        def test_string(item: dict[str, object]) -> object:
            value = read(item)
            return accepts(value, constant) if type(value) is str else UNDEFINED

        return test_string
    if not is_number(constant) or abs(cast(float, constant)) >= _PLAINLY_COMPARED_BELOW:
        return None

    def test_number(item: dict[str, object]) -> object:
        value = read(item)
        kind = type(value)
        return accepts(value, constant) if kind is int or kind is float else UNDEFINED

    return test_number


def membership_test(constants: Sequence[object]) -> Callable[[object], bool]:
    """Return a test of membership in `constants`; strings and numbers by hash, the few others one by one."""
    strings = frozenset(value for value in constants if type(value) is str)
    numbers = frozenset(as_double(cast(float, value)) for value in constants if is_number(value) and value == value)
    others = [value for value in constants if type(value) is not str and not is_number(value)]

    def holds(value: object) -> bool:
        if type(value) is str:
            return value in strings
        if is_number(value):
            return as_double(cast(float, value)) in numbers
        return any(values_equal(value, other) for other in others)

    return holds
