"""A network that can be broken: a TCP proxy in front of a PostgreSQL server, which also counts round trips."""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from typing import TypeVar

from tests.support.ports import free_port

SSL_REQUEST = 80877103
CHUNK_BYTES = 1 << 16

_Server = TypeVar("_Server")


class Fault(enum.Enum):
    """Fault of the next request, and of its connection."""

    NONE = enum.auto()
    # It never reaches the server.
    REQUEST_LOST = enum.auto()
    # The server carries it out and its answer never reaches the client.
    ANSWER_LOST = enum.auto()
    # It reaches the server long after the client has lost the connection: see `deliver_held`.
    REQUEST_HELD = enum.auto()


class RequestCounter:
    """Count the client's messages that the server answers as a whole: each is a round trip."""

    def __init__(self) -> None:
        self.requests = 0
        self._buffer = b""
        self._has_started = False

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while True:
            # The first messages of a connection have no type.
            head = 1 if self._has_started else 0
            if len(self._buffer) < head + 4:
                return
            end = head + int.from_bytes(self._buffer[head : head + 4], "big")
            if len(self._buffer) < end:
                return
            if not self._has_started:
                self._has_started = int.from_bytes(self._buffer[4:8], "big") != SSL_REQUEST
            elif self._buffer[:1] in (b"S", b"Q"):
                self.requests += 1
            self._buffer = self._buffer[end:]


class Connection:
    """The two sockets of one connection through the proxy."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.client_reader, self.client_writer = client
        self.server_reader, self.server_writer = server
        self.counter = RequestCounter()
        self.loses_answer = False
        # A held request, and its answer, for which the client no longer waits.
        self.held: bytes | None = None
        self.late_answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def cut_client(self) -> None:
        self.client_writer.transport.abort()

    def cut(self) -> None:
        self.client_writer.transport.abort()
        self.server_writer.transport.abort()


class Proxy:
    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._counters: list[RequestCounter] = []
        self._refuses = False
        # Not one of those of outgoing connections: while it is closed, such a connection could get it, or meet itself.
        self.port = free_port()
        self.fault = Fault.NONE
        # Set when the fault has happened.
        self.struck = asyncio.Event()

    @property
    def requests(self) -> int:
        return sum(counter.requests for counter in self._counters)

    async def start(self) -> None:
        self._refuses = False
        self._server = await asyncio.start_server(self._on_client, "127.0.0.1", self.port)

    def arm(self, fault: Fault) -> None:
        self.fault = fault
        self.struck.clear()

    def stall(self) -> None:
        """Let no data through, in either direction, without ending connections."""
        self._flows.clear()

    def flow(self) -> None:
        """Let stalled data through again."""
        self._flows.set()

    def cut_all(self) -> None:
        for connection in list(self._connections):
            connection.cut()

    async def refuse(self) -> None:
        """Cut every connection and accept no new one."""
        assert self._server is not None
        self._refuses = True
        self._server.close()
        self.cut_all()

    async def deliver_held(self) -> bytes:
        """Deliver the held request to the server; return its answer."""
        (connection,) = (candidate for candidate in self._connections if candidate.held is not None)
        connection.server_writer.write(connection.held or b"")
        return await asyncio.wait_for(connection.late_answer, 60)

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection((reader, writer), server)
        if self._refuses:
            # It was accepted just before.
            connection.cut()
            return
        self._connections.add(connection)
        self._counters.append(connection.counter)
        for pump in (self._pump_requests(connection), self._pump_answers(connection)):
            task = asyncio.create_task(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump_requests(self, connection: Connection) -> None:
        with contextlib.suppress(OSError):
            while data := await connection.client_reader.read(CHUNK_BYTES):
                await self._flows.wait()
                connection.counter.feed(data)
                fault, self.fault = self.fault, Fault.NONE
                match fault:
                    case Fault.NONE:
                        connection.server_writer.write(data)
                        continue
                    case Fault.REQUEST_LOST:
                        connection.cut()
                    case Fault.REQUEST_HELD:
                        connection.held = data
                        connection.cut_client()
                    case Fault.ANSWER_LOST:
                        connection.loses_answer = True
                        connection.server_writer.write(data)
                        continue
                self.struck.set()
        if connection.held is None:
            connection.server_writer.close()
            self._connections.discard(connection)

    async def _pump_answers(self, connection: Connection) -> None:
        with contextlib.suppress(OSError):
            while data := await connection.server_reader.read(CHUNK_BYTES):
                await self._flows.wait()
                if connection.held is not None:
                    connection.late_answer.set_result(data)
                    return
                if connection.loses_answer:
                    connection.cut()
                    self.struck.set()
                    return
                connection.client_writer.write(data)
        if connection.held is None:
            connection.client_writer.close()

    async def close(self) -> None:
        self._flows.set()
        assert self._server is not None
        self._server.close()
        self.cut_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()


async def enter_behind_proxy(stack: AsyncExitStack, starting: AbstractContextManager[_Server]) -> _Server:
    """Start a server in a thread: its connections to the database run through this loop. It ends with the stack."""
    server = await asyncio.to_thread(starting.__enter__)
    stack.push(starting.__exit__)
    return server
