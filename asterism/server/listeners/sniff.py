"""Ports that speak several protocols: the first bytes of a connection say which.

TLS is recognized before (`tcp.PortTls`), so these are the first bytes inside it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from asterism.server.listeners.tcp import Serve
from asterism.server.listeners.tcp_stream import TcpStream

_METHODS = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"MERGE ")


class Spoken(enum.Enum):
    HTTP = "http"
    OTHER = "other"


# Tells from the first bytes what a client speaks; None: more bytes are needed.
Sniff = Callable[[bytes], Spoken | None]


def sniff_http(first: bytes) -> Spoken | None:
    """Tell requests of HTTP/1 from anything else."""
    if any(first.startswith(method) for method in _METHODS):
        return Spoken.HTTP
    return None if any(method.startswith(first) for method in _METHODS) else Spoken.OTHER


def serve_spoken(*, http: Serve, other: Serve, sniff: Sniff = sniff_http) -> Serve:
    """Return a handler of connections that looks at their first bytes and hands them over, with nothing read."""

    async def serve(stream: TcpStream) -> None:
        size = 1
        while True:
            first = await stream.peek(size)
            if len(first) < size:
                # The client left, or the server stops, before it was clear.
                return
            spoken = sniff(first)
            if spoken is not None:
                break
            size += 1
        await (http if spoken is Spoken.HTTP else other)(stream)

    return serve
