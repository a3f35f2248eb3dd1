"""The order of a dialect's values, in memory and as bytes: what indexes, sorted results and groups go by.

A dialect (JSON, another protocol's types) has one table of its types, from the lowest to the highest. Index terms,
access plans and collectors get its order as an argument, so that none of them knows the types.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

# Compares with the keys of other values as the values do, and equals theirs where the values are equal.
SortKey: TypeAlias = tuple[object, ...]

# In an encoded string a NUL is escaped, so that the end of the string sorts before every longer one.
NUL = b"\x00"
NUL_ESCAPED = b"\x00\xff"


class ValueOrder(Protocol):
    """One order over the values of all types of a dialect.

    An encoding begins with a byte that tells the type, and tells where it ends: no encoding is a prefix of another, so
    that encodings can follow one another. No byte of a type is 00 or FF. Where types compare with one another, as the
    numbers of a dialect may, their values have one encoding if they are equal.
    """

    @property
    def undefined(self) -> bytes:
        """The encoding of a value that is missing."""
        ...

    @property
    def defined_spans(self) -> tuple[tuple[bytes, bytes], ...]:
        """The first bytes, and those behind the last, of the values that are not missing."""
        ...

    @property
    def nested_span(self) -> tuple[bytes, bytes]:
        """The first bytes, and those behind the last, of arrays and objects, which are neighbours."""
        ...

    @property
    def any_array(self) -> bytes:
        """The bytes that stand for any array in the index of a path."""
        ...

    @property
    def any_object(self) -> bytes:
        """The same for objects."""
        ...

    @property
    def string_start(self) -> bytes:
        """The bytes before the UTF-8 text of a string, in which every NUL is escaped."""
        ...

    @property
    def string_end(self) -> bytes:
        """The bytes behind it."""
        ...

    def encode(self, value: Any, *, bytes_max: int | None) -> bytes:
        """Return the sortable bytes of a value, cut to `bytes_max` unless that is None. Bytes that were cut sort before
        or with the values that the whole encoding sorts before."""
        ...

    def encode_number(self, number: Any, /) -> bytes:
        """Return the sortable bytes of a number, which are never cut."""
        ...

    def decode(self, encoded: bytes, /) -> object:
        """Return the scalar whose whole encoding this is; ValueError for arrays, objects, and bytes that were cut."""
        ...

    def is_as_written(self, encoded: bytes, /) -> bool:
        """Return True if `decode` gives the value as it was written, and not an equal one."""
        ...

    def scalar_length(self, encoded: bytes, /, *, bytes_max: int) -> int | None:
        """Return the length of the scalar that begins here, the first of several encodings of at most `bytes_max` bytes
        each; None if it was cut, or is an array or an object."""
        ...

    def type_span(self, encoded: bytes, /) -> tuple[bytes, bytes]:
        """Return the first bytes, and those behind the last, of the values that `<` and its kin compare with this
        one."""
        ...

    def sort_key(self, value: Any, /) -> SortKey:
        """Return what sorts values in memory, and tells equal ones."""
        ...


def is_truncated(encoded: bytes, bytes_max: int) -> bool:
    """Return True if `encoded`, made with this maximum, may be the prefix of more than one value's bytes.

    An encoding that fills the maximum exactly counts as truncated too: a truncated one has the same length.
    """
    return len(encoded) >= bytes_max


def is_scalar(order: ValueOrder, encoded: bytes) -> bool:
    """Return True if an encoding, which may be cut, is of a value that is neither an array nor an object."""
    low, high = order.nested_span
    return not low <= encoded < high


def behind(encoded: bytes) -> bytes:
    """Return the first bytes after all that begin with `encoded`, which is not all 0xFF."""
    trimmed = encoded.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1])
