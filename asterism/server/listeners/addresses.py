"""Addresses and open files: where a port may listen, and how many connections it may have."""

from __future__ import annotations

import contextlib
import errno
import functools
import ipaddress
import resource
import socket

from asterism.server.config import StartRefused

# Descriptors that connections leave to everything else: the store's files, script hosts, nodes of a fleet.
_RESERVED_DESCRIPTORS = 1024


def share_descriptors(connections_max: int, *, ports: int) -> list[int]:
    """Allow the process as many open files as it may have, and say how many connections each port may have.

    Every connection is an open file, and many systems start processes with 1,024 of them. Where the system's own limit
    is too low for all, the first port gets three fifths. Out of descriptors, the HTTP server would try to accept
    without a pause, and no script host could start: some are kept back.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max * ports + _RESERVED_DESCRIPTORS
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    available = wanted if soft == resource.RLIM_INFINITY else soft
    shared = available - min(_RESERVED_DESCRIPTORS, available // 2)
    others = ports - 1
    shares = [shared * 3 // 5, *[shared * 2 // 5 // others] * others] if others else [shared]
    return [max(1, min(connections_max, share)) for share in shares]


def choose_address(host: str, port: int) -> tuple[str, int]:
    """The address to listen on, after a look whether it is free.

    The HTTP server binds in a way that lets several processes share a port; here sharing is not wanted, so a plain
    bind goes first.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError):
        raise StartRefused(f"the host {host!r} cannot be resolved to an address to listen on") from None
    family, _, _, _, address = min(found, key=lambda candidate: candidate[0] != socket.AF_INET)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            reason = "another process is listening there" if error.errno == errno.EADDRINUSE else error.strerror
            raise StartRefused(f"cannot listen on {host}:{port}: {reason}") from None
        return str(address[0]), int(probe.getsockname()[1])


def bind_shared(address: str, port: int) -> socket.socket:
    """Return a socket that is bound to a port, which other sockets of this server may share.

    Workers listen on one port so, and the system shares the connections out between them. While such a socket is bound
    and does not listen, it only keeps the system from choosing the port for another server.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        raise StartRefused(f"cannot listen on {address}:{port}: {error.strerror}") from None
    return bound


def client_of(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """A client's address in one form, however the system writes it."""
    host = address[0]
    return f"[{ipaddress.IPv6Address(host.partition('%')[0])}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"


@functools.lru_cache(maxsize=16_384)
def canonical_client(text: str) -> str:
    """The same of an address as the HTTP server writes it, for those of IPv6: others are in that form already."""
    host, _, port = text[1:].rpartition("]:")
    return client_of((host, int(port)))
