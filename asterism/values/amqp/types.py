"""The types of AMQP 1.0 as Python values.

Python's own types serve where they are exact: None, bool, str (string), bytes (binary), int (long), float (double),
list and dict (map). Every other type is a subclass that keeps the type of a value through decoding and encoding, as
answers must repeat it: the correlation-id of a reply has the type of the request's message-id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple


class InvalidAmqp(ValueError):
    """The bytes are not of a value or message of AMQP 1.0, or exceed a limit; or a value has no form in AMQP."""


class UByte(int):
    __slots__ = ()


class UShort(int):
    __slots__ = ()


class UInt(int):
    __slots__ = ()


class ULong(int):
    __slots__ = ()


class Byte(int):
    __slots__ = ()


class Short(int):
    __slots__ = ()


class Int(int):
    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970, in universal time; negative before."""

    __slots__ = ()


class Float(float):
    """A number of 32 bits; Python's float is the double of AMQP."""

    __slots__ = ()


class Char(str):
    """A single code point."""

    __slots__ = ()


class Symbol(str):
    """A text of ASCII characters out of a fixed vocabulary. Equal to the string of the same characters."""

    __slots__ = ()


class Uuid(bytes):
    """16 bytes in the order of RFC 4122."""

    __slots__ = ()


class Decimal32(bytes):
    """The 4 bytes of a decimal as they came: such numbers are passed on, never calculated with."""

    __slots__ = ()


class Decimal64(bytes):
    __slots__ = ()


class Decimal128(bytes):
    __slots__ = ()


class Described(NamedTuple):
    """A value under a descriptor, which is a symbol or an unsigned long."""

    descriptor: Any
    value: Any


# The widest constructor of each type that an array can have, by the type of its elements.
ARRAY_CODES: Final[dict[type, int]] = {
    bool: 0x56,
    UByte: 0x50,
    UShort: 0x60,
    UInt: 0x70,
    ULong: 0x80,
    Byte: 0x51,
    Short: 0x61,
    Int: 0x71,
    int: 0x81,
    Float: 0x72,
    float: 0x82,
    Decimal32: 0x74,
    Decimal64: 0x84,
    Decimal128: 0x94,
    Char: 0x73,
    Timestamp: 0x83,
    Uuid: 0x98,
    bytes: 0xB0,
    str: 0xB1,
    Symbol: 0xB3,
    list: 0xD0,
    dict: 0xD1,
}


class Array(list[Any]):
    """Elements of one type, which `code` says: the widest constructor of that type.

    With a descriptor, every element is a Described with that descriptor.
    """

    __slots__ = ("code", "descriptor")

    def __init__(self, code: int, items: Iterable[Any] = (), *, descriptor: Any = None) -> None:
        super().__init__(items)
        self.code = code
        self.descriptor = descriptor

    @classmethod
    def of(cls, kind: type, items: Iterable[Any]) -> Array:
        """Return an array of a type of this module or of Python's own, as `Array.of(UInt, [1, 2])`."""
        return cls(ARRAY_CODES[kind], (item if type(item) is kind else kind(item) for item in items))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Array) and (self.code, self.descriptor) != (other.code, other.descriptor):
            return False
        return super().__eq__(other)

    __hash__ = None
