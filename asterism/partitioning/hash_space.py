"""Arithmetic on the hash line: even boundaries, the middle of a range, the fraction of the line in a range.

Version 2 and hierarchical keys hash to 126 bits per level (the two highest of 128 are cleared), version 1 keys to 32
bits that are written as an encoded number. A boundary is a bare hash: it sorts before every key that has that hash.
"""

from __future__ import annotations

from asterism.partitioning.effective_key import decode_hash, encode_number
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import (
    NUMBERED_POINTS_MAX,
    PartitionKeyDefinition,
    PartitionKeyKind,
    numbered_point,
)

_V2_LEVEL_BYTES = 16
_V2_HASH_MAX = (1 << 126) - 1
_V1_HASH_MAX = (1 << 32) - 1


def even_boundaries(definition: PartitionKeyDefinition, count: int) -> tuple[bytes, ...]:
    """Return the `count - 1` points that divide the whole line into `count` equal parts; a numbered line into its
    numbers."""
    if definition.kind is PartitionKeyKind.NUMBERED:
        if count > NUMBERED_POINTS_MAX:
            raise ValueError("a numbered line has fewer points")
        return tuple(numbered_point(number) for number in range(1, count))
    if definition.kind is PartitionKeyKind.RANGE and count > 1:
        raise ValueError("an ordered line can only be divided where its data is")
    if definition.version == 1:
        return tuple(_v1_point(_V1_HASH_MAX * part // count) for part in range(1, count))
    return tuple(_v2_point(_V2_HASH_MAX * part // count) for part in range(1, count))


def midpoint(definition: PartitionKeyDefinition, key_range: KeyRange) -> bytes | None:
    """Return the middle of the range in hash space; None if no boundary fits inside it, or if keys are not hashed."""
    if definition.is_ordered:
        return None
    if definition.version == 1:
        start, end = _v1_hashes(key_range)
        middle = (start + end) // 2
        return _first_inside(key_range, _v1_point(middle), _v1_point(min(middle + 1, _V1_HASH_MAX)))
    return _v2_midpoint(key_range, levels=len(definition.paths))


def hash_fraction(definition: PartitionKeyDefinition, key_range: KeyRange) -> float:
    """Return the fraction of the hash line in the range, from 0 to 1, by the first level of the key. The fraction of an
    ordered line is not known without its data: 0."""
    if definition.is_ordered:
        return 0.0
    if definition.version == 1:
        start, end = _v1_hashes(key_range)
        return (end - start) / _V1_HASH_MAX
    return (_v2_hash(key_range.end) - _v2_hash(key_range.start)) / _V2_HASH_MAX


def _first_inside(key_range: KeyRange, *candidates: bytes) -> bytes | None:
    for candidate in candidates:
        if key_range.start < candidate < key_range.end:
            return candidate
    return None


def _v1_point(hashed: int) -> bytes:
    return encode_number(float(hashed))


def _v1_hashes(key_range: KeyRange) -> tuple[int, int]:
    start, end = decode_hash(key_range.start), decode_hash(key_range.end)
    return (0 if start is None else start), (_V1_HASH_MAX if end is None else end)


def _v2_point(hashed: int) -> bytes:
    return hashed.to_bytes(_V2_LEVEL_BYTES, "big")


def _v2_hash(point: bytes) -> int:
    return min(int.from_bytes(point[:_V2_LEVEL_BYTES].ljust(_V2_LEVEL_BYTES, b"\x00"), "big"), _V2_HASH_MAX)


def _v2_midpoint(key_range: KeyRange, *, levels: int) -> bytes | None:
    middle = (_v2_hash(key_range.start) + _v2_hash(key_range.end)) // 2
    found = _first_inside(key_range, _v2_point(middle), _v2_point(min(middle + 1, _V2_HASH_MAX)))
    if found is not None or levels == 1:
        return found
    # No hash of this level lies inside, so all keys of the range share one: divide by the next level of the key.
    shared = key_range.start[:_V2_LEVEL_BYTES]
    if len(shared) < _V2_LEVEL_BYTES:
        return None
    below_end = key_range.end[_V2_LEVEL_BYTES:] if key_range.end.startswith(shared) else b"\xff"
    below_start = key_range.start[_V2_LEVEL_BYTES:]
    if below_start >= below_end:
        return None
    below = _v2_midpoint(KeyRange(below_start, below_end), levels=levels - 1)
    return None if below is None else shared + below
