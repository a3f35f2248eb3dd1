"""Bodies in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any


async def close_chunks(chunks: AsyncIterator[Any]) -> None:
    """Let a generator of chunks release what it holds, now and not when it is collected; others have nothing to do."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
