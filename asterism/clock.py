"""Time as an argument: the one place that knows where seconds come from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Two readings of time: wall seconds for what is stored, monotonic seconds for what is measured."""

    wall_seconds: Callable[[], float]
    monotonic_seconds: Callable[[], float]

    def stored_seconds(self) -> int:
        """Whole wall seconds for what is stored, where no time is before 1970: a clock that is set to one counts from
        there, so that what it writes is older than everything else and not refused."""
        return max(0, int(self.wall_seconds()))


def _wall_seconds() -> float:
    # Times are stored as seconds since 1970, without a sign; a machine whose clock is lost can stand before that.
    return max(time.time(), 0.0)


SYSTEM_CLOCK = Clock(wall_seconds=_wall_seconds, monotonic_seconds=time.monotonic)
