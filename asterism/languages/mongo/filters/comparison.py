"""Comparisons: $eq $ne $gt $gte $lt $lte $in $nin. They hold between values of one kind; NaN equals only NaN."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from asterism.languages.mongo.filters.match import Test
from asterism.languages.mongo.filters.predicate import Predicate, Scope, bad_value, does_not_hold, never
from asterism.values.bson.order import compare, equal, rank, sort_key
from asterism.values.bson.types import (
    MISSING,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
)

Collate = Callable[[str], bytes] | None
PlainNumber = int | float

_RANGES: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def is_nan(value: Any) -> bool:
    if type(value) is float:
        return math.isnan(value)
    return type(value) is Decimal128 and value.to_decimal().is_nan()


def plain_number(value: Any) -> PlainNumber | None:
    """Return the Python number that is exactly the value, or None when no number is (a fraction of decimals)."""
    if type(value) is not Decimal128:
        return value  # type: ignore[no-any-return]  # callers pass numbers only
    exact = value.to_decimal()
    if not exact.is_finite():
        return None if exact.is_nan() else float(exact)
    if exact.adjusted() > 40 or exact.adjusted() < -40:
        return None
    if exact == exact.to_integral_value():
        return int(exact)
    approximate = float(exact)
    return approximate if Decimal(approximate) == exact else None


def _is_number(value: Any) -> bool:
    kind = type(value)
    return kind is int or kind is float or kind is Int64 or kind is Decimal128


def equality_test(operand: Any, collate: Collate) -> Test:
    """Return the test whether a value equals the operand; null also stands for no value."""
    if operand is None:
        return lambda value: value is None or value is MISSING
    kind = type(operand)
    if kind is str and collate is None:
        return lambda value: type(value) is str and value == operand
    if kind is bool:
        return lambda value: value is operand
    if kind is ObjectId:
        return lambda value: type(value) is ObjectId and value == operand
    if _is_number(operand):
        return _number_equality(operand)
    return lambda value: value is not MISSING and equal(value, operand, collate)


def _number_equality(operand: Any) -> Test:
    if is_nan(operand):
        return is_nan
    number = plain_number(operand)
    if number is None:
        return lambda value: _is_number(value) and equal(value, operand)

    def test(value: Any) -> bool:
        kind = type(value)
        if kind is int or kind is float or kind is Int64:
            return bool(value == number)
        return kind is Decimal128 and equal(value, operand)

    return test


def range_test(name: str, operand: Any, collate: Collate) -> Test:
    """Return the test whether a value of the operand's kind lies on one side of it."""
    holds = _RANGES[name]
    with_equal = name in ("gte", "lte")
    if operand is None:
        return lambda value: with_equal and (value is None or value is MISSING)
    if is_nan(operand):
        return is_nan if with_equal else lambda _: False
    kind = type(operand)
    if kind is MinKey or kind is MaxKey:
        # The ends of the order compare with values of every kind, and with no value as with null.
        return lambda value: holds(compare(None if value is MISSING else value, operand, collate), 0)
    if kind is str and collate is None:
        # Python orders text by code points, which is the order of its UTF-8 bytes.
        return lambda value: type(value) is str and holds(value, operand)
    if kind is DatetimeMS:
        moment = int(operand)
        return lambda value: type(value) is DatetimeMS and holds(int(value), moment)
    if _is_number(operand):
        return _number_range(holds, operand)
    bracket = rank(operand)
    return lambda value: value is not MISSING and rank(value) == bracket and holds(compare(value, operand, collate), 0)


def _number_range(holds: Callable[[Any, Any], bool], operand: Any) -> Test:
    number = plain_number(operand)

    def test_decimal(value: Any) -> bool:
        return _is_number(value) and not is_nan(value) and holds(compare(value, operand), 0)

    if number is None:
        return test_decimal

    def test(value: Any) -> bool:
        kind = type(value)
        if kind is int or kind is float or kind is Int64:
            return holds(value, number)
        return kind is Decimal128 and test_decimal(value)

    return test


def membership_test(operands: list[Any], collate: Collate) -> Test:
    """Return the test whether a value equals one of the operands."""
    if len(operands) == 1:
        return equality_test(operands[0], collate)
    with_null = any(operand is None for operand in operands)
    with_nan = any(is_nan(operand) for operand in operands)
    texts: set[str] = set()
    numbers: set[PlainNumber] = set()
    others: set[Any] = set()
    for operand in operands:
        if operand is None or is_nan(operand):
            continue
        if type(operand) is str and collate is None:
            texts.add(operand)
            continue
        number = plain_number(operand) if _is_number(operand) else None
        if number is not None:
            numbers.add(number)
        else:
            others.add(sort_key(operand, collate))

    def test(value: Any) -> bool:
        if value is None or value is MISSING:
            return with_null
        kind = type(value)
        if kind is str and collate is None:
            return value in texts
        if kind is int or kind is float or kind is Int64 or kind is Decimal128:
            if is_nan(value):
                return with_nan
            number = plain_number(value)
            if number is not None:
                return number in numbers
        return bool(others) and sort_key(value, collate) in others

    return test


def compile_eq(operand: Any, scope: Scope) -> Predicate:
    return Predicate("eq", equality_test(operand, scope.context.collate), operand)


def compile_ne(operand: Any, scope: Scope) -> Predicate:
    if type(operand) is Regex:
        raise bad_value("Can't have regex as arg to $ne.")
    return does_not_hold(compile_eq(operand, scope))


def _compile_range(name: str) -> Callable[[Any, Scope], Predicate]:
    def compile_range(operand: Any, scope: Scope) -> Predicate:
        if type(operand) is Regex:
            raise bad_value(f"Can't have RegEx as arg to predicate over field for ${name}.")
        return Predicate(name, range_test(name, operand, scope.context.collate), operand)

    return compile_range


compile_gt, compile_gte, compile_lt, compile_lte = (_compile_range(name) for name in ("gt", "gte", "lt", "lte"))


def compile_in(operand: Any, scope: Scope) -> Predicate:
    from asterism.languages.mongo.filters.evaluation import regex_test

    if type(operand) is not list:
        raise bad_value("$in needs an array")
    values: list[Any] = []
    patterns: list[Test] = []
    for element in operand:
        if type(element) is dict and next(iter(element), "").startswith("$") and not is_reference(element):
            raise bad_value("cannot nest $ under $in")
        if type(element) is Regex:
            patterns.append(regex_test(element))
        else:
            values.append(element)
    if not values and not patterns:
        return never()
    member = membership_test(values, scope.context.collate) if values else None
    if not patterns and member is not None:
        return Predicate("in", member, values)
    tests = tuple(patterns) if member is None else (member, *patterns)
    return Predicate("in_patterns", lambda value: any(test(value) for test in tests), operand)


def compile_nin(operand: Any, scope: Scope) -> Predicate:
    if type(operand) is not list:
        raise bad_value("$nin needs an array")
    return does_not_hold(compile_in(operand, scope))


def is_reference(value: dict[str, Any]) -> bool:
    """Return whether a document is a DBRef: a value, though its names begin with a dollar sign."""
    return next(iter(value), "") in ("$ref", "$id", "$db")
