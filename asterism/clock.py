"""Time as an argument: the only module that reads the system's clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Two readings of time: wall seconds for stored times, monotonic seconds for measured intervals."""

    wall_seconds: Callable[[], float]
    monotonic_seconds: Callable[[], float]

    def stored_seconds(self) -> int:
        """Return whole wall seconds for storage, which has no times before 1970: a clock that is set to an earlier time
        reads 1970, so that its records are older than all others and not refused."""
        return max(0, int(self.wall_seconds()))


def _wall_seconds() -> float:
    # Times are stored as unsigned seconds since 1970; a machine that lost its clock can read an earlier time.
    return max(time.time(), 0.0)


SYSTEM_CLOCK = Clock(wall_seconds=_wall_seconds, monotonic_seconds=time.monotonic)
