"""Operators on the bits of integers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import Operator, positional
from asterism.languages.mongo.expressions.text import is_absent
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Int64

_TYPE_MISMATCH = 14


def _require_integer(name: str, value: Any) -> None:
    if not isinstance(value, int) or type(value) is bool:
        raise MongoFailure(_TYPE_MISMATCH, f"{name} only supports int and long, not {type_name(value)}")


def _combination(name: str, combine: Callable[[int, int], int], of_nothing: int) -> Operator:
    def compute(*values: Any) -> Any:
        is_null = False
        for value in values:
            if is_absent(value):
                is_null = True
            else:
                _require_integer(name, value)
        if is_null:
            return None
        result = functools.reduce(combine, map(int, values), of_nothing)
        return Int64(result) if any(type(value) is Int64 for value in values) else result

    return positional(name, compute, 0, None)


def _complement(value: Any) -> Any:
    if is_absent(value):
        return None
    _require_integer("$bitNot", value)
    return Int64(~int(value)) if type(value) is Int64 else ~int(value)


OPERATORS: tuple[Operator, ...] = (
    _combination("$bitAnd", operator.and_, -1),
    _combination("$bitOr", operator.or_, 0),
    _combination("$bitXor", operator.xor, 0),
    positional("$bitNot", _complement, 1, 1),
)
