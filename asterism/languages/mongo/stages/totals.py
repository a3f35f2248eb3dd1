"""Sums of numbers of all types, with the precision and the result types of the reference server.

Integers are summed exactly, doubles with twice their precision, decimals with 34 digits.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from asterism.values.bson.numbers import DECIMAL_CONTEXT, INT64_MAX, INT64_MIN, from_decimal, int_of_size
from asterism.values.bson.types import Decimal128, Int64


class DoubleSum:
    """A sum of doubles as a pair: the rounded sum and what rounding left over."""

    __slots__ = ("high", "low", "special")

    def __init__(self) -> None:
        self.high = 0.0
        self.low = 0.0
        # The plain sum, once an infinity or NaN was met or the sum left the range of doubles.
        self.special: float | None = None

    def add(self, numbers: list[float]) -> None:
        if self.special is not None:
            self.special = sum(numbers, self.special)
            return
        try:
            total = math.fsum((self.high, self.low, *numbers))
            if math.isfinite(total):
                self.low = math.fsum((self.high, self.low, *numbers, -total))
                self.high = total
                return
        except (OverflowError, ValueError):
            pass
        self.special = sum(numbers, self.high)

    def with_integer(self, whole: int) -> float:
        """Return the sum with an integer of any size added."""
        if self.special is not None:
            return self.special + float(whole)
        rounded = float(whole)
        try:
            return math.fsum((self.high, self.low, rounded, float(whole - int(rounded))))
        except OverflowError:
            return math.inf if self.high > 0 else -math.inf

    def as_decimal(self) -> Decimal:
        if self.special is not None:
            return Decimal(self.special)
        return DECIMAL_CONTEXT.add(
            DECIMAL_CONTEXT.create_decimal(Decimal(self.high)), DECIMAL_CONTEXT.create_decimal(Decimal(self.low))
        )


class Total:
    """A sum over values of any types; what is not a number is passed over."""

    __slots__ = ("count", "decimal", "doubles", "has_long", "whole")

    def __init__(self) -> None:
        self.count = 0
        self.whole = 0
        self.has_long = False
        self.doubles: DoubleSum | None = None
        self.decimal: Decimal | None = None

    def add(self, values: list[Any]) -> None:
        kinds = set(map(type, values))
        if kinds == _ONLY_INT:
            self.whole += sum(values)
            self.count += len(values)
            return
        if kinds == _ONLY_FLOAT:
            self._add_doubles(values)
            return
        if int in kinds or Int64 in kinds:
            integers = [value for value in values if type(value) is int or type(value) is Int64]
            self.has_long = self.has_long or Int64 in kinds
            self.whole += sum(map(int, integers))
            self.count += len(integers)
        if float in kinds:
            self._add_doubles([value for value in values if type(value) is float])
        if Decimal128 in kinds:
            for value in values:
                if type(value) is Decimal128:
                    self.count += 1
                    self.decimal = DECIMAL_CONTEXT.add(self.decimal or Decimal(0), value.to_decimal())

    def _add_doubles(self, numbers: list[float]) -> None:
        self.count += len(numbers)
        if self.doubles is None:
            self.doubles = DoubleSum()
        self.doubles.add(numbers)

    def as_number(self) -> Any:
        """Return the sum in the widest type that was added."""
        if self.decimal is not None:
            return from_decimal(self._as_decimal())
        if self.doubles is not None:
            return self.doubles.with_integer(self.whole)
        if not self.has_long:
            return int_of_size(self.whole)
        return Int64(self.whole) if INT64_MIN <= self.whole <= INT64_MAX else float(self.whole)

    def average(self) -> Any:
        """Return the mean: a double or a decimal, or None of no numbers."""
        if not self.count:
            return None
        if self.decimal is not None:
            return from_decimal(DECIMAL_CONTEXT.divide(self._as_decimal(), Decimal(self.count)))
        doubles = self.doubles or DoubleSum()
        return doubles.with_integer(self.whole) / self.count

    def _as_decimal(self) -> Decimal:
        assert self.decimal is not None
        total = DECIMAL_CONTEXT.add(self.decimal, Decimal(self.whole))
        return total if self.doubles is None else DECIMAL_CONTEXT.add(total, self.doubles.as_decimal())


_ONLY_INT = {int}
_ONLY_FLOAT = {float}
