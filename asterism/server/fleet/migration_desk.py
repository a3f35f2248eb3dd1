"""Migrations as the admin door asks for them: in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from asterism.errors import MalformedRequest
from asterism.server.config import StartRefused
from asterism.server.fleet.config import parse_fleet
from asterism.server.fleet.fleet import Fleet
from asterism.server.fleet.migration import Migration


class MigrationDesk:
    """See `asterism.apis.services.MigrationControl`."""

    def __init__(self, migration: Migration, fleet: Fleet, data: Path) -> None:
        self._migration = migration
        self._fleet = fleet
        self._data = data

    async def begin(self, order: Mapping[str, Any]) -> None:
        where, directory, fleet = order.get("where"), order.get("directory"), order.get("fleet")
        if isinstance(directory, str) and directory:
            await self._migration.to_directory(Path(directory))
        elif isinstance(fleet, dict) and isinstance(where, str):
            try:
                destination = parse_fleet(fleet, directory=self._data)
            except StartRefused as refusal:
                raise MalformedRequest(reason=str(refusal)) from None
            await self._migration.to_fleet(destination, where=where)
        else:
            raise MalformedRequest(reason="Name a 'directory', or a 'fleet' and 'where' its description is.")

    def show(self) -> dict[str, Any]:
        """Return the progress, and the place of this server's data: enough to see that the right server was asked."""
        return {
            **asdict(self._migration.progress()),
            "data": str(self._data.resolve()),
            "nodes": [{"name": node.name, "address": node.shown} for node in self._fleet.config.nodes],
        }
