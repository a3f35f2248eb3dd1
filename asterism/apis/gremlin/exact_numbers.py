"""Numbers of any size in requests: read within bounds, because arithmetic with them takes time and memory."""

from __future__ import annotations

import struct
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.languages.gremlin.values.numbers import BigInteger, Float

# As many digits as Python turns into text and back.
DIGITS_MAX: Final = 4000
INTEGER_BYTES_MAX: Final = 1660
_FLOAT = struct.Struct(">f")


def read_integer(value: Any) -> int:
    """Read an integer that JSON has as a number or as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise MalformedMessage("A number in the request is not a number.")
    try:
        if isinstance(value, str):
            if len(value) > DIGITS_MAX:
                raise refuse_size()
            return int(value)
        return int(value)
    except (ValueError, OverflowError):
        raise MalformedMessage("A number in the request is not an integer.") from None


def bounded_integer(value: Any, kind: type[int], bits: int) -> int:
    number = read_integer(value)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise MalformedMessage(f"The number {number} does not fit into the {bits} bits of its type.")
    return kind(number)


def read_big_integer(value: Any) -> BigInteger:
    return BigInteger(read_integer(value))


def big_integer_from(data: bytes) -> BigInteger:
    if len(data) > INTEGER_BYTES_MAX:
        raise refuse_size()
    return BigInteger(int.from_bytes(data, signed=True))


def big_integer_bytes(number: int) -> bytes:
    """Return the shortest form in two's complement."""
    bits = (number if number >= 0 else ~number).bit_length()
    return int(number).to_bytes(bits // 8 + 1, signed=True)


def read_decimal(value: Any) -> Decimal:
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, bool) or len(text) > DIGITS_MAX:
        raise refuse_size()
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise MalformedMessage("A decimal number in the request is not a number.") from None
    return _checked(found)


def decimal_from(scale: int, unscaled: int) -> Decimal:
    if abs(scale) > DIGITS_MAX:
        raise refuse_size()
    sign = 1 if unscaled < 0 else 0
    return Decimal((sign, tuple(map(int, str(abs(unscaled)))), -scale))


def decimal_parts(number: Decimal) -> tuple[int, int]:
    """Return scale and unscaled value, as Java keeps a decimal number."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "a decimal number is finite"
    unscaled = int("".join(map(str, digits)) or "0")
    return -exponent, -unscaled if sign else unscaled


def _checked(number: Decimal) -> Decimal:
    if not number.is_finite() or abs(number.adjusted()) > DIGITS_MAX:
        raise refuse_size()
    return number


def read_double(value: Any) -> float:
    """Read a fraction, or the names that JSON has for numbers that are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise MalformedMessage("A number in the request is not a number.")
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        raise MalformedMessage("A number in the request is not a number.")
    try:
        return float(value)
    except OverflowError:
        raise refuse_size() from None


def read_float(value: Any) -> Float:
    return round_float(read_double(value))


def round_float(number: float) -> Float:
    """Round to the 32 bits of Java's float."""
    try:
        return Float(_FLOAT.unpack(_FLOAT.pack(number))[0])
    except OverflowError:
        return Float("inf" if number > 0 else "-inf")


def refuse_size() -> MalformedMessage:
    return MalformedMessage(f"Numbers in a request can have {DIGITS_MAX} digits.")
