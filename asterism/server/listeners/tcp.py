"""Ports for protocols that are not plain HTTP, served by the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from asterism.apis.transports.http import ClientGone
from asterism.server.config import StartRefused
from asterism.server.listeners.addresses import bind_shared
from asterism.server.listeners.tcp_stream import LINGER_SECONDS_MAX, TcpPort, TcpStream

LOG = logging.getLogger("asterism.server")

# The kernel cuts this to its own limit.
BACKLOG = 4096
# Connections that are accepted before others have their turn.
_ACCEPTED_AT_ONCE = 64
# How long a port rests when the system cannot hand over a connection.
_REST_SECONDS = 1.0
# The first byte of a TLS connection: a record of the handshake.
_TLS_HANDSHAKE = b"\x16"

Serve = Callable[[TcpStream], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PortTls:
    """TLS on a port. The context is made for the first client that needs it."""

    context: Callable[[], ssl.SSLContext]
    # True if clients without TLS are served as well.
    is_optional: bool = False


class TcpListener:
    """One listening port. `start` returns when it accepts; `stop` when every message under way is answered."""

    def __init__(
        self,
        serve: Serve,
        *,
        address: str,
        number: int,
        port: TcpPort,
        tls: PortTls | None = None,
        handshake_seconds_max: float,
    ) -> None:
        self._serve = serve
        self._address = address
        self._number = number
        self._port = port
        self._tls = tls
        self._handshake_seconds_max = handshake_seconds_max
        self._context: ssl.SSLContext | None = None
        self._making_context = asyncio.Lock()
        self._listening: socket.socket | None = None
        self._is_accepting = False
        self._streams: dict[asyncio.Task[None], TcpStream | None] = {}

    async def start(self) -> None:
        listening = bind_shared(self._address, self._number)
        try:
            listening.setblocking(False)
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            raise StartRefused(f"cannot listen on {self._address}:{self._number}: {error.strerror}") from None
        self._listening = listening
        self._accept_again()

    async def until(self, stopping: asyncio.Event) -> None:
        await stopping.wait()

    async def stop(self, *, drain_seconds_max: float) -> bool:
        """Stop accepting at once; False when messages were still under way after the time."""
        if self._listening is None:
            return True
        self._pause_accepting()
        self._listening.close()
        self._listening = None
        self._port.draining.set()
        for task, stream in self._streams.items():
            if stream is None:
                # Nothing has arrived yet.
                task.cancel()
            else:
                stream.drain()
        working = {task for task, stream in self._streams.items() if stream is None or not stream.is_closing}
        is_drained = await _all_done(working, seconds_max=drain_seconds_max)
        for task in working:
            task.cancel()
        # Of these only the last bytes are waited for.
        await _all_done(set(self._streams), seconds_max=LINGER_SECONDS_MAX)
        for stream in self._streams.values():
            if stream is not None:
                stream.abort()
        return is_drained

    def _accept_again(self) -> None:
        if self._listening is not None and not self._is_accepting:
            self._is_accepting = True
            asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def _pause_accepting(self) -> None:
        if self._listening is not None and self._is_accepting:
            self._is_accepting = False
            asyncio.get_running_loop().remove_reader(self._listening)

    def _accept(self) -> None:
        assert self._listening is not None
        for _ in range(_ACCEPTED_AT_ONCE):
            if len(self._streams) >= self._port.connections.connections_max:
                # The others wait in the system's queue until a connection ends, or is closed to make room.
                self._pause_accepting()
                return
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Most likely out of descriptors or memory; to try again at once would keep the process busy.
                LOG.warning("no connection can be accepted on port %s: %s", self._number, error.strerror)
                self._pause_accepting()
                asyncio.get_running_loop().call_later(_REST_SECONDS, self._accept_again)
                return
            task = asyncio.create_task(self._connect(accepted))
            self._streams[task] = None
            task.add_done_callback(self._on_ended)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        del self._streams[task]
        self._accept_again()

    async def _connect(self, accepted: socket.socket) -> None:
        """Serve a connection from its first byte to its last."""
        task = asyncio.current_task()
        assert task is not None
        try:
            stream = await self._open(accepted)
        except Exception:
            LOG.exception("a connection on port %s could not be opened", self._number)
            return
        if stream is None:
            return
        self._streams[task] = stream
        try:
            await self._serve_to_end(stream)
            await stream.close()
            await stream.closed
        finally:
            if not stream.closed.done():
                # The server does not wait any longer.
                stream.abort()

    async def _serve_to_end(self, stream: TcpStream) -> None:
        try:
            await self._serve(stream)
        except ClientGone:
            pass
        except Exception:
            LOG.exception("a connection of %s could not be served", stream.peer_address)

    async def _open(self, accepted: socket.socket) -> TcpStream | None:
        try:
            context = await self._context_for(accepted)
        except BaseException:
            accepted.close()
            raise
        stream = TcpStream(self._port)
        try:
            # With TLS, uvloop returns a protocol of its own instead of the given one.
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: stream,
                accepted,
                ssl=context,
                ssl_handshake_timeout=None if context is None else self._handshake_seconds_max,
            )
        except OSError:
            # It ended before it began, or its TLS failed: that is its client's affair. The event loop has closed it.
            return None
        return stream

    async def _context_for(self, accepted: socket.socket) -> ssl.SSLContext | None:
        """Prepare an accepted connection; return None for one that goes on without TLS."""
        accepted.setblocking(False)
        with contextlib.suppress(OSError):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Clients that vanish without a word are noticed, where a door allows long silence.
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._tls is None or (self._tls.is_optional and await _first_byte(accepted) != _TLS_HANDSHAKE):
            return None
        async with self._making_context:
            if self._context is None:
                # In a thread: a certificate may have to be made first.
                self._context = await asyncio.to_thread(self._tls.context)
        return self._context


async def _first_byte(accepted: socket.socket) -> bytes:
    """Return the first byte and leave it to be read; b"" when the client goes without sending any."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return accepted.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            return b""
        readable = asyncio.Event()
        loop.add_reader(accepted, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(accepted)


async def _all_done(tasks: set[asyncio.Task[None]], *, seconds_max: float) -> bool:
    if not tasks:
        return True
    _, pending = await asyncio.wait(tasks, timeout=seconds_max)
    return not pending
