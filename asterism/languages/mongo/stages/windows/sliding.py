"""Sums from which numbers can be taken out again, without loss."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Context, Decimal, localcontext
from typing import Any

from asterism.values.bson.numbers import DECIMAL_CONTEXT, from_decimal, int_of_size, long_or_double
from asterism.values.bson.types import Decimal128, Int64

# Doubles are summed as multiples of the least of them, which is exact.
_DOUBLE_BITS = 1074
_DOUBLE_UNIT = 1 << _DOUBLE_BITS
# Enough for the sum of decimals of any exponents that meet in practice.
_EXACT = Context(prec=200, Emin=-7000, Emax=7000, traps=[])


class SlidingTotal:
    """A sum over the values of a frame; what is not a number is passed over."""

    __slots__ = ("_counts", "_decimal", "_scaled", "_special", "_whole")

    def __init__(self) -> None:
        # Numbers by type, for the type of the result.
        self._counts: Counter[type] = Counter()
        self._special: Counter[str] = Counter()
        self._whole = 0
        self._scaled = 0
        self._decimal = Decimal(0)

    def add(self, values: list[Any]) -> None:
        self._move(values, 1)

    def remove(self, values: list[Any]) -> None:
        self._move(values, -1)

    def _move(self, values: list[Any], sign: int) -> None:
        for value in values:
            kind = type(value)
            if kind is int or kind is Int64:
                self._whole += sign * int(value)
            elif kind is float:
                if not self._is_special(value, sign):
                    numerator, denominator = value.as_integer_ratio()
                    self._scaled += sign * (numerator << (_DOUBLE_BITS + 1 - denominator.bit_length()))
            elif kind is Decimal128:
                number = value.to_decimal()
                if not self._is_special(number, sign):
                    with localcontext(_EXACT):
                        self._decimal += sign * number
            else:
                continue
            self._counts[kind] += sign

    def _is_special(self, number: Any, sign: int) -> bool:
        if number != number:
            self._special["nan"] += sign
        elif number in (math.inf, -math.inf):
            self._special["+" if number > 0 else "-"] += sign
        else:
            return False
        return True

    @property
    def _infinity(self) -> float | None:
        """The sum of the infinities and NaNs, None without any."""
        positive, negative, nan = (self._special[name] > 0 for name in ("+", "-", "nan"))
        if nan or (positive and negative):
            return math.nan
        return math.inf if positive else -math.inf if negative else None

    def as_number(self) -> Any:
        """Return the sum in the widest type that the frame has."""
        if self._counts[Decimal128] > 0:
            return from_decimal(self._as_decimal())
        if self._counts[float] > 0:
            return self._as_double()
        return long_or_double(self._whole) if self._counts[Int64] > 0 else int_of_size(self._whole)

    def average(self) -> Any:
        count = sum(self._counts.values())
        if count <= 0:
            return None
        if self._counts[Decimal128] > 0:
            return from_decimal(DECIMAL_CONTEXT.divide(self._as_decimal(), Decimal(count)))
        return self._as_double() / count

    def _as_double(self) -> float:
        special = self._infinity
        if special is not None:
            return special
        scaled = self._scaled + (self._whole << _DOUBLE_BITS)
        try:
            # Correctly rounded, whatever the sizes are.
            return scaled / _DOUBLE_UNIT
        except OverflowError:
            return math.inf if scaled > 0 else -math.inf

    def _as_decimal(self) -> Decimal:
        special = self._infinity
        if special is not None:
            return Decimal(special)
        total = DECIMAL_CONTEXT.plus(self._decimal)
        if self._counts[float] > 0:
            total = DECIMAL_CONTEXT.add(total, DECIMAL_CONTEXT.create_decimal(Decimal(self._scaled / _DOUBLE_UNIT)))
        return DECIMAL_CONTEXT.add(total, Decimal(self._whole))
