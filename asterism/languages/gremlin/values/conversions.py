"""Conversions of values to numbers and booleans: `asNumber` and `asBool`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.arithmetic import BIG_INTEGER_BITS_MAX, as_decimal
from asterism.languages.gremlin.values.dates import milliseconds
from asterism.languages.gremlin.values.numbers import (
    LONG_MAX,
    LONG_MIN,
    BigInteger,
    Byte,
    Float,
    Long,
    Number,
    Short,
    is_number,
    number_type,
)
from asterism.languages.gremlin.values.printing import round_to_float, shortest_digits, text_of
from asterism.languages.gremlin.values.types import CLASS_OF_TOKEN, class_name

_FLOAT_MAX = 3.4028234663852886e38
# Digits of a text that is read as a number; longer ones take time that grows with their square.
_DIGITS_MAX = 3_000

_WHOLE_NUMBER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|#([0-9a-fA-F]+)|0([0-7]*)|([1-9][0-9]*))([lL]?)", re.ASCII)
_FRACTION = re.compile(r"(?![+-]?[0-9]+\Z)[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?([fFdD]?)", re.ASCII)


def as_number(token: Token | None) -> Callable[[Any], Number | None]:
    """Return the function that makes a number of a value, of the type that a token names."""
    if token is None:
        return to_number
    kind = CLASS_OF_TOKEN.get(token.name, "")
    cast = _CASTS.get(kind)
    if cast is None:
        raise ExecutionFailure(f"asNumber() requires a numeric type token, got {token.name}")

    def convert(value: Any) -> Number | None:
        number = to_number(value)
        return None if number is None else cast(number)

    return convert


def to_number(value: Any) -> Number | None:
    """Return a number, a text or a date as a number; null stays null."""
    if value is None:
        return None
    if isinstance(value, str):
        number = parse_number(value)
        if number is None:
            raise ExecutionFailure(f"Can't parse string '{value}' as number.")
        return number
    if is_number(value):
        return value  # type: ignore[no-any-return]  # The test above says so.
    if isinstance(value, date):
        return milliseconds(value)
    raise ExecutionFailure(f"Can't parse type {class_name(value)} as number.")


def parse_number(text: str) -> Number | None:
    """Return the number of a text in Java's notation, of the smallest type that has it; None if it is not one."""
    text = text.strip()
    if len(text) > _DIGITS_MAX:
        return None
    if found := _WHOLE_NUMBER.fullmatch(text):
        return _whole_number(found)
    if found := _FRACTION.fullmatch(text):
        return _fraction(text, found[1].lower())
    return None


def _whole_number(found: re.Match[str]) -> Number:
    sign, hexadecimal, sharp, octal, decimal, suffix = found.groups()
    if octal is not None:
        number = int(octal or "0", 8)
    elif decimal is not None:
        number = int(Decimal(decimal))
    else:
        number = int(hexadecimal or sharp, 16)
    number = -number if sign == "-" else number
    return Long(number) if suffix and LONG_MIN <= number <= LONG_MAX else number


def _fraction(text: str, suffix: str) -> Number | None:
    digits = text[:-1] if suffix else text
    number = float(digits)
    if suffix == "d":
        return number
    short = round_to_float(number)
    if suffix == "f":
        return short
    # The smallest type that loses nothing of what the text says.
    is_lost = number == 0 and re.search("[1-9]", digits.lower().partition("e")[0]) is not None
    if math.isfinite(short) and not is_lost and text_of(short) == text_of(number):
        return short
    try:
        exact = Decimal(digits)
    except InvalidOperation:
        return None
    if math.isinf(number) or is_lost or exact != Decimal(float.__repr__(number)):
        return exact
    return number


def _overflow(number: Number, kind: str, word: str = "overflow") -> ExecutionFailure:
    return ExecutionFailure(f"Can't convert number of type {number_type(number)} to {kind} due to {word}.")


def _long_value(number: Number, kind: str) -> int:
    if isinstance(number, float):
        if number != number:
            raise ExecutionFailure(f"Can't convert NaN to {kind}.")
        if math.isinf(number):
            raise ExecutionFailure(f"Can't convert floating point infinity to {kind}.")
        if number < LONG_MIN:
            raise _overflow(number, kind, "underflow")
    elif isinstance(number, Decimal) and number.adjusted() > 19:
        # Before it becomes an integer of as many digits.
        raise _overflow(number, kind)
    whole = int(number)
    if not LONG_MIN <= whole <= LONG_MAX:
        raise _overflow(number, kind)
    return whole


def _to_whole(kind: str, bits: int, make: Callable[[int], Number]) -> Callable[[Number], Number]:
    limit = 2 ** (bits - 1)

    def convert(number: Number) -> Number:
        whole = _long_value(number, kind)
        if not -limit <= whole < limit:
            raise _overflow(number, kind)
        return make(whole)

    return convert


def _to_float(number: Number) -> Number:
    if isinstance(number, float) and not math.isfinite(number):
        return Float(number)
    value = _double_value(number)
    if abs(value) > _FLOAT_MAX:
        raise _overflow(number, "Float")
    return round_to_float(value)


def _to_double(number: Number) -> Number:
    if isinstance(number, Float):
        return float(shortest_digits(number))
    value = _double_value(number)
    if math.isinf(value) and not isinstance(number, float):
        raise _overflow(number, "Double")
    return value


def _double_value(number: Number) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _to_big_integer(number: Number) -> Number:
    if isinstance(number, float) and not math.isfinite(number):
        raise ExecutionFailure(f"Can't convert {text_of(number)} to BigInteger.")
    if isinstance(number, Decimal) and number.adjusted() > BIG_INTEGER_BITS_MAX // 4:
        raise _overflow(number, "BigInteger")
    return BigInteger(int(as_decimal(number)) if isinstance(number, float) else int(number))


_CASTS: dict[str, Callable[[Number], Number]] = {
    "Byte": _to_whole("Byte", 8, Byte),
    "Short": _to_whole("Short", 16, Short),
    "Integer": _to_whole("Integer", 32, int),
    "Long": _to_whole("Long", 64, Long),
    "BigInteger": _to_big_integer,
    "Float": _to_float,
    "Double": _to_double,
    "BigDecimal": as_decimal,
}


def as_bool(value: Any) -> bool:
    """Return a boolean, a number (0 and NaN are false) or a text as a boolean."""
    if isinstance(value, bool):
        return value
    if is_number(value):
        return bool(value == value and value != 0)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "false"):
            return word == "true"
        raise ExecutionFailure(f"Can't parse {value} as Boolean.")
    raise ExecutionFailure(f"Can't parse {class_name(value)} as Boolean.")
