"""`asterism migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Insecure, Key

if TYPE_CHECKING:
    from asterism.server.fleet_config import FleetConfig

MIGRATE_EXAMPLES = """[bold]Examples[/bold]

From a data directory to a fleet, while its server goes on serving:\n
  asterism migrate --from asterism-data --to fleet.toml

And back:\n
  asterism migrate --from fleet.toml --to asterism-data"""

From = Annotated[
    Path, typer.Option("--from", metavar="DIR|FILE", help="Data directory, or fleet file.", show_default=False)
]
To = Annotated[
    Path, typer.Option("--to", metavar="FILE|DIR", help="Fleet file, or data directory.", show_default=False)
]


def migrate(
    source: From,
    to: To,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Move all data from a data directory to a fleet, or back, while clients go on.

    A running server is asked to do it, and goes on serving from the new place; without one this command does it itself.
    Ended in the middle, the same command goes on."""
    from asterism.server.config import StartRefused

    try:
        is_file = source.is_file()
        if is_file == to.is_file():
            raise CommandFailed("one of the two must be a fleet file, and the other a data directory")
        if _server_at_work(source, endpoint, key, insecure=insecure):
            _ask_server(_wish(to), endpoint, key, insecure=insecure)
        else:
            _migrate_here(source, _wish(to))
    except StartRefused as refusal:
        raise CommandFailed(str(refusal)) from None
    typer.echo(f"Everything is in {to} now.")


def _wish(to: Path) -> dict[str, Any]:
    from asterism.server.fleet_config import read_fleet

    if to.is_file():
        return {"where": str(to.resolve()), "fleet": read_fleet(to).to_json()}
    return {"directory": str(to.absolute())}


def _server_at_work(source: Path, endpoint: str, key: str, *, insecure: bool) -> bool:
    """Whether a server has the source open; it must then be the one at the endpoint."""
    from asterism.cli.client import AdminClient

    try:
        told = AdminClient(endpoint, key, insecure=insecure).get("migration")
    except CommandFailed as failure:
        if source.is_dir() and _is_claimed(source):
            raise CommandFailed(
                f"a server is using {source}, and is not to be asked at {endpoint}: {failure}"
            ) from None
        return False
    if source.is_dir():
        if _is_claimed(source) and Path(told["data"]) != source.resolve():
            raise CommandFailed(
                f"the server at {endpoint} is not the one that uses {source}; say where with --endpoint"
            )
        return _is_claimed(source)
    fleet = _read(source)
    return {one["address"] for one in told["nodes"]} >= {one.shown for one in fleet.nodes}


def _read(path: Path) -> FleetConfig:
    from asterism.server.fleet_config import read_fleet

    return read_fleet(path)


def _is_claimed(directory: Path) -> bool:
    from asterism.server.config import StartRefused
    from asterism.server.data_directory import claimed

    try:
        with claimed(directory):
            return False
    except StartRefused:
        return True


def _ask_server(wish: dict[str, Any], endpoint: str, key: str, *, insecure: bool) -> None:
    from asterism.cli.client import AdminClient
    from asterism.cli.progress import follow_until_none

    client = AdminClient(endpoint, key, insecure=insecure)
    begun = client.post("migration", wish)

    def left() -> int:
        told = client.get("migration")
        if told["phase"] == "none":
            raise CommandFailed("the server has stopped migrating")
        return 0 if told["phase"] == "done" else int(told["partitions_left"]) + 1

    follow_until_none("moving partitions", total=int(begun["partitions_left"]) + 1, left=left)


def _migrate_here(source: Path, wish: dict[str, Any]) -> None:
    import asyncio

    from asterism.server.config import ServerConfig
    from asterism.server.offline import migrate_offline

    typer.echo("No server is running on it; moving the data here.", err=True)
    is_file = source.is_file()
    config = ServerConfig(fleet=_read(source)) if is_file else ServerConfig(data=source)
    asyncio.run(migrate_offline(config, wish))
