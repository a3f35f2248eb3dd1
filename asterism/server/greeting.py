"""The text for the operator when the server is ready: where it is and how to connect, without telling a secret."""

from __future__ import annotations

import os
from pathlib import Path

from asterism import __version__
from asterism.apis.door_spec import Endpoint, PortSpec, Surroundings
from asterism.server.config import ConfiguredDoor, ServerConfig, is_loopback

_ANY_ADDRESS = {"0.0.0.0", "::", ""}
_HEADING_CHARACTERS = 19


def greeting(config: ServerConfig, *, tls: Path | None = None) -> str:
    """The configuration has the ports that were chosen; `tls` is the folder of the certificate, if it is not in the
    data directory."""
    of_doors = [door.spec.greeting(door.settings, surroundings(config, door)) for door in config.served_doors]
    lines = [
        *(line for of_door in of_doors for line in of_door.lines),
        *_fleet_lines(config),
        _data_line(config),
        *_certificate_lines(config, tls),
        ("Stop", f"Ctrl+C, or SIGTERM to process {os.getpid()}"),
    ]
    warnings = [
        *_key_warnings(config),
        *_control_warnings(config),
        *(warning for of_door in of_doors for warning in of_door.warnings),
    ]
    return "\n".join(
        [
            f"Asterism {__version__} is ready.",
            *(f"  {heading:<{_HEADING_CHARACTERS}}{text}" for heading, text in lines),
            *(f"Warning: {warning}" for warning in warnings),
        ]
    )


def endpoint(config: ServerConfig, port: PortSpec, number: int) -> Endpoint:
    host = "localhost" if config.host in _ANY_ADDRESS else config.host
    return Endpoint(host, number, port.transport, config.encrypts(port))


def surroundings(config: ServerConfig, door: ConfiguredDoor) -> Surroundings:
    return Surroundings(
        endpoints={port.name: endpoint(config, port, door.ports[port.name]) for port in door.spec.ports},
        is_local=is_loopback(config.host),
        account=config.account,
        key=config.key,
        key_is_public=config.key_is_public,
    )


def _fleet_lines(config: ServerConfig) -> list[tuple[str, str]]:
    if config.fleet is None:
        return []
    return [("Fleet", f"{config.fleet.name}: {', '.join(node.name for node in config.fleet.nodes)}")]


def _data_line(config: ServerConfig) -> tuple[str, str]:
    if config.is_in_memory:
        return "Data", "in memory only: everything is gone when the server ends"
    return "Data directory", str(config.data.resolve())


def _certificate_lines(config: ServerConfig, tls: Path | None) -> list[tuple[str, str]]:
    # With optional encryption it is made for the first client that wants it.
    if not any(map(config.encrypts, config.served_ports)):
        return []
    return [("Certificate", f"{((tls or config.data / 'tls') / 'certificate.pem').resolve()} (self-signed)")]


def _control_warnings(config: ServerConfig) -> list[str]:
    if not config.test_controls:
        return []
    return ["test controls are on: every holder of the key can make requests fail and delete everything."]


def _key_warnings(config: ServerConfig) -> list[str]:
    if not config.key_is_public or is_loopback(config.host):
        return []
    return [
        f"{config.host} can be reached by others and the key is the emulator's, which everybody knows; "
        "set your own with --key or ASTERISM_KEY."
    ]
