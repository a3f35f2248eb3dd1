"""Closures that are known when an expression is compiled: a value, or a failure found while computing one.

Constants are folded: an operator whose arguments are all constant is computed once. A failure met on the way does not
stop the compiler at once, because `$switch` leaves out branches that can never be taken, and because a mistake in the
form of the expression has priority over a mistake in its values.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from asterism.languages.mongo.expressions.operator import Evaluate, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Missing


class Constant:
    """An expression with the same value for every document."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, document: Any, variables: Variables) -> Any:
        return self.value


class FailedConstant:
    """An expression of constants that cannot be computed."""

    __slots__ = ("failure",)

    def __init__(self, failure: MongoFailure) -> None:
        self.failure = failure

    def __call__(self, document: Any, variables: Variables) -> Any:
        raise self.failure


def is_constant(evaluate: Evaluate) -> TypeGuard[Constant]:
    return type(evaluate) is Constant


def is_nullish(value: Any) -> bool:
    """Return whether a value is null or missing, which most operators treat alike."""
    return value is None or type(value) is Missing
