"""The store that tests of the higher floors run on: the embedded one, or PostgreSQL if the environment says so."""

from __future__ import annotations

import os
from pathlib import Path

from asterism.storage.contract import Engine
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.postgres import PostgresEngine
from tests.support.postgres import shared_server

STORE_VARIABLE = "ASTERISM_TEST_STORE"


async def open_store(directory: Path) -> Engine:
    """The store of a directory; opening it again finds what was written."""
    if os.environ.get(STORE_VARIABLE) != "postgres":
        return LmdbEngine.open(directory)
    # A world of several nodes has each in a directory of its own, and so in a database of its own.
    database = f"store_{directory.name}" if directory.name.startswith("node") else "store"
    marker = directory / "postgres"
    if not marker.exists():
        directory.mkdir(parents=True, exist_ok=True)
        marker.touch()
        await shared_server().empty_database(database)
    return await PostgresEngine.open(shared_server().dsn(database))
