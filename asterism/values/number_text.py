"""The text of a number as JavaScript writes it, which is how the service's clients and its functions write numbers."""

from __future__ import annotations

import math
from decimal import Decimal

# Whole numbers of 64 bits keep all their digits; larger ones are written as the double that they are rounded to.
_INTEGER_MIN = -(2**63)
_INTEGER_MAX = 2**63 - 1
# JavaScript writes an exponent beyond these; between them, all digits.
_EXPONENT_MAX = 21
_EXPONENT_MIN = -6


def number_text(number: float) -> str:
    """Return the shortest text that reads back as `number`, in JavaScript's form."""
    if isinstance(number, int) and _INTEGER_MIN <= number <= _INTEGER_MAX:
        return str(number)
    double = float(number)
    if double == 0 or not math.isfinite(double):
        return "0" if double == 0 else "NaN" if double != double else "Infinity" if double > 0 else "-Infinity"
    sign, digits_found, power = Decimal(repr(double)).normalize().as_tuple()
    digits = "".join(map(str, digits_found))
    # The position of the decimal point, counted from before the first digit.
    point = len(digits) + int(power)
    return ("-" if sign else "") + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    if point > _EXPONENT_MAX or point <= _EXPONENT_MIN:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{fraction}e{point - 1:+d}"
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
    return f"{whole}.{fraction}" if fraction else whole
