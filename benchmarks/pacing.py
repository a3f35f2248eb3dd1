"""The times at which the requests of a fixed rate are due."""

from __future__ import annotations


class Pace:
    """Evenly spaced times, handed out one by one to all senders of a load.

    The times do not move when a sender is late: it sends at once, so that the rate holds over seconds.
    """

    def __init__(self, *, per_second: float, started: float) -> None:
        self._per_second = per_second
        self._started = started
        self._count = 0

    def next_due(self) -> float:
        due = self._started + self._count / self._per_second
        self._count += 1
        return due
