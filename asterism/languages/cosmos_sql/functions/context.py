"""The context of functions that depend on more than their arguments: the time and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The context of one execution of a query."""

    # The start of the execution: the same for every item.
    now_wall_seconds: float
    # From 0 up to, not including, 1.
    random: Callable[[], float]
    # The running clock; without it, time stands still while the query runs.
    wall_seconds: Callable[[], float] | None = None

    def running_wall_seconds(self) -> float:
        """Return the current time, which differs from item to item."""
        return self.now_wall_seconds if self.wall_seconds is None else self.wall_seconds()
