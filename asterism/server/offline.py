"""A migration without a server: everything is opened as for serving, without a listener."""

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
from asterism.server.data_directory import DataDirectory, claim_directory
from asterism.server.fleet.migration_desk import MigrationDesk

_POLL_SECONDS = 0.05


async def migrate_offline(config: ServerConfig, wish: Mapping[str, Any]) -> None:
    """Move everything to the destination and return when it is there; StartRefused gives the reason if it cannot be."""
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
                await asyncio.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _directory_of(config: ServerConfig) -> Iterator[DataDirectory]:
    """Claim the data directory; a fleet gets a temporary one, because it needs none when nothing is served."""
    if config.fleet is None:
        with claim_directory(config.data) as directory:
            yield directory
    else:
        with tempfile.TemporaryDirectory() as path, claim_directory(Path(path)) as directory:
            yield directory
