"""The values that rules calculate with: those of AMQP, without the differences of width and encoding.

None is unknown: the value of a property that a message does not have, and of everything that is calculated from it.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable
from typing import Any, Final

from asterism.models.messages.rules import FilterFailed
from asterism.values.amqp.message import text_of
from asterism.values.amqp.types import (
    Byte,
    Char,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Uuid,
)

TIMESPAN: Final = Symbol("com.microsoft:timespan")
TICKS_PER_MILLISECOND: Final = 10_000
# S4: the limit of a single property of a message; no action makes a longer one.
TEXT_CHARACTERS_MAX: Final = 32 * 1024
_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1


class Span(int):
    """A length of time in units of 100 ns, as clients of .NET send it."""

    __slots__ = ()


class Kind(enum.Enum):
    """Values of the same kind can be compared."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    MOMENT = "moment"
    SPAN = "span"
    GUID = "guid"
    BINARY = "binary"


_KINDS: Final[dict[type, Kind]] = {
    bool: Kind.BOOLEAN,
    **dict.fromkeys((int, UByte, UShort, UInt, ULong, Byte, Short, Int, float, Float), Kind.NUMBER),
    **dict.fromkeys((str, Symbol, Char), Kind.TEXT),
    Timestamp: Kind.MOMENT,
    Span: Kind.SPAN,
    Uuid: Kind.GUID,
    bytes: Kind.BINARY,
}


def kind_of(value: Any) -> Kind | None:
    """Return the kind of a value that is not unknown; None for those that no rule can calculate with."""
    return _KINDS.get(type(value))


def value_of(sent: Any) -> Any:
    """Return the value of a property as it was sent. A text may have arrived as binary (contract A8)."""
    if type(sent) is bytes:
        text = text_of(sent)
        return sent if text is None else text
    if type(sent) is Described and sent.descriptor == TIMESPAN and isinstance(sent.value, int):
        return Span(sent.value)
    return sent


def sendable(value: Any) -> Any:
    """Return a value as an application property of a message."""
    return Described(TIMESPAN, int(value)) if type(value) is Span else value


def exact_key(value: Any) -> tuple[Any, ...] | None:
    """Return a key that two values share if a correlation filter takes them for equal: their kinds are the same, and
    a whole number is not the same as one with a fraction. None for a value that equals nothing."""
    kind = kind_of(value)
    if kind is None or value != value:
        return None
    return (kind, isinstance(value, float), value)


# --- comparison -----------------------------------------------------------------------------------------------------

_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparer(sign: str) -> Callable[[Any, Any], bool | None]:
    """Return a comparison: unknown if a side is, False if the sides are of different kinds."""
    order = _ORDERS[sign]
    is_of_order = sign not in ("=", "<>")

    def compare(left: Any, right: Any) -> bool | None:
        if left is None or right is None:
            return None
        kind = kind_of(left)
        if kind is None or kind is not kind_of(right) or (is_of_order and kind is Kind.BOOLEAN):
            return False
        return order(left, right)

    return compare


# --- arithmetic -----------------------------------------------------------------------------------------------------


def negative(value: Any) -> Any:
    match value, kind_of(value):
        case None, _:
            return None
        case _, Kind.NUMBER:
            return _number(-value)
        case _, Kind.SPAN:
            return Span(-value)
        case _:
            raise FilterFailed("The sign - is for numbers only.")


def calculate(sign: str, left: Any, right: Any) -> Any:
    """Return the result of an operator; FilterFailed if its sides do not go together or there is no result."""
    if left is None or right is None:
        return None
    kinds = (kind_of(left), kind_of(right))
    if kinds == (Kind.NUMBER, Kind.NUMBER):
        return _number(_calculate_numbers(sign, left, right))
    operation = _OTHER_OPERATIONS.get((sign, *kinds))
    if operation is None:
        raise FilterFailed(f"The operator {sign} cannot be used with values of these types.")
    return operation(left, right)


def _calculate_numbers(sign: str, left: Any, right: Any) -> int | float:
    try:
        match sign:
            case "+":
                return left + right  # type: ignore[no-any-return]  # numbers both
            case "-":
                return left - right  # type: ignore[no-any-return]
            case "*":
                return left * right  # type: ignore[no-any-return]
            case "/":
                return _quotient(left, right)
            case _:
                return _remainder(left, right)
    except ZeroDivisionError:
        raise FilterFailed("A number is divided by zero.") from None
    except (OverflowError, ValueError):
        raise FilterFailed("The result of a calculation is too large.") from None


def _quotient(left: Any, right: Any) -> int | float:
    if isinstance(left, float) or isinstance(right, float):
        return left / right  # type: ignore[no-any-return]
    quotient = abs(left) // abs(right)
    # Whole numbers are rounded towards zero, as in .NET.
    return int(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left: Any, right: Any) -> int | float:
    if isinstance(left, float) or isinstance(right, float):
        if right == 0:
            raise ZeroDivisionError
        return math.fmod(left, right)
    return int(left - right * _quotient(left, right))


def _number(value: Any) -> int | float:
    if isinstance(value, float):
        return float(value)
    if not _LONG_MIN <= value <= _LONG_MAX:
        raise FilterFailed("The result of a calculation does not fit into 64 bits.")
    return int(value)


def _joined(left: str, right: str) -> str:
    if len(left) + len(right) > TEXT_CHARACTERS_MAX:
        raise FilterFailed(f"A text would have more than {TEXT_CHARACTERS_MAX:,} characters.")
    return left + right


def _moment(milliseconds: int) -> Timestamp:
    return Timestamp(_number(milliseconds))


_OTHER_OPERATIONS: Final[dict[tuple[str, Kind | None, Kind | None], Callable[[Any, Any], Any]]] = {
    ("+", Kind.TEXT, Kind.TEXT): _joined,
    ("+", Kind.MOMENT, Kind.SPAN): lambda left, right: _moment(left + right // TICKS_PER_MILLISECOND),
    ("-", Kind.MOMENT, Kind.SPAN): lambda left, right: _moment(left - right // TICKS_PER_MILLISECOND),
    ("-", Kind.MOMENT, Kind.MOMENT): lambda left, right: Span(_number((left - right) * TICKS_PER_MILLISECOND)),
    ("+", Kind.SPAN, Kind.SPAN): lambda left, right: Span(_number(left + right)),
    ("-", Kind.SPAN, Kind.SPAN): lambda left, right: Span(_number(left - right)),
}
