"""Ports of this machine on which no process listens."""

from __future__ import annotations

import secrets
import socket

# Below the ports of outgoing connections, which begin at 32768 on Linux and at 49152 elsewhere. So no connection of a
# test that runs meanwhile takes a port between its choice and the start of its server.
_CANDIDATES = range(16384, 32768)


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return ports that differ from each other."""
    ports: set[int] = set()
    while len(ports) < count:
        port = secrets.choice(_CANDIDATES)
        if _is_free(port):
            ports.add(port)
    return list(ports)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
