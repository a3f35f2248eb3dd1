"""Preferred numbers for the edges of `$bucketAuto`: the series of ISO 3 (R5 to R80) and IEC 60063 (E6 to E192), 1-2-5,
and powers of two."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from asterism.values.bson.numbers import from_decimal
from asterism.values.bson.types import Decimal128

Round = Callable[[Any], Any]


class Rounder(NamedTuple):
    """The next number of a series below and above a number; both leave zero as it is."""

    down: Round
    up: Round


_R80_TEXT = """
    100 103 106 109 112 115 118 122 125 128 132 136 140 145 150 155 160 165 170 175 180 185 190 195 200 206 212 218 224
    230 236 243 250 258 265 272 280 290 300 307 315 325 335 345 355 365 375 387 400 412 425 437 450 462 475 487 500 515
    530 545 560 580 600 615 630 650 670 690 710 730 750 775 800 825 850 875 900 925 950 975
"""
_R80: Final = tuple(map(int, _R80_TEXT.split()))
_E24: Final = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)


def _geometric(count: int) -> tuple[int, ...]:
    """Return the values of a decade of E48, E96 or E192; the standard has 920 where the formula gives 919."""
    values = (round(100 * 10 ** (index / count)) for index in range(count))
    return tuple(920 if value == 919 else value for value in values)


_SERIES: Final[dict[str, tuple[int, ...]]] = {
    "R5": (100, 160, 250, 400, 630),
    "R10": _R80[::8],
    "R20": _R80[::4],
    "R40": _R80[::2],
    "R80": _R80,
    "1-2-5": (10, 20, 50),
    "E6": _E24[::4],
    "E12": _E24[::2],
    "E24": _E24,
    "E48": _geometric(48),
    "E96": _geometric(96),
    "E192": _geometric(192),
}
GRANULARITIES: Final = frozenset({*_SERIES, "POWERSOF2"})


def rounder_of(granularity: str) -> Rounder:
    """Return the rounder of a series by its name, which is one of GRANULARITIES."""
    if granularity == "POWERSOF2":
        return Rounder(_power_below, _power_above)
    series = _SERIES[granularity]
    return Rounder(lambda value: _in_series(value, series, is_up=False), lambda value: _in_series(value, series))


def _in_series(value: Any, series: tuple[int, ...], *, is_up: bool = True) -> Any:
    # The shortest decimal of a double: 1.6 is a member of R5 although no double is exactly that.
    exact = value.to_decimal() if type(value) is Decimal128 else Decimal(repr(float(value)))
    if not exact.is_finite() or exact == 0:
        return value
    # The decade in which the number lies between the first of the series and ten times the first.
    exponent = exact.adjusted() - (len(str(series[0])) - 1)
    scaled = exact.scaleb(-exponent)
    if is_up:
        place = bisect_right(series, scaled)
        found = Decimal(series[place]) if place < len(series) else Decimal(series[0] * 10)
    else:
        place = bisect_left(series, scaled)
        found = Decimal(series[place - 1]) if place else Decimal(series[-1]) / 10
    result = found.scaleb(exponent)
    if type(value) is Decimal128:
        return from_decimal(result.quantize(Decimal(1)) if 0 <= exponent < 20 else result.normalize())
    return float(result)


def _power_above(value: Any) -> Any:
    return _power(value, lambda number: math.floor(_log2(number)) + 1)


def _power_below(value: Any) -> Any:
    return _power(value, lambda number: math.ceil(_log2(number)) - 1)


def _log2(number: float) -> float:
    mantissa, exponent = math.frexp(number)
    return exponent - 1.0 if mantissa == 0.5 else exponent - 1 + math.log2(mantissa * 2)


def _power(value: Any, exponent_of: Callable[[float], int]) -> Any:
    number = float(value.to_decimal()) if type(value) is Decimal128 else float(value)
    if number == 0 or not math.isfinite(number):
        return value
    exponent = exponent_of(number)
    if type(value) is Decimal128:
        return from_decimal(Decimal(2) ** exponent)
    return 2**exponent if 0 <= exponent < 31 else 2.0**exponent
