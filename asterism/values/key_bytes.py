"""Bytes that sort as the values do, for keys of the store.

One tag byte per type, in the order of `ordering`, then
- number: the double, eight bytes, with the sign turned so that bytes sort as numbers do; not-a-number lowest;
- string: UTF-8 with 00 written as 00 FF, and 00 01 at the end;
- array: its elements, and 00 at the end; object: its names and values by order of names, and 00 at the end.
Every encoding tells where it ends, so no encoding is the beginning of another and encodings can follow one another.
An encoding with a maximum is cut there: it then sorts before or with what it would have sorted before.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from asterism.values.ordering import as_double
from asterism.values.undefined import UNDEFINED

Encoded = bytes

_END = b"\x00"
TAG_NUMBER = 0x05
TAG_STRING = 0x06
TAG_ARRAY = 0x07
TAG_OBJECT = 0x08

ENCODED_UNDEFINED: Encoded = b"\x01"
ENCODED_NULL: Encoded = b"\x02"
ENCODED_FALSE: Encoded = b"\x03"
ENCODED_TRUE: Encoded = b"\x04"
ENCODED_NOT_A_NUMBER: Encoded = b"\x05" + bytes(8)

STRING_START = b"\x06"
STRING_END = b"\x00\x01"
_ARRAY_START = b"\x07"
_OBJECT_START = b"\x08"
NUL = b"\x00"
NUL_ESCAPED = b"\x00\xff"

_NUMBER_BYTES = 9
_EXACT_INTEGER_MAX = 2**53
_ALL_BITS = 2**64 - 1
_pack_tag_and_double = struct.Struct(">Bd").pack
_pack_tag_and_bits = struct.Struct(">BQ").pack
_pack_double = struct.Struct(">d").pack
_unpack_double = struct.Struct(">d").unpack


# Typed Any and not object: the type is told by `kind`, and a cast at each use would cost as much as the encoding.
def encode(value: Any, *, bytes_max: int | None) -> Encoded:
    """The sortable bytes of `value`, at most `bytes_max` of them (None: as many as it takes)."""
    kind = type(value)
    encoded: bytes
    if kind is str:
        if bytes_max is not None and len(value) > bytes_max:
            # A character is at least one byte, so what is beyond would be cut anyway, megabytes of it perhaps.
            value = value[:bytes_max]
        # What encode_string does, without the call: strings are most of what is encoded.
        utf8 = value.encode()
        if NUL in utf8:
            utf8 = utf8.replace(NUL, NUL_ESCAPED)
        encoded = STRING_START + utf8 + STRING_END
    elif kind is int or kind is float:
        encoded = encode_number(value)
    elif kind is bool:
        return ENCODED_TRUE if value else ENCODED_FALSE
    elif value is None:
        return ENCODED_NULL
    elif value is UNDEFINED:
        return ENCODED_UNDEFINED
    elif isinstance(value, Mapping):
        encoded = _encode_object(value)
    elif isinstance(value, Sequence):
        encoded = _encode_array(value)
    else:
        raise TypeError(f"not a JSON value: {kind.__name__}")
    return encoded if bytes_max is None or len(encoded) <= bytes_max else encoded[:bytes_max]


def is_truncated(encoded: Encoded, bytes_max: int) -> bool:
    """Whether `encoded`, made with this maximum, may be the beginning of more than one value's bytes.

    An encoding that fills the maximum exactly counts as cut too: one that was cut looks the same.
    """
    return len(encoded) >= bytes_max


def encode_number(number: int | float) -> Encoded:
    try:
        double = float(number)
    except OverflowError:
        double = as_double(number)
    if double >= 0.0:
        # The negated double has the same bits with the sign bit set: just what puts it above the negative ones.
        return _pack_tag_and_double(TAG_NUMBER, -abs(double))
    if double < 0.0:
        bits = int.from_bytes(_pack_double(double), "big")
        return _pack_tag_and_bits(TAG_NUMBER, bits ^ _ALL_BITS)
    return ENCODED_NOT_A_NUMBER


def encode_string(text: str) -> Encoded:
    utf8 = text.encode()
    if NUL in utf8:
        utf8 = utf8.replace(NUL, NUL_ESCAPED)
    return STRING_START + utf8 + STRING_END


def _encode_array(elements: Sequence[object]) -> Encoded:
    return _ARRAY_START + b"".join([encode(element, bytes_max=None) for element in elements]) + _END


def _encode_object(members: Mapping[str, object]) -> Encoded:
    parts = [_OBJECT_START]
    for name in sorted(members):
        parts.append(encode_string(name))
        parts.append(encode(members[name], bytes_max=None))
    parts.append(_END)
    return b"".join(parts)


_CONSTANTS: dict[Encoded, object] = {
    ENCODED_UNDEFINED: UNDEFINED,
    ENCODED_NULL: None,
    ENCODED_FALSE: False,
    ENCODED_TRUE: True,
}


def decode(encoded: Encoded) -> object:
    """The scalar whose whole encoding this is; ValueError for arrays, objects, and encodings that were cut.

    Whole numbers that doubles hold exactly come back as int, as JSON text would give them.
    """
    if encoded in _CONSTANTS:
        return _CONSTANTS[encoded]
    if len(encoded) == _NUMBER_BYTES and encoded[0] == TAG_NUMBER:
        return _decode_number(encoded)
    if encoded[:1] == STRING_START and encoded.endswith(STRING_END):
        return encoded[1:-2].replace(NUL_ESCAPED, NUL).decode()
    raise ValueError("not the whole encoding of a scalar")


def _decode_number(encoded: Encoded) -> int | float:
    if encoded[1] >= 0x80:
        (negated,) = _unpack_double(encoded[1:])
        double: float = -negated
    else:
        bits = int.from_bytes(encoded[1:], "big") ^ _ALL_BITS
        (double,) = _unpack_double(bits.to_bytes(8, "big"))
    exact = abs(double) <= _EXACT_INTEGER_MAX and double.is_integer()
    return int(double) if exact else double
