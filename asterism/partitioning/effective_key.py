"""The effective partition key: a key value's place on the hash line, byte for byte the service's own; or, for the
kind Range, its place in the order of the keys themselves.

A client that computes hashes itself must agree with the server (spec C6), so these functions follow the service in
everything, down to the two bits that version 2 clears.
"""

from __future__ import annotations

import hashlib
import struct

import mmh3

from asterism.errors import MalformedRequest, PartitionKeyMismatch
from asterism.partitioning.key_range import KeyRange, point_from_text, point_to_text
from asterism.partitioning.partition_key import Component, PartitionKey, PartitionKeyDefinition, PartitionKeyKind
from asterism.values.ordered_text import PART_BYTES_MAX, leading_part
from asterism.values.undefined import UNDEFINED

_UNDEFINED_MARK = b"\x00"
_NULL_MARK = b"\x01"
_FALSE_MARK = b"\x02"
_TRUE_MARK = b"\x03"
_NUMBER_MARK = b"\x05"
_STRING_MARK = b"\x08"

_pack_number = struct.Struct("<Bd").pack
# The service's runtime has the sign bit set in its not-a-number; Python's has not.
_NAN_HASHED = _NUMBER_MARK + bytes.fromhex("000000000000f8ff")

# Version 1 hashes this many characters of a string and keeps this many of its bytes in the effective key.
_V1_STRING_CHARACTERS = 100
_V1_STRING_BYTES = 100
_PLUS_ONE = bytes((byte + 1) & 0xFF for byte in range(256))

# Of one level of a version 2 key.
HASH_BYTES = 16

_SIGN_BIT = 1 << 63
_64_BITS = (1 << 64) - 1

to_text = point_to_text
from_text = point_from_text


def effective_key(definition: PartitionKeyDefinition, key: PartitionKey) -> bytes:
    """Return the point of a key. A prefix of a hierarchical key gives the bytes that all keys below it begin with."""
    if definition.system_key:
        # The clients place the empty key at the very start of the line.
        return b""
    if len(key) > len(definition.paths) or not key:
        raise PartitionKeyMismatch
    if definition.version == 1:
        return _version_1(key[0])
    if len(key) == 1:
        return _version_2(key[0]) if definition.kind is not PartitionKeyKind.RANGE else _ordered(key[0])
    return b"".join([_version_2(component) for component in key])


def storage_point(definition: PartitionKeyDefinition, key: PartitionKey) -> bytes:
    """Return the prefix of a logical partition's stored keys: its effective key and, where version 1 may have cut a
    string, a digest of the whole string. Values that share their first 100 characters share their place on the line but
    are different keys, and the points of neither may begin with those of the other."""
    if len(key) == 1 and type(key[0]) is str and definition.hashes_version_2:
        # Nearly every key, and every request needs its point: `_version_2` without its calls.
        digest = mmh3.mmh3_x64_128_digest(_STRING_MARK + _utf8(key[0]) + b"\xff")
        return bytes((digest[15] & 0x3F,)) + digest[14::-1]
    point = effective_key(definition, key)
    if definition.version == 1 and key and isinstance(key[0], str) and _needs_digest(definition, key[0]):
        return point + hashlib.blake2b(_utf8(key[0]), digest_size=16).digest()
    return point


def _needs_digest(definition: PartitionKeyDefinition, value: str) -> bool:
    if definition.digests_cut_strings_only:
        return len(value) > _V1_STRING_CHARACTERS
    return len(_utf8(value)) >= _V1_STRING_BYTES


def prefix_range(definition: PartitionKeyDefinition, key: PartitionKey) -> KeyRange:
    """Return the range of all keys below a prefix of a hierarchical key."""
    if definition.kind is not PartitionKeyKind.MULTI_HASH:
        raise PartitionKeyMismatch
    prefix = effective_key(definition, key)
    return KeyRange(prefix, prefix + b"\xff")


def border_at(definition: PartitionKeyDefinition, point: bytes) -> bytes:
    """Return the last place at or before a point where the line may be divided. Long ordered keys that share their
    first bytes are not ordered among each other, so they stay together; elsewhere the line may be divided at any key.
    """
    return point[:PART_BYTES_MAX] if definition.kind is PartitionKeyKind.RANGE else point


def _ordered(component: Component) -> bytes:
    if not isinstance(component, str):
        raise PartitionKeyMismatch
    return leading_part(component)


def _version_2(component: Component) -> bytes:
    digest = mmh3.mmh3_x64_128_digest(_hashed_bytes(component, b"\xff"))
    # The two highest bits are cleared to stay below "FF", the end of the line.
    return bytes((digest[15] & 0x3F,)) + digest[14::-1]


def _version_1(component: Component) -> bytes:
    if isinstance(component, str):
        component = component[:_V1_STRING_CHARACTERS]
    hashed = mmh3.mmh3_32_uintdigest(_hashed_bytes(component, b"\x00"))
    return encode_number(float(hashed)) + _encode_component(component)


def _hashed_bytes(component: Component, string_suffix: bytes) -> bytes:
    if isinstance(component, str):
        return _STRING_MARK + _utf8(component) + string_suffix
    mark = _mark_of(component)
    if mark is not None:
        return mark
    assert isinstance(component, int | float)
    if component != component:
        return _NAN_HASHED
    # Adding zero turns -0.0 into 0.0: equal numbers must be one logical partition.
    return _pack_number(5, component + 0.0)


def _mark_of(component: Component) -> bytes | None:
    """Return the mark of a value that is neither a string nor a number, or None."""
    if component is UNDEFINED:
        return _UNDEFINED_MARK
    if component is None:
        return _NULL_MARK
    if component is True:
        return _TRUE_MARK
    return _FALSE_MARK if component is False else None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise MalformedRequest(reason="A partition key value contains a lone surrogate.") from None


def _encode_component(component: Component) -> bytes:
    """Return the order-keeping bytes that follow the hash in a version 1 key."""
    if isinstance(component, str):
        encoded = _utf8(component)
        if len(encoded) <= _V1_STRING_BYTES:
            return _STRING_MARK + encoded.translate(_PLUS_ONE) + b"\x00"
        return _STRING_MARK + encoded[: _V1_STRING_BYTES + 1].translate(_PLUS_ONE)
    mark = _mark_of(component)
    if mark is not None:
        return mark
    assert isinstance(component, int | float)
    return encode_number(float(component))


def encode_number(number: float) -> bytes:
    """Encode a double as bytes that sort as numbers do: eight bits, then groups of seven, each with a low bit that is
    set if another group follows."""
    if number != number:
        bits = _SIGN_BIT | (0xFFF8 << 48)
    else:
        (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    bits = bits ^ _SIGN_BIT if bits < _SIGN_BIT else (~bits + 1) & _64_BITS
    encoded = bytearray(_NUMBER_MARK)
    encoded.append(bits >> 56)
    rest = (bits << 8) & _64_BITS
    while True:
        group = (rest >> 56) & 0xFE
        rest = (rest << 7) & _64_BITS
        if not rest:
            encoded.append(group)
            return bytes(encoded)
        encoded.append(group | 1)


def decode_hash(point: bytes) -> int | None:
    """Return the 32-bit hash at the front of a version 1 point, or None if it does not begin with a whole number."""
    if len(point) < 3 or point[0] != _NUMBER_MARK[0]:
        return None
    bits = point[1] << 56
    shift = 49
    for byte in point[2:10]:
        bits |= (byte >> 1) << shift
        shift -= 7
        if not byte & 1:
            (number,) = struct.unpack(">d", struct.pack(">Q", bits ^ _SIGN_BIT))
            return int(number) if 0 <= number < 2**32 else None
    return None
