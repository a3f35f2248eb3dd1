"""A pytest plugin for the client's tests: it notes each test's markers and waits less between polls."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

# The tests look every 30 seconds whether an offer was replaced, because the service takes minutes to split.
# Asterism takes a moment. Sleeps of any other length mean what they say (time to live, for example).
POLL_SECONDS = 30
POLL_SECONDS_HERE = 0.5

_sleep = time.sleep
_sleep_async = asyncio.sleep


def _shorter(seconds: float) -> float:
    return POLL_SECONDS_HERE if seconds == POLL_SECONDS else seconds


def _sleep_less(seconds: Any, /) -> None:
    _sleep(_shorter(seconds))


async def _sleep_less_async(delay: float, result: Any = None) -> Any:
    return await _sleep_async(_shorter(delay), result)


time.sleep = _sleep_less
asyncio.sleep = _sleep_less_async


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        markers = sorted({marker.name for marker in item.iter_markers() if marker.name.startswith("cosmos")})
        item.user_properties.append(("nodeid", item.nodeid))
        item.user_properties.append(("markers", " ".join(markers)))
