"""Operators over arrays: $addToSet, $pop, $pull, $pullAll. ($push: push.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.updates.operator import ApplyState, Change, UpdateOperator, keep_missing
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import equal, sort_key
from asterism.values.bson.types import MISSING, Decimal128, Int64, Regex


def _compile_add_to_set(argument: Any, path: str, context: CompileContext) -> Change:
    values = [argument]
    if type(argument) is dict and next(iter(argument), None) == "$each":
        values = argument["$each"]
        if type(values) is not list:
            raise MongoFailure(
                14, f"The argument to $each in $addToSet must be an array but it was of type {type_name(values)}"
            )
        for name in argument:
            if name != "$each":
                raise MongoFailure(2, f"Found unexpected fields after $each in $addToSet: {name}")
    collate = context.collate
    keyed = {sort_key(value, collate): value for value in reversed(values)}
    distinct = list(reversed(keyed.items()))

    def change(old: Any, _state: ApplyState) -> Any:
        if old is MISSING:
            return [value for _, value in distinct]
        if type(old) is not list:
            raise MongoFailure(
                2,
                f"Cannot apply $addToSet to non-array field. Field named '{path}' has non-array type {type_name(old)}",
            )
        present = {sort_key(element, collate) for element in old}
        added = [value for key, value in distinct if key not in present]
        return [*old, *added] if added else old

    return change


def _compile_pop(argument: Any, path: str, _context: CompileContext) -> Change:
    if type(argument) not in (int, Int64, float, Decimal128):
        raise MongoFailure(9, f"Expected a number in: {path}: {argument!r}")
    if not equal(argument, 1) and not equal(argument, -1):
        raise MongoFailure(9, f"$pop expects 1 or -1, found: {argument}")
    pops_last = equal(argument, 1)

    def change(old: Any) -> Any:
        if type(old) is not list:
            raise MongoFailure(14, f"Path '{path}' contains an element of non-array type '{type_name(old)}'")
        if not old:
            return old
        return old[:-1] if pops_last else old[1:]

    return keep_missing(change)


def _removal(name: str, is_removed: Callable[[Any], bool]) -> Change:
    def change(old: Any) -> Any:
        if type(old) is not list:
            raise MongoFailure(2, f"Cannot apply {name} to a non-array value")
        kept = [element for element in old if not is_removed(element)]
        return old if len(kept) == len(old) else kept

    return keep_missing(change)


def _compile_pull_all(argument: Any, _path: str, context: CompileContext) -> Change:
    if type(argument) is not list:
        raise MongoFailure(2, "$pullAll requires an array argument but was given a " + type_name(argument))
    collate = context.collate
    keys = {sort_key(value, collate) for value in argument}
    return _removal("$pullAll", lambda element: sort_key(element, collate) in keys)


def _compile_pull(argument: Any, _path: str, context: CompileContext) -> Change:
    from asterism.languages.mongo.filters.compile import ELEMENT_FEATURES, FIELD_OPERATORS, compile_filter

    features = ELEMENT_FEATURES | {"expr", "jsonSchema"}
    if type(argument) is dict:
        first = next(iter(argument), "")
        if first not in FIELD_OPERATORS and first not in _OTHER_FIELD_OPERATORS:
            # A filter over elements that are documents; other elements stay.
            matches = compile_filter(argument, context, features=features).matches
            return _removal("$pull", lambda element: type(element) is dict and matches(element))
    if type(argument) is dict or type(argument) is Regex:
        # Operators over the element itself, which the filter language only has behind a field.
        holds = compile_filter({"element": argument}, context, features=features).matches
        return _removal("$pull", lambda element: holds({"element": element}))
    collate = context.collate
    return _removal("$pull", lambda element: equal(element, argument, collate))


_OTHER_FIELD_OPERATORS = frozenset(
    ("$not", "$regex", "$options", "$geoWithin", "$within", "$geoIntersects", "$near", "$nearSphere", "$geoNear")
)

OPERATORS: tuple[UpdateOperator, ...] = (
    UpdateOperator("$addToSet", _compile_add_to_set),
    UpdateOperator("$pop", _compile_pop),
    UpdateOperator("$pull", _compile_pull, tolerates_dead_paths=True),
    UpdateOperator("$pullAll", _compile_pull_all, tolerates_dead_paths=True),
)
