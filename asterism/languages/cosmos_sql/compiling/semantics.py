"""Comparison, logic and arithmetic on JSON values.

Undefined is the value of a missing path. An operator whose operands have the wrong types yields undefined; only
equality compares values of different types, and is false for them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final, cast

from asterism.values.json.order import as_double, compare, values_equal
from asterism.values.undefined import UNDEFINED

BinaryOperation = Callable[[object, object], object]
UnaryOperation = Callable[[object], object]

# Beyond this not every integer is a double; results up to here are returned as integers, as JSON writes them.
_EXACT_INTEGER_MAX = 2.0**53
# The magnitude of the smallest 64-bit integer.
_INTEGER_MAGNITUDE_MAX = 2**63


def is_number(value: object) -> bool:
    kind = type(value)
    return kind is int or kind is float


def is_primitive(value: object) -> bool:
    """Return whether the value is null, a boolean, a number or a string."""
    return value is None or type(value) in (bool, int, float, str)


# --- comparison -----------------------------------------------------------------------------------------------------


def equal(left: object, right: object) -> object:
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return values_equal(left, right)


def not_equal(left: object, right: object) -> object:
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return not values_equal(left, right)


def are_ordered(left: object, right: object) -> bool:
    """Return whether `<`, `<=`, `>` and `>=` are defined for these: both of one type, and not arrays or objects."""
    left_kind = type(left)
    if left_kind is str or left_kind is bool or left is None:
        return type(right) is left_kind
    return is_number(left) and is_number(right)


def _order_comparison(accepts: Callable[[int, int], bool]) -> BinaryOperation:
    def operation(left: object, right: object) -> object:
        if not are_ordered(left, right):
            return UNDEFINED
        # NaN has a place in ORDER BY, but is neither below nor above any number.
        return left == left and right == right and accepts(compare(left, right), 0)

    return operation


# --- logic ----------------------------------------------------------------------------------------------------------


def negate(value: object) -> object:
    return UNDEFINED if type(value) is not bool else not value


# --- numbers and strings --------------------------------------------------------------------------------------------


def json_number(value: float) -> object:
    """Return a result of arithmetic as a JSON value: undefined if it is infinite or NaN, which JSON does not have."""
    value = float(value)
    if not math.isfinite(value):
        return UNDEFINED
    return int(value) if value.is_integer() and abs(value) <= _EXACT_INTEGER_MAX else value


def _arithmetic(operation: Callable[[float, float], float]) -> BinaryOperation:
    def apply(left: object, right: object) -> object:
        if not (is_number(left) and is_number(right)):
            return UNDEFINED
        try:
            return json_number(operation(as_double(cast(float, left)), as_double(cast(float, right))))
        except (ZeroDivisionError, OverflowError, ValueError):
            return UNDEFINED

    return apply


def to_int32(value: float) -> int:
    """Return the 32 low bits of the integer part, as a signed integer: the operand of bitwise operators."""
    if not math.isfinite(value):
        return 0
    low_bits = int(value) & 0xFFFFFFFF
    return low_bits - (1 << 32) if low_bits >= 1 << 31 else low_bits


def _bitwise(operation: Callable[[int, int], int]) -> BinaryOperation:
    return _arithmetic(lambda left, right: to_int32(operation(to_int32(left), to_int32(right))))


def _shift_right_unsigned(left: float, right: float) -> float:
    return (to_int32(left) & 0xFFFFFFFF) >> (to_int32(right) & 31)


def concatenate(left: object, right: object) -> object:
    return left + right if isinstance(left, str) and isinstance(right, str) else UNDEFINED


def _unary_arithmetic(operation: Callable[[float], float]) -> UnaryOperation:
    def apply(value: object) -> object:
        return json_number(operation(as_double(cast(float, value)))) if is_number(value) else UNDEFINED

    return apply


def _sign_operation(operation: Callable[[float], float]) -> UnaryOperation:
    with_result = _unary_arithmetic(operation)

    def apply(value: object) -> object:
        # A literal that is infinite or NaN may have a sign, and 64-bit integers keep all their digits.
        is_special = type(value) is float and not math.isfinite(value)
        is_large = type(value) is int and _EXACT_INTEGER_MAX < abs(value) <= _INTEGER_MAGNITUDE_MAX
        return operation(cast(float, value)) if is_special or is_large else with_result(value)

    return apply


BINARY_OPERATIONS: Final[dict[str, BinaryOperation]] = {
    "=": equal,
    "!=": not_equal,
    "<": _order_comparison(operator.lt),
    "<=": _order_comparison(operator.le),
    ">": _order_comparison(operator.gt),
    ">=": _order_comparison(operator.ge),
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(operator.truediv),
    # The remainder has the sign of the dividend.
    "%": _arithmetic(math.fmod),
    "&": _bitwise(operator.and_),
    "|": _bitwise(operator.or_),
    "^": _bitwise(operator.xor),
    # As in JavaScript, whose bitwise operators the dialect has: only the five low bits of the shift count.
    "<<": _bitwise(lambda left, right: left << (right & 31)),
    ">>": _bitwise(lambda left, right: left >> (right & 31)),
    ">>>": _arithmetic(_shift_right_unsigned),
    "||": concatenate,
}

UNARY_OPERATIONS: Final[dict[str, UnaryOperation]] = {
    "NOT": negate,
    "-": _sign_operation(operator.neg),
    "+": _sign_operation(operator.pos),
    "~": _unary_arithmetic(lambda value: ~to_int32(value)),
}


def between(value: object, low: object, high: object) -> object:
    """Evaluate `value >= low AND value <= high` by the rule of AND: a false side decides, whatever the other is."""
    at_least = BINARY_OPERATIONS[">="](value, low)
    at_most = BINARY_OPERATIONS["<="](value, high)
    if at_least is False or at_most is False:
        return False
    return True if at_least is True and at_most is True else UNDEFINED


def step_into(target: object, step: object) -> object:
    """Evaluate `target[step]`: a property of an object or an element of an array, and undefined for anything else."""
    if type(target) is dict and type(step) is str:
        return cast("dict[str, object]", target).get(step, UNDEFINED)
    if type(target) is list and is_number(step):
        index = cast(float, step)
        elements = cast("list[object]", target)
        if 0 <= index < len(elements) and index == int(index):
            return elements[int(index)]
    return UNDEFINED
