"""$bit: and, or, xor of an integer field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.updates.identity import identical
from asterism.languages.mongo.updates.operator import ApplyState, Change, UpdateOperator
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, Int64

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "xor": lambda left, right: left ^ right,
}


def _compile_bit(argument: Any, path: str, _context: CompileContext) -> Change:
    if type(argument) is not dict:
        raise MongoFailure(
            2,
            "The $bit modifier is not compatible with a "
            f"{type_name(argument)}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}",
        )
    steps: list[tuple[Callable[[int, int], int], int]] = []
    for name, operand in argument.items():
        if name not in _OPERATIONS:
            raise MongoFailure(2, f"The $bit modifier only supports 'and', 'or', and 'xor', not '{name}'")
        if type(operand) is not int and type(operand) is not Int64:
            raise MongoFailure(
                2, "The $bit modifier field must be an Integer(32/64 bit); a different type is not supported"
            )
        steps.append((_OPERATIONS[name], operand))
    if not steps:
        raise MongoFailure(
            2, "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}"
        )
    widens = any(type(operand) is Int64 for _, operand in steps)

    def change(old: Any, _state: ApplyState) -> Any:
        if old is MISSING:
            value: int = 0
        elif type(old) is int or type(old) is Int64:
            value = int(old)
        else:
            raise MongoFailure(
                2, f"Cannot apply $bit to a value of non-integral type. The field is '{path}', of type {type_name(old)}"
            )
        for operate, operand in steps:
            value = operate(value, int(operand))
        new = Int64(value) if widens or type(old) is Int64 else value
        return old if identical(old, new) else new

    return change


OPERATORS: tuple[UpdateOperator, ...] = (UpdateOperator("$bit", _compile_bit),)
