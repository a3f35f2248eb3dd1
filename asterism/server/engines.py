"""The one place where the address of a store becomes an engine."""

from __future__ import annotations

import os
from pathlib import Path

from asterism.server.store_address import LMDB_PREFIX, POSTGRES_SCHEMES, without_password
from asterism.storage.contract import Engine, EngineFailed
from asterism.storage.lmdb import LmdbEngine

# Which server this process belongs to: chosen before any worker is forked, so that all of them have the same.
_SERVER = f"{os.getpid()} {os.urandom(8).hex()}"


async def open_engine(url: str, *, shared: bool = True) -> Engine:
    """Raises a StorageRefusal when the store cannot be used now. `shared`: other processes may write to it too."""
    if url.startswith(LMDB_PREFIX):
        return LmdbEngine.open(Path(url.removeprefix(LMDB_PREFIX)), shared=shared, server=_SERVER)
    if url.partition(":")[0] in POSTGRES_SCHEMES:
        # Only here: a server with its data in a directory is quicker to start without it.
        from asterism.storage.postgres import PostgresEngine

        return await PostgresEngine.open(url)
    raise EngineFailed(f"no engine knows {without_password(url)}")
