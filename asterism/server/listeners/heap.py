"""The C library's heap, which keeps for later what was freed in it."""

from __future__ import annotations

import asyncio
import ctypes


async def give_back_freed_memory() -> None:
    """Return freed pages to the system.

    After a burst of large bodies or pages, hundreds of megabytes would stay: blocks of megabytes come from the heap as
    soon as some were freed, and small ones that live on lie between them.

    In a thread, because it takes milliseconds; other systems than Linux with glibc do not need it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        await asyncio.to_thread(trim, 0)
