"""Salted digests of values: equal values have equal digests, and nothing else of a value can be read from one.

A capture keeps them in place of the values that requests named. The salt belongs to the capture: its holder can compute
the digests of other values, such as those of stored items, and so find the items that requests named.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Final

from asterism.values.json.text import dumps_parsed

SALT_BYTES: Final = 16
# In front of 64 bits in hexadecimal digits. Of a million different values two have the same digest with a probability
# of 1 in 37 million.
DIGEST_MARK: Final = "#"
_DIGEST_BYTES: Final = 8
# Integers up to here are doubles without loss.
_EXACT_INTEGER_MAX: Final = 2**53

Scalar = str | int | float | bool | None
"""A JSON value that is neither an object nor an array."""


def canonical_json(value: Scalar) -> bytes:
    """Return the JSON text of a value. Numbers that are equal as doubles have the same text, as the database compares
    numbers as doubles."""
    if type(value) is float:
        return _whole_or_double(value)
    if type(value) is int and not -_EXACT_INTEGER_MAX <= value <= _EXACT_INTEGER_MAX:
        try:
            return _whole_or_double(float(value))
        except OverflowError:
            return str(value).encode()
    return dumps_parsed(value)


def _whole_or_double(number: float) -> bytes:
    if math.isfinite(number) and number.is_integer():
        return b"%d" % int(number)
    return dumps_parsed(number)


def digest(value: Scalar, *, salt: bytes) -> str:
    return DIGEST_MARK + blake2b(canonical_json(value), digest_size=_DIGEST_BYTES, key=salt).hexdigest()
