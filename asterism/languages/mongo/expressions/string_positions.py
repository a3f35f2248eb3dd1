"""Operators on text that count: positions and parts, in bytes of UTF-8 or in code points."""

from __future__ import annotations

import decimal
import math
from typing import Any, Final

from asterism.languages.mongo.expressions.operator import Operator, positional
from asterism.languages.mongo.expressions.text import checked, is_absent, text_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.types import MISSING, Decimal128

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


def whole_number(value: Any) -> int | None:
    """The integer that a number of any type is equal to, or None."""
    if type(value) is bool:
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, Decimal128):
        number = value.to_decimal()
        # Digits of a large exponent are not written out: such a number is out of every range.
        if not number.is_finite() or number.adjusted() > 40:
            return None
        return int(number) if number == number.to_integral_value() else None
    return None


def int32_of(value: Any) -> int | None:
    """The integer of 32 bits that a number is equal to, or None."""
    number = whole_number(value)
    return number if number is not None and INT32_MIN <= number <= INT32_MAX else None


def _long_of(value: Any) -> int:
    """A number as an integer: doubles are cut off, decimals rounded, and decimals out of range become the least."""
    if isinstance(value, float):
        if math.isnan(value) or not INT64_MIN <= value < INT64_MAX:
            raise MongoFailure(31109, f"Can't coerce out of range value {value} to long")
        return int(value)
    if isinstance(value, Decimal128):
        number = value.to_decimal()
        if not number.is_finite() or number.adjusted() > 40:
            return INT64_MIN
        rounded = int(number.to_integral_value(decimal.ROUND_HALF_EVEN))
        return rounded if INT64_MIN <= rounded <= INT64_MAX else INT64_MIN
    return int(value)


def _is_continuation(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _part_in_bytes(name: str) -> Operator:
    def take(value: Any, start_value: Any, count_value: Any) -> str:
        text = text_of(value)
        if not is_number(start_value):
            raise MongoFailure(16034, f"{name}: starting index must be a numeric type (is {type_name(start_value)})")
        if not is_number(count_value):
            raise MongoFailure(16035, f"{name}: length must be a numeric type (is {type_name(count_value)})")
        start = _long_of(start_value)
        count = _long_of(count_value)
        if start < 0:
            raise MongoFailure(50752, f"{name}: starting index must be non-negative (got: {start})")
        encoded = text.encode("utf-8", "surrogatepass")
        if start < len(encoded) and _is_continuation(encoded[start]):
            raise MongoFailure(28656, f"{name}: invalid range, starting index is a UTF-8 continuation byte")
        end = len(encoded) if count < 0 else start + count
        if end < len(encoded) and _is_continuation(encoded[end]):
            raise MongoFailure(28657, f"{name}: invalid range, ending index is in the middle of a UTF-8 character")
        return checked(encoded[start:end].decode("utf-8", "surrogatepass"))

    return positional(name, take, 3, 3)


def _part_in_code_points(value: Any, start_value: Any, count_value: Any) -> str:
    text = text_of(value)
    if not is_number(start_value):
        raise MongoFailure(34450, f"$substrCP: starting index must be a numeric type (is {type_name(start_value)})")
    start = int32_of(start_value)
    if start is None:
        raise MongoFailure(34451, "$substrCP: starting index cannot be represented as a 32-bit integral value")
    if not is_number(count_value):
        raise MongoFailure(34452, f"$substrCP: length must be a numeric type (is {type_name(count_value)})")
    count = int32_of(count_value)
    if count is None:
        raise MongoFailure(34453, "$substrCP: length cannot be represented as a 32-bit integral value")
    if count < 0:
        raise MongoFailure(34454, "$substrCP: length must be a nonnegative integer")
    if start < 0:
        raise MongoFailure(34455, "$substrCP: the starting index must be nonnegative integer")
    return checked(text[start : start + count])


def _bound_of(name: str, value: Any, what: str) -> int:
    number = int32_of(value)
    if number is None:
        raise MongoFailure(40096, f"{name} requires an integral {what} index, found a value of type {type_name(value)}")
    if number < 0:
        raise MongoFailure(40097, f"{name} requires a nonnegative {what} index, found: {number}")
    return number


def _position(name: str, *, in_bytes: bool, text_code: int, part_code: int) -> Operator:
    def find(value: Any, part: Any, start_value: Any = 0, end_value: Any = MISSING, *_: Any) -> int | None:
        if is_absent(value):
            return None
        if type(value) is not str:
            raise MongoFailure(text_code, f"{name} requires a string as the first argument, found: {type_name(value)}")
        if type(part) is not str:
            raise MongoFailure(part_code, f"{name} requires a string as the second argument, found: {type_name(part)}")
        text: str | bytes = value.encode("utf-8", "surrogatepass") if in_bytes else value
        sought: str | bytes = part.encode("utf-8", "surrogatepass") if in_bytes else part
        start = _bound_of(name, start_value, "starting")
        end = len(text) if end_value is MISSING else min(_bound_of(name, end_value, "ending"), len(text))
        if start > len(text) or end < start:
            return -1
        return text.find(sought, start, end)  # type: ignore[arg-type]  # both are text or both are bytes

    return positional(name, find, 2, 4)


OPERATORS: tuple[Operator, ...] = (
    _part_in_bytes("$substr"),
    _part_in_bytes("$substrBytes"),
    positional("$substrCP", _part_in_code_points, 3, 3),
    _position("$indexOfBytes", in_bytes=True, text_code=40091, part_code=40092),
    _position("$indexOfCP", in_bytes=False, text_code=40093, part_code=40094),
)
