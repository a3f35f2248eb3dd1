"""The one place where the address of a store becomes an engine."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from asterism.server.store_address import LMDB_PREFIX, MEMORY_ADDRESS, POSTGRES_SCHEMES, without_password
from asterism.storage.contract import Engine, EngineFailed
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.memory import MemoryEngine

_log = logging.getLogger(__name__)

# The server that this process belongs to: chosen before any worker is forked, so that all of them have the same.
_SERVER = f"{os.getpid()} {os.urandom(8).hex()}"

# A store that answers does so sooner; one that does not is waited for (`storage.postgres.Timeouts`), and is named.
_SILENT_SECONDS_MAX = 1.5


async def open_with_warning(url: str, *, shown: str, shared: bool = True) -> Engine:
    """Do as `open_engine`, and log a line when that takes long, with the address as it may be `shown`."""
    alarm = asyncio.get_running_loop().call_later(
        _SILENT_SECONDS_MAX, _log.warning, "the store %s does not answer yet; waiting for it", shown
    )
    try:
        return await open_engine(url, shared=shared)
    finally:
        alarm.cancel()


async def open_engine(url: str, *, shared: bool = True) -> Engine:
    """Open the store, or raise a StorageRefusal. `shared`: other processes may write to it too."""
    if url.startswith(LMDB_PREFIX):
        return LmdbEngine.open(Path(url.removeprefix(LMDB_PREFIX)), shared=shared, server=_SERVER)
    if url == MEMORY_ADDRESS:
        return MemoryEngine()
    if url.partition(":")[0] in POSTGRES_SCHEMES:
        # Only here: a server with its data in a directory is quicker to start without it.
        from asterism.storage.postgres import PostgresEngine

        return await PostgresEngine.open(url)
    raise EngineFailed(f"no engine knows {without_password(url)}")
