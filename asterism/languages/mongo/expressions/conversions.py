"""Conversions of a value into another type: the table behind `$convert` and the operators `$toInt` to `$toUUID`."""

from __future__ import annotations

import decimal
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.mongo.expressions import binary_texts
from asterism.languages.mongo.expressions.date_strings import date_of_text
from asterism.languages.mongo.expressions.date_texts import DateTextProblem
from asterism.languages.mongo.expressions.date_values import date_milliseconds
from asterism.languages.mongo.expressions.text import date_text, exact_double_text, is_too_large
from asterism.languages.mongo.expressions.time_zones import UTC_ZONE
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import (
    DECIMAL_CONTEXT,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    decimal_of,
    from_decimal,
    to_decimal,
)
from asterism.values.bson.types import Binary, DatetimeMS, Decimal128, Int64, ObjectId

CONVERSION_FAILURE: Final = 241


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a conversion from or to binary data."""

    subtype: int = 0
    # None if it was not given: then text is not converted into binary data, nor the reverse.
    format: str | None = None
    byte_order: str = "little"


DEFAULT_OPTIONS: Final = Options()
Conversion = Callable[[Any, Options], Any]


def failure(message: str) -> MongoFailure:
    return MongoFailure(CONVERSION_FAILURE, message)


def convert(value: Any, target: str, options: Options) -> Any:
    """Convert a value that is not null into the type with the name `target`."""
    source = type_name(value)
    if target == "bool":
        return to_bool(value)
    conversion = _CONVERSIONS.get((source, target))
    if conversion is None:
        raise failure(f"Unsupported conversion from {source} to {target} in $convert with no onError value")
    return conversion(value, options)


def to_bool(value: Any) -> bool:
    """Return whether a value is not a zero."""
    if type(value) is Decimal128:
        return not decimal_of(value).is_zero()
    if isinstance(value, (int, float)):
        return bool(value != 0)
    return True


def _whole_part(value: Any) -> int:
    """The integer that is left of a number when its fraction is cut off."""
    if isinstance(value, float):
        if math.isnan(value):
            raise failure("Attempt to convert NaN value to integer type in $convert with no onError value")
        if math.isinf(value):
            raise failure("Attempt to convert infinity value to integer type in $convert with no onError value")
        return int(value)
    if type(value) is Decimal128:
        number = decimal_of(value)
        # A number with more digits is out of every range, and would be written out.
        if not number.is_finite() or number.adjusted() > 40:
            raise failure("Attempt to convert a value that is out of range to integer type in $convert")
        return int(number)
    return int(value)


def _int32(number: int) -> int:
    if not INT32_MIN <= number <= INT32_MAX:
        raise failure("Conversion would overflow target type in $convert with no onError value")
    return number


def _int64(number: int) -> Int64:
    if not INT64_MIN <= number <= INT64_MAX:
        raise failure("Conversion would overflow target type in $convert with no onError value")
    return Int64(number)


def _date(number: int) -> DatetimeMS:
    return DatetimeMS(int(_int64(number)))


_INTEGER_TEXT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def _integer_of_text(text: str) -> int:
    if not _INTEGER_TEXT.fullmatch(text):
        raise failure(f"Failed to parse number '{text[:100]}' in $convert with no onError value")
    digits = text.lstrip("+-").lstrip("0")
    # Python refuses to read thousands of digits, none of which fit.
    if len(digits) > 20:
        raise failure(f"Failed to parse number '{text[:100]}' in $convert with no onError value: Overflow")
    return int(digits or "0") * (-1 if text[0] == "-" else 1)


_SPECIAL_TEXT: Final = r"inf(?:inity)?|nan"
_DOUBLE_TEXT: Final = re.compile(
    rf"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|{_SPECIAL_TEXT})", re.ASCII | re.IGNORECASE
)
_HEXADECIMAL_TEXT: Final = re.compile(
    r"[+-]?0x(?:[0-9a-f]+(?:\.[0-9a-f]*)?|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE
)


def _double_of_text(text: str) -> float:
    try:
        if _HEXADECIMAL_TEXT.fullmatch(text):
            return float.fromhex(text)
        if not _DOUBLE_TEXT.fullmatch(text):
            raise failure(f"Failed to parse number '{text[:100]}' in $convert with no onError value")
        result = float(text)
    except OverflowError:
        raise failure("Failed to parse number in $convert with no onError value: Out of range") from None
    mantissa = re.split("[eE]", text)[0]
    if math.isinf(result) and "n" not in text.lower():
        raise failure("Failed to parse number in $convert with no onError value: Out of range")
    if result == 0 and re.search("[1-9]", mantissa):
        raise failure("Failed to parse number in $convert with no onError value: Out of range")
    return result


def _decimal_of_text(text: str) -> Decimal128:
    if not _DOUBLE_TEXT.fullmatch(text):
        raise failure(f"Failed to parse number '{text[:100]}' in $convert with no onError value")
    try:
        number = DECIMAL_CONTEXT.create_decimal(text)
    except decimal.DecimalException:
        raise failure("Failed to parse number in $convert with no onError value") from None
    if number.is_infinite() and "n" not in text.lower():
        raise failure("Failed to parse number in $convert with no onError value: Out of range")
    if number.is_zero() and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise failure("Failed to parse number in $convert with no onError value: Out of range")
    return Decimal128(number.copy_abs() if number.is_nan() else number)


def _double_of_decimal(value: Decimal128) -> float:
    number = decimal_of(value)
    if number.is_nan():
        return math.nan
    result = float(number)
    if math.isinf(result) and not number.is_infinite():
        raise failure("Conversion would overflow target type in $convert with no onError value")
    if result == 0 and not number.is_zero():
        raise failure("Conversion would underflow target type in $convert with no onError value")
    return result


def _object_id_of_text(text: str) -> ObjectId:
    if not re.fullmatch("[0-9A-Fa-f]{24}", text):
        raise failure(f"Failed to parse objectId '{text[:100]}' in $convert with no onError value")
    return ObjectId(text)


def _date_of_text(text: str) -> DatetimeMS:
    try:
        return date_of_text(text, UTC_ZONE)
    except DateTextProblem as problem:
        raise failure(f"Error parsing date string '{text[:100]}'; {problem}") from None


def _integer_of_binary(value: Any, options: Options, sizes: tuple[int, ...]) -> int:
    content = binary_texts.content_of(value)
    if len(content) not in sizes:
        raise failure(f"Failed to convert BinData of {len(content)} bytes to a number in $convert")
    # "big" and "little" are the only two that `Options` are made with.
    return int.from_bytes(content, "big" if options.byte_order == "big" else "little", signed=True)


def _double_of_binary(value: Any, options: Options) -> float:
    content = binary_texts.content_of(value)
    code = {4: "f", 8: "d"}.get(len(content))
    if code is None:
        raise failure(f"Failed to convert BinData of {len(content)} bytes to a number in $convert")
    result: float = struct.unpack(_struct_format(code, options), content)[0]
    return result


def _struct_format(code: str, options: Options) -> str:
    return (">" if options.byte_order == "big" else "<") + code


def _binary_of_number(code: str) -> Conversion:
    return lambda value, options: _binary(struct.pack(_struct_format(code, options), value), options)


def _binary(content: bytes, options: Options) -> Any:
    return binary_texts.binary_of(content, options.subtype)


def _binary_of_binary(value: Any, options: Options) -> Any:
    subtype = value.subtype if isinstance(value, Binary) else 0
    if subtype != options.subtype:
        raise failure("Conversions between different BinData subtypes are not supported")
    return value


def _binary_of_text(text: str, options: Options) -> Any:
    if options.format is None:
        raise MongoFailure(4341115, "Format must be speficied when converting from 'string' to 'binData'")
    if (options.format == "uuid") != (options.subtype == binary_texts.UUID_SUBTYPE):
        raise failure("Only the UUID subtype is allowed with the UUID format")
    try:
        return _binary(binary_texts.parse(text, options.format), options)
    except ValueError as problem:
        raise failure(f"Input string '{text[:100]}' is not a valid {options.format} string: {problem}") from None


def _text_of_binary(value: Any, options: Options) -> str:
    if options.format is None:
        raise MongoFailure(4341115, "Format must be speficied when converting from 'binData' to 'string'")
    try:
        text = binary_texts.write(value, options.format)
    except ValueError as problem:
        raise failure(f"BinData cannot be written as a {options.format} string: {problem}") from None
    if is_too_large(text):
        raise failure("Resulting string would exceed the maximum size in $convert with no onError value")
    return text


def _same(value: Any, _: Options) -> Any:
    return value


_NUMBERS: Final = ("int", "long", "double", "decimal")
_CONVERSIONS: Final[dict[tuple[str, str], Conversion]] = {
    **{(name, name): _same for name in ("int", "long", "double", "decimal", "string", "date", "objectId")},
    **{(name, "int"): lambda value, _: _int32(_whole_part(value)) for name in ("bool", "long", "double", "decimal")},
    **{(name, "long"): lambda value, _: _int64(_whole_part(value)) for name in ("bool", "int", "double", "decimal")},
    **{(name, "double"): lambda value, _: float(value) for name in ("bool", "int", "long")},
    **{
        (name, "decimal"): lambda value, _: from_decimal(to_decimal(value))
        for name in ("bool", "int", "long", "double")
    },
    **{(name, "date"): lambda value, _: _date(_whole_part(value)) for name in ("long", "double", "decimal")},
    **{(name, "date"): lambda value, _: _date(date_milliseconds(value) or 0) for name in ("objectId", "timestamp")},
    **{(name, "string"): lambda value, _: str(int(value)) for name in ("int", "long")},
    ("decimal", "double"): lambda value, _: _double_of_decimal(value),
    ("date", "long"): lambda value, _: Int64(int(value)),
    ("date", "double"): lambda value, _: float(int(value)),
    ("date", "decimal"): lambda value, _: from_decimal(decimal.Decimal(int(value))),
    ("date", "string"): lambda value, _: date_text(int(value)),
    ("bool", "string"): lambda value, _: "true" if value else "false",
    ("double", "string"): lambda value, _: exact_double_text(value),
    ("decimal", "string"): lambda value, _: str(value),
    ("objectId", "string"): lambda value, _: str(value),
    ("binData", "string"): _text_of_binary,
    ("string", "int"): lambda value, _: _int32(_integer_of_text(value)),
    ("string", "long"): lambda value, _: _int64(_integer_of_text(value)),
    ("string", "double"): lambda value, _: _double_of_text(value),
    ("string", "decimal"): lambda value, _: _decimal_of_text(value),
    ("string", "objectId"): lambda value, _: _object_id_of_text(value),
    ("string", "date"): lambda value, _: _date_of_text(value),
    ("string", "binData"): _binary_of_text,
    ("binData", "binData"): _binary_of_binary,
    ("binData", "int"): lambda value, options: _int32(_integer_of_binary(value, options, (1, 2, 4))),
    ("binData", "long"): lambda value, options: _int64(_integer_of_binary(value, options, (1, 2, 4, 8))),
    ("binData", "double"): _double_of_binary,
    ("int", "binData"): _binary_of_number("i"),
    ("long", "binData"): _binary_of_number("q"),
    ("double", "binData"): _binary_of_number("d"),
}
