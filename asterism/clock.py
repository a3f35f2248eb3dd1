"""Time as an argument: the only module that reads the system's clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Clock:
    """Two readings of time: wall seconds for stored times, monotonic seconds for measured intervals."""

    wall_seconds: Callable[[], float]
    monotonic_seconds: Callable[[], float]
    # The time of dates that clients sign: the true one, where `wall_seconds` is shifted. A field, not a property:
    # every request reads it.
    date_seconds: Callable[[], float] = field(default=None)  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        if self.date_seconds is None:
            object.__setattr__(self, "date_seconds", self.wall_seconds)

    def stored_seconds(self) -> int:
        """Return whole wall seconds for storage, which has no times before 1970: a clock that is set to an earlier time
        reads 1970, so that its records are older than all others and not refused."""
        return max(0, int(self.wall_seconds()))


@dataclass(slots=True)
class ClockSkew:
    """A shift of the wall time that test suites set, so that items expire without a wait. Intervals stay true."""

    seconds: float = 0.0

    def shift(self, clock: Clock) -> Clock:
        def wall_seconds() -> float:
            return max(clock.wall_seconds() + self.seconds, 0.0)

        return Clock(wall_seconds, clock.monotonic_seconds, clock.date_seconds)


def _wall_seconds() -> float:
    # Times are stored as unsigned seconds since 1970; a machine that lost its clock can read an earlier time.
    return max(time.time(), 0.0)


SYSTEM_CLOCK = Clock(wall_seconds=_wall_seconds, monotonic_seconds=time.monotonic)
