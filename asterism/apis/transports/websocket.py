"""A websocket as the doors see it: whole messages in both directions. No socket in sight."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from asterism.apis.transports.http import ClientGone, Headers

Result = TypeVar("Result")

NORMAL_CLOSURE = 1000
GOING_AWAY = 1001
# Of a client that went away without a word.
ABNORMAL_CLOSURE = 1006


class WebSocket(Protocol):
    """One connection, from its request for an upgrade on. Nothing is sent before `accept` or `refuse`."""

    # Of the request for an upgrade; the path is percent-decoded and without the query string.
    path: str
    query_string: str
    headers: Headers
    scheme: str
    # Offered by the client, the best first.
    offered_subprotocols: Sequence[str]
    # Address and port of the client, and of this end, as `127.0.0.1:54321`.
    peer_address: str
    local_address: str
    # The host that a TLS client asked for; None without TLS, and for clients that do not say.
    server_name: str | None
    # Why the connection ended, from the client's last message or the server's own; None while it is open.
    close_code: int | None
    # Seconds without a message in either direction after which the connection is closed; None: the server's limit.
    idle_seconds_max: float | None

    async def accept(self, *, subprotocol: str | None = None) -> None:
        """Agree to the upgrade, with one of the offered subprotocols if the door speaks one."""
        ...

    async def refuse(self, status: int, body: bytes = b"") -> None:
        """Answer the request for an upgrade with an HTTP status instead."""
        ...

    async def receive(self) -> str | bytes | None:
        """Return the next message, of either kind; None when the client has closed, or the server stops.

        Messages above the limit of the port close the connection with 1009. Pings are answered meanwhile.
        """
        ...

    async def send(self, message: str | bytes) -> None:
        """Send one message; returns when the client has taken enough of what was sent. Raises ClientGone if it left."""
        ...

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        """Await the result of long work; cancels it and raises ClientGone when the client goes away first."""
        ...

    @property
    def is_draining(self) -> bool:
        """True from the moment the server stops; `receive` then returns None, and answers can still be sent."""
        ...

    async def until_draining(self) -> None:
        """Return when the server stops, so that a door which waits for other events can end the wait."""
        ...

    async def close(self, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        """Say good-bye. The listener does so by itself when the door returns: with 1000, or 1001 when it stops."""
        ...


class WebSocketDoor(Protocol):
    """A protocol's front over websockets: serves one connection from its request for an upgrade to its end.

    ClientGone may pass through it.
    """

    async def serve_websocket(self, socket: WebSocket) -> None: ...


class WebSocketStream:
    """A ByteStream over the binary messages of an accepted websocket, whose boundaries mean nothing.

    For a TCP protocol that clients also speak through websockets, as AMQP does.
    """

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self.peer_address = socket.peer_address
        self.local_address = socket.local_address
        self.is_tls = socket.scheme in ("https", "wss")
        self.server_name = socket.server_name

    @property
    def is_draining(self) -> bool:
        return self._socket.is_draining

    @property
    def idle_seconds_max(self) -> float | None:
        return self._socket.idle_seconds_max

    @idle_seconds_max.setter
    def idle_seconds_max(self, seconds: float | None) -> None:
        self._socket.idle_seconds_max = seconds

    async def read(self, *, pending_bytes: int = 0) -> bytes:  # noqa: ARG002 - messages have a limit of their own
        while True:
            message = await self._socket.receive()
            if message is None:
                return b""
            if isinstance(message, str):
                # 1003: this end reads no text.
                await self._socket.close(1003, "send binary messages")
                raise ClientGone
            if message:
                return message

    async def write(self, data: bytes) -> None:
        await self._socket.send(data)

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        return await self._socket.while_connected(work)

    async def until_draining(self) -> None:
        await self._socket.until_draining()

    async def close(self) -> None:
        await self._socket.close()
