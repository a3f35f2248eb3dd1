"""Operators over one field: $set, $setOnInsert, $unset, $inc, $mul, $min, $max, $currentDate. ($rename: rename.py)"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.updates.identity import identical
from asterism.languages.mongo.updates.operator import ApplyState, Change, UpdateOperator
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import DECIMAL_CONTEXT, from_decimal, to_decimal
from asterism.values.bson.order import compare
from asterism.values.bson.types import MISSING, DatetimeMS, Decimal128, Int64, Timestamp

_NUMBER_TYPES = (int, Int64, float, Decimal128)
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def _compile_set(value: Any, _path: str, _context: CompileContext) -> Change:
    return lambda old, _state: old if identical(old, value) else value


def _compile_unset(_value: Any, _path: str, _context: CompileContext) -> Change:
    return lambda _old, _state: MISSING


def _arithmetic(
    name: str,
    verb: str,
    on_integers: Callable[[int, int], int],
    on_doubles: Callable[[float, float], float],
    on_decimals: Callable[[Decimal, Decimal], Decimal],
    of_missing: Callable[[Any], Any],
) -> UpdateOperator:
    def combine(old: Any, operand: Any) -> Any:
        kinds = (type(old), type(operand))
        if Decimal128 in kinds:
            return from_decimal(on_decimals(to_decimal(old), to_decimal(operand)))
        if float in kinds:
            return on_doubles(float(old), float(operand))
        result = on_integers(int(old), int(operand))
        if kinds == (int, int) and _INT32_MIN <= result <= _INT32_MAX:
            return result
        if _INT64_MIN <= result <= _INT64_MAX:
            return Int64(result)
        raise MongoFailure(
            2, f"Failed to apply {name} operations to current value ({old}): the result overflows a long"
        )

    def compile_operand(operand: Any, path: str, _context: CompileContext) -> Change:
        if type(operand) not in _NUMBER_TYPES:
            raise MongoFailure(14, f"Cannot {verb} with non-numeric argument: {{{path}: {operand!r}}}")
        created = of_missing(operand)

        def change(old: Any, state: ApplyState) -> Any:
            if old is MISSING:
                return created
            if type(old) not in _NUMBER_TYPES:
                raise MongoFailure(
                    14,
                    f"Cannot apply {name} to a value of non-numeric type. {{_id: {state.document.get('_id')!r}}} has "
                    f"the field '{path}' of non-numeric type {type_name(old)}",
                )
            new = combine(old, operand)
            # Minus zero and zero, 1.0 and 1.00 count as the same number here: the stored one stays.
            return old if type(new) is type(old) and compare(new, old) == 0 else new

        return change

    return UpdateOperator(name, compile_operand)


_ZEROS = {int: 0, Int64: Int64(0), float: 0.0, Decimal128: Decimal128("0")}


def _extreme(name: str, sign: int) -> UpdateOperator:
    """The least (sign -1) or the greatest (sign 1) of the field and the operand."""

    def compile_operand(operand: Any, _path: str, context: CompileContext) -> Change:
        collate = context.collate

        def change(old: Any, _state: ApplyState) -> Any:
            if old is MISSING or compare(operand, old, collate) == sign:
                return operand
            return old

        return change

    return UpdateOperator(name, compile_operand)


def _compile_current_date(argument: Any, _path: str, context: CompileContext) -> Change:
    now: DatetimeMS | Timestamp = context.now
    if type(argument) is dict:
        if list(argument) != ["$type"]:
            unknown = next((name for name in argument if name != "$type"), "")
            raise MongoFailure(2, f"Unrecognized $currentDate option: {unknown}")
        kind = argument["$type"]
        if kind != "date" and kind != "timestamp":
            raise MongoFailure(
                2,
                "The '$type' string field is required to be 'date' or 'timestamp'",
            )
        if kind == "timestamp":
            now = context.cluster_time
    elif type(argument) is not bool:
        raise MongoFailure(
            2,
            f"{type_name(argument)} is not valid type for $currentDate. Please use a boolean ('true') or a $type "
            "expression ({$type: 'timestamp/date'}).",
        )
    return lambda _old, _state: now


OPERATORS: tuple[UpdateOperator, ...] = (
    UpdateOperator("$set", _compile_set),
    UpdateOperator("$setOnInsert", _compile_set, only_on_insert=True),
    UpdateOperator("$unset", _compile_unset, tolerates_dead_paths=True),
    _arithmetic(
        "$inc",
        "increment",
        lambda old, operand: old + operand,
        lambda old, operand: old + operand,
        DECIMAL_CONTEXT.add,
        lambda operand: operand,
    ),
    _arithmetic(
        "$mul",
        "multiply",
        lambda old, operand: old * operand,
        lambda old, operand: old * operand,
        DECIMAL_CONTEXT.multiply,
        lambda operand: _ZEROS[type(operand)],
    ),
    _extreme("$min", -1),
    _extreme("$max", 1),
    UpdateOperator("$currentDate", _compile_current_date),
)
