"""The engines that the storage suites run against. A new engine joins by adding a line to `ENGINES`."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from asterism.storage.contract import Engine
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.postgres import PostgresEngine
from tests.support.postgres import shared_server


async def _open_lmdb(directory: Path) -> Engine:
    return LmdbEngine.open(directory / "lmdb", durable=False)


async def _open_postgres(directory: Path) -> Engine:
    name_file = directory / "postgres"
    if not name_file.exists():
        name_file.write_text(shared_server().create_database(f"contract_{uuid.uuid4().hex}"))
    return await PostgresEngine.open(name_file.read_text(), snapshots=256)


# Each opens a store in a directory of its own; opening it again after closing it finds what was written.
EngineOpener = Callable[[Path], Awaitable[Engine]]
ENGINES: dict[str, EngineOpener] = {"lmdb": _open_lmdb, "postgres": _open_postgres}
