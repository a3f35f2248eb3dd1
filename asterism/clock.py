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


SYSTEM_CLOCK = Clock(wall_seconds=time.time, monotonic_seconds=time.monotonic)
