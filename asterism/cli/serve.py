"""`asterism serve`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.failure import CommandFailed
from asterism.server.config import (
    ServerConfig,
    StartRefused,
    limit_names,
    parse_apis,
    parse_consistency,
    parse_limits,
)

if TYPE_CHECKING:
    from asterism.server.fleet_config import FleetConfig

_DEFAULTS = ServerConfig()
_WHERE = "Where it listens and keeps its data"
_WHO = "Who may connect"
_HOW = "How it behaves"

SERVE_EXAMPLES = """[bold]Examples[/bold]

On http://127.0.0.1:8081/ with the emulator's well-known key:\n
  asterism serve

Encrypted, with a self-signed certificate for localhost and db.test:\n
  asterism serve --https --tls-name db.test

With a key of your own, open to the network:\n
  ASTERISM_KEY=$(openssl rand -base64 48) asterism serve --host 0.0.0.0

Filled from a file at the first start, and never answering 429:\n
  asterism serve --seed shop.json --no-throttle

On a fleet of nodes, described in a file:\n
  asterism serve --fleet fleet.toml

To see partitions split within seconds:\n
  asterism serve --limit physical-partition-bytes=1MB
"""


def serve(
    data: Annotated[
        Path,
        typer.Option(
            envvar="ASTERISM_DATA", metavar="DIR", rich_help_panel=_WHERE, help="Data directory; made if missing."
        ),
    ] = _DEFAULTS.data,
    host: Annotated[
        str,
        typer.Option(envvar="ASTERISM_HOST", rich_help_panel=_WHERE, help="Address to listen on; 0.0.0.0 for all."),
    ] = _DEFAULTS.host,
    port: Annotated[
        int,
        typer.Option(
            envvar="ASTERISM_PORT", min=0, max=65535, rich_help_panel=_WHERE, help="Port to listen on; 0 for any."
        ),
    ] = _DEFAULTS.port,
    apis: Annotated[
        str,
        typer.Option(
            envvar="ASTERISM_APIS",
            metavar="NAMES",
            rich_help_panel=_WHERE,
            help="The protocols to serve, with commas between: nosql, table.",
        ),
    ] = ",".join(_DEFAULTS.apis),
    table_port: Annotated[
        int,
        typer.Option(
            envvar="ASTERISM_TABLE_PORT",
            min=0,
            max=65535,
            rich_help_panel=_WHERE,
            help="Port for Azure Table storage; 0 for any.",
        ),
    ] = _DEFAULTS.table_port,
    cosmos_table_port: Annotated[
        int,
        typer.Option(
            envvar="ASTERISM_COSMOS_TABLE_PORT",
            min=0,
            max=65535,
            rich_help_panel=_WHERE,
            help="Port for the same tables as Cosmos DB for Table; 0 for any.",
        ),
    ] = _DEFAULTS.cosmos_table_port,
    https: Annotated[
        bool,
        typer.Option(
            "--https",
            envvar="ASTERISM_HTTPS",
            rich_help_panel=_WHERE,
            help="Encrypt, with a self-signed certificate that is kept in the data directory.",
        ),
    ] = False,
    tls_name: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ASTERISM_TLS_NAME",
            metavar="NAME",
            rich_help_panel=_WHERE,
            help="A further host name or address for the certificate; may be repeated.",
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            envvar="ASTERISM_KEY",
            metavar="KEY",
            show_default="the emulator's well-known key",
            rich_help_panel=_WHO,
            help="Account key, base64. Better in the environment, where other users do not see it.",
        ),
    ] = _DEFAULTS.key,
    account: Annotated[
        str, typer.Option(envvar="ASTERISM_ACCOUNT", metavar="NAME", rich_help_panel=_WHO, help="Account name.")
    ] = _DEFAULTS.account,
    fleet: Annotated[
        Path | None,
        typer.Option(
            envvar="ASTERISM_FLEET",
            metavar="FILE",
            rich_help_panel=_WHERE,
            help="Keep the data on the nodes that this TOML file describes, and not in the data directory.",
        ),
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ASTERISM_STORE",
            metavar="URL",
            rich_help_panel=_WHERE,
            help="The same without a file: postgresql://… or lmdb:DIR; may be repeated, the first has the catalog.",
        ),
    ] = None,
    table_account: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ASTERISM_TABLE_ACCOUNT",
            metavar="NAME:KEY",
            show_default="the well-known development account",
            rich_help_panel=_WHO,
            help="An account for tables, its key in base64; may be repeated.",
        ),
    ] = None,
    cosmos_table_account: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ASTERISM_COSMOS_TABLE_ACCOUNT",
            metavar="NAME:KEY",
            rich_help_panel=_WHO,
            help="A further account, or another key, for the port of Cosmos DB for Table; may be repeated.",
        ),
    ] = None,
    unsigned_tokens: Annotated[
        bool,
        typer.Option(
            "--unsigned-tokens",
            envvar="ASTERISM_UNSIGNED_TOKENS",
            rich_help_panel=_WHO,
            help="Let tables take bearer tokens that nobody has signed. For tests only.",
        ),
    ] = False,
    seed: Annotated[
        Path | None,
        typer.Option(
            envvar="ASTERISM_SEED",
            metavar="FILE",
            rich_help_panel=_HOW,
            help='At first start, create what this JSON file says: {"databases": [{"id", "containers": [{"id", '
            '"partitionKey", "items"}]}]}.',
        ),
    ] = None,
    no_throttle: Annotated[
        bool,
        typer.Option(
            "--no-throttle",
            envvar="ASTERISM_NO_THROTTLE",
            rich_help_panel=_HOW,
            help="Charge request units but never answer 429.",
        ),
    ] = False,
    consistency: Annotated[
        str,
        typer.Option(
            envvar="ASTERISM_CONSISTENCY",
            metavar="LEVEL",
            rich_help_panel=_HOW,
            help="Default consistency level of the account.",
        ),
    ] = _DEFAULTS.consistency,
    workers: Annotated[
        int,
        typer.Option(
            envvar="ASTERISM_WORKERS",
            min=1,
            max=64,
            metavar="N",
            rich_help_panel=_HOW,
            help="Processes that serve together, over one store; each uses one core.",
        ),
    ] = _DEFAULTS.workers,
    announce_seconds: Annotated[
        float,
        typer.Option(
            envvar="ASTERISM_ANNOUNCE_SECONDS",
            min=0,
            metavar="SECONDS",
            rich_help_panel=_HOW,
            help="How long a split for throughput is announced (offer pending, range splitting) before it happens.",
        ),
    ] = _DEFAULTS.announce_seconds,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            envvar="ASTERISM_LIMIT",
            metavar="NAME=VALUE",
            rich_help_panel=_HOW,
            help=f"Change a limit; bytes may end in KB, MB or GB; may be repeated. Names: {', '.join(limit_names())}.",
        ),
    ] = None,
) -> None:
    """Start the server."""
    try:
        config = ServerConfig(
            data=data,
            host=host,
            port=port,
            https=https,
            tls_names=tuple(tls_name or ()),
            key=key.strip(),
            seed=seed,
            throttle=not no_throttle,
            account=account,
            consistency=parse_consistency(consistency),
            limits=parse_limits(limit or ()),
            announce_seconds=announce_seconds,
            fleet=_fleet(fleet, store or []),
            fleet_file=fleet,
            workers=workers,
            apis=parse_apis(apis),
            table_port=table_port,
            cosmos_table_port=cosmos_table_port,
            table_accounts=tuple(table_account or ()),
            cosmos_table_accounts=tuple(cosmos_table_account or ()),
            unsigned_tokens=unsigned_tokens,
        )
        from asterism.server.run import run_server

        run_server(config, say=_say)
    except StartRefused as refusal:
        raise CommandFailed(str(refusal)) from None


def _fleet(path: Path | None, stores: list[str]) -> FleetConfig | None:
    if path is None and not stores:
        return None
    from asterism.server.fleet_config import fleet_of_stores, read_fleet

    if path is None:
        return fleet_of_stores(stores)
    if stores:
        raise StartRefused("give either --fleet or --store")
    return read_fleet(path)


def _say(text: str) -> None:
    # At once, also into a pipe or a file: programs wait for this line. Nobody may be reading any more, which is no
    # reason to stop serving.
    with contextlib.suppress(OSError):
        print(text, flush=True)
