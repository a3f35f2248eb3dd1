"""What the operator reads when the server is ready: where it is and how to connect, without telling a secret."""

from __future__ import annotations

import ipaddress
import os

from asterism import __version__
from asterism.apis.table.accounts import DEVELOPMENT_ACCOUNT
from asterism.server.config import ServerConfig, accounts_of_tables

_ANY_ADDRESS = {"0.0.0.0", "::", ""}


def endpoint(config: ServerConfig, port: int) -> str:
    host = "localhost" if config.host in _ANY_ADDRESS else config.host
    return f"{config.scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


def greeting(config: ServerConfig, port: int) -> str:
    lines = [
        f"Asterism {__version__} is ready.",
        *(_nosql_lines(config, port) if "nosql" in config.apis else ()),
        *(_table_lines(config) if "table" in config.apis else ()),
        f"  Data directory     {config.data.resolve()}",
        f"  Stop               Ctrl+C, or SIGTERM to process {os.getpid()}",
    ]
    if config.fleet is not None:
        names = ", ".join(one.name for one in config.fleet.nodes)
        lines.insert(-2, f"  Fleet              {config.fleet.name}: {names}")
    if config.https:
        lines.insert(-1, f"  Certificate        {(config.data / 'tls' / 'certificate.pem').resolve()} (self-signed)")
    if config.key_is_public and not is_loopback(config.host):
        lines.append(
            f"Warning: {config.host} can be reached by others and the key is the emulator's, which everybody knows; "
            "set your own with --key or ASTERISM_KEY."
        )
    if "table" in config.apis and not config.table_accounts and not is_loopback(config.host):
        lines.append(
            f"Warning: everybody knows the key of the account {DEVELOPMENT_ACCOUNT}; give tables accounts of your own "
            "with --table-account."
        )
    return "\n".join(lines)


def _nosql_lines(config: ServerConfig, port: int) -> list[str]:
    where = endpoint(config, port)
    key = config.key if config.key_is_public else "********"
    lines = [f"  Endpoint           {where}", f"  Connection string  AccountEndpoint={where};AccountKey={key};"]
    if not config.key_is_public:
        lines.append("  Key                the one given with --key or ASTERISM_KEY; it is not shown here")
    return lines


def _table_lines(config: ServerConfig) -> list[str]:
    account, *others = accounts_of_tables(config)
    lines = [
        f"  Tables             {endpoint(config, config.table_port)}{account}",
        f"  Cosmos DB tables   {endpoint(config, config.cosmos_table_port)}{account} (the same tables)",
    ]
    if others:
        lines.append(f"  Other accounts     {', '.join(others)}")
    return lines


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
