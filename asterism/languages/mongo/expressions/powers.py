"""Operators of powers, roots and logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from asterism.languages.mongo.expressions.constants import is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, positional
from asterism.languages.mongo.expressions.rounding import number_of
from asterism.languages.mongo.expressions.widths import DECIMAL, DOUBLE, EXACT, fits_int64, int_or_long, width_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import DECIMAL_CONTEXT, from_decimal, to_decimal
from asterism.values.bson.types import Int64

# The reference server computes functions of decimals in binary numbers of 113 bits, which shows in the last digit.
_BINARY_BITS = 113
_WIDE = Context(prec=60, Emin=-999_999, Emax=999_999, traps=[])
_DECIMAL_MAX = Decimal("9.999999999999999999999999999999999E+6144")
_DECIMAL_DIGITS = 34
_DECIMAL_EXPONENT_MIN = -6176
_NAN = Decimal("NaN")
_SMALLEST_ZERO = Decimal((0, (0,), _DECIMAL_EXPONENT_MIN))


def _to_binary(number: Decimal) -> Decimal:
    """Return the nearest number with 113 significant bits."""
    if not number.is_finite() or number.is_zero():
        return number
    exact = Fraction(number)
    shift = _BINARY_BITS - (abs(exact.numerator).bit_length() - exact.denominator.bit_length())
    for _ in range(2):
        scaled = exact * Fraction(2) ** shift
        whole = round(scaled)
        if abs(whole).bit_length() <= _BINARY_BITS:
            break
        shift -= 1
    rounded = Fraction(whole) / Fraction(2) ** shift
    return _WIDE.divide(Decimal(rounded.numerator), Decimal(rounded.denominator))


def _by_binary(function: Callable[[Decimal], Decimal], number: Decimal) -> Decimal:
    """Return a function of a decimal, computed as the reference server does."""
    if number.is_nan():
        return _NAN
    result = DECIMAL_CONTEXT.plus(_to_binary(function(_to_binary(number))))
    if result.is_zero() and number.is_finite() and number != 1:
        return _SMALLEST_ZERO
    if not result.is_finite():
        return result
    # A whole result stands without a fraction of zeros.
    whole = result.to_integral_value(context=EXACT)
    return whole if whole == result else result


def _exponential(value: Any, width: int) -> Any:
    if width == DECIMAL:
        return from_decimal(_by_binary(_WIDE.exp, to_decimal(value)))
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _square_root(value: Any, width: int) -> Any:
    number: Any = to_decimal(value) if width == DECIMAL else float(value)
    if number == number and number < 0:
        raise MongoFailure(28714, "$sqrt's argument must be greater than or equal to 0")
    return from_decimal(DECIMAL_CONTEXT.sqrt(number)) if width == DECIMAL else math.sqrt(number)


def _logarithm_of(
    name: str, code: int, decimal: Callable[[Decimal], Decimal], double: Callable[[float], float]
) -> Operator:
    def compute(value: Any, width: int) -> Any:
        number: Any = to_decimal(value) if width == DECIMAL else float(value)
        if number == number and number <= 0:
            raise MongoFailure(code, f"{name}'s argument must be a positive number, but is {value}")
        # The NaN of a decimal is a double, also in the reference server.
        return from_decimal(_by_binary(decimal, number)) if width == DECIMAL and number == number else double(number)

    return number_of(name, compute)


def logarithm(value: Any, base: Any) -> Any:
    if is_nullish(value) or is_nullish(base):
        return None
    value_width, base_width = width_of(value), width_of(base)
    if value_width is None:
        raise MongoFailure(28756, f"$log's argument must be numeric, not {type_name(value)}")
    if base_width is None:
        raise MongoFailure(28757, f"$log's base must be numeric, not {type_name(base)}")
    is_decimal = max(value_width, base_width) == DECIMAL
    number: Any = to_decimal(value) if is_decimal else float(value)
    base_number: Any = to_decimal(base) if is_decimal else float(base)
    if number == number and number <= 0:
        raise MongoFailure(28758, f"$log's argument must be a positive number, but is {value}")
    if base_number == base_number and (base_number <= 0 or base_number == 1):
        raise MongoFailure(28759, f"$log's base must be a positive number not equal to 1, but is {base}")
    if number != number or base_number != base_number:
        return math.nan
    if not is_decimal:
        return math.log(number) / math.log(base_number)
    dividend, divisor = _by_binary(_WIDE.ln, number), _by_binary(_WIDE.ln, base_number)
    return from_decimal(DECIMAL_CONTEXT.divide(dividend, divisor))


def power(base: Any, exponent: Any) -> Any:
    if is_nullish(base) or is_nullish(exponent):
        return None
    base_width, exponent_width = width_of(base), width_of(exponent)
    if base_width is None:
        raise MongoFailure(28762, f"$pow's base must be numeric, not {type_name(base)}")
    if exponent_width is None:
        raise MongoFailure(28763, f"$pow's exponent must be numeric, not {type_name(exponent)}")
    width = max(base_width, exponent_width)
    if width == DECIMAL:
        left, right = to_decimal(base), to_decimal(exponent)
        _check_power(left.is_zero() and not right.is_nan() and right < 0)
        return from_decimal(_decimal_power(left, right))
    _check_power(float(base) == 0 and float(exponent) < 0)
    if width < DOUBLE:
        exact = _integer_power(int(base), int(exponent))
        if exact is not None:
            return Int64(exact) if width == 1 else int_or_long(exact)
    return _double_power(float(base), float(exponent))


def _check_power(is_zero_to_negative: bool) -> None:
    if is_zero_to_negative:
        raise MongoFailure(28764, "$pow cannot take a base of 0 and a negative exponent")


def _integer_power(base: int, exponent: int) -> int | None:
    """Return an exact power that fits into a long, else None."""
    if abs(base) <= 1:
        return base if exponent % 2 else base * base if exponent else 1
    if exponent < 0 or exponent > 63:
        return None
    result = base**exponent
    return result if fits_int64(result) else None


def _double_power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.nan


def _decimal_power(base: Decimal, exponent: Decimal) -> Decimal:
    if exponent.is_zero() or base == 1 or (base == -1 and exponent.is_infinite()):
        return Decimal(1)
    result = DECIMAL_CONTEXT.plus(_WIDE.power(base, exponent))
    if result.is_zero():
        return _SMALLEST_ZERO
    if not result.is_finite():
        return result
    # The reference server loses the largest decimal to rounding, and fills a power up to all its digits.
    if abs(result) >= _DECIMAL_MAX:
        return Decimal("Infinity").copy_sign(result)
    exponent_of_result = max(result.adjusted() - _DECIMAL_DIGITS + 1, _DECIMAL_EXPONENT_MIN)
    return result.quantize(Decimal((0, (1,), exponent_of_result)), context=EXACT)


def _compile_sigmoid(specification: Any, context: CompileContext) -> Evaluate:
    return context.compile({"$divide": [1, {"$add": [1, {"$exp": {"$multiply": [-1, specification]}}]}]})


OPERATORS: tuple[Operator, ...] = (
    number_of("$exp", _exponential),
    number_of("$sqrt", _square_root),
    _logarithm_of("$ln", 28766, _WIDE.ln, math.log),
    _logarithm_of("$log10", 28761, _WIDE.log10, math.log10),
    positional("$log", logarithm, 2, 2),
    positional("$pow", power, 2, 2),
    Operator("$sigmoid", _compile_sigmoid),
)
