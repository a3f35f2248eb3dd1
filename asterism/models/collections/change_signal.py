"""The wake-up of readers that wait for changes: of this process, and of others that the store reports."""

from __future__ import annotations

import asyncio


class ChangeSignal:
    """Costs an addition and a comparison for each change while no reader waits."""

    __slots__ = ("_waiting", "count")

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        # Rises with every change. A reader that notes it before it reads misses none that came meanwhile.
        self.count = 0

    def notify(self) -> None:
        self.count += 1
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            if not waiting.done():
                waiting.set_result(None)

    async def wait(self, *, seconds_max: float, seen: int | None = None) -> None:
        """Return after the next change, or after any that followed `seen`, at the latest after `seconds_max`."""
        if seen is not None and seen != self.count:
            return
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._waiting}, timeout=seconds_max)
