"""The same for tests that are coroutines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import wanted_by


def recorded_by_proxy_async(test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    async def run(*arguments: Any, **named: Any) -> Any:
        return await test(*arguments, **wanted_by(test, named))

    return run
