"""The pace of work in the background: as fast as it can while no request uses the store, gentle otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from asterism.models.documents.container import DocumentServices

# While no request comes, work rests only so long: enough for other tasks to run, and to see requests that come.
_LOOK_SECONDS = 0.001
# Requests that come every few milliseconds are not seen at each rest: a request counts as present for so long.
_REMEMBERED_SECONDS = 0.25


class Pace:
    """The pace of one stretch of work, which calls `rest` after each of its steps."""

    def __init__(self, services: DocumentServices) -> None:
        self._monotonic_seconds: Callable[[], float] = services.clock.monotonic_seconds
        self._router = services.router
        self._rested_at = self._monotonic_seconds()
        # Nothing is known yet, so the first steps are small.
        self._gentle_until = self._rested_at + _REMEMBERED_SECONDS

    @property
    def is_gentle(self) -> bool:
        """True if requests were seen lately: steps must be small then."""
        return self._monotonic_seconds() < self._gentle_until

    async def rest(self) -> None:
        """Rest as long as the last step took, or hardly at all if no request was seen."""
        worked_seconds = self._monotonic_seconds() - self._rested_at
        calls = self._router.calls
        await asyncio.sleep(max(worked_seconds, _LOOK_SECONDS) if self.is_gentle else _LOOK_SECONDS)
        self._rested_at = self._monotonic_seconds()
        if self._router.calls != calls:
            self._gentle_until = self._rested_at + _REMEMBERED_SECONDS
