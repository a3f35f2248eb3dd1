"""What the value of a function may depend on besides its arguments: the time and chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """One for each execution of a query."""

    # When it began: the same for every item.
    now_wall_seconds: float
    # From 0 up to, not including, 1.
    random: Callable[[], float]
    # The running clock; without one, time stands still while the query runs.
    wall_seconds: Callable[[], float] | None = None

    def running_wall_seconds(self) -> float:
        """The time of this moment, which is another for each item."""
        return self.now_wall_seconds if self.wall_seconds is None else self.wall_seconds()
