"""The end of work in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

# A cancellation can be lost: `asyncio.gather` raises the error of a call that failed in the same moment instead, and a
# task that retries after errors goes on. It is cancelled again after this long.
_CANCEL_AGAIN_SECONDS = 1.0


async def end_tasks(tasks: Iterable[asyncio.Task[None] | None]) -> None:
    """Cancel tasks, and return when all have ended, with any result. None is a task that was never begun."""
    begun = [task for task in tasks if task is not None]
    while left := [task for task in begun if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=_CANCEL_AGAIN_SECONDS)
    # Take note of their errors, which the event loop would report otherwise.
    await asyncio.gather(*begun, return_exceptions=True)
