"""The parts of a compiled JSON schema, and the checks of its keywords' arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import decimal_of
from asterism.values.bson.order import SortKey, sort_key
from asterism.values.bson.types import Decimal128, Document, Int64


@dataclass(frozen=True, slots=True)
class Rule:
    """A keyword with its argument. `explain` is called for values that do not conform."""

    keyword: str
    holds: Callable[[Any], bool]
    explain: Callable[[Any], Document]


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema: all rules must hold. The annotations are `title` and `description`, shown in refusals."""

    rules: tuple[Rule, ...]
    annotations: Document

    def holds(self, value: Any) -> bool:
        for rule in self.rules:  # noqa: SIM110 - a loop, since `all` over a generator costs twice as much
            if not rule.holds(value):
                return False
        return True

    def explain(self, value: Any) -> list[Document]:
        return [rule.explain(value) for rule in self.rules if not rule.holds(value)]


ParseSchema = Callable[[Any], Schema]
# Gets the argument of the keyword, the whole schema it stands in, and the parser of inner schemas. Returns None for an
# argument that restricts nothing.
CompileKeyword = Callable[[Any, Document, ParseSchema], Rule | None]
KeywordTable = dict[str, CompileKeyword]


def wrong_type(keyword: str, expected: str) -> MongoFailure:
    return MongoFailure(14, f"$jsonSchema keyword '{keyword}' must be {expected}")


def string_of(keyword: str, value: Any) -> str:
    if type(value) is not str:
        raise wrong_type(keyword, "a string")
    return value


def object_of(keyword: str, value: Any) -> Document:
    if type(value) is not dict:
        raise wrong_type(keyword, "an object")
    return value


def array_of(keyword: str, value: Any) -> list[Any]:
    if type(value) is not list:
        raise wrong_type(keyword, "an array")
    return value


def boolean_of(keyword: str, value: Any) -> bool:
    if type(value) is not bool:
        raise wrong_type(keyword, "a boolean")
    return value


def number_of(keyword: str, value: Any) -> Any:
    if type(value) not in (int, Int64, float, Decimal128):
        raise wrong_type(keyword, "a number")
    return value


def size_of(keyword: str, value: Any) -> int:
    """Return a length or a count: a whole number that is not negative."""
    refusal = MongoFailure(9, f"$jsonSchema keyword '{keyword}' must be a non-negative integer, not {type_name(value)}")
    is_whole_double = type(value) is float and math.isfinite(value) and value == int(value)
    if type(value) is int or type(value) is Int64 or is_whole_double:
        size = int(value)
    elif type(value) is Decimal128 and decimal_of(value).is_finite() and decimal_of(value) % 1 == 0:
        size = int(decimal_of(value))
    else:
        raise refusal
    if not 0 <= size < 2**63:
        raise refusal
    return size


def names_of(keyword: str, value: Any) -> list[str]:
    """Return an array of distinct names, at least one."""
    names = array_of(keyword, value)
    for name in names:
        if type(name) is not str:
            raise wrong_type(keyword, "an array of strings")
    if not names:
        raise MongoFailure(9, f"$jsonSchema keyword '{keyword}' cannot be an empty array")
    if len(set(names)) < len(names):
        raise MongoFailure(9, f"$jsonSchema keyword '{keyword}' array cannot contain duplicate values")
    return names


def unordered_key(value: Any) -> SortKey:
    """Return a key that is equal for equal values, whatever the order of the fields in documents."""
    return sort_key(_with_sorted_fields(value))


def _with_sorted_fields(value: Any) -> Any:
    if type(value) is dict:
        return {name: _with_sorted_fields(value[name]) for name in sorted(value)}
    if type(value) is list:
        return [_with_sorted_fields(element) for element in value]
    return value


def refusal(keyword: str, specification: Any, reason: str, value: Any) -> Document:
    """Return the explanation that most keywords have."""
    return {
        "operatorName": keyword,
        "specifiedAs": {keyword: specification},
        "reason": reason,
        "consideredValue": value,
    }
