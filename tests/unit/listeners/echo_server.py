"""A listener of the toy door in this process, and clients for it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp

from asterism.limits import GIB, MIB, Limits
from asterism.server.listeners.group import AnyDoor, DoorPort, ListenerGroup, PortLimits, Transport, make_listeners
from asterism.server.listeners.tls import CertificateFiles
from tests.support.ports import free_port
from tests.toy_door.echo import LENGTH_BYTES, EchoHttp, EchoMixed

# For a machine that has much else to do.
WAIT_SECONDS_MAX = 120.0
# Connections of the machine itself are buffered by the kernel up to a dozen megabytes; a stream is much longer.
BUFFERED_BYTES_MAX = 64 * MIB
ENDLESS_BYTES = 4 * GIB

PORT_LIMITS = PortLimits(body_bytes_max=MIB, streamed_body_bytes_max=ENDLESS_BYTES)


@dataclass
class EchoServer:
    port: int
    group: ListenerGroup
    certificate: CertificateFiles | None

    def url(self, path: str = "/") -> str:
        return f"{'http' if self.certificate is None else 'https'}://localhost:{self.port}{path}"

    def client_tls(self) -> ssl.SSLContext | None:
        if self.certificate is None:
            return None
        return ssl.create_default_context(cafile=str(self.certificate.certificate))

    def session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self.client_tls() or True, limit=0)
        return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=WAIT_SECONDS_MAX))

    async def connect(self, *, limit: int = 64 * 1024) -> Client:
        reader, writer = await asyncio.open_connection("localhost", self.port, ssl=self.client_tls(), limit=limit)
        return Client(reader, writer)


@dataclass
class Client:
    """A client of the length-prefixed protocol, or of anything else in bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> bytes:
        """Return the next message; b"" at the end."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            try:
                size = int.from_bytes(await self.reader.readexactly(LENGTH_BYTES), "big")
                return await self.reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return b""

    async def ended(self) -> bool:
        """Wait for the server to close; False when it sends something instead."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            try:
                return not await self.reader.read(1)
            except ConnectionError:
                return True

    def vanish(self) -> None:
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def echo_server(
    transport: Transport,
    *,
    certificate: CertificateFiles | None = None,
    door: AnyDoor | None = None,
    limits: Limits | None = None,
    port_limits: PortLimits = PORT_LIMITS,
    optional_tls: CertificateFiles | None = None,
) -> AsyncIterator[EchoServer]:
    """Serve until the end of the `async with`; with `optional_tls`, clients with and without TLS."""
    port = free_port()
    files = certificate or optional_tls

    def ensured() -> CertificateFiles:
        assert files is not None
        return files

    each = DoorPort(
        door=door or EchoMixed(),
        port=port,
        transport=transport,
        limits=port_limits,
        has_optional_tls=optional_tls is not None,
    )
    group = make_listeners(
        [each],
        admin=EchoHttp(),
        address="127.0.0.1",
        limits=limits or Limits(),
        is_tls=certificate is not None,
        certificate=ensured,
    )
    await group.start()
    try:
        yield EchoServer(port, group, certificate)
    finally:
        await group.stop(drain_seconds_max=1.0)


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not is_so():
            await asyncio.sleep(0.01)


async def settled(count: Callable[[], int]) -> int:
    """Return a number when it has stopped to grow."""
    last, same_count = count(), 0
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while same_count < 20:
            await asyncio.sleep(0.05)
            now = count()
            same_count = same_count + 1 if now == last else 0
            last = now
    return last
