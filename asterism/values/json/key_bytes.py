"""Encoding of values as bytes that sort as the values do, for keys of the store.

One tag byte per type, its rank, then
- number: the double, eight bytes, with the sign turned so that bytes sort as numbers do; not-a-number lowest;
- string: UTF-8 with 00 written as 00 FF, and 00 01 at the end;
- array: its elements, and 00 at the end; object: its names and values by order of names, and 00 at the end.
Every encoding is self-terminating, so no encoding is a prefix of another and encodings can be concatenated. An encoding
with a maximum is cut there: it then sorts before or with the values that the whole encoding sorts before.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from asterism.values.json import ranks
from asterism.values.json.order import as_double
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import NUL, NUL_ESCAPED

Encoded = bytes

_END = b"\x00"

ENCODED_UNDEFINED: Encoded = bytes([ranks.UNDEFINED])
ENCODED_NULL: Encoded = bytes([ranks.NULL])
ENCODED_FALSE: Encoded = bytes([ranks.FALSE])
ENCODED_TRUE: Encoded = bytes([ranks.TRUE])
ENCODED_NOT_A_NUMBER: Encoded = bytes([ranks.NUMBER]) + bytes(8)

STRING_START = bytes([ranks.STRING])
STRING_END = b"\x00\x01"
ARRAY_START = bytes([ranks.ARRAY])
OBJECT_START = bytes([ranks.OBJECT])
_TAG_NUMBER = ranks.NUMBER

_NUMBER_BYTES = 9
_EXACT_INTEGER_MAX = 2**53
_ALL_BITS = 2**64 - 1
_pack_tag_and_double = struct.Struct(">Bd").pack
_pack_tag_and_bits = struct.Struct(">BQ").pack
_pack_double = struct.Struct(">d").pack
_unpack_double = struct.Struct(">d").unpack


# Typed Any and not object: `kind` determines the type, and a cast at each use would cost as much as the encoding.
def encode(value: Any, *, bytes_max: int | None) -> Encoded:
    """Return the sortable bytes of `value`, at most `bytes_max` of them (None: no maximum)."""
    kind = type(value)
    encoded: bytes
    if kind is str:
        if bytes_max is not None and len(value) > bytes_max:
            # A character is at least one byte, so the rest, perhaps megabytes of it, would be cut anyway.
            value = value[:bytes_max]
        # The body of encode_string, without the call: most encoded values are strings.
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


def encode_number(number: int | float) -> Encoded:
    try:
        double = float(number)
    except OverflowError:
        double = as_double(number)
    if double >= 0.0:
        # The negated double has the same bits with the sign bit set, which puts it above the negative numbers.
        return _pack_tag_and_double(_TAG_NUMBER, -abs(double))
    if double < 0.0:
        bits = int.from_bytes(_pack_double(double), "big")
        return _pack_tag_and_bits(_TAG_NUMBER, bits ^ _ALL_BITS)
    return ENCODED_NOT_A_NUMBER


def encode_string(text: str) -> Encoded:
    utf8 = text.encode()
    if NUL in utf8:
        utf8 = utf8.replace(NUL, NUL_ESCAPED)
    return STRING_START + utf8 + STRING_END


def _encode_array(elements: Sequence[object]) -> Encoded:
    return ARRAY_START + b"".join([encode(element, bytes_max=None) for element in elements]) + _END


def _encode_object(members: Mapping[str, object]) -> Encoded:
    parts = [OBJECT_START]
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
    """Return the scalar of a whole encoding; ValueError for arrays, objects, and cut encodings.

    Whole numbers that doubles represent exactly are returned as int, as from JSON text.
    """
    if encoded in _CONSTANTS:
        return _CONSTANTS[encoded]
    if len(encoded) == _NUMBER_BYTES and encoded[0] == _TAG_NUMBER:
        return _decode_number(encoded)
    if encoded[:1] == STRING_START and encoded.endswith(STRING_END):
        return encoded[1:-2].replace(NUL_ESCAPED, NUL).decode()
    raise ValueError("not the whole encoding of a scalar")


def is_as_written(encoded: Encoded) -> bool:
    """Return True if `decode` gives the value exactly as written: a number may have been written in several ways."""
    return encoded in _CONSTANTS or (encoded[:1] == STRING_START and encoded.endswith(STRING_END))


def scalar_length(encoded: Encoded, *, bytes_max: int) -> int | None:
    """Return the length of the scalar that begins here, one of several encodings that follow one another, each at most
    `bytes_max` long; None if it was cut, or is an array or an object."""
    if encoded[0] < _TAG_NUMBER:
        return 1
    if encoded[0] == _TAG_NUMBER:
        return _NUMBER_BYTES
    if encoded[0] != ranks.STRING:
        return None
    end = encoded.find(STRING_END, 1, bytes_max)
    # An encoding that fills the maximum exactly looks like one that was cut.
    return None if end < 0 or end + len(STRING_END) >= bytes_max else end + len(STRING_END)


def _decode_number(encoded: Encoded) -> int | float:
    if encoded[1] >= 0x80:
        (negated,) = _unpack_double(encoded[1:])
        double: float = -negated
    else:
        bits = int.from_bytes(encoded[1:], "big") ^ _ALL_BITS
        (double,) = _unpack_double(bits.to_bytes(8, "big"))
    exact = abs(double) <= _EXACT_INTEGER_MAX and double.is_integer()
    return int(double) if exact else double
