"""COUNT, SUM, AVG, MIN and MAX, one record at a time. They skip NULL; of no values, all but COUNT are NULL."""

from __future__ import annotations

from collections.abc import Callable

from asterism.languages.blob_sql.comparison import alike, calculate
from asterism.languages.blob_sql.compiling import Evaluate, Record
from asterism.languages.blob_sql.conversion import to_number
from asterism.languages.blob_sql.errors import RecordFault
from asterism.languages.blob_sql.tree import AggregateKind, Value


class Accumulator:
    """The state of one aggregate. `evaluate` is None for COUNT(*)."""

    def __init__(self, kind: AggregateKind, evaluate: Evaluate | None) -> None:
        self._kind = kind
        self._evaluate = evaluate
        self._count = 0
        self._value: Value = None
        self._add: Callable[[Value], Value] = {
            AggregateKind.COUNT: lambda _: None,
            AggregateKind.SUM: self._sum,
            AggregateKind.AVG: self._sum,
            AggregateKind.MIN: self._least,
            AggregateKind.MAX: self._greatest,
        }[kind]

    def prepared(self, record: Record) -> Value:
        """Return the value of the operand; a query adds those of a record when all have one."""
        value = True if self._evaluate is None else self._evaluate(record)
        is_sum = self._kind in (AggregateKind.SUM, AggregateKind.AVG)
        return to_number(value) if is_sum and value is not None else value

    def add(self, value: Value) -> None:
        if value is not None:
            self._value = self._add(value)
            self._count += 1

    def result(self) -> Value:
        if self._kind is AggregateKind.COUNT:
            return self._count
        if self._kind is AggregateKind.AVG and self._count:
            return to_number(self._value) / self._count
        return self._value

    def _sum(self, value: Value) -> Value:
        return value if not self._count else calculate("+", self._value, value)

    def _least(self, value: Value) -> Value:
        number = _number_or_same(value)
        return number if not self._count or _is_less(number, self._value) else self._value

    def _greatest(self, value: Value) -> Value:
        number = _number_or_same(value)
        return number if not self._count or _is_less(self._value, number) else self._value


def _number_or_same(value: Value) -> Value:
    """Return the number that a text is, if it is one: fields of delimited text have no other type."""
    if not isinstance(value, str):
        return value
    try:
        return to_number(value)
    except RecordFault:
        return value


def _is_less(left: Value, right: Value) -> bool:
    """Compare values; numbers come before texts that are not numbers."""
    if isinstance(left, str) is not isinstance(right, str):
        return isinstance(right, str)
    first, second = alike(left, right)
    return bool(first < second)
