"""Websockets through real sockets, with a client that is not ours."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

import pytest
from aiohttp import WSMsgType, WSServerHandshakeError

from asterism.apis.transports.http import ClientGone
from asterism.apis.transports.websocket import WebSocket
from asterism.limits import MIB, Limits
from asterism.server.listeners import websocket
from asterism.server.listeners.group import PortLimits
from asterism.server.listeners.tls import CertificateFiles
from tests.toy_door.echo import SUBPROTOCOL, EchoWebSocket, encode
from tests.unit.listeners.echo_server import (
    BUFFERED_BYTES_MAX,
    WAIT_SECONDS_MAX,
    EchoServer,
    echo_server,
    settled,
    wait_until,
)

MESSAGE_BYTES_MAX = 100_000
LIMITS = PortLimits(body_bytes_max=MIB, websocket_message_bytes_max=MESSAGE_BYTES_MAX)
UPGRADE = (
    b"GET /a%20b?c=d HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.fixture(params=["plain", "tls"])
async def server(request: pytest.FixtureRequest, certificate: CertificateFiles) -> AsyncIterator[EchoServer]:
    files = certificate if request.param == "tls" else None
    async with echo_server("http+websocket", certificate=files, door=EchoWebSocket(), port_limits=LIMITS) as running:
        yield running


async def test_messages_of_both_kinds_and_all_sizes_come_back(server: EchoServer) -> None:
    async with server.session() as session, session.ws_connect(server.url()) as client:
        for size in (0, 1, 125, 126, 65_535, 65_536, MESSAGE_BYTES_MAX):
            data = os.urandom(size)
            await client.send_bytes(data)
            assert (await client.receive()).data == data
        await client.send_str("Grüße 🌍")
        assert (await client.receive()).data == "Grüße 🌍"


async def test_a_ping_is_answered_while_the_door_waits_for_a_message(server: EchoServer) -> None:
    async with server.session() as session, session.ws_connect(server.url(), autoping=False) as client:
        await client.ping(b"there?")
        answer = await client.receive()
        assert (answer.type, answer.data) == (WSMsgType.PONG, b"there?")


async def test_the_door_chooses_among_the_subprotocols_that_are_offered(server: EchoServer) -> None:
    async with server.session() as session:
        async with session.ws_connect(server.url(), protocols=["other", SUBPROTOCOL]) as client:
            assert client.protocol == SUBPROTOCOL
            data = encode(b"over") + encode(b"messages")
            # Their boundaries mean nothing to a stream of bytes.
            for at in range(len(data)):
                await client.send_bytes(data[at : at + 1])
            answers = [(await client.receive()).data, (await client.receive()).data]
            assert answers == [encode(b"over"), encode(b"messages")]
        async with session.ws_connect(server.url(), protocols=["other"]) as client:
            assert client.protocol is None


async def test_a_client_gets_the_close_code_of_the_door(server: EchoServer) -> None:
    async with server.session() as session, session.ws_connect(server.url()) as client:
        await client.send_str("leave")
        closed = await client.receive()
        assert (closed.type, closed.data, closed.extra) == (WSMsgType.CLOSE, 4000, "as asked")


async def test_a_message_above_the_limit_is_refused(server: EchoServer) -> None:
    async with server.session() as session, session.ws_connect(server.url()) as client:
        await client.send_bytes(bytes(MESSAGE_BYTES_MAX + 1))
        assert (await client.receive()).data == 1009


async def test_a_client_whose_message_was_refused_has_time_to_answer(
    server: EchoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_CLOSE_SECONDS_MAX", WAIT_SECONDS_MAX)
    client = await server.connect()
    # A frame of a size above the limit, with a mask of zero; its data are on their way.
    await client.send(UPGRADE + b"\x82\xff" + (MESSAGE_BYTES_MAX + 1).to_bytes(8, "big") + bytes(4))
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await client.reader.readuntil(b"\r\n\r\n")
        head = await client.reader.readexactly(2)
        assert (await client.reader.readexactly(head[1]))[:2] == (1009).to_bytes(2, "big")
        await client.send(bytes(1000))
        # Enough for the end of the connection to arrive.
        await asyncio.sleep(0.2)
        assert not client.reader.at_eof()


async def test_a_request_can_be_refused_before_the_upgrade(server: EchoServer) -> None:
    async with server.session() as session:
        with pytest.raises(WSServerHandshakeError) as refused:
            await session.ws_connect(server.url("/nowhere"))
    assert refused.value.status == 404


async def test_a_plain_request_to_a_door_of_websockets_is_told_so(server: EchoServer) -> None:
    async with server.session() as session, session.get(server.url()) as response:
        assert (response.status, response.headers["upgrade"]) == (426, "websocket")


@pytest.mark.parametrize(
    ("wrong", "right", "status"),
    [
        (b"sec-websocket-version: 8", b"sec-websocket-version: 13", b"426"),
        (b"sec-websocket-key: short", b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==", b"400"),
        (b"connection: keep-alive\r\n", b"connection: keep-alive, Upgrade\r\n", b"400"),
    ],
)
async def test_a_request_for_another_kind_of_websocket_is_refused(
    server: EchoServer, wrong: bytes, right: bytes, status: bytes
) -> None:
    client = await server.connect()
    await client.send(UPGRADE.replace(right, wrong))
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        assert (await client.reader.readline()).split()[1] == status


async def test_a_text_that_is_not_utf_8_closes_the_connection(server: EchoServer) -> None:
    client = await server.connect()
    # The mask is zero.
    await client.send(UPGRADE + b"\x81\x82\x00\x00\x00\x00\xc3\x28")
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await client.reader.readuntil(b"\r\n\r\n")
        assert (await client.reader.readexactly(4))[2:] == (1007).to_bytes(2, "big")


class NotingDoor:
    """Notes what it learns of its clients, and sends as much as one of them takes."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self.notes: list[object] = []
        self.release = asyncio.Event()

    async def serve_websocket(self, socket: WebSocket) -> None:
        await socket.accept()
        self.notes.append((socket.path, socket.query_string, socket.headers.get("host"), socket.scheme))
        try:
            match await socket.receive():
                case "flood":
                    while True:
                        self.sent_bytes += 50_000
                        await socket.send(bytes(50_000))
                case "wait":
                    await socket.while_connected(asyncio.Event().wait())
                case "work":
                    self.notes.append("working")
                    await self.release.wait()
                    await socket.send("done")
                    assert await socket.receive() is None
                case None:
                    pass
        except ClientGone:
            self.notes.append("gone")
        finally:
            self.notes.append(socket.close_code)


@pytest.fixture
async def noting() -> AsyncIterator[tuple[EchoServer, NotingDoor]]:
    door = NotingDoor()
    async with echo_server("http+websocket", door=door) as running:
        yield running, door


async def test_a_door_sees_the_request_for_the_upgrade(noting: tuple[EchoServer, NotingDoor]) -> None:
    server, door = noting
    client = await server.connect()
    await client.send(UPGRADE)
    await wait_until(lambda: bool(door.notes))
    assert door.notes == [("/a b", "c=d", "a", "http")]


async def test_a_slow_reader_makes_the_door_wait(noting: tuple[EchoServer, NotingDoor]) -> None:
    server, door = noting
    client = await server.connect()
    await client.send(UPGRADE + b"\x81\x85\x00\x00\x00\x00flood")
    await wait_until(lambda: door.sent_bytes > 0)
    assert await settled(lambda: door.sent_bytes) < BUFFERED_BYTES_MAX


@pytest.mark.parametrize("message", ["flood", "wait", ""])
async def test_a_client_that_vanishes_ends_the_handler(noting: tuple[EchoServer, NotingDoor], message: str) -> None:
    server, door = noting
    client = await server.connect()
    frame = b"\x81%c\x00\x00\x00\x00%b" % (0x80 | len(message), message.encode()) if message else b""
    await client.send(UPGRADE + frame)
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await client.reader.readuntil(b"\r\n\r\n")
    client.vanish()
    await wait_until(lambda: len(door.notes) >= 2)


async def test_a_server_that_stops_says_so_when_the_message_under_way_is_answered(
    noting: tuple[EchoServer, NotingDoor],
) -> None:
    server, door = noting
    async with (
        server.session() as session,
        session.ws_connect(server.url()) as idle,
        session.ws_connect(server.url()) as busy,
    ):
        await busy.send_str("work")
        await wait_until(lambda: "working" in door.notes)
        stopping = asyncio.create_task(server.group.stop(drain_seconds_max=WAIT_SECONDS_MAX))
        assert (await idle.receive()).data == 1001
        door.release.set()
        assert (await busy.receive()).data == "done"
        assert (await busy.receive()).data == 1001
        assert await stopping


async def test_an_idle_websocket_is_closed_after_the_ports_own_time() -> None:
    limits = Limits(idle_connection_seconds_max=1)
    patient = PortLimits(body_bytes_max=MIB, idle_seconds_max=3600)
    async with (
        echo_server("http+websocket", limits=limits) as server,
        echo_server("http+websocket", limits=limits, port_limits=patient) as other,
        server.session() as session,
        session.ws_connect(other.url()) as kept,
        session.ws_connect(server.url()) as closed,
    ):
        await kept.send_str("first")
        assert (await kept.receive()).data == "first"
        # On a busy machine its time may be over before its first message.
        with contextlib.suppress(ConnectionError):
            await closed.send_str("first")
        while (received := await closed.receive()).type is WSMsgType.TEXT:
            assert received.data == "first"
        assert received.type in (WSMsgType.CLOSED, WSMsgType.ERROR, WSMsgType.CLOSE)
        await kept.send_str("still there")
        assert (await kept.receive()).data == "still there"
