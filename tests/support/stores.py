"""The store that the tests run on: the embedded one, or another if the environment selects it."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from asterism.storage.contract import Engine
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.memory import MemoryEngine, MemoryStore
from asterism.storage.postgres import PostgresEngine
from tests.support.postgres import shared_server

# "lmdb", "memory" or "postgres". Servers in processes of their own have no store in memory, which would end with them.
STORE_VARIABLE = "ASTERISM_TEST_STORE"
_STORE = os.environ.get(STORE_VARIABLE) or "lmdb"
if _STORE not in ("lmdb", "memory", "postgres"):
    raise ValueError(f"{STORE_VARIABLE} is {_STORE!r}; set it to lmdb, memory or postgres, or leave it out")

_databases: set[str] = set()
# Stores by directory, as the other engines have them. A test reopens its store soon or never.
_memory_stores: dict[Path, MemoryStore] = {}
_MEMORY_STORES_MAX = 32


def is_postgres() -> bool:
    return _STORE == "postgres"


def is_lmdb() -> bool:
    return _STORE == "lmdb"


def store_options(data: Path) -> tuple[str, ...]:
    """Return a server's options for its store. Each data directory has a database of its own, which later servers with
    the same directory use again."""
    if not is_postgres():
        return ()
    database = f"server_{sha256(str(data).encode()).hexdigest()[:16]}"
    if database not in _databases:
        _databases.add(database)
        shared_server().create_database(database)
    return ("--store", shared_server().dsn(database))


async def open_store(directory: Path, *, shared: bool = False) -> Engine:
    """Open the store of a directory; a reopened store has the data written before."""
    if is_lmdb():
        return LmdbEngine.open(directory, shared=shared)
    if not is_postgres():
        return _open_memory(directory)
    # In a world of several nodes each has a directory of its own, and thus a database of its own.
    database = f"store_{directory.name}" if directory.name.startswith("node") else "store"
    marker = directory / "postgres"
    if not marker.exists():
        directory.mkdir(parents=True, exist_ok=True)
        marker.touch()
        await shared_server().empty_database(database)
    return await PostgresEngine.open(shared_server().dsn(database))


def _open_memory(directory: Path) -> Engine:
    store = _memory_stores.pop(directory, None) or MemoryStore()
    _memory_stores[directory] = store
    while len(_memory_stores) > _MEMORY_STORES_MAX:
        del _memory_stores[next(iter(_memory_stores))]
    return MemoryEngine(store)
