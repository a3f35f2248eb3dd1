"""A migration without a server: everything is opened as for serving, and nobody listens."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asterism.errors import AsterismError
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.data_directory import DataDirectory, claimed
from asterism.server.migration_desk import MigrationDesk

_LOOK_SECONDS = 0.05


async def migrate_offline(config: ServerConfig, wish: Mapping[str, Any]) -> None:
    """Returns when everything is at the destination; StartRefused says why it cannot be."""
    with _directory_of(config) as directory:
        async with assembled(config, directory) as assembly:
            desk = MigrationDesk(assembly.migration, assembly.fleet, directory.path)
            try:
                await desk.begin(wish)
            except AsterismError as refusal:
                raise StartRefused(str(getattr(refusal, "reason", refusal))) from None
            while desk.show()["phase"] != "done":
                if trouble := desk.show()["trouble"]:
                    raise StartRefused(trouble)
                await asyncio.sleep(_LOOK_SECONDS)


@contextlib.contextmanager
def _directory_of(config: ServerConfig) -> Iterator[DataDirectory]:
    """A fleet needs no data directory when nothing is served."""
    if config.fleet is None:
        with claimed(config.data) as directory:
            yield directory
    else:
        with tempfile.TemporaryDirectory() as path, claimed(Path(path)) as directory:
            yield directory
