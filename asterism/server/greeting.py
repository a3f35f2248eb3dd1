"""What the operator reads when the server is ready: where it is and how to connect, without telling a secret."""

from __future__ import annotations

import ipaddress
import os

from asterism import __version__
from asterism.server.config import ServerConfig

_ANY_ADDRESS = {"0.0.0.0", "::", ""}


def endpoint(config: ServerConfig, port: int) -> str:
    host = "localhost" if config.host in _ANY_ADDRESS else config.host
    return f"{config.scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


def greeting(config: ServerConfig, port: int) -> str:
    where = endpoint(config, port)
    key = config.key if config.key_is_public else "********"
    lines = [
        f"Asterism {__version__} is ready.",
        f"  Endpoint           {where}",
        f"  Connection string  AccountEndpoint={where};AccountKey={key};",
        f"  Data directory     {config.data.resolve()}",
        f"  Stop               Ctrl+C, or SIGTERM to process {os.getpid()}",
    ]
    if config.fleet is not None:
        lines.insert(
            4, f"  Fleet              {config.fleet.name}: {', '.join(one.name for one in config.fleet.nodes)}"
        )
    if not config.key_is_public:
        lines.insert(3, "  Key                the one given with --key or ASTERISM_KEY; it is not shown here")
    if config.https:
        lines.insert(-1, f"  Certificate        {(config.data / 'tls' / 'certificate.pem').resolve()} (self-signed)")
    if config.key_is_public and not is_loopback(config.host):
        lines.append(
            f"Warning: {config.host} can be reached by others and the key is the emulator's, which everybody knows; "
            "set your own with --key or ASTERISM_KEY."
        )
    return "\n".join(lines)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
