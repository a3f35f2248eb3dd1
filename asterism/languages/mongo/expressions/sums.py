"""Sums, means and deviations of many numbers, exact where the types allow it. Other values are skipped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from asterism.languages.mongo.expressions.widths import (
    DECIMAL,
    DOUBLE,
    EXACT,
    INT,
    WIDTHS,
    fits_int64,
    int_or_long,
)
from asterism.values.bson.numbers import DECIMAL_CONTEXT, from_decimal, to_decimal
from asterism.values.bson.types import Int64

# Doubles that are kept before they are put together into few.
_DOUBLES_MAX = 1000


class Sum:
    """A sum that grows. Integers are added exactly and doubles without losing small ones beside large ones, so that
    the order of the values does not show; decimals are added as decimals."""

    __slots__ = ("_decimals", "_doubles", "_integers", "_width", "count")

    def __init__(self) -> None:
        self.count = 0
        self._integers = 0
        self._doubles: list[float] = []
        self._decimals = Decimal(0)
        self._width = INT

    def add(self, value: Any) -> None:
        width = WIDTHS.get(type(value))
        if width is None:
            return
        self.count += 1
        self._width = max(self._width, width)
        if width == DECIMAL:
            self._decimals = DECIMAL_CONTEXT.add(self._decimals, to_decimal(value))
        elif width == DOUBLE:
            self._doubles.append(value)
            if len(self._doubles) > _DOUBLES_MAX:
                self._doubles = _compress(self._doubles)
        else:
            self._integers += value

    def total(self) -> Any:
        """Return the sum in the widest type among its values."""
        if self._width == DECIMAL:
            return from_decimal(self._decimal_total())
        if self._width == DOUBLE:
            return self._double_total()
        if not fits_int64(self._integers):
            return float(self._integers)
        return int_or_long(self._integers) if self._width == INT else Int64(self._integers)

    def _double_total(self) -> float:
        if not self._doubles:
            return float(self._integers)
        doubles = self._doubles
        if self._integers:
            high = float(self._integers)
            doubles = [*doubles, high, float(self._integers - int(high))]
        return exact_sum(doubles)

    def _decimal_total(self) -> Decimal:
        # Doubles join with all their digits here, unlike in `$add`, which takes 15 of each.
        rest = Decimal(self._integers)
        for part in _compress(self._doubles):
            rest = EXACT.add(rest, Decimal(part))
        return DECIMAL_CONTEXT.add(self._decimals, DECIMAL_CONTEXT.plus(rest))


class Mean(Sum):
    """An average that grows. Integers count as the doubles nearest to them."""

    __slots__ = ()

    def add(self, value: Any) -> None:
        super().add(Int64(float(value)) if type(value) is Int64 else value)

    def result(self) -> Any:
        """Return the average as a double or a decimal, or None without numbers."""
        if not self.count:
            return None
        if self._width == DECIMAL:
            return from_decimal(DECIMAL_CONTEXT.divide(self._decimal_total(), Decimal(self.count)))
        return self._double_total() / self.count


def exact_sum(doubles: Iterable[float]) -> float:
    """Return the sum of doubles, rounded once; infinite and not-a-number as addition in order would give them."""
    values = list(doubles)
    try:
        total = math.fsum(values)
    except (OverflowError, ValueError):
        return sum(values)
    # A sum of negative zeros alone is a negative zero, which `fsum` does not give.
    if total == 0 and all(value == 0 and math.copysign(1, value) < 0 for value in values):
        return 0.0
    return total


def _compress(doubles: list[float]) -> list[float]:
    """Return few doubles with the same exact sum."""
    if not doubles:
        return []
    if not all(map(math.isfinite, doubles)):
        return [sum(doubles)]
    parts: list[float] = []
    rest = list(doubles)
    for _ in range(40):
        try:
            part = math.fsum(rest)
        except OverflowError:
            return [sum(doubles)]
        if part == 0:
            break
        parts.append(part)
        rest.append(-part)
    return parts or [0.0]


class Deviation:
    """A standard deviation that grows, by Welford's method."""

    __slots__ = ("_mean", "_squares", "count")

    def __init__(self) -> None:
        self.count = 0
        self._mean = 0.0
        self._squares = 0.0

    def add(self, value: Any) -> None:
        width = WIDTHS.get(type(value))
        if width is None:
            return
        number = float(value.to_decimal()) if width == DECIMAL else float(value)
        self.count += 1
        delta = number - self._mean
        self._mean += delta / self.count
        self._squares += delta * (number - self._mean)

    def result(self, *, is_sample: bool) -> float | None:
        divisor = self.count - 1 if is_sample else self.count
        if divisor <= 0:
            return None
        if not math.isfinite(self._squares):
            return None
        return math.sqrt(self._squares / divisor)
