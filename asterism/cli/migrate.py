"""`asterism migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Insecure, Key

if TYPE_CHECKING:
    from asterism.server.fleet.config import FleetConfig

MIGRATE_EXAMPLES = """[bold]Examples[/bold]

From a data directory to a fleet, while its server continues to serve:\n
  asterism migrate --from asterism-data --to fleet.toml

And back:\n
  asterism migrate --from fleet.toml --to asterism-data"""

SourceStore = Annotated[
    Path, typer.Option("--from", metavar="DIR|FILE", help="Data directory, or fleet file.", show_default=False)
]
TargetStore = Annotated[
    Path, typer.Option("--to", metavar="FILE|DIR", help="Fleet file, or data directory.", show_default=False)
]


def migrate(
    source: SourceStore,
    to: TargetStore,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Move all data from a data directory to a fleet, or back, without interrupting clients.

    A running server does the work and continues to serve from the new store; without a server this command moves the
    data itself. After an interruption, run the same command again to resume."""
    from asterism.server.config import IN_MEMORY, StartRefused

    if IN_MEMORY in (source, to):
        raise CommandFailed("data in memory cannot be migrated; use 'asterism export' and 'asterism import'")
    try:
        is_file = source.is_file()
        if is_file == to.is_file():
            raise CommandFailed("one of the two must be a fleet file, and the other a data directory")
        if _server_at_work(source, endpoint, key, insecure=insecure):
            _ask_server(_target_of(to), endpoint, key, insecure=insecure)
        else:
            _migrate_here(source, _target_of(to))
    except StartRefused as refusal:
        raise CommandFailed(str(refusal)) from None
    typer.echo(f"Everything is in {to} now.")


def _target_of(to: Path) -> dict[str, Any]:
    from asterism.server.fleet.config import read_fleet

    if to.is_file():
        return {"where": str(to.resolve()), "fleet": read_fleet(to).to_json()}
    return {"directory": str(to.absolute())}


def _server_at_work(source: Path, endpoint: str, key: str, *, insecure: bool) -> bool:
    """Return True if a server has the source open; it must then be the server at the endpoint."""
    from asterism.cli.client import AdminClient

    try:
        reply = AdminClient(endpoint, key, insecure=insecure).get("migration")
    except CommandFailed as failure:
        if source.is_dir() and _is_claimed(source):
            raise CommandFailed(f"a server is using {source}, but cannot be reached at {endpoint}: {failure}") from None
        return False
    if source.is_dir():
        if _is_claimed(source) and Path(reply["data"]) != source.resolve():
            raise CommandFailed(
                f"the server at {endpoint} is not the one that uses {source}; give its address with --endpoint"
            )
        return _is_claimed(source)
    fleet = _read(source)
    return {node["address"] for node in reply["nodes"]} >= {node.shown for node in fleet.nodes}


def _read(path: Path) -> FleetConfig:
    from asterism.server.fleet.config import read_fleet

    return read_fleet(path)


def _is_claimed(directory: Path) -> bool:
    from asterism.server.config import StartRefused
    from asterism.server.data_directory import claim_directory

    try:
        with claim_directory(directory):
            return False
    except StartRefused:
        return True


def _ask_server(target: dict[str, Any], endpoint: str, key: str, *, insecure: bool) -> None:
    from asterism.cli.client import AdminClient
    from asterism.cli.progress import follow_until_none

    client = AdminClient(endpoint, key, insecure=insecure)
    started = client.post("migration", target)

    def left() -> int:
        reply = client.get("migration")
        if reply["phase"] == "none":
            raise CommandFailed("the server has stopped migrating")
        return 0 if reply["phase"] == "done" else int(reply["partitions_left"]) + 1

    follow_until_none("moving partitions", total=int(started["partitions_left"]) + 1, left=left)


def _migrate_here(source: Path, target: dict[str, Any]) -> None:
    import asyncio

    from asterism.server.config import ServerConfig
    from asterism.server.offline import migrate_offline

    typer.echo("No server is using it; this command moves the data itself.", err=True)
    is_file = source.is_file()
    config = ServerConfig(fleet=_read(source)) if is_file else ServerConfig(data=source)
    asyncio.run(migrate_offline(config, target))
