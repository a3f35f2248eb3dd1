"""The types of Java's numbers, which Gremlin tells apart: `typeOf`, overflow of sums, and typed answers depend on them.

A plain `int` is an Int if it has 32 bits, else a Long if it has 64, else a BigInteger. A
`float` that is not a Float is a Double, and a `Decimal` is a BigDecimal.
"""

from __future__ import annotations

from decimal import Decimal


class Byte(int):
    """8 bits."""

    __slots__ = ()


class Short(int):
    """16 bits."""

    __slots__ = ()


class Long(int):
    """64 bits, however small the number is."""

    __slots__ = ()


class BigInteger(int):
    """An integer of any size."""

    __slots__ = ()


class Float(float):
    """32 bits, rounded by the reader of the value."""

    __slots__ = ()


BigDecimal = Decimal

Number = int | float | Decimal

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


def is_number(value: object) -> bool:
    """Return whether a value is a number of Gremlin; booleans are not."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def number_type(value: int | float | Decimal) -> str:
    """Return the simple name of the Java class of a number, such as `Integer`."""
    kind = type(value)
    if kind is int:
        if INT_MIN <= value <= INT_MAX:
            return "Integer"
        return "Long" if LONG_MIN <= value <= LONG_MAX else "BigInteger"
    return _NAMES_OF_TYPES[kind]


_NAMES_OF_TYPES: dict[type, str] = {
    Byte: "Byte",
    Short: "Short",
    Long: "Long",
    BigInteger: "BigInteger",
    Float: "Float",
    float: "Double",
    Decimal: "BigDecimal",
}
