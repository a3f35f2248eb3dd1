"""Sketches of many values in little memory: how many different ones there are, and a fair sample of them."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable
from hashlib import blake2b
from typing import Final, Generic, TypeVar

from asterism.advisor.value_digests import Scalar

# With so many different values, counts are kept for each; with more, a sketch of their number.
EXACT_VALUES_MAX: Final = 4_096
# Hashes that a sketch keeps: the number is then right to about 3 %.
_HASHES_KEPT: Final = 1_024
_32_BITS: Final = 0xFFFFFFFF
_HASH_SPACE: Final = float(1 << 32)
# Longer texts are kept as their beginning and a hash, so that a sample of large items stays small.
TEXT_CHARACTERS_MAX: Final = 128

Sampled = TypeVar("Sampled")


def shortened(value: Scalar) -> Scalar:
    """Return a value with which equal values can be told, however long it is."""
    if type(value) is str and len(value) > TEXT_CHARACTERS_MAX:
        return f"{value[:32]}…{blake2b(value.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"
    return value


def hash_of(value: Scalar) -> int:
    """Return 32 bits that are the same in every run, as Python's own hashes of texts are not."""
    text = value if type(value) is str else repr(value)
    # A checksum is different for different short texts, but not spread: that is done by the finisher of MurmurHash.
    hashed = zlib.crc32(text.encode("utf-8", "replace"))
    hashed = ((hashed ^ hashed >> 16) * 0x85EBCA6B) & _32_BITS
    hashed = ((hashed ^ hashed >> 13) * 0xC2B2AE35) & _32_BITS
    return hashed ^ hashed >> 16


class DistinctCounter:
    """Counts different values: exactly up to `EXACT_VALUES_MAX`, then by the smallest hashes that were seen."""

    __slots__ = ("_hashes", "_threshold", "exact")

    def __init__(self) -> None:
        # Value -> times; None once there are too many values.
        self.exact: dict[Scalar, int] | None = {}
        self._hashes: set[int] = set()
        self._threshold = 1 << 32

    def add(self, value: Scalar) -> None:
        exact = self.exact
        if type(value) is str and len(value) > TEXT_CHARACTERS_MAX:
            value = shortened(value)
        if exact is None:
            hashed = hash_of(value)
            if hashed < self._threshold:
                self._keep(hashed)
            return
        exact[value] = exact.get(value, 0) + 1
        if len(exact) > EXACT_VALUES_MAX:
            self.exact = None
            for known in exact:
                self._keep(hash_of(known))

    def _keep(self, hashed: int) -> None:
        self._hashes.add(hashed)
        # Twice as many at most, so that sorting is rare.
        if len(self._hashes) > 2 * _HASHES_KEPT:
            kept = sorted(self._hashes)[:_HASHES_KEPT]
            self._hashes = set(kept)
            self._threshold = kept[-1] + 1

    def estimate(self) -> int:
        if self.exact is not None:
            return len(self.exact)
        kept = sorted(self._hashes)
        if len(kept) < _HASHES_KEPT:
            return len(kept)
        return round((_HASHES_KEPT - 1) * _HASH_SPACE / (kept[_HASHES_KEPT - 1] + 1))


class Reservoir(Generic[Sampled]):
    """A fair sample of a stream of unknown length (Vitter's algorithm R)."""

    __slots__ = ("_draw", "capacity", "kept", "seen")

    def __init__(self, capacity: int, rng: random.Random) -> None:
        self.capacity = capacity
        self.kept: list[Sampled] = []
        self.seen = 0
        self._draw = rng.random

    def offer(self, make: Callable[[], Sampled]) -> None:
        """Offer the next element; it is made only if it is taken."""
        self.seen += 1
        if len(self.kept) < self.capacity:
            self.kept.append(make())
            return
        place = int(self._draw() * self.seen)
        if place < self.capacity:
            self.kept[place] = make()

    @property
    def is_whole(self) -> bool:
        return self.seen == len(self.kept)


def estimate_distinct(frequencies: dict[int, int], *, sampled: int, total: int) -> int:
    """Return how many different values a whole has of which a sample has `frequencies`: times -> number of values seen
    so often (the guaranteed-error estimator of Charikar and others: those seen once stand for the unseen)."""
    seen = sum(frequencies.values())
    if sampled >= total or not sampled:
        return seen
    once = frequencies.get(1, 0)
    if once == sampled:
        # No value came twice: very likely nearly all of them differ.
        return total
    return min(total, round(math.sqrt(total / sampled) * once) + seen - once)
