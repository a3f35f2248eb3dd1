"""Callers that wait for something, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque


class Waiters:
    """A queue of waiting callers. A caller that is woken looks again, and waits at the front if it finds nothing."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._futures)

    def wake(self, count: int) -> None:
        """Wake up to so many callers, those that came first."""
        futures = self._futures
        while futures and count > 0:
            future = futures.popleft()
            if not future.done():
                future.set_result(None)
                count -= 1

    def wake_all(self) -> None:
        self.wake(len(self._futures))

    async def wait(self, *, at_front: bool = False, seconds_max: float | None = None) -> None:
        """Return when the caller is woken, or after a time. A canceled caller passes its turn on."""
        future = asyncio.get_running_loop().create_future()
        if at_front:
            self._futures.appendleft(future)
        else:
            self._futures.append(future)
        try:
            if seconds_max is None:
                await future
            else:
                await asyncio.wait([future], timeout=seconds_max)
        except BaseException:
            if future.done() and not future.cancelled():
                self.wake(1)
            elif future in self._futures:
                # Another wake may have passed over it since it was canceled.
                self._futures.remove(future)
            raise
        if not future.done():
            self._futures.remove(future)
