"""The clock of changes: wall seconds and a counter, which never goes back and never repeats in a process.

Clients get it as a timestamp with every answer and send the highest they have seen; a process that hears of a higher
one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable

_COUNTER_BITS = 32
# How far ahead of this machine's clock a client's time is believed; beyond it the client, or its clock, is wrong.
_AHEAD_SECONDS_MAX = 3600


class HybridClock:
    """Times are integers: seconds in the upper 32 bits, a counter in the lower ones."""

    __slots__ = ("_last", "_wall_seconds")

    def __init__(self, wall_seconds: Callable[[], float]) -> None:
        self._wall_seconds = wall_seconds
        self._last = 0

    @property
    def now(self) -> int:
        """The time of the last change, or the present second if there was none in it."""
        present = int(self._wall_seconds()) << _COUNTER_BITS
        if present > self._last:
            self._last = present | 1
        return self._last

    def next(self) -> int:
        self._last = max(self._last + 1, (int(self._wall_seconds()) << _COUNTER_BITS) | 1)
        return self._last

    def hear(self, time: int) -> None:
        """Take note of a time that a client has seen."""
        if self._last < time < (int(self._wall_seconds()) + _AHEAD_SECONDS_MAX) << _COUNTER_BITS:
            self._last = time
