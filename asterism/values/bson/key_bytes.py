"""Values as bytes that sort as the values do, for keys and index entries.

A tag for the type, then the value so that no encoding is the beginning of another: encodings of several values can be
put behind each other. Numbers are a sortable double, the largest that is not above the number, and what is left of it,
so that integers of 64 bits and decimals keep their order and are told apart.
"""

from __future__ import annotations

import math
import struct
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from typing import Any, Final

from asterism.values.bson.numbers import decimal_of, is_nan
from asterism.values.bson.order import Collate, binary_order, regex_flags, regex_pattern
from asterism.values.bson.types import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    Missing,
    ObjectId,
    Regex,
    Timestamp,
)

# In the order of types; gaps are left for types to come.
_MIN_KEY = b"\x02"
_NULL = b"\x0a"
_NAN = b"\x14"
_NUMBER = b"\x16"
_TEXT = b"\x1e"
_OBJECT = b"\x28"
_ARRAY = b"\x32"
_BINARY = b"\x3c"
_OBJECT_ID = b"\x46"
_BOOL = b"\x50"
_DATE = b"\x5a"
_TIMESTAMP = b"\x64"
_REGEX = b"\x6e"
_CODE = b"\x78"
_CODE_WITH_SCOPE = b"\x7a"
_MAX_KEY = b"\xf0"

_END = b"\x00"
_MEMBER = b"\x01"
_EXACT = b"\x00"
_REST = b"\x01"
_SIGN = 1 << 63
_64_BITS = (1 << 64) - 1
_DOUBLE = struct.Struct(">d")
_UNSIGNED = struct.Struct(">Q")
_BINARY_HEAD = struct.Struct(">IB")
_TWO_NUMBERS = struct.Struct(">II")
_EXACT_INTEGER_MAX = 2**53
_INVERTED: Final = bytes(255 - byte for byte in range(256))
_FLOOR: Final = Context(prec=800, rounding=ROUND_FLOOR, Emin=-999999, Emax=999999, traps=[])


def invert(data: bytes) -> bytes:
    """Return bytes that sort the other way round."""
    return data.translate(_INVERTED)


def encode_key(value: Any, collate: Collate | None = None) -> bytes:
    """Return the bytes of a value. A missing value has those of null."""
    kind = type(value)
    if kind is ObjectId:
        return _OBJECT_ID + bytes(value.binary)
    if kind is str:
        return _TEXT + (_text(value.encode("utf-8", "surrogatepass")) if collate is None else _text(collate(value)))
    if kind is int or kind is Int64:
        return _NUMBER + (
            _double(float(value)) + _EXACT
            if -_EXACT_INTEGER_MAX <= value <= _EXACT_INTEGER_MAX
            else _number(int(value))
        )
    if kind is float:
        return _NAN if value != value else _NUMBER + _double(value) + _EXACT
    if value is None or kind is Missing:
        return _NULL
    encoded: bytes = _ENCODERS[kind](value, collate)
    return encoded


def _text(encoded: bytes) -> bytes:
    return (encoded.replace(b"\x00", b"\x00\xff") if b"\x00" in encoded else encoded) + b"\x00\x01"


def _double(value: float) -> bytes:
    # Minus zero is zero.
    (bits,) = _UNSIGNED.unpack(_DOUBLE.pack(value + 0.0))
    return _UNSIGNED.pack(bits ^ (_64_BITS if bits & _SIGN else _SIGN))


def _number(value: int | Decimal) -> bytes:
    """Encode a number that may not be a double."""
    floor = _floor_double(value)
    if math.isinf(floor):
        if floor > 0 or value == floor:
            return _double(floor) + _EXACT
        # Below every double.
        return _double(floor) + _REST + _magnitude(Decimal(value), is_negative=True)
    if value == floor:
        return _double(floor) + _EXACT
    with localcontext(_FLOOR):
        rest = Decimal(value) - Decimal(floor)
    return _double(floor) + _REST + _magnitude(rest, is_negative=False)


def _floor_double(value: int | Decimal) -> float:
    """Return the largest double that is not above the value."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    if near > value or (math.isinf(near) and near > 0 and value != near):
        near = math.nextafter(near, -math.inf)
    return near


def _magnitude(value: Decimal, *, is_negative: bool) -> bytes:
    """Encode a number that is not zero by exponent and digits."""
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0") or "0"
    exponent = value.adjusted() + 0x8000
    encoded = exponent.to_bytes(3, "big") + digits.encode() + _END
    return invert(encoded) if is_negative else encoded


def _decimal(value: Decimal128, _: Collate | None) -> bytes:
    if is_nan(value):
        return _NAN
    exact = decimal_of(value)
    if exact.is_infinite():
        return _NUMBER + _double(float(exact)) + _EXACT
    return _NUMBER + _number(exact)


def _object(value: dict[str, Any], collate: Collate | None) -> bytes:
    parts = []
    for name, member in value.items():
        encoded = encode_key(member, collate)
        # The type, then the name, then the value.
        parts.append(_MEMBER + encoded[:1] + _text(name.encode("utf-8", "surrogatepass")) + encoded)
    return _OBJECT + b"".join(parts) + _END


def _array(value: list[Any], collate: Collate | None) -> bytes:
    return _ARRAY + b"".join([_MEMBER + encode_key(member, collate) for member in value]) + _END


def _binary(value: bytes, _: Collate | None) -> bytes:
    length, subtype, data = binary_order(value)
    return _BINARY + _BINARY_HEAD.pack(length, subtype) + data


def _date(value: DatetimeMS, _: Collate | None) -> bytes:
    return _DATE + _UNSIGNED.pack((int(value) + _SIGN) & _64_BITS)


def _regex(value: Regex[Any], _: Collate | None) -> bytes:
    pattern, flags = regex_pattern(value), regex_flags(value)
    return _REGEX + _text(pattern.encode("utf-8", "surrogatepass")) + _text(flags.encode())


def _code(value: Code, collate: Collate | None) -> bytes:
    text = _text(str(value).encode("utf-8", "surrogatepass"))
    if value.scope is None:
        return _CODE + text
    return _CODE_WITH_SCOPE + text + _object(dict(value.scope), collate)


_ENCODERS: Final[dict[type, Any]] = {
    dict: _object,
    list: _array,
    bytes: _binary,
    Binary: _binary,
    Decimal128: _decimal,
    bool: lambda value, _: _BOOL + (b"\x01" if value else b"\x00"),
    DatetimeMS: _date,
    Timestamp: lambda value, _: _TIMESTAMP + _TWO_NUMBERS.pack(value.time, value.inc),
    Regex: _regex,
    Code: _code,
    MinKey: lambda *_: _MIN_KEY,
    MaxKey: lambda *_: _MAX_KEY,
}


def type_span(value: Any) -> tuple[bytes, bytes]:
    """Return the first key bytes of the values that compare with a value in a filter, and the first behind them."""
    tag = encode_key(value)[:1]
    if tag in (_NAN, _NUMBER):
        return _NAN, bytes((_NUMBER[0] + 1,))
    return tag, bytes((tag[0] + 1,))


def text_prefix(text: str) -> bytes:
    """Return the bytes with which the keys of all texts begin that begin with a text."""
    return _TEXT + _text(text.encode("utf-8", "surrogatepass"))[:-2]
