"""States of accumulators: values are added in lists, and the result is asked for once or, by windows, often."""

from __future__ import annotations

import heapq
import math
from typing import Any, Protocol

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.keys import hash_key
from asterism.languages.mongo.stages.totals import Total
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import int_of_size
from asterism.values.bson.order import Collate, sort_key
from asterism.values.bson.types import MISSING, Decimal128, Document


class State(Protocol):
    def add(self, values: list[Any]) -> None: ...

    def result(self) -> Any: ...


def or_null(value: Any) -> Any:
    return None if value is MISSING else value


class Sum:
    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = Total()

    def add(self, values: list[Any]) -> None:
        self.total.add(values)

    def result(self) -> Any:
        return self.total.as_number()


class Average(Sum):
    __slots__ = ()

    def result(self) -> Any:
        return self.total.average()


class Count:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, values: list[Any]) -> None:
        self.count += len(values)

    def result(self) -> Any:
        return int_of_size(self.count)


class Extreme:
    """The least value, or the greatest; null and missing are passed over."""

    __slots__ = ("best", "best_key", "collate", "greatest")

    def __init__(self, collate: Collate | None, *, greatest: bool) -> None:
        self.collate = collate
        self.greatest = greatest
        self.best: Any = None
        self.best_key: Any = None

    def add(self, values: list[Any]) -> None:
        if set(map(type, values)) == {int}:
            # Integers need no keys among themselves.
            values = [max(values) if self.greatest else min(values)]
        for value in values:
            if value is None or value is MISSING:
                continue
            key = sort_key(value, self.collate)
            if self.best_key is None or (key > self.best_key if self.greatest else key < self.best_key):
                self.best, self.best_key = value, key

    def result(self) -> Any:
        return self.best


class First:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = _NOTHING

    def add(self, values: list[Any]) -> None:
        if self.value is _NOTHING and values:
            self.value = values[0]

    def result(self) -> Any:
        return None if self.value is _NOTHING else or_null(self.value)


class Last:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None

    def add(self, values: list[Any]) -> None:
        if values:
            self.value = values[-1]

    def result(self) -> Any:
        return or_null(self.value)


_NOTHING = object()


class Push:
    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Any] = []

    def add(self, values: list[Any]) -> None:
        self.values.extend(value for value in values if value is not MISSING)

    def result(self) -> Any:
        return list(self.values)


class AddToSet:
    __slots__ = ("collate", "values")

    def __init__(self, collate: Collate | None) -> None:
        self.collate = collate
        self.values: dict[Any, Any] = {}

    def add(self, values: list[Any]) -> None:
        for value in values:
            if value is not MISSING:
                self.values.setdefault(hash_key(value, self.collate), value)

    def result(self) -> Any:
        return list(self.values.values())


class SetUnion(AddToSet):
    __slots__ = ()

    def add(self, values: list[Any]) -> None:
        for value in _arrays("$setUnion", values):
            super().add(value)


class ConcatArrays(Push):
    __slots__ = ()

    def add(self, values: list[Any]) -> None:
        for value in _arrays("$concatArrays", values):
            self.values.extend(value)


def _arrays(name: str, values: list[Any]) -> list[list[Any]]:
    """Return the arrays among the values, or refuse values that are neither arrays nor missing."""
    for value in values:
        if type(value) is not list and value is not MISSING:
            raise MongoFailure(14, f"{name} requires array inputs, but input is of type: {type_name(value)}")
    return [value for value in values if value is not MISSING]


class MergeObjects:
    __slots__ = ("document",)

    def __init__(self) -> None:
        self.document: Document = {}

    def add(self, values: list[Any]) -> None:
        for value in values:
            if type(value) is dict:
                self.document.update(value)
            elif value is not None and value is not MISSING:
                raise MongoFailure(5911200, f"$mergeObjects requires object inputs, but input is {type_name(value)}")

    def result(self) -> Any:
        return dict(self.document)


class FirstN:
    __slots__ = ("count", "values")

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: list[Any] = []

    def add(self, values: list[Any]) -> None:
        if len(self.values) < self.count:
            self.values.extend(map(or_null, values[: self.count - len(self.values)]))

    def result(self) -> Any:
        return list(self.values)


class LastN(FirstN):
    __slots__ = ()

    def add(self, values: list[Any]) -> None:
        self.values = (self.values + list(map(or_null, values[-self.count :])))[-self.count :]


class ExtremeN:
    """The n least values in order, or the n greatest; null and missing are passed over."""

    __slots__ = ("collate", "count", "greatest", "kept")

    def __init__(self, count: int, collate: Collate | None, *, greatest: bool) -> None:
        self.count = count
        self.collate = collate
        self.greatest = greatest
        self.kept: list[Any] = []

    def add(self, values: list[Any]) -> None:
        self.kept.extend(value for value in values if value is not None and value is not MISSING)
        if len(self.kept) > 2 * self.count + 1000:
            self.kept = self.result()

    def result(self) -> Any:
        choose = heapq.nlargest if self.greatest else heapq.nsmallest
        return choose(min(self.count, len(self.kept)), self.kept, key=lambda value: sort_key(value, self.collate))


class Ranked:
    """The outputs of the first or last n documents of an order; values are pairs of key and output."""

    __slots__ = ("count", "from_end", "is_single", "kept")

    def __init__(self, count: int, *, from_end: bool, is_single: bool) -> None:
        self.count = count
        self.from_end = from_end
        self.is_single = is_single
        self.kept: list[tuple[Any, Any]] = []

    def add(self, values: list[Any]) -> None:
        self.kept.extend(values)
        if len(self.kept) > 2 * self.count + 1000:
            self.kept = self._chosen()

    def _chosen(self) -> list[tuple[Any, Any]]:
        ordered = sorted(self.kept, key=lambda pair: pair[0])
        return ordered[-self.count :] if self.from_end else ordered[: self.count]

    def result(self) -> Any:
        chosen = [or_null(output) for _, output in self._chosen()]
        if self.is_single:
            return chosen[0] if chosen else None
        return chosen


class StandardDeviation:
    __slots__ = ("count", "is_sample", "mean", "squares")

    def __init__(self, *, is_sample: bool) -> None:
        self.is_sample = is_sample
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, values: list[Any]) -> None:
        for value in values:
            if not is_number(value):
                continue
            number = as_double(value)
            self.count += 1
            delta = number - self.mean
            if delta != 0.0:
                self.mean += delta / self.count
                self.squares += delta * (number - self.mean)

    def result(self) -> Any:
        degrees = self.count - 1 if self.is_sample else self.count
        if degrees <= 0:
            return None
        return math.sqrt(self.squares / degrees) if self.squares >= 0 else math.nan


def as_double(value: Any) -> float:
    if type(value) is Decimal128:
        return float(value.to_decimal())
    return float(value)


class Percentiles:
    """The values below which the given parts of all numbers lie; each is one of the numbers."""

    __slots__ = ("is_median", "numbers", "parts")

    def __init__(self, parts: list[float], *, is_median: bool) -> None:
        self.parts = parts
        self.is_median = is_median
        self.numbers: list[float] = []

    def add(self, values: list[Any]) -> None:
        self.numbers.extend(number for value in values if is_number(value) and (number := as_double(value)) == number)

    def result(self) -> Any:
        ordered = sorted(self.numbers)
        found = [_at_part(ordered, part) for part in self.parts]
        return found[0] if self.is_median else found


def _at_part(ordered: list[float], part: float) -> float | None:
    if not ordered:
        return None
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]
