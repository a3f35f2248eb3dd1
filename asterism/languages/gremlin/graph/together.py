"""Calls to partitions that go out together, a bounded number of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

# The service, too, asks 32 partitions at a time.
AT_ONCE: Final = 32


async def together(calls: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Return the results of all calls, in their order; after a failure those under way are canceled.

    Reads of an embedded store never suspend: such calls are made one after the other, because a task for each would
    take longer than the read. The first that does suspend shows that the rest are better started together.
    """
    results: list[Result] = []
    loop = asyncio.get_running_loop()
    has_suspended: list[bool] = []
    for place, call in enumerate(calls):
        try:
            marker = loop.call_soon(has_suspended.append, True)
            results.append(await call)
        except BaseException:
            for left in calls[place + 1 :]:
                left.close()
            raise
        if has_suspended:
            return results + await _as_tasks(calls[place + 1 :])
        marker.cancel()
    return results


async def _as_tasks(calls: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    if not calls:
        return []
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(call: Coroutine[Any, Any, Result]) -> Result:
        try:
            async with turns:
                return await call
        finally:
            call.close()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(in_turn(call)) for call in calls]
    except BaseExceptionGroup as failures:
        # Callers know the errors of a single call.
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
