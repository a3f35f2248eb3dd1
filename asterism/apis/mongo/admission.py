"""Work that waits for request units instead of an answer that says there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from asterism.errors import RequestRateTooLarge
from asterism.languages.mongo.failure import MongoFailure

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# The service's own limit for requests that it repeats on its side.
HOLD_SECONDS_MAX = 60.0

Result = TypeVar("Result")


async def hold_until_admitted(call: Call, work: Callable[[], Awaitable[Result]]) -> Result:
    """Carry out work as soon as there are request units for it; MaxTimeMSExpired when that takes too long.

    The work must have written nothing when it raises RequestRateTooLarge, or must not repeat what it has written.
    """
    until = call.context.monotonic_seconds() + HOLD_SECONDS_MAX
    while True:
        try:
            return await work()
        except RequestRateTooLarge as throttled:
            call.check_time()
            if call.context.monotonic_seconds() + throttled.retry_after_seconds > until:
                raise MongoFailure(
                    50, f"Request timed out. The request rate stayed too large for {HOLD_SECONDS_MAX:.0f} seconds."
                ) from None
            await asyncio.sleep(throttled.retry_after_seconds)
