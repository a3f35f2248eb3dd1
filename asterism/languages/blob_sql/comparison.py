"""Comparisons and arithmetic of values. Each is NULL if one side is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from asterism.languages.blob_sql.conversion import checked_integer, to_boolean, to_number, to_text, to_timestamp
from asterism.languages.blob_sql.errors import RecordFault, invalid_conversion
from asterism.languages.blob_sql.tree import Value

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(sign: str, left: Value, right: Value) -> bool | None:
    """Return whether the comparison holds. Text beside a number, boolean or time is converted to that."""
    if left is None or right is None:
        return None
    return _OPERATORS[sign](*alike(left, right))


def alike(left: Value, right: Value) -> tuple[Any, Any]:
    """Return two values as values of one type."""
    if isinstance(left, str) and isinstance(right, str):
        return left, right
    if isinstance(left, bool) or isinstance(right, bool):
        return to_boolean(left), to_boolean(right)
    if isinstance(left, (int, float)) or isinstance(right, (int, float)):
        return to_number(left), to_number(right)
    if isinstance(left, datetime) or isinstance(right, datetime):
        return to_timestamp(left), to_timestamp(right)
    raise invalid_conversion("Lists and objects cannot be compared.")


def calculate(sign: str, left: Value, right: Value) -> Value:
    """Return the result of + - * / % or ||."""
    if left is None or right is None:
        return None
    if sign == "||":
        return to_text(left) + to_text(right)
    first, second = to_number(left), to_number(right)
    try:
        result = _arithmetic(sign, first, second)
    except ZeroDivisionError:
        raise RecordFault("DivideByZero", "A number is divided by zero.") from None
    except (OverflowError, ValueError):
        # Of numbers without end, such as 1e999, too.
        raise RecordFault("ArithmeticOverflow", "The number is too large.") from None
    return checked_integer(result) if isinstance(result, int) else result


def _arithmetic(sign: str, left: float, right: float) -> int | float:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return _quotient(left, right)
        case _:
            # The remainder has the sign of the dividend, as in SQL; Python's has that of the divisor.
            return left - right * _whole_quotient(left, right)


def _quotient(left: float, right: float) -> int | float:
    """Return a quotient, which is a whole number where both sides are."""
    if isinstance(left, int) and isinstance(right, int):
        return _whole_quotient(left, right)
    return left / right


def _whole_quotient(left: float, right: float) -> int:
    quotient = abs(left) // abs(right)
    return int(quotient if (left < 0) == (right < 0) else -quotient)
