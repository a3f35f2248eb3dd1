"""HTTP bodies in pieces, both ways, through real sockets: Granian, and the server over byte streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import cast

import aiohttp
import psutil
import pytest

from asterism.apis.transports.http import Answer, Request, Response, StreamedResponse
from asterism.limits import MIB, Limits
from asterism.server.listeners.group import Transport
from asterism.server.listeners.tls import CertificateFiles
from tests.support.raw import HTTP2_START, http2_frame
from tests.unit.listeners.echo_server import (
    BUFFERED_BYTES_MAX,
    ENDLESS_BYTES,
    WAIT_SECONDS_MAX,
    EchoServer,
    echo_server,
    settled,
    wait_until,
)

TRANSPORTS: list[Transport] = ["http", "http+websocket"]
PIECE = bytes(64 * 1024)
LARGE_BYTES = 200 * MIB
# The least that tells streaming from keeping: half of what passes through, and more than a busy test process moves.
GROWTH_BYTES_MAX = LARGE_BYTES // 2


def resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Transport:
    return cast(Transport, request.param)


@pytest.fixture(params=["plain", "tls"])
async def server(
    request: pytest.FixtureRequest, transport: Transport, certificate: CertificateFiles
) -> AsyncIterator[EchoServer]:
    async with echo_server(transport, certificate=certificate if request.param == "tls" else None) as running:
        yield running


async def test_200_megabytes_pass_through_in_both_directions_without_being_kept(server: EchoServer) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(LARGE_BYTES // len(PIECE)):
            yield PIECE

    before = most = resident_bytes()
    received = 0
    async with server.session() as session, session.post(server.url("/stream"), data=body()) as response:
        async for piece in response.content.iter_any():
            received += len(piece)
            most = max(most, resident_bytes())
    assert received == LARGE_BYTES
    assert most - before < GROWTH_BYTES_MAX


async def test_a_streamed_body_arrives_as_it_was_sent(server: EchoServer) -> None:
    sent = b"".join(number.to_bytes(4, "big") for number in range(300_000))

    async def body() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), 77_777):
            yield sent[start : start + 77_777]

    async with server.session() as session, session.post(server.url("/stream"), data=body()) as response:
        assert await response.read() == sent


async def test_whole_and_streamed_answers_share_a_connection(server: EchoServer) -> None:
    async with server.session() as session:
        for _ in range(3):
            async with session.get(server.url("/zeros?100000")) as response:
                assert await response.read() == bytes(100_000)
            async with session.post(server.url("/whole"), data=b"abc") as response:
                assert (response.headers["door"], await response.read()) == ("echo", b"abc")
            async with session.head(server.url("/zeros?100000")) as response:
                assert (response.status, await response.read()) == (200, b"")


async def test_a_route_has_its_own_limit_of_bodies(server: EchoServer) -> None:
    async with server.session() as session:
        async with session.post(server.url("/whole"), data=bytes(2 * MIB)) as response:
            assert response.status == 413
        async with session.post(server.url("/stream"), data=bytes(2 * MIB)) as response:
            assert len(await response.read()) == 2 * MIB


async def test_a_stream_that_passes_its_limit_on_the_way_is_cut(server: EchoServer) -> None:
    """Its head has said 200, so nothing else can tell the client that this is not the whole."""
    async with server.session() as session:
        with pytest.raises(aiohttp.ClientError):
            async with session.post(server.url("/short"), data=bytes(5000)) as response:
                await response.read()


async def test_an_answer_whose_door_fails_on_the_way_is_not_taken_for_the_whole(
    server: EchoServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with server.session() as session:
        with caplog.at_level(logging.ERROR), pytest.raises(aiohttp.ClientError):
            async with session.get(server.url("/fails")) as response:
                await response.read()
        async with session.get(server.url("/hello")) as response:
            assert await response.read() == b"/hello"
    assert "the door cannot go on" in caplog.text


class CountingDoor:
    """Counts what it makes and takes, and notes that its streams were ended."""

    def __init__(self) -> None:
        self.made_bytes = 0
        self.taken_bytes = 0
        self.ended: list[str] = []
        self.go_on = asyncio.Event()

    async def answer(self, request: Request) -> Answer:
        if request.path == "/make":
            return StreamedResponse(200, [], self._make())
        if request.path == "/silent":
            return StreamedResponse(200, [], self._silent())
        if request.path == "/endless":
            return StreamedResponse(200, [], self._silent(), is_endless=True)
        async for piece in request.body_chunks():
            self.taken_bytes += len(piece)
            await self.go_on.wait()
        return Response(200, [], b"%d" % self.taken_bytes)

    async def serve_websocket(self, socket: object) -> None:
        raise AssertionError("not asked for")

    async def _make(self) -> AsyncIterator[bytes]:
        try:
            while self.made_bytes < ENDLESS_BYTES:
                self.made_bytes += len(PIECE)
                yield PIECE
        finally:
            self.ended.append("make")

    async def _silent(self) -> AsyncIterator[bytes]:
        try:
            yield b"hello"
            await asyncio.Event().wait()
        finally:
            self.ended.append("silent")


@pytest.fixture
def door() -> CountingDoor:
    return CountingDoor()


@pytest.fixture(params=["plain", "tls"])
async def counting_server(
    request: pytest.FixtureRequest, certificate: CertificateFiles, door: CountingDoor, transport: Transport
) -> AsyncIterator[EchoServer]:
    files = certificate if request.param == "tls" else None
    async with echo_server(transport, certificate=files, door=door) as running:
        yield running


# S13 of asterism/server/DESIGN.md.
async def test_a_slow_reader_makes_the_door_wait_and_not_the_memory_grow(
    counting_server: EchoServer, door: CountingDoor
) -> None:
    async with counting_server.session() as session, session.get(counting_server.url("/make")) as response:
        await response.content.readexactly(1)
        held = await settled(lambda: door.made_bytes)
        assert held < BUFFERED_BYTES_MAX
        await response.content.readexactly(held + 4 * MIB)
        assert door.made_bytes > held


async def test_a_slow_door_makes_the_sender_wait(counting_server: EchoServer, door: CountingDoor) -> None:
    sent_bytes = 0
    size = BUFFERED_BYTES_MAX + 4 * MIB

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent_bytes
        while sent_bytes < size:
            sent_bytes += len(PIECE)
            yield PIECE

    async with counting_server.session() as session:
        sending = asyncio.create_task(session.post(counting_server.url("/take"), data=body()))
        await wait_until(lambda: door.taken_bytes > 0)
        assert await settled(lambda: sent_bytes) < BUFFERED_BYTES_MAX
        door.go_on.set()
        async with await sending as response:
            assert int(await response.read()) == size


async def test_a_client_over_http_2_that_keeps_its_window_shut_makes_the_door_wait(door: CountingDoor) -> None:
    """Then the kernel has nothing to send, and only the bytes that TCP has not acknowledged tell of it."""
    get = b"\x82\x86\x04\x05/make\x01\x09localhost"
    async with echo_server("http", door=door) as running:
        client = await running.connect()
        await client.send(HTTP2_START + http2_frame(1, 5, get))
        await wait_until(lambda: door.made_bytes > 0)
        assert await settled(lambda: door.made_bytes) < BUFFERED_BYTES_MAX
        client.vanish()
        await wait_until(lambda: door.ended == ["make"])


@pytest.mark.parametrize("path", ["/make", "/silent"])
async def test_a_client_that_vanishes_ends_the_stream(
    counting_server: EchoServer, door: CountingDoor, path: str
) -> None:
    client = await counting_server.connect()
    await client.send(f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await client.reader.readuntil(b"\r\n\r\n")
    client.vanish()
    await wait_until(lambda: door.ended == [path.removeprefix("/")])


async def test_an_endless_stream_ends_when_the_server_stops(counting_server: EchoServer, door: CountingDoor) -> None:
    async with counting_server.session() as session, session.get(counting_server.url("/endless")) as response:
        assert await response.content.readexactly(5) == b"hello"
        assert await counting_server.group.stop(drain_seconds_max=WAIT_SECONDS_MAX)
        assert await response.read() == b""
    assert door.ended == ["silent"]


async def test_an_upload_that_pauses_is_refused(transport: Transport, door: CountingDoor) -> None:
    door.go_on.set()
    async with echo_server(transport, door=door, limits=Limits(body_pause_seconds_max=1)) as running:
        client = await running.connect()
        await client.send(b"POST /take HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n" + bytes(10))
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            assert (await client.reader.readline()).startswith(b"HTTP/1.1 408")


async def test_the_time_that_a_door_takes_does_not_count_as_a_pause(transport: Transport, door: CountingDoor) -> None:
    async with echo_server(
        transport, door=door, limits=Limits(body_pause_seconds_max=3, body_seconds_max=3)
    ) as running:
        client = await running.connect()
        await client.send(b"POST /take HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n" + bytes(10))
        await wait_until(lambda: door.taken_bytes > 0)
        await client.send(bytes(10))
        await asyncio.sleep(4)
        door.go_on.set()
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            assert (await client.reader.readline()).startswith(b"HTTP/1.1 200")
