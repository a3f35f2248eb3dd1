"""The growth of logical partitions, measured at a few of them, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

# Measurements of one logical partition that are kept: at one a minute, the growth over the last ten minutes.
SAMPLES_MAX: Final = 11
# Logical partitions of one keyspace. Ten are measured at a time, and others may be the hottest a minute later.
KEYS_MAX: Final = 20
# A logical partition that was not measured for this long, because it is no longer among the hottest or its container is
# no longer used, does not count as growing, and is forgotten.
FORGET_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class KeyGrowth:
    """A logical partition that grows: the size at the last measurement, and the growth over all that are kept."""

    effective_key: bytes
    bytes: int
    bytes_per_second: float


_Samples = deque[tuple[float, int]]


class KeyGrowths:
    """Measured sizes of logical partitions by keyspace. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._by_keyspace: dict[bytes, dict[bytes, _Samples]] = {}

    @property
    def keys(self) -> int:
        return sum(map(len, self._by_keyspace.values()))

    def add(self, keyspace_rid: bytes, effective_key: bytes, size_bytes: int, *, now: float) -> None:
        by_key = self._by_keyspace.setdefault(keyspace_rid, {})
        # Behind all others, so that the first in the order was measured least recently.
        samples = by_key.pop(effective_key, None) or deque(maxlen=SAMPLES_MAX)
        samples.append((now, size_bytes))
        by_key[effective_key] = samples
        if len(by_key) > KEYS_MAX:
            del by_key[next(iter(by_key))]

    def keep_only(self, keyspace_rids: Collection[bytes], *, now: float) -> None:
        """Forget every other keyspace, and logical partitions that are no longer measured."""
        kept: dict[bytes, dict[bytes, _Samples]] = {}
        for rid, by_key in self._by_keyspace.items():
            fresh = {key: samples for key, samples in by_key.items() if _is_fresh(samples, now)}
            if fresh and rid in keyspace_rids:
                kept[rid] = fresh
        self._by_keyspace = kept

    def of_keyspace(self, keyspace_rid: bytes, *, now: float) -> list[KeyGrowth]:
        """Return the logical partitions that grow, the fastest first."""
        by_key = self._by_keyspace.get(keyspace_rid, {})
        growths = [_growth_of(key, samples) for key, samples in by_key.items() if _is_fresh(samples, now)]
        growing = [growth for growth in growths if growth.bytes_per_second > 0]
        return sorted(growing, key=lambda growth: growth.bytes_per_second, reverse=True)


def _is_fresh(samples: _Samples, now: float) -> bool:
    return now - samples[-1][0] < FORGET_SECONDS


def _growth_of(effective_key: bytes, samples: _Samples) -> KeyGrowth:
    """Return the growth between the first and the last measurement; 0 if there is only one."""
    (began, before), (ended, after) = samples[0], samples[-1]
    per_second = (after - before) / (ended - began) if ended > began else 0.0
    return KeyGrowth(effective_key, after, per_second)
