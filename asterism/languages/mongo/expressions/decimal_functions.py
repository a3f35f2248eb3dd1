"""The functions of trigonometry over decimals, to the 34 digits that a decimal of the protocol has.

Computed by their power series in a few digits more than are kept.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Final

_CONTEXT: Final = decimal.Context(prec=60, Emin=-999_999, Emax=999_999, traps=[])
_NAN: Final = Decimal("NaN")
_INFINITY: Final = Decimal("Infinity")
# Whole turns are taken off an argument with as many digits as it has; of a larger one nothing would be left.
_LARGEST_EXPONENT: Final = 6_200
# Beyond it e^x is larger than every decimal of the protocol.
_EXPONENTIAL_MAX: Final = 20_000


def _precisely(function: Callable[[Decimal], Decimal]) -> Callable[[Decimal], Decimal]:
    def compute(value: Decimal) -> Decimal:
        with decimal.localcontext(_CONTEXT):
            return function(value)

    return compute


@lru_cache(maxsize=8)
def _pi(digits: int) -> Decimal:
    """Pi to at least `digits` digits, by Machin's formula in integers."""
    scale = 10 ** (digits + 10)

    def arc_tangent_of_inverse(divisor: int) -> int:
        power = scale // divisor
        total = power
        square = divisor * divisor
        number = 3
        sign = -1
        while power:
            power //= square
            total += sign * (power // number)
            sign, number = -sign, number + 2
        return int(total)

    result = 4 * (4 * arc_tangent_of_inverse(5) - arc_tangent_of_inverse(239))
    context = decimal.Context(prec=digits + 10, Emin=-999_999, Emax=999_999)
    return context.scaleb(Decimal(result), -(digits + 10))


def pi() -> Decimal:
    return _pi(70)


def _within_a_turn(value: Decimal) -> Decimal:
    """The angle between -pi and pi that is whole turns away."""
    if abs(value) <= 3:
        return value
    digits = min(max(value.adjusted(), 0), _LARGEST_EXPONENT) + 80
    with decimal.localcontext(decimal.Context(prec=digits, Emin=-999_999, Emax=999_999, traps=[])):
        turn = 2 * _pi(digits)
        rest = value % turn
        if abs(rest) > turn / 2:
            rest -= turn.copy_sign(rest)
    return +rest


def _series(first: Decimal, factor: Decimal, start: int) -> Decimal:
    """first + first*factor/(start*(start+1)) + ..., each term from the one before."""
    total, term, number = first, first, start
    while term and (total == 0 or term.adjusted() > total.adjusted() - _CONTEXT.prec - 2):
        term = term * factor / (number * (number + 1))
        total += term
        number += 2
    return total


@_precisely
def sin(value: Decimal) -> Decimal:
    angle = _within_a_turn(value)
    return value if angle == 0 else _series(angle, -angle * angle, 2)


@_precisely
def cos(value: Decimal) -> Decimal:
    angle = _within_a_turn(value)
    return _series(Decimal(1), -angle * angle, 1)


@_precisely
def tan(value: Decimal) -> Decimal:
    return sin(value) / cos(value)


@_precisely
def atan(value: Decimal) -> Decimal:
    if value == 0:
        return value
    if value.is_infinite():
        return (pi() / 2).copy_sign(value)
    if abs(value) > 1:
        return (pi() / 2).copy_sign(value) - atan(1 / value)
    # Each step halves the angle, so that the series is short.
    steps = 0
    while abs(value) > Decimal("0.1"):
        value = value / (1 + (1 + value * value).sqrt())
        steps += 1
    square = -value * value
    total, power, number = value, value, 1
    while power and power.adjusted() > total.adjusted() - _CONTEXT.prec - 2:
        power *= square
        number += 2
        total += power / number
    result: Decimal = total * 2**steps
    return result


@_precisely
def asin(value: Decimal) -> Decimal:
    if abs(value) == 1:
        return (pi() / 2).copy_sign(value)
    return atan(value / ((1 - value) * (1 + value)).sqrt())


@_precisely
def acos(value: Decimal) -> Decimal:
    if value == 1:
        return Decimal(0)
    if value == -1:
        return pi()
    if value == 0:
        return pi() / 2
    angle = atan(((1 - value) * (1 + value)).sqrt() / value)
    return angle if value > 0 else angle + pi()


def atan2(y: Decimal, x: Decimal) -> Decimal:
    if y.is_nan() or x.is_nan():
        return _NAN
    with decimal.localcontext(_CONTEXT):
        if y == 0 and not x.is_signed():
            return y
        if y == 0:
            return pi().copy_sign(y)
        if x == 0:
            return (pi() / 2).copy_sign(y)
        if y.is_infinite() and x.is_infinite():
            return (pi() / 4 if x > 0 else 3 * pi() / 4).copy_sign(y)
        if y.is_infinite():
            return (pi() / 2).copy_sign(y)
        angle = atan(abs(y / x))
        return (angle if x > 0 else pi() - angle).copy_sign(y)


def _exponentials(value: Decimal) -> tuple[Decimal, Decimal]:
    size = abs(value)
    if size > _EXPONENTIAL_MAX:
        return _INFINITY, Decimal(0)
    power = size.exp()
    return power, 1 / power


@_precisely
def sinh(value: Decimal) -> Decimal:
    if abs(value) < 1:
        return value if value == 0 else _series(value, value * value, 2)
    grown, shrunk = _exponentials(value)
    return ((grown - shrunk) / 2).copy_sign(value)


@_precisely
def cosh(value: Decimal) -> Decimal:
    grown, shrunk = _exponentials(value)
    return (grown + shrunk) / 2


@_precisely
def tanh(value: Decimal) -> Decimal:
    if abs(value) > 100:
        return Decimal(1).copy_sign(value)
    return value if value == 0 else sinh(value) / cosh(value)


@_precisely
def asinh(value: Decimal) -> Decimal:
    if value == 0 or value.is_infinite():
        return value
    size = abs(value)
    if size < Decimal("0.1"):
        # The logarithm of a number near 1 would lose digits.
        return atanh(value / (1 + value * value).sqrt())
    return (size + (size * size + 1).sqrt()).ln().copy_sign(value)


@_precisely
def acosh(value: Decimal) -> Decimal:
    if value.is_infinite():
        return value
    return (value + ((value - 1) * (value + 1)).sqrt()).ln()


@_precisely
def atanh(value: Decimal) -> Decimal:
    if value == 0:
        return value
    if abs(value) == 1:
        return _INFINITY.copy_sign(value)
    if abs(value) > Decimal("0.1"):
        return ((1 + value) / (1 - value)).ln() / 2
    square = value * value
    total, power, number = value, value, 1
    while power and power.adjusted() > total.adjusted() - _CONTEXT.prec - 2:
        power *= square
        number += 2
        total += power / number
    return total


@_precisely
def radians(value: Decimal) -> Decimal:
    return value * (pi() / 180)


@_precisely
def degrees(value: Decimal) -> Decimal:
    return value * (180 / pi())
