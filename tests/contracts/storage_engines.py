"""The engines that the storage suites run against. A new engine joins by adding a line to `ENGINES`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from asterism.storage.contract import Engine
from asterism.storage.lmdb import LmdbEngine


async def _open_lmdb(directory: Path) -> Engine:
    return LmdbEngine.open(directory / "lmdb", durable=False)


# Each opens a store in a directory of its own; opening it again after closing it finds what was written.
EngineOpener = Callable[[Path], Awaitable[Engine]]
ENGINES: dict[str, EngineOpener] = {"lmdb": _open_lmdb}
