"""$push with its modifiers $each, $position, $sort and $slice."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.updates.operator import ApplyState, Change, UpdateOperator
from asterism.languages.mongo.updates.paths import element_index
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import compare
from asterism.values.bson.types import MISSING, Decimal128, Int64

_MODIFIERS = ("$each", "$position", "$sort", "$slice")
# Integers beyond it cannot be positions; they are cut, as the server does.
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

Collate = Callable[[str], bytes] | None
Sort = Callable[[list[Any]], list[Any]]


def _compile_push(argument: Any, path: str, context: CompileContext) -> Change:
    if type(argument) is dict and "$each" in argument:
        values, position, sort, keep = _read_modifiers(argument, context.collate)
    else:
        values, position, sort, keep = [argument], None, None, None

    def change(old: Any, state: ApplyState) -> Any:
        if old is MISSING:
            old_elements: list[Any] = []
        elif type(old) is list:
            old_elements = old
        else:
            raise MongoFailure(
                2,
                f"The field '{path}' must be an array but is of type {type_name(old)} in document "
                f"{{_id: {state.document.get('_id')!r}}}",
            )
        if position is None:
            elements = [*old_elements, *values]
        else:
            at = min(position, len(old_elements)) if position >= 0 else max(len(old_elements) + position, 0)
            elements = [*old_elements[:at], *values, *old_elements[at:]]
        if sort is not None:
            elements = sort(elements)
        if keep is not None:
            elements = elements[:keep] if keep >= 0 else elements[keep:]
        if (
            old is not MISSING
            and len(elements) == len(old)
            and all(new is was for new, was in zip(elements, old, strict=True))
        ):
            return old
        return elements

    return change


def _read_modifiers(
    argument: dict[str, Any], collate: Collate
) -> tuple[list[Any], int | None, Sort | None, int | None]:
    for name in argument:
        if name not in _MODIFIERS:
            raise MongoFailure(2, f"Unrecognized clause in $push: {name}")
    values = argument["$each"]
    if type(values) is not list:
        raise MongoFailure(
            2, f"The argument to $each in $push must be an array but it was of type: {type_name(values)}"
        )
    keep = _whole_number("$slice", argument["$slice"]) if "$slice" in argument else None
    position = _whole_number("$position", argument["$position"]) if "$position" in argument else None
    sort = _compile_sort(argument["$sort"], collate) if "$sort" in argument else None
    return values, position, sort, keep


def _is_short_integer(value: Decimal128) -> bool:
    """True for integers that are not far beyond int64: of others Python could write thousands of digits."""
    exact = value.to_decimal()
    return exact.is_finite() and exact.adjusted() < 30 and exact == exact.to_integral_value()


def _whole_number(modifier: str, value: Any) -> int:
    refusal = MongoFailure(
        2, f"The value for {modifier} must be an integer value but was given type: {type_name(value)}"
    )
    if type(value) is int or type(value) is Int64:
        return int(value)
    if type(value) is float and math.isfinite(value) and value == int(value):
        number = int(value)
    elif type(value) is Decimal128 and _is_short_integer(value):
        number = int(value.to_decimal())
    else:
        raise refusal
    if not _INT64_MIN <= number <= _INT64_MAX:
        raise refusal
    return number


def _compile_sort(argument: Any, collate: Collate) -> Sort:
    if type(argument) is not dict:
        if not _is_direction(argument):
            raise MongoFailure(2, "The $sort element value must be either 1 or -1")
        whole = cmp_to_key(lambda left, right: compare(left, right, collate))
        descending = compare(argument, 0) < 0
        return lambda elements: sorted(elements, key=whole, reverse=descending)
    if not argument:
        raise MongoFailure(2, "The $sort pattern is empty when it should be a set of fields.")
    pattern: list[tuple[tuple[str, ...], int]] = []
    for path, direction in argument.items():
        if not path or "" in path.split("."):
            raise MongoFailure(2, "The $sort field is a dotted field but has an empty part: " + path)
        if not _is_direction(direction):
            raise MongoFailure(2, "The $sort element value must be either 1 or -1")
        pattern.append((tuple(path.split(".")), 1 if compare(direction, 0) > 0 else -1))

    def compare_elements(left: Any, right: Any) -> int:
        for parts, sign in pattern:
            order = compare(_read(left, parts), _read(right, parts), collate)
            if order:
                return order * sign
        return 0

    key = cmp_to_key(compare_elements)
    return lambda elements: sorted(elements, key=key)


def _is_direction(value: Any) -> bool:
    return type(value) in (int, Int64, float, Decimal128) and (compare(value, 1) == 0 or compare(value, -1) == 0)


def _read(element: Any, parts: tuple[str, ...]) -> Any:
    """Return the value at a path, null where it does not exist; arrays are entered by index only."""
    if type(element) is not dict:
        return None
    for part in parts:
        if type(element) is dict:
            element = element.get(part, None)
        elif type(element) is list:
            index = element_index(part)
            element = element[index] if index is not None and index < len(element) else None
        else:
            return None
    return element


OPERATORS: tuple[UpdateOperator, ...] = (UpdateOperator("$push", _compile_push),)
