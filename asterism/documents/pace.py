"""How fast work in the background goes: as fast as it can while nobody else uses the store, gently otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from asterism.documents.container import Tools

# While nobody is there, work rests only so long: enough to let everything have its turn, and to see who comes.
_LOOK_SECONDS = 0.001
# Requests that come every few milliseconds are not seen at each look: who was seen counts as there for so long.
_REMEMBERED_SECONDS = 0.25


class Pace:
    """Made for one stretch of work, which calls `rest` after each of its steps."""

    def __init__(self, tools: Tools) -> None:
        self._monotonic_seconds: Callable[[], float] = tools.clock.monotonic_seconds
        self._owner = tools.owner
        self._rested_at = self._monotonic_seconds()
        # Nobody knows yet, so the first steps are small.
        self._gentle_until = self._rested_at + _REMEMBERED_SECONDS

    @property
    def is_gentle(self) -> bool:
        """Whether others were seen at work lately: steps are to be small then."""
        return self._monotonic_seconds() < self._gentle_until

    async def rest(self) -> None:
        """Rests as long as the last step took, or only for a look if nobody was there."""
        worked_seconds = self._monotonic_seconds() - self._rested_at
        calls = self._owner.calls
        await asyncio.sleep(max(worked_seconds, _LOOK_SECONDS) if self.is_gentle else _LOOK_SECONDS)
        self._rested_at = self._monotonic_seconds()
        if self._owner.calls != calls:
            self._gentle_until = self._rested_at + _REMEMBERED_SECONDS
