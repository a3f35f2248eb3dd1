"""`asterism serve`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from asterism.cli import serve_options as options
from asterism.cli.failure import CommandFailed
from asterism.server.config import (
    ServerConfig,
    StartRefused,
    parse_allowed_hosts,
    parse_apis,
    parse_consistency,
    parse_limits,
)

if TYPE_CHECKING:
    from asterism.server.fleet_config import FleetConfig

_DEFAULTS = ServerConfig()
_ALL_APIS = ",".join(_DEFAULTS.apis)

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
    data: options.Data = _DEFAULTS.data,
    host: options.Host = _DEFAULTS.host,
    port: options.Port = _DEFAULTS.port,
    apis: options.Apis = _ALL_APIS,
    table_port: options.TablePort = _DEFAULTS.table_port,
    cosmos_table_port: options.CosmosTablePort = _DEFAULTS.cosmos_table_port,
    https: options.Https = False,
    tls_name: options.TlsName = None,
    key: options.Key = _DEFAULTS.key,
    account: options.Account = _DEFAULTS.account,
    fleet: options.Fleet = None,
    store: options.Store = None,
    table_account: options.TableAccount = None,
    cosmos_table_account: options.CosmosTableAccount = None,
    unsigned_tokens: options.UnsignedTokens = False,
    allowed_host: options.AllowedHost = None,
    seed: options.Seed = None,
    no_throttle: options.NoThrottle = False,
    lenient_sql: options.LenientSql = False,
    consistency: options.Consistency = _DEFAULTS.consistency,
    workers: options.Workers = _DEFAULTS.workers,
    announce_seconds: options.AnnounceSeconds = _DEFAULTS.announce_seconds,
    limit: options.Limit = None,
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
            lenient_sql=lenient_sql,
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
            allowed_hosts=parse_allowed_hosts(allowed_host or ()),
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
