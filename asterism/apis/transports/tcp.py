"""A connection as a stream of bytes in both directions, for protocols that are not HTTP. No socket in sight."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class ByteStream(Protocol):
    """One connection: bytes that arrive in pieces of any size, and bytes that are sent in order."""

    # Address and port of the client, and of this end, as `127.0.0.1:54321`.
    peer_address: str
    local_address: str
    is_tls: bool
    # The host that a TLS client asked for; None without TLS, and for clients that do not say.
    server_name: str | None
    # Seconds without a message in either direction after which the connection is closed; None: the server's limit.
    idle_seconds_max: float | None

    async def read(self, *, pending_bytes: int = 0) -> bytes:
        """Return the bytes that have arrived, or wait for some; b"" when no more will come.

        `pending_bytes` is the size of a message that has not arrived whole, as far as the caller knows it, and 0
        between messages. The listener counts it among the bytes in flight, lets a message under way arrive although
        the server stops, and closes the connection when the rest of it comes too slowly.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes; returns when the client has taken enough of them. Raises ClientGone when it never will.

        The bytes of one call are sent in one piece, and those of calls within one turn of the event loop together.
        """
        ...

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        """Await the result of long work; cancels it and raises ClientGone when the client goes away first."""
        ...

    @property
    def is_draining(self) -> bool:
        """True from the moment the server stops. `read` then ends between messages; finish what is under way."""
        ...

    async def until_draining(self) -> None:
        """Return when the server stops, so that a door which waits for other events can end the wait."""
        ...

    async def close(self) -> None:
        """Send what was written, then close. The listener does so by itself when the door returns."""
        ...


class TcpDoor(Protocol):
    """A protocol's front over TCP: serves one connection from its first byte to its end.

    The listener closes the connection when `serve` returns or raises. ClientGone may pass through it.
    """

    async def serve(self, stream: ByteStream) -> None: ...
