"""What the value of a function may depend on besides its arguments: the time and chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """One for each execution of a query, so that every item sees the same time."""

    now_wall_seconds: float
    # From 0 up to, not including, 1.
    random: Callable[[], float]
