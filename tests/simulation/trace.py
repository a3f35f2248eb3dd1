"""The trace of a simulation: its events, in order, with the virtual time of each."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

# Events that a failure shows of the moments before it.
_LINES_SHOWN = 60


class Trace:
    """The last lines, or all of them, and a digest of all. Two runs of one seed have the same digest."""

    def __init__(self, elapsed_seconds: Callable[[], float], *, keeps_all: bool = False) -> None:
        self._elapsed_seconds = elapsed_seconds
        self._digest = hashlib.blake2b(digest_size=16)
        self.lines: deque[str] = deque(maxlen=None if keeps_all else _LINES_SHOWN)

    def note(self, event: str) -> None:
        line = f"{self._elapsed_seconds():.6f} {event}"
        self._digest.update(line.encode())
        self.lines.append(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()
