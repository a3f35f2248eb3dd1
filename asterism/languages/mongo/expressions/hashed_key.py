"""The hash of a value in hashed indexes and hashed shard keys: the first 8 bytes of an MD5, as a long.

Numbers are cut to 64-bit integers first, so that equal numbers of different types have one hash.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any, Protocol

from asterism.languages.mongo.expressions.widths import DECIMAL, INT64_MAX, INT64_MIN, plain_decimal, width_of
from asterism.values.bson.codec import encode
from asterism.values.bson.order import rank
from asterism.values.bson.types import Code, Int64

# The reference server knows other seeds but uses this one.
_SEED = struct.pack("<i", 0)
_END_OF_DOCUMENT = struct.pack("<i", 0)


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def hashed_key(value: Any) -> Int64:
    """Return the hash of a value; a missing one counts as null."""
    digest = hashlib.md5(_SEED, usedforsecurity=False)
    _add(digest, value, b"")
    return Int64(struct.unpack("<q", digest.digest()[:8])[0])


def _add(digest: _Digest, value: Any, name: bytes) -> None:
    digest.update(struct.pack("<i", rank(value)) + name)
    if width_of(value) is not None:
        digest.update(struct.pack("<q", _whole(value)))
    elif isinstance(value, dict | list):
        _add_fields(digest, value if isinstance(value, dict) else {str(i): e for i, e in enumerate(value)})
    elif isinstance(value, Code) and value.scope is not None:
        digest.update(str(value).encode() + b"\0")
        _add_fields(digest, dict(value.scope))
    else:
        # The bytes of a document with this value under an empty name: 4 of length, type, end of name, value, end.
        digest.update(encode({"": value})[6:-1])


def _add_fields(digest: _Digest, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        _add(digest, value, name.encode() + b"\0")
    digest.update(_END_OF_DOCUMENT)


def _whole(value: Any) -> int:
    if width_of(value) == DECIMAL:
        number = plain_decimal(value)
        if number.is_nan():
            return 0
        if number.is_infinite():
            return INT64_MAX if number > 0 else INT64_MIN
    elif type(value) is float:
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return INT64_MAX if value > 0 else INT64_MIN
        number = plain_decimal(value)
    else:
        return int(value)
    return max(INT64_MIN, min(INT64_MAX, int(number)))
