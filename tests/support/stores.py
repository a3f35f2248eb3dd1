"""The store that the tests run on: the embedded one, or PostgreSQL if the environment says so."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from asterism.storage.contract import Engine
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.postgres import PostgresEngine
from tests.support.postgres import shared_server

STORE_VARIABLE = "ASTERISM_TEST_STORE"
_databases: set[str] = set()


def is_postgres() -> bool:
    return os.environ.get(STORE_VARIABLE) == "postgres"


def store_options(data: Path) -> tuple[str, ...]:
    """What a server is told about its store. Each data directory has a database of its own, which is there again when
    another server is started with the same directory."""
    if not is_postgres():
        return ()
    database = f"server_{sha256(str(data).encode()).hexdigest()[:16]}"
    if database not in _databases:
        _databases.add(database)
        shared_server().create_database(database)
    return ("--store", shared_server().dsn(database))


async def open_store(directory: Path, *, shared: bool = False) -> Engine:
    """The store of a directory; opening it again finds what was written."""
    if not is_postgres():
        return LmdbEngine.open(directory, shared=shared)
    # A world of several nodes has each in a directory of its own, and so in a database of its own.
    database = f"store_{directory.name}" if directory.name.startswith("node") else "store"
    marker = directory / "postgres"
    if not marker.exists():
        directory.mkdir(parents=True, exist_ok=True)
        marker.touch()
        await shared_server().empty_database(database)
    return await PostgresEngine.open(shared_server().dsn(database))
