"""Moments as ticks of 100 nanoseconds since 1970: taken from a clock, read from text, and written as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

TICKS_PER_SECOND: Final = 10_000_000

# The service keeps no DateTime before this year (the zero of a file time).
EARLIEST_TICKS: Final = -11_644_473_600 * TICKS_PER_SECOND

# The service's own form has a Z; texts of other clients may have an offset, or nothing for UTC.
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,7})\d*)?)?)?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
# Far beyond any form of a moment. Longer texts are not parsed and, above all, not kept in the cache.
_MOMENT_CHARACTERS_MAX: Final = 64
_EPOCH = datetime(1970, 1, 1)
# The largest offset from UTC on Earth.
_OFFSET_MAX = timedelta(hours=14)


class TickSource:
    """Ticks of a clock, each greater than the one before."""

    __slots__ = ("_last", "_wall_seconds")

    def __init__(self, wall_seconds: Callable[[], float]) -> None:
        self._wall_seconds = wall_seconds
        self._last = 0

    def __call__(self) -> int:
        ticks = int(self._wall_seconds() * TICKS_PER_SECOND)
        if ticks <= self._last:
            ticks = self._last + 1
        self._last = ticks
        return ticks


# Every request of a second shares its text.
@lru_cache(maxsize=4096)
def _second_text(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat()


def timestamp_text(ticks: int) -> str:
    second, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second_text(second)}.{fraction:07d}Z"


def ticks_of(text: str) -> int | None:
    """Return the ticks of a moment or a date in UTC, within the years 1 to 9999; None for any other text."""
    return _read_ticks(text) if len(text) <= _MOMENT_CHARACTERS_MAX else None


@lru_cache(maxsize=4096)
def _read_ticks(text: str) -> int | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        if zone and zone not in "Zz":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            if offset > _OFFSET_MAX:
                return None
            moment = moment - offset if zone[0] == "+" else moment + offset
    except (ValueError, OverflowError):
        return None
    return (moment - _EPOCH) // timedelta(seconds=1) * TICKS_PER_SECOND + int((fraction or "0").ljust(7, "0"))
