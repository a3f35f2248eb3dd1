"""One TCP connection: bytes in bounded buffers, with or without TLS."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from asterism.apis.transports.http import ClientGone
from asterism.limits import KIB
from asterism.server.listeners.addresses import client_of
from asterism.server.listeners.connection_rules import AnswerBudget, Connection, PortConnections
from asterism.server.listeners.request_bodies import BodyBudget
from asterism.server.listeners.tls import server_name_of

LOG = logging.getLogger("asterism.server")

Result = TypeVar("Result")

# A connection that holds this much unread makes its client wait, and one whose client leaves this much unread its door.
READ_BYTES_MAX = 256 * KIB
WRITE_BYTES_MAX = 256 * KIB
# A door that sends as fast as its client reads never waits; it lets others run after this much.
_TURN_BYTES = 256 * KIB
# Messages up to this size are not counted among the bytes in flight: a connection's buffer holds as much.
_SMALL_BYTES_MAX = 64 * KIB
# While clients leave too many answers unread, how often a connection asks whether it may go on.
_EXCEEDED_SECONDS = 0.1
# How long what a client still sends is received and dropped after the last answer, so that it gets to read that.
LINGER_SECONDS_MAX = 2.0


@dataclass(slots=True)
class TcpPort:
    """The state that the connections of one port share; all but the first are those of the process."""

    connections: PortConnections
    bodies: BodyBudget
    answers: AnswerBudget
    look_soon: Callable[[], None]
    # Of its connections, unless a door sets another; None: the limit of all connections.
    idle_seconds_max: float | None = None
    draining: asyncio.Event = field(default_factory=asyncio.Event)


class TcpStream(asyncio.Protocol):
    """A ByteStream over a transport of the event loop. One task reads; any number may write."""

    def __init__(self, port: TcpPort) -> None:
        self._port = port
        self._record: Connection | None = None
        self._received: list[bytes] = []
        self._received_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._reserved_bytes = 0
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._turn_bytes = 0
        # No more bytes will come; and nothing can be sent any more.
        self._is_ended = False
        self.is_closing = False
        self._idle_seconds_max = port.idle_seconds_max
        loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = loop.create_future()
        # Done when the connection is closed on both sides.
        self.closed: asyncio.Future[None] = loop.create_future()

    # --- called by the event loop ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        self.peer_address = _address(transport.get_extra_info("peername"))
        self.local_address = _address(transport.get_extra_info("sockname"))
        tls_object: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        self.is_tls = tls_object is not None
        self.server_name = None if tls_object is None else server_name_of(tls_object)

    def data_received(self, data: bytes) -> None:
        if self.is_closing:
            return
        if self._record is None:
            self._begin_record()
        self._received.append(data)
        self._received_bytes += len(data)
        if self._received_bytes >= READ_BYTES_MAX and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        """Keep the connection open for the answers to what has arrived; TLS has no such state, and ends."""
        self._end()
        if self.is_closing:
            self._transport.close()
        return not self.is_tls

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the client is gone, for any reason
        self.is_closing = True
        self._end()
        for writer in self._writers:
            _resolve(writer)
        self._reserve_no_more_than(0)
        by_client = self._port.connections.by_client
        if self._record is not None and by_client.get(self._record.client) is self._record:
            del by_client[self._record.client]
        _resolve(self.closed)

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        if self._port.answers.add(self._transport.get_write_buffer_size()):
            self._port.look_soon()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        for writer in self._writers:
            _resolve(writer)

    def _end(self) -> None:
        self._is_ended = True
        self._wake_reader()
        _resolve(self._gone)

    def _wake_reader(self) -> None:
        if self._reader is not None:
            _resolve(self._reader)

    def _begin_record(self) -> None:
        self._record = record = Connection(self.peer_address, is_http2=False)
        record.idle_seconds_max = self._idle_seconds_max
        # Whatever the door does is under way, unless it waits for bytes.
        record.under_way = 0 if self._reader is not None else 1
        self._port.connections.by_client[record.client] = record

    # --- called by the listener --------------------------------------------------------------------------------------

    async def peek(self, size: int) -> bytes:
        """Return the first `size` bytes when they have arrived, and leave them to be read; fewer at the end."""
        while self._received_bytes < size and not self._is_ended and not self.is_draining:
            await self._wait(is_within_message=self._received_bytes > 0)
        return b"".join(self._received)[:size]

    def drain(self) -> None:
        """Let a door that waits between messages see that the server stops; wait no more for a client to close."""
        self._wake_reader()
        if self.is_closing:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def send(self, data: bytes) -> None:
        """Send without waiting, which `flushed` does, and without a record of it, which the caller keeps."""
        if self.is_closing or self._transport.is_closing():
            # The second comes first when a write has failed.
            raise ClientGone
        self._transport.write(data)
        self._turn_bytes += len(data)

    async def flushed(self) -> None:
        """Return when little of what was sent is left; ClientGone when it never will be."""
        if self._turn_bytes >= _TURN_BYTES:
            self._turn_bytes = 0
            await asyncio.sleep(0)
        while self._is_writing_paused and not self.is_closing:
            writer = asyncio.get_running_loop().create_future()
            self._writers.append(writer)
            try:
                await writer
            finally:
                self._writers.remove(writer)
        if self.is_closing:
            raise ClientGone

    async def gone(self) -> None:
        """Return when the client has closed its side of the connection, or all of it."""
        await asyncio.shield(self._gone)

    # --- ByteStream --------------------------------------------------------------------------------------------------

    @property
    def is_draining(self) -> bool:
        return self._port.draining.is_set()

    @property
    def idle_seconds_max(self) -> float | None:
        return self._idle_seconds_max

    @idle_seconds_max.setter
    def idle_seconds_max(self, seconds: float | None) -> None:
        self._idle_seconds_max = seconds
        if self._record is not None:
            self._record.idle_seconds_max = seconds

    async def read(self, *, pending_bytes: int = 0) -> bytes:
        if pending_bytes > _SMALL_BYTES_MAX or self._reserved_bytes:
            await self._reserve(pending_bytes if pending_bytes > _SMALL_BYTES_MAX else 0)
        while self._port.answers.is_exceeded and not self._is_ended:
            await asyncio.sleep(_EXCEEDED_SECONDS)
        while not self._received:
            if self._is_ended or (self.is_draining and not pending_bytes):
                return b""
            await self._wait(is_within_message=pending_bytes > 0)
        data = self._received[0] if len(self._received) == 1 else b"".join(self._received)
        self._received.clear()
        self._received_bytes = 0
        if self._is_reading_paused:
            self._is_reading_paused = False
            self._transport.resume_reading()
        if self._record is not None and not pending_bytes:
            self._record.request_count += 1
        return data

    async def write(self, data: bytes) -> None:
        if self._is_writing_paused:
            await self.flushed()
        self.send(data)
        if self._record is not None:
            self._record.answered_bytes += len(data)
            self._record.request_count += 1
        if self._is_writing_paused or self._turn_bytes >= _TURN_BYTES:
            await self.flushed()

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        task: asyncio.Future[Result] = asyncio.ensure_future(work)
        both: set[asyncio.Future[Any]] = {task, self._gone}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise ClientGone
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def until_draining(self) -> None:
        await self._port.draining.wait()

    async def close(self) -> None:
        if self.is_closing:
            return
        self.is_closing = True
        self._received.clear()
        self._reserve_no_more_than(0)
        if self._is_ended or self.is_tls or self.is_draining:
            # Over TLS the event loop itself drops what still comes, while it says good-bye.
            self._transport.close()
            return
        if self._is_reading_paused:
            self._transport.resume_reading()
        self._transport.write_eof()
        # It still sends what was written, however long the client takes to read that.
        asyncio.get_running_loop().call_later(LINGER_SECONDS_MAX, self._transport.close)

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _wait(self, *, is_within_message: bool) -> None:
        """Wait for bytes, as an idle connection."""
        assert self._reader is None, "one task reads"
        self._reader = asyncio.get_running_loop().create_future()
        record = self._record
        if record is not None:
            record.under_way -= 1
            record.is_within_message = is_within_message
        try:
            await self._reader
        finally:
            self._reader = None
            if self._record is not None:
                self._record.under_way += 1
                self._record.is_within_message = False

    async def _reserve(self, size: int) -> None:
        """Count a message among the bytes in flight before its rest is read; wait for room if need be.

        One that turns out to be larger than expected is not waited for: others may wait for what it holds already.
        """
        more_bytes = size - self._reserved_bytes
        if more_bytes <= 0:
            self._reserve_no_more_than(size)
        elif self._reserved_bytes == 0:
            await self.while_connected(self._port.bodies.wait_to_take(size))
            self._reserved_bytes = size
            if self.is_closing:
                self._reserve_no_more_than(0)
                raise ClientGone
        elif self._port.bodies.take(more_bytes, is_small=False):
            self._reserved_bytes = size
        else:
            LOG.warning("a connection of %s was closed: its message has no room in memory", self.peer_address)
            self.abort()
            raise ClientGone

    def _reserve_no_more_than(self, size: int) -> None:
        if self._reserved_bytes > size:
            self._port.bodies.give_back(self._reserved_bytes - size)
            self._reserved_bytes = size


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _address(name: Any) -> str:
    # A connection may be gone before it is looked at.
    return client_of(name) if name else ""
