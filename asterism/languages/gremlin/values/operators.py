"""Operator: functions of two values by which sacks, side effects and folds are merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure
from asterism.languages.gremlin.values.arithmetic import (
    add,
    checked_number,
    divide,
    larger,
    multiply,
    smaller,
    subtract,
)
from asterism.languages.gremlin.values.numbers import LONG_MAX, LONG_MIN, Long
from asterism.languages.gremlin.values.printing import text_of
from asterism.languages.gremlin.values.structures import freeze
from asterism.languages.gremlin.values.types import class_name

Operator = Callable[[Any, Any], Any]


def _assign(_left: Any, right: Any) -> Any:
    return right


def _logical(function: Callable[[bool, bool], bool]) -> Operator:
    def apply(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        for value in (left, right):
            if not isinstance(value, bool):
                raise ExecutionFailure(f"{class_name(value)} cannot be cast to Boolean: {text_of(value)[:100]}")
        return function(left, right)

    return apply


def _add_all(left: Any, right: Any) -> Any:
    """Return a new container with the members of both: the left one may be a constant of a plan."""
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    if isinstance(right, list | tuple | set | frozenset):
        if isinstance(left, set | frozenset):
            return {*left, *map(freeze, right)}
        if isinstance(left, list | tuple):
            return [*left, *right]
    raise ExecutionFailure(
        f"Objects must be both of Map or Collection: a={class_name(left)} b={class_name(right)}",
    )


def _add_long(left: Any, right: Any) -> Any:
    result = int(checked_number(left)) + int(checked_number(right))
    if not LONG_MIN <= result <= LONG_MAX:
        raise ExecutionFailure("long overflow")
    return Long(result)


# The tokens of Operator, as functions of the value so far and the value that comes.
OPERATORS: Mapping[str, Operator] = {
    "sum": add,
    "minus": subtract,
    "mult": multiply,
    "div": divide,
    "min": smaller,
    "max": larger,
    "assign": _assign,
    "and": _logical(lambda left, right: left and right),
    "or": _logical(lambda left, right: left or right),
    "addAll": _add_all,
    "sumLong": _add_long,
}


def operator_named(name: str) -> Operator:
    """Return the function of an Operator."""
    try:
        return OPERATORS[name]
    except KeyError:
        raise CompileFailure(f"Operator.{name} is not known.") from None
