"""Sums, products and so on of numbers of Java's types.

The result has the larger type of the two, and a fraction if either has one. A result that does not fit takes the next
larger type, up to 64 bits: a Long that overflows is an error, a Double becomes infinite.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.values.comparison import compare, is_nan
from asterism.languages.gremlin.values.numbers import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigInteger,
    Byte,
    Long,
    Number,
    Short,
    is_number,
    number_type,
)
from asterism.languages.gremlin.values.printing import round_to_float, shortest_digits, text_of
from asterism.languages.gremlin.values.structures import freeze
from asterism.languages.gremlin.values.types import class_name

# A few products of products would fill the memory otherwise; and Python prints no integer of more than 4,300 digits.
BIG_INTEGER_BITS_MAX = 14_000
DECIMAL_DIGITS_MAX = 1_000
_CONTEXT = decimal.Context(
    prec=DECIMAL_DIGITS_MAX,
    rounding=decimal.ROUND_HALF_UP,
    Emin=-999_999,
    Emax=999_999,
    traps=[decimal.Overflow, decimal.InvalidOperation, decimal.DivisionByZero],
)
# Digits behind the point of a quotient that has no end.
_QUOTIENT_SCALE_MIN = 10

# Bits, and whether there is a fraction.
_KINDS: dict[str, tuple[int, bool]] = {
    "Byte": (8, False),
    "Short": (16, False),
    "Integer": (32, False),
    "Long": (64, False),
    "BigInteger": (128, False),
    "Float": (32, True),
    "Double": (64, True),
    "BigDecimal": (128, True),
}
_WHOLE: tuple[tuple[int, int, Callable[[int], int]], ...] = (
    (8, 2**7, Byte),
    (16, 2**15, Short),
    (32, 2**31, int),
    (64, 2**63, Long),
)

Operation = Callable[[Any, Any], Any]


def add(left: Any, right: Any) -> Any:
    """Return the sum. Null on either side leaves the left one."""
    if type(left) is int and type(right) is int and INT_MIN <= left <= INT_MAX and INT_MIN <= right <= INT_MAX:
        total = left + right
        return total if INT_MIN <= total <= INT_MAX else Long(total)
    return _calculate(left, right, operator.add, _CONTEXT.add)


def subtract(left: Any, right: Any) -> Any:
    return _calculate(left, right, operator.sub, _CONTEXT.subtract)


def multiply(left: Any, right: Any) -> Any:
    return _calculate(left, right, operator.mul, _CONTEXT.multiply)


def divide(left: Any, right: Any, *, as_fraction: bool = False) -> Any:
    """Return the quotient: of whole numbers the whole part, unless a fraction is asked for."""
    return _calculate(left, right, _quotient, _decimal_quotient, as_fraction=as_fraction)


def multiply_by_bulk(value: Any, bulk: int) -> Any:
    """Return the sum of a value with itself, without a wider type than that needs."""
    return value if bulk == 1 or value is None else multiply(value, _narrowest(bulk, number_type_of(value)))


def smaller(left: Any, right: Any) -> Any:
    """Return the smaller of two values; null and NaN are passed over."""
    return _extreme(left, right, sign=-1)


def larger(left: Any, right: Any) -> Any:
    """Return the larger of two values; null and NaN are passed over."""
    return _extreme(left, right, sign=1)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of values to one: `add` takes the state so far (None before the first value), a value and its bulk;
    `finish` makes the result of the last state. Null is passed over."""

    add: Callable[[Any, Any, int], Any]
    finish: Callable[[Any], Any] = lambda state: state

    def of(self, values: Iterable[Any]) -> Any:
        """Return the result for some values; null without any."""
        state = None
        for value in values:
            state = self.add(state, value, 1)
        return self.finish(state)


def _add_to_sum(state: Any, value: Any, bulk: int) -> Any:
    part = multiply_by_bulk(value, bulk)
    return state if part is None else _checked(part) if state is None else add(state, part)


def _add_to_mean(state: tuple[Any, int] | None, value: Any, bulk: int) -> tuple[Any, int] | None:
    if value is None:
        return state
    part = multiply(value, Long(bulk))
    return (part, bulk) if state is None else (add(state[0], part), state[1] + bulk)


def _mean_of(state: tuple[Any, int] | None) -> Any:
    return None if state is None else divide(state[0], Long(state[1]), as_fraction=True)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(_add_to_sum),
    "min": Reduction(lambda state, value, _: smaller(state, value)),
    "max": Reduction(lambda state, value, _: larger(state, value)),
    "mean": Reduction(_add_to_mean, _mean_of),
}


def number_type_of(value: Any) -> str:
    """Return the type of a number. Raises ExecutionFailure for any other value."""
    return number_type(_checked(value))


def _checked(value: Any) -> Any:
    if not is_number(value):
        raise ExecutionFailure(f"{class_name(value)} cannot be cast to Number: {text_of(value)[:100]}")
    return value


def _calculate(
    left: Any, right: Any, operation: Operation, decimals: Operation, *, as_fraction: bool = False
) -> Number | None:
    if left is None or right is None:
        return None if left is None else _checked(left)
    (left_bits, left_fraction), (right_bits, right_fraction) = (
        _KINDS[number_type_of(left)],
        _KINDS[number_type_of(right)],
    )
    bits = max(left_bits, right_bits)
    if not (left_fraction or right_fraction or as_fraction):
        return _of_whole(operation(int(left), int(right)), bits)
    if bits > 64:
        return _of_decimals(left, right, decimals)
    return _of_fractions(float(left), float(right), bits, operation)


def _of_whole(result: int, bits: int) -> Number:
    for width, limit, kind in _WHOLE:
        if width >= bits and -limit <= result < limit:
            return kind(result)
    if bits <= 64:
        raise ExecutionFailure("long overflow")
    if result.bit_length() > BIG_INTEGER_BITS_MAX:
        raise ExecutionFailure(f"A BigInteger has at most {BIG_INTEGER_BITS_MAX} bits.")
    return BigInteger(result)


def _of_fractions(left: float, right: float, bits: int, operation: Operation) -> Number:
    if operation is _quotient:
        operation = _fraction_quotient
    try:
        result: float = operation(left, right)
    except OverflowError:
        result = math.inf
    if bits <= 32 and not math.isinf(rounded := round_to_float(result)):
        return rounded
    return result


def _of_decimals(left: Any, right: Any, operation: Operation) -> Decimal:
    try:
        return Decimal(operation(as_decimal(left), as_decimal(right)))
    except decimal.DivisionByZero:
        raise ExecutionFailure("Division by zero") from None
    except decimal.InvalidOperation:
        raise ExecutionFailure("Division undefined") from None
    except decimal.Overflow:
        raise ExecutionFailure("Overflow of a BigDecimal") from None


def as_decimal(value: Any) -> Decimal:
    """Return a number as a decimal; a fraction is the decimal that it prints as."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExecutionFailure(f"{text_of(value)} cannot be a BigDecimal.")
        return Decimal(shortest_digits(value))
    return Decimal(int(value))


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise ExecutionFailure("/ by zero")
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def _fraction_quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _decimal_quotient(left: Decimal, right: Decimal) -> Decimal:
    context = _CONTEXT.copy()
    result = context.divide(left, right)
    if not context.flags[decimal.Inexact]:
        return result
    digits = [len(number.as_tuple().digits) for number in (left, right)]
    context.prec = min(max(digits) + 10, DECIMAL_DIGITS_MAX)
    result = context.divide(left, right)
    scale = max(*(-_exponent(number) for number in (left, right)), _QUOTIENT_SCALE_MIN)
    return result.quantize(Decimal((0, (1,), -scale)), context=_CONTEXT) if -_exponent(result) > scale else result


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _narrowest(bulk: int, wanted: str) -> Number:
    """Return a bulk in a type if it fits, so that a product with it needs no wider type; else as it is."""
    bits, has_fraction = _KINDS[wanted]
    if has_fraction:
        return round_to_float(bulk) if bits == 32 else float(bulk) if bits == 64 else Decimal(bulk)
    for width, limit, kind in _WHOLE:
        if width == bits and bulk < limit:
            return kind(bulk)
    return Long(bulk)


def _extreme(left: Any, right: Any, *, sign: int) -> Any:
    if left is None or right is None:
        return right if left is None else left
    if is_nan(left) or is_nan(right):
        return right if is_nan(left) else left
    order = compare(left, right)
    if order is None:
        raise ExecutionFailure(f"{class_name(left)} cannot be compared with {class_name(right)}.")
    chosen = left if order * sign >= 0 else right
    return _widened(chosen, left, right) if is_number(left) else chosen


def _widened(chosen: Number, left: Number, right: Number) -> Number:
    """Return a number in the larger type of two, which a minimum has in TinkerPop."""
    left_kind, right_kind = number_type(left), number_type(right)
    if left_kind == right_kind:
        return chosen
    (left_bits, left_fraction), (right_bits, right_fraction) = _KINDS[left_kind], _KINDS[right_kind]
    bits = max(left_bits, right_bits)
    if not (left_fraction or right_fraction):
        return _of_whole(int(chosen), bits)
    if bits > 64:
        return as_decimal(chosen) if math.isfinite(chosen) else chosen
    return float(chosen) if bits > 32 else round_to_float(float(chosen))


def _assign(_left: Any, right: Any) -> Any:
    return right


def _logical(function: Callable[[bool, bool], bool]) -> Operation:
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
    result = int(_checked(left)) + int(_checked(right))
    if not LONG_MIN <= result <= LONG_MAX:
        raise ExecutionFailure("long overflow")
    return Long(result)


# The tokens of Operator, as functions of the value so far and the value that comes.
OPERATORS: dict[str, Operation] = {
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
