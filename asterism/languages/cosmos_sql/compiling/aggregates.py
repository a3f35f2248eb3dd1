"""The aggregate functions: the state of each while it takes values, and the merge of two states.

All skip undefined. The order of values, and their division between aggregates that are merged later, changes only the
results of the lists: sums are exact until the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.semantics import is_number, is_primitive, json_number
from asterism.reading.limits import MemoryMeter
from asterism.reading.row_source import Aggregate
from asterism.values.json.order import as_double, sort_key
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import SortKey

# Every double is a multiple of this unit.
_SMALLEST_UNIT_BITS = 1074
_MANTISSA_BITS = 53
_EXACT_INTEGER_MAX = 2**53


class _Count:
    __slots__ = ("_total",)

    def __init__(self, _memory: MemoryMeter) -> None:
        self._total = 0

    def add(self, value: object, times: int = 1) -> None:
        if value is not UNDEFINED:
            self._total += times

    def state(self) -> int:
        return self._total

    def merge(self, state: int) -> None:
        self._total += state

    def result(self) -> object:
        return self._total


class _CountIf(_Count):
    __slots__ = ()

    def add(self, value: object, times: int = 1) -> None:
        if value is True:
            self._total += times


class _Sum:
    """A sum without rounding: integers as they are, other numbers in units of the smallest double."""

    __slots__ = ("_count", "_is_undefined", "_units", "_whole")

    def __init__(self, _memory: MemoryMeter) -> None:
        self._whole = 0
        self._units = 0
        self._count = 0
        self._is_undefined = False

    def add(self, value: object, times: int = 1) -> None:
        if value is UNDEFINED:
            return
        if type(value) is int and -_EXACT_INTEGER_MAX <= value <= _EXACT_INTEGER_MAX:
            self._whole += value * times
        elif is_number(value) and math.isfinite(double := as_double(cast(float, value))):
            self._units += _units_of(double) * times
        else:
            self._is_undefined = True
        self._count += times

    def state(self) -> tuple[int, int, int, bool]:
        return self._whole, self._units, self._count, self._is_undefined

    def merge(self, state: tuple[int, int, int, bool]) -> None:
        whole, units, count, is_undefined = state
        self._whole += whole
        self._units += units
        self._count += count
        self._is_undefined |= is_undefined

    def result(self) -> object:
        return UNDEFINED if self._is_undefined else self._quotient(1)

    def _quotient(self, divisor: int) -> object:
        units = (self._whole << _SMALLEST_UNIT_BITS) + self._units
        try:
            # The quotient of two integers is rounded once, from its exact value.
            return json_number(units / (divisor << _SMALLEST_UNIT_BITS))
        except OverflowError:
            return UNDEFINED


class _Average(_Sum):
    __slots__ = ()

    def result(self) -> object:
        return UNDEFINED if self._is_undefined or not self._count else self._quotient(self._count)


def _units_of(double: float) -> int:
    mantissa, exponent = math.frexp(double)
    shift = exponent - _MANTISSA_BITS + _SMALLEST_UNIT_BITS
    units = int(mantissa * 2.0**_MANTISSA_BITS)
    # Below the smallest normal double the mantissa ends in zeros, which are shifted out.
    return units << shift if shift >= 0 else units >> -shift


class _Extreme:
    """The first value in the order of all types; undefined if any value is an array or an object."""

    __slots__ = ("_best", "_best_key", "_is_undefined")

    def __init__(self, _memory: MemoryMeter) -> None:
        self._best: object = UNDEFINED
        self._best_key: SortKey = ()
        self._is_undefined = False

    def add(self, value: object, times: int = 1) -> None:  # noqa: ARG002 (repetitions do not matter)
        if value is UNDEFINED:
            return
        if not is_primitive(value):
            self._is_undefined = True
            return
        key = sort_key(value)
        if self._best is UNDEFINED or self._is_better(key):
            self._best, self._best_key = value, key

    def _is_better(self, key: SortKey) -> bool:
        return key < self._best_key

    def state(self) -> tuple[object, bool]:
        return self._best, self._is_undefined

    def merge(self, state: tuple[object, bool]) -> None:
        best, is_undefined = state
        self.add(best)
        self._is_undefined |= is_undefined

    def result(self) -> object:
        return UNDEFINED if self._is_undefined else self._best


class _Minimum(_Extreme):
    __slots__ = ()


class _Maximum(_Extreme):
    __slots__ = ()

    def _is_better(self, key: SortKey) -> bool:
        return key > self._best_key


class _MakeList:
    __slots__ = ("_memory", "_values")

    def __init__(self, memory: MemoryMeter) -> None:
        self._memory = memory
        self._values: list[object] = []

    def add(self, value: object, times: int = 1) -> None:
        for _ in range(0 if value is UNDEFINED else times):
            self._memory.hold(value)
            self._values.append(value)

    def state(self) -> list[object]:
        return list(self._values)

    def merge(self, state: list[object]) -> None:
        for value in state:
            self.add(value)

    def result(self) -> object:
        return list(self._values)


class _MakeSet(_MakeList):
    __slots__ = ("_seen",)

    def __init__(self, memory: MemoryMeter) -> None:
        super().__init__(memory)
        self._seen: set[SortKey] = set()

    def add(self, value: object, times: int = 1) -> None:  # noqa: ARG002 (repetitions do not matter)
        if value is UNDEFINED:
            return
        identity = sort_key(value)
        if identity not in self._seen:
            self._memory.hold_with_key(value)
            self._values.append(value)
            self._seen.add(identity)


# Each takes one argument.
AGGREGATES: Final[dict[str, Callable[[MemoryMeter], Aggregate]]] = {
    "AVG": _Average,
    "COUNT": _Count,
    "COUNTIF": _CountIf,
    "MAKELIST": _MakeList,
    "MAKESET": _MakeSet,
    "MAX": _Maximum,
    "MIN": _Minimum,
    "SUM": _Sum,
}
