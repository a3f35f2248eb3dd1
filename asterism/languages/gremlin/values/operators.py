"""Operator: functions of two values by which sacks, side effects and folds are merged."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure
from asterism.languages.gremlin.values.numbers import is_number

Operator = Callable[[Any, Any], Any]


def _arithmetic(calculate: Operator, name: str) -> Operator:
    def apply(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        if not is_number(left) or not is_number(right):
            raise ExecutionFailure(f"Operator.{name} takes numbers, not {left!r} and {right!r}.")
        if isinstance(left, Decimal) != isinstance(right, Decimal):
            left, right = Decimal(str(left)), Decimal(str(right))
        return calculate(left, right)

    return apply


def _divide(left: Any, right: Any) -> Any:
    return left // right if isinstance(left, int) and isinstance(right, int) else left / right


def _assign(_: Any, right: Any) -> Any:
    return right


def _connective(name: str, connect: Callable[[bool, bool], bool]) -> Operator:
    def apply(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        if not isinstance(left, bool) or not isinstance(right, bool):
            raise ExecutionFailure(f"Operator.{name} takes booleans, not {left!r} and {right!r}.")
        return connect(left, right)

    return apply


def _add_all(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    if isinstance(left, set | frozenset) and isinstance(right, list | tuple | set | frozenset):
        return {*left, *right}
    if isinstance(left, list | tuple) and isinstance(right, list | tuple | set | frozenset):
        return [*left, *right]
    raise ExecutionFailure(
        f"Objects must be both of Map or Collection: a={type(left).__name__} b={type(right).__name__}"
    )


OPERATORS: Mapping[str, Operator] = {
    "sum": _arithmetic(operator.add, "sum"),
    "sumLong": _arithmetic(operator.add, "sumLong"),
    "minus": _arithmetic(operator.sub, "minus"),
    "mult": _arithmetic(operator.mul, "mult"),
    "div": _arithmetic(_divide, "div"),
    "min": _arithmetic(min, "min"),
    "max": _arithmetic(max, "max"),
    "assign": _assign,
    "and": _connective("and", lambda left, right: left and right),
    "or": _connective("or", lambda left, right: left or right),
    "addAll": _add_all,
}


def operator_named(name: str) -> Operator:
    """Return the function of an Operator."""
    try:
        return OPERATORS[name]
    except KeyError:
        raise CompileFailure(f"Operator.{name} is not known.") from None
