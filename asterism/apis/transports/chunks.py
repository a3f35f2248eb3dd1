"""Bodies in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def close_chunks(chunks: AsyncIterator[bytes]) -> None:
    """Let a generator of chunks release what it holds, now and not when it is collected; others have nothing to do."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
