"""What a store remembers of being moved: while it is on its way, and for good when its data is elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from asterism.server.config import StartRefused
from asterism.server.fleet_config import FLEET_WITHOUT_NAME, FleetConfig, NodeConfig, parse_fleet
from asterism.storage.contract import Engine
from asterism.storage.node_identity import read_note, write_note

_ON_ITS_WAY = "migration"
_MOVED = "moved"
_FLEET_NAME = "fleet name"


@dataclass(frozen=True, slots=True)
class MigrationNote:
    """`where` is the operator's own word for the destination: a fleet file or a data directory."""

    destination: FleetConfig
    where: str
    # Set when the destination is a data directory, which is for one server alone.
    directory: Path | None = None


async def read_migration_note(engine: Engine) -> MigrationNote | None:
    stored = await read_note(engine, _ON_ITS_WAY)
    if stored is None:
        return None
    told = json.loads(stored)
    directory = told["directory"]
    return MigrationNote(
        parse_fleet(told["fleet"], directory=Path()), told["where"], None if directory is None else Path(directory)
    )


async def write_migration_note(engine: Engine, note: MigrationNote | None) -> None:
    if note is None:
        await write_note(engine, _ON_ITS_WAY, None)
        return
    directory = None if note.directory is None else str(note.directory)
    told = {"fleet": note.destination.to_json(), "where": note.where, "directory": directory}
    await write_note(engine, _ON_ITS_WAY, json.dumps(told))


async def say_moved(source: Engine, target: Engine, note: MigrationNote) -> None:
    """Whoever opens the source is sent to the destination; the destination is nowhere else any more."""
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
    """The description of another fleet that has the same store by mistake would rename this one's nodes, and add its
    own. One without a name is not judged by it."""
    kept = await read_note(engine, _FLEET_NAME)
    if kept is not None and fleet.name not in (kept, FLEET_WITHOUT_NAME):
        raise StartRefused(
            f"{node.shown} has the fleet {kept!r}, and {fleet.name!r} is another; it needs another store"
        )


async def keep_name(engine: Engine, fleet: FleetConfig) -> None:
    """The first name a fleet is given is its name."""
    if fleet.name != FLEET_WITHOUT_NAME and await read_note(engine, _FLEET_NAME) is None:
        await write_note(engine, _FLEET_NAME, fleet.name)
