"""The bytes of AMQP values: a decoder that trusts no announced length, and an encoder that takes the shortest form.

Decoding and encoding look up a function by the constructor's byte or by the value's type. Compound values say how long
they are; that is checked against the bytes at hand before anything is collected, and again behind the last item.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from asterism.values.amqp.constructors import WIDTHS
from asterism.values.amqp.types import (
    ARRAY_CODES,
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    InvalidAmqp,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Uuid,
)

# Values of the protocol and of its clients are a handful of levels deep; each level is a call of Python.
DEPTH_MAX: Final = 32
# Elements that take no bytes are the only ones whose number no length bounds.
WIDTHLESS_ELEMENTS_MAX: Final = 16

_Decoder = Callable[[bytes, int, int], tuple[Any, int]]

_UINT16 = struct.Struct(">H")
_UINT32 = struct.Struct(">I")
_UINT64 = struct.Struct(">Q")


# --- decoding -------------------------------------------------------------------------------------------------------


def decode_value(data: bytes, offset: int = 0) -> tuple[Any, int]:
    """Return the value that begins at an offset, and the offset behind it. Raises InvalidAmqp and nothing else."""
    try:
        return _DECODERS[data[offset]](data, offset + 1, 0)
    except InvalidAmqp:
        raise
    except (IndexError, struct.error):
        raise InvalidAmqp("the value is cut short") from None
    except ValueError:
        raise InvalidAmqp("the text is not valid UTF-8") from None


def _unknown(data: bytes, offset: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001 - a row of the table
    raise InvalidAmqp(f"0x{data[offset - 1]:02x} is not the constructor of a value")


def _constant(value: Any) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001 - a row of the table
        return value, offset

    return decode


def _fixed(kind: Callable[[Any], Any], layout: str) -> _Decoder:
    packed = struct.Struct(layout)
    unpack_from, width = packed.unpack_from, packed.size
    if kind in (int, float):
        # They are exact as they come.
        def decode_plain(data: bytes, offset: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001 - a row of the table
            return unpack_from(data, offset)[0], offset + width

        return decode_plain

    def decode(data: bytes, offset: int, depth: int) -> tuple[Any, int]:  # noqa: ARG001 - a row of the table
        return kind(unpack_from(data, offset)[0]), offset + width

    return decode


def _boolean(data: bytes, offset: int, depth: int) -> tuple[bool, int]:  # noqa: ARG001 - a row of the table
    if data[offset] > 1:
        raise InvalidAmqp("a boolean is neither 0 nor 1")
    return data[offset] == 1, offset + 1


def _char_of(number: int) -> Char:
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise InvalidAmqp("a char is not a code point")
    return Char(chr(number))


def _opaque(kind: type[bytes], width: int) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[bytes, int]:  # noqa: ARG001 - a row of the table
        end = offset + width
        if end > len(data):
            raise InvalidAmqp("the value is cut short")
        return kind(data[offset:end]), end

    return decode


def _slice(data: bytes, offset: int, length_bytes: int) -> tuple[bytes, int]:
    """Return the bytes behind a length of one or four bytes."""
    start = offset + length_bytes
    end = start + (data[offset] if length_bytes == 1 else _UINT32.unpack_from(data, offset)[0])
    if end > len(data):
        raise InvalidAmqp("the value is cut short")
    return data[start:end], end


def _binary(length_bytes: int) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[bytes, int]:  # noqa: ARG001 - a row of the table
        return _slice(data, offset, length_bytes)

    return decode


def _string(length_bytes: int) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[str, int]:  # noqa: ARG001 - a row of the table
        text, end = _slice(data, offset, length_bytes)
        return text.decode("utf-8"), end

    return decode


def _symbol(length_bytes: int) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[Symbol, int]:  # noqa: ARG001 - a row of the table
        text, end = _slice(data, offset, length_bytes)
        if not text.isascii():
            raise InvalidAmqp("a symbol has a character that is not of ASCII")
        return Symbol(text.decode("ascii")), end

    return decode


def _compound_head(data: bytes, offset: int, length_bytes: int) -> tuple[int, int, int]:
    """Return where a compound value's items begin, where they end, and how many they are."""
    if length_bytes == 1:
        end = offset + 1 + data[offset]
        count = data[offset + 1]
        offset += 2
    else:
        end = offset + 4 + _UINT32.unpack_from(data, offset)[0]
        count = _UINT32.unpack_from(data, offset + 4)[0]
        offset += 8
    if end > len(data) or offset > end:
        raise InvalidAmqp("the value is cut short")
    return offset, end, count


def _deeper(depth: int) -> int:
    if depth >= DEPTH_MAX:
        raise InvalidAmqp(f"the value has more than {DEPTH_MAX} levels")
    return depth + 1


def _items(data: bytes, offset: int, depth: int, length_bytes: int) -> tuple[list[Any], int]:
    offset, end, count = _compound_head(data, offset, length_bytes)
    if count > end - offset:
        raise InvalidAmqp("a compound value announces more items than it has bytes")
    depth = _deeper(depth)
    items = []
    for _ in range(count):
        item, offset = _DECODERS[data[offset]](data, offset + 1, depth)
        items.append(item)
    if offset != end:
        raise InvalidAmqp("a compound value does not end where it says")
    return items, end


def _list(length_bytes: int) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:
        return _items(data, offset, depth, length_bytes)

    return decode


def _empty_list(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:  # noqa: ARG001 - a row of the table
    return [], offset


def _map(length_bytes: int) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[dict[Any, Any], int]:
        items, end = _items(data, offset, depth, length_bytes)
        if len(items) % 2:
            raise InvalidAmqp("a map has a key without a value")
        try:
            return dict(zip(items[::2], items[1::2], strict=True)), end
        except TypeError:
            raise InvalidAmqp("the key of a map is a compound value") from None

    return decode


def _array(length_bytes: int) -> _Decoder:
    def decode(data: bytes, offset: int, depth: int) -> tuple[Array, int]:
        offset, end, count = _compound_head(data, offset, length_bytes)
        depth = _deeper(depth)
        descriptor = None
        code = data[offset]
        if code == 0:
            descriptor, offset = _DECODERS[data[offset + 1]](data, offset + 2, depth)
            if descriptor is None:
                raise InvalidAmqp("the elements of an array have no descriptor")
            code = data[offset]
        offset += 1
        widest = _WIDEST_CODES.get(code)
        if widest is None:
            raise InvalidAmqp(f"0x{code:02x} is not the constructor of the elements of an array")
        if count > (WIDTHLESS_ELEMENTS_MAX if WIDTHS[code] == 0 else end - offset):
            raise InvalidAmqp("an array announces more elements than it has bytes")
        decode_element = _DECODERS[code]
        array = Array(widest, descriptor=descriptor)
        for _ in range(count):
            element, offset = decode_element(data, offset, depth)
            array.append(element if descriptor is None else Described(descriptor, element))
        if offset != end:
            raise InvalidAmqp("an array does not end where it says")
        return array, end

    return decode


def _described(data: bytes, offset: int, depth: int) -> tuple[Described, int]:
    depth = _deeper(depth)
    descriptor, offset = _DECODERS[data[offset]](data, offset + 1, depth)
    value, offset = _DECODERS[data[offset]](data, offset + 1, depth)
    return Described(descriptor, value), offset


_DECODER_OF_CODE: Final[dict[int, _Decoder]] = {
    0x00: _described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(UInt(0)),
    0x44: _constant(ULong(0)),
    0x45: _empty_list,
    0x50: _fixed(UByte, ">B"),
    0x51: _fixed(Byte, ">b"),
    0x52: _fixed(UInt, ">B"),
    0x53: _fixed(ULong, ">B"),
    0x54: _fixed(Int, ">b"),
    0x55: _fixed(int, ">b"),
    0x56: _boolean,
    0x60: _fixed(UShort, ">H"),
    0x61: _fixed(Short, ">h"),
    0x70: _fixed(UInt, ">I"),
    0x71: _fixed(Int, ">i"),
    0x72: _fixed(Float, ">f"),
    0x73: _fixed(_char_of, ">I"),
    0x74: _opaque(Decimal32, 4),
    0x80: _fixed(ULong, ">Q"),
    0x81: _fixed(int, ">q"),
    0x82: _fixed(float, ">d"),
    0x83: _fixed(Timestamp, ">q"),
    0x84: _opaque(Decimal64, 8),
    0x94: _opaque(Decimal128, 16),
    0x98: _opaque(Uuid, 16),
    0xA0: _binary(1),
    0xA1: _string(1),
    0xA3: _symbol(1),
    0xB0: _binary(4),
    0xB1: _string(4),
    0xB3: _symbol(4),
    0xC0: _list(1),
    0xC1: _map(1),
    0xD0: _list(4),
    0xD1: _map(4),
    0xE0: _array(1),
    0xF0: _array(4),
}
_DECODERS: Final = [_DECODER_OF_CODE.get(code, _unknown) for code in range(256)]

# Arrays keep the type of their elements, in its widest form.
_WIDEST_CODES: Final = {
    **{code: code for code in ARRAY_CODES.values()},
    **{0x40: 0x40, 0x41: 0x56, 0x42: 0x56, 0x43: 0x70, 0x44: 0x80, 0x45: 0xD0, 0x52: 0x70, 0x53: 0x80, 0x54: 0x71},
    **{0x55: 0x81, 0xA0: 0xB0, 0xA1: 0xB1, 0xA3: 0xB3, 0xC0: 0xD0, 0xC1: 0xD1, 0xE0: 0xF0, 0xF0: 0xF0},
}


# --- encoding -------------------------------------------------------------------------------------------------------


def encode_value(value: Any) -> bytes:
    """Return the bytes of a value, in the shortest form of its type. Raises InvalidAmqp for a value without a form."""
    encode = _ENCODERS.get(type(value))
    if encode is None:
        encode = _encoder_of_subclass(value)
    try:
        return encode(value)
    except InvalidAmqp:
        raise
    except (struct.error, OverflowError, ValueError, TypeError):
        raise InvalidAmqp(f"{type(value).__name__} cannot be written: the value is out of its range") from None


def _encoder_of_subclass(value: Any) -> Callable[[Any], bytes]:
    """Return the encoder of a value whose type is derived from one of the table's: enumerations, named tuples."""
    for kind in type(value).__mro__:
        if kind in _ENCODERS:
            return _ENCODERS[kind]
    raise InvalidAmqp(f"{type(value).__name__} has no form in AMQP")


def _packer(code: int, layout: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(">B" + layout).pack
    return lambda value: pack(code, value)


def _unsigned(*, zero: int, small: int, wide: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    zero_bytes = bytes([zero])
    return lambda value: zero_bytes if value == 0 else bytes([small, value]) if 0 < value < 256 else wide(value)


def _signed(*, small: int, wide: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: bytes([small, value & 0xFF]) if -128 <= value < 128 else wide(value)


def _sized(short: int, content: bytes) -> bytes:
    """Return content behind its length; the constructor for long content is 0x10 above that for short."""
    size = len(content)
    if size < 256:
        return bytes((short, size)) + content
    return bytes((short + 0x10,)) + _UINT32.pack(size) + content


def _encode_text(value: str) -> bytes:
    return _sized(0xA1, value.encode("utf-8"))


def _encode_symbol(value: str) -> bytes:
    return _sized(0xA3, value.encode("ascii"))


def _encode_char(value: str) -> bytes:
    return b"\x73" + _UINT32.pack(ord(value))


def _exact(code: int, width: int) -> Callable[[bytes], bytes]:
    prefix = bytes([code])

    def encode(value: bytes) -> bytes:
        if len(value) != width:
            raise InvalidAmqp(f"{type(value).__name__} has {len(value)} bytes instead of {width}")
        return prefix + value

    return encode


def encode_list_of(encoded: list[bytes]) -> bytes:
    """Return the list of values that are encoded already."""
    return _compound(0xC0, b"".join(encoded), len(encoded)) if encoded else b"\x45"


def _compound(short: int, content: bytes, count: int) -> bytes:
    if len(content) < 255 and count < 256:
        return bytes((short, len(content) + 1, count)) + content
    return bytes((short + 0x10,)) + _UINT32.pack(len(content) + 4) + _UINT32.pack(count) + content


def _encode_list(value: list[Any] | tuple[Any, ...]) -> bytes:
    return encode_list_of([encode_value(item) for item in value])


def _encode_map(value: dict[Any, Any]) -> bytes:
    parts = []
    for key, item in value.items():
        parts.append(encode_value(key))
        parts.append(encode_value(item))
    return _compound(0xC1, b"".join(parts), len(parts))


def _encode_described(value: Described) -> bytes:
    return b"\x00" + encode_value(value.descriptor) + encode_value(value.value)


def _encode_array(value: Array) -> bytes:
    encode = _ELEMENT_ENCODERS.get(value.code)
    if encode is None:
        raise InvalidAmqp(f"0x{value.code:02x} is not the constructor of the elements of an array")
    constructor = bytes([value.code])
    elements: list[Any] = value
    if value.descriptor is not None:
        constructor = b"\x00" + encode_value(value.descriptor) + constructor
        elements = [element.value for element in value]
    return _compound(0xE0, constructor + b"".join(map(encode, elements)), len(value))


def _wide_content(content: bytes) -> bytes:
    return _UINT32.pack(len(content)) + content


def _wide_compound(encoded: bytes) -> bytes:
    """Return a list, map or array in its widest form, without its constructor."""
    if encoded[0] == 0x45:
        return _UINT32.pack(4) + _UINT32.pack(0)
    if encoded[0] in (0xC0, 0xC1, 0xE0):
        return _UINT32.pack(encoded[1] + 3) + _UINT32.pack(encoded[2]) + encoded[3:]
    return encoded[1:]


def _content(layout: str) -> Callable[[Any], bytes]:
    return struct.Struct(">" + layout).pack


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    UByte: _packer(0x50, "B"),
    UShort: _packer(0x60, "H"),
    UInt: _unsigned(zero=0x43, small=0x52, wide=_packer(0x70, "I")),
    ULong: _unsigned(zero=0x44, small=0x53, wide=_packer(0x80, "Q")),
    Byte: _packer(0x51, "b"),
    Short: _packer(0x61, "h"),
    Int: _signed(small=0x54, wide=_packer(0x71, "i")),
    int: _signed(small=0x55, wide=_packer(0x81, "q")),
    Float: _packer(0x72, "f"),
    float: _packer(0x82, "d"),
    Decimal32: _exact(0x74, 4),
    Decimal64: _exact(0x84, 8),
    Decimal128: _exact(0x94, 16),
    Char: _encode_char,
    Timestamp: _packer(0x83, "q"),
    Uuid: _exact(0x98, 16),
    bytes: lambda value: _sized(0xA0, value),
    bytearray: lambda value: _sized(0xA0, bytes(value)),
    str: _encode_text,
    Symbol: _encode_symbol,
    Described: _encode_described,
    Array: _encode_array,
    list: _encode_list,
    tuple: _encode_list,
    dict: _encode_map,
}

_ELEMENT_ENCODERS: Final[dict[int, Callable[[Any], bytes]]] = {
    0x40: lambda _: b"",
    0x56: lambda value: b"\x01" if value else b"\x00",
    0x50: _content("B"),
    0x60: _content("H"),
    0x70: _content("I"),
    0x80: _content("Q"),
    0x51: _content("b"),
    0x61: _content("h"),
    0x71: _content("i"),
    0x81: _content("q"),
    0x72: _content("f"),
    0x82: _content("d"),
    0x73: lambda value: _encode_char(value)[1:],
    0x83: _content("q"),
    0x74: lambda value: _exact(0x74, 4)(value)[1:],
    0x84: lambda value: _exact(0x84, 8)(value)[1:],
    0x94: lambda value: _exact(0x94, 16)(value)[1:],
    0x98: lambda value: _exact(0x98, 16)(value)[1:],
    0xB0: _wide_content,
    0xB1: lambda value: _wide_content(value.encode("utf-8")),
    0xB3: lambda value: _wide_content(value.encode("ascii")),
    0xD0: lambda value: _wide_compound(_encode_list(value)),
    0xD1: lambda value: _wide_compound(_encode_map(value)),
    0xF0: lambda value: _wide_compound(_encode_array(value)),
}
