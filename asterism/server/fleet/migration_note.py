"""Notes of a migration in a store: while its data is on the way, and for good when the data is elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from asterism.server.config import StartRefused
from asterism.server.fleet.config import FLEET_WITHOUT_NAME, FleetConfig, NodeConfig, parse_fleet
from asterism.storage.contract import Engine
from asterism.storage.node_identity import read_note, write_note

_ON_ITS_WAY = "migration"
_MOVED = "moved"
_FLEET_NAME = "fleet name"


@dataclass(frozen=True, slots=True)
class MigrationNote:
    """The destination of a migration; `where` is the operator's own word for it: a fleet file or a data directory."""

    destination: FleetConfig
    where: str
    # Set when the destination is a data directory, which is for one server alone.
    directory: Path | None = None


async def read_migration_note(engine: Engine) -> MigrationNote | None:
    stored = await read_note(engine, _ON_ITS_WAY)
    if stored is None:
        return None
    record = json.loads(stored)
    directory = record["directory"]
    return MigrationNote(
        parse_fleet(record["fleet"], directory=Path()), record["where"], None if directory is None else Path(directory)
    )


async def write_migration_note(engine: Engine, note: MigrationNote | None) -> None:
    if note is None:
        await write_note(engine, _ON_ITS_WAY, None)
        return
    directory = None if note.directory is None else str(note.directory)
    record = {"fleet": note.destination.to_json(), "where": note.where, "directory": directory}
    await write_note(engine, _ON_ITS_WAY, json.dumps(record))


async def record_move(source: Engine, target: Engine, note: MigrationNote) -> None:
    """Make the source refer to the destination, and clear the notes of the destination."""
    await write_note(target, _MOVED, None)
    await write_migration_note(target, None)
    await write_note(source, _MOVED, note.where)
    await write_note(source, _FLEET_NAME, None)
    await write_migration_note(source, None)


async def refuse_moved(engine: Engine, node: NodeConfig) -> None:
    moved_to = await read_note(engine, _MOVED)
    if moved_to is not None:
        raise StartRefused(f"the data of {node.shown} is in {moved_to} now; serve it from there")


async def refuse_other_name(engine: Engine, node: NodeConfig, fleet: FleetConfig) -> None:
    """Refuse a fleet with another name, unless it has none.

    The description of another fleet that has the same store by mistake would rename this fleet's nodes and add its own.
    """
    kept = await read_note(engine, _FLEET_NAME)
    if kept is not None and fleet.name not in (kept, FLEET_WITHOUT_NAME):
        raise StartRefused(
            f"{node.shown} has the fleet {kept!r}, and {fleet.name!r} is another; it needs another store"
        )


async def keep_name(engine: Engine, fleet: FleetConfig) -> None:
    """Store the fleet's name, if it is the first that it is given."""
    if fleet.name != FLEET_WITHOUT_NAME and await read_note(engine, _FLEET_NAME) is None:
        await write_note(engine, _FLEET_NAME, fleet.name)
