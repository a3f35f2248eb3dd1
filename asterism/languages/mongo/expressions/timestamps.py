"""Operators on the parts of timestamps."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.operator import Operator, positional
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Int64, Timestamp


def _seconds(value: Any) -> Int64:
    if type(value) is not Timestamp:
        raise MongoFailure(5687301, f"Argument to $tsSecond must be a timestamp, but is {type_name(value)}")
    return Int64(value.time)


def _increment(value: Any) -> Int64:
    if type(value) is not Timestamp:
        raise MongoFailure(5687302, f"Argument to $tsIncrement must be a timestamp, but is {type_name(value)}")
    return Int64(value.inc)


OPERATORS: tuple[Operator, ...] = (
    positional("$tsSecond", _seconds, 1, 1, null_if_null=True),
    positional("$tsIncrement", _increment, 1, 1, null_if_null=True),
)
