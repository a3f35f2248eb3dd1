"""Ports of this machine on which no process listens, and which no other test process is given."""

from __future__ import annotations

import fcntl
import functools
import os
import secrets
import socket
import tempfile
from collections import deque

# Below the ports of outgoing connections, which begin at 32768 on Linux and at 49152 elsewhere. So no connection of a
# test that runs meanwhile takes a port between its choice and the start of its server.
_CANDIDATES = range(16384, 32768)
# A process keeps the ports that it was given last, far more than its tests use at a time.
_KEPT_MAX = 4096

_kept: deque[int] = deque()


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return ports that differ from each other, and from all that test processes of this user have chosen: a server
    may be slow to start, may be down for a while, or is not to be there at all."""
    ports: list[int] = []
    while len(ports) < count:
        port = secrets.choice(_CANDIDATES)
        if _claim(port):
            if _is_free(port):
                ports.append(port)
            else:
                _give_up(port)
    return ports


@functools.cache
def _claims() -> int:
    """Return the descriptor of a file in which each test process has locked a byte for each of its ports."""
    path = os.path.join(tempfile.gettempdir(), f"asterism-test-ports-{os.getuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _claim(port: int) -> bool:
    if port in _kept:
        return False
    try:
        # The system gives it up when this process ends, however that happens.
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except (BlockingIOError, PermissionError):
        return False
    _kept.append(port)
    if len(_kept) > _KEPT_MAX:
        _give_up(_kept[0])
    return True


def _give_up(port: int) -> None:
    _kept.remove(port)
    fcntl.lockf(_claims(), fcntl.LOCK_UN, 1, port)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
