"""Stand-in for Granian: calls the applications of a server as Granian does, without sockets.

The interface between an HTTP server and its application (RSGI) is the same in every checkout, whatever lies behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

Application = Callable[["Scope", "Protocol"], Awaitable[None]]


@dataclass(slots=True)
class Scope:
    """A request without its body."""

    method: str
    path: str
    query_string: str
    headers: dict[str, str]
    authority: str | None = None
    scheme: str = "http"
    http_version: str = "1.1"
    client: str = "127.0.0.1:50000"
    server: str = "127.0.0.1:8081"
    proto: str = "http"
    rsgi_version: str = "1.5"


class Protocol:
    """A request's body and the answer to it."""

    __slots__ = ("_body", "content", "status")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.status = 0
        self.content = b""

    async def __call__(self) -> bytes:
        return self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def client_disconnect(self) -> None:
        await asyncio.Event().wait()

    def response_empty(self, status: int, _headers: list[tuple[str, str]]) -> None:
        self.status = status

    def response_bytes(self, status: int, _headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.content = body

    def response_stream(self, status: int, _headers: list[tuple[str, str]]) -> Protocol:
        self.status = status
        return self

    async def send_bytes(self, piece: bytes) -> None:
        self.content += piece


@dataclass(slots=True)
class Call:
    """A request that can be made many times."""

    scope: Scope
    body: bytes

    @classmethod
    def of(cls, request: bytes) -> Call:
        """From its bytes on the wire."""
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        path, _, query = target.partition("?")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        return cls(Scope(method, unquote(path), query, headers), body)

    async def make(self, application: Application) -> Protocol:
        protocol = Protocol(self.body)
        await application(self.scope, protocol)
        return protocol


class Server:
    """Stand-in for `granian.server.embed.Server` that keeps the application of each port.

    Connections are accepted and closed at once, for a program that tries whether its ports are open.
    """

    applications: dict[int, Application] = {}  # noqa: RUF012  (one process, one set of ports)

    def __init__(self, application: Application, *, address: str, port: int, **_options: Any) -> None:
        self._address = address
        self._port = port
        self._stopping = asyncio.Event()
        self.applications[port] = application

    async def serve(self) -> None:
        accepting = await asyncio.start_server(lambda _, writer: writer.close(), self._address, self._port)
        async with accepting:
            await self._stopping.wait()

    def stop(self) -> None:
        self._stopping.set()
