"""The wake-up of readers that wait for changes of this process."""

from __future__ import annotations

import asyncio


class ChangeSignal:
    """Costs a comparison for each change while no reader waits."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None

    def notify(self) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            if not waiting.done():
                waiting.set_result(None)

    async def wait(self, *, seconds_max: float) -> None:
        """Return after the next change, at the latest after `seconds_max`."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._waiting}, timeout=seconds_max)
