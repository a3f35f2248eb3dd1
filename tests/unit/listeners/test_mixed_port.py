"""One port that tells TLS, HTTP, websockets and a protocol of its own apart by their first bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.server.listeners.sniff import Spoken, sniff_http
from asterism.server.listeners.tls import CertificateFiles
from tests.toy_door.echo import SUBPROTOCOL, encode
from tests.unit.listeners.echo_server import WAIT_SECONDS_MAX, Client, EchoServer, echo_server


@pytest.fixture
async def server(certificate: CertificateFiles) -> AsyncIterator[EchoServer]:
    async with echo_server("tcp+http+websocket", optional_tls=certificate) as running:
        yield running


@pytest.fixture(params=["plain", "tls"])
def spoken_to(request: pytest.FixtureRequest, server: EchoServer, certificate: CertificateFiles) -> EchoServer:
    """The same port, as clients with and without TLS see it."""
    return EchoServer(server.port, server.group, certificate if request.param == "tls" else None)


async def test_every_protocol_is_served_on_one_port(spoken_to: EchoServer) -> None:
    client = await spoken_to.connect()
    await client.send(encode(b"bytes"))
    assert await client.receive() == b"bytes"
    async with spoken_to.session() as session:
        async with session.post(spoken_to.url("/whole"), data=b"http") as response:
            assert await response.read() == b"http"
        async with session.ws_connect(spoken_to.url()) as socket:
            await socket.send_str("websocket")
            assert (await socket.receive()).data == "websocket"
        async with session.ws_connect(spoken_to.url(), protocols=[SUBPROTOCOL]) as socket:
            await socket.send_bytes(encode(b"bytes in messages"))
            assert (await socket.receive()).data == encode(b"bytes in messages")


async def test_first_bytes_that_come_one_by_one_are_waited_for(spoken_to: EchoServer) -> None:
    http, other = await spoken_to.connect(), await spoken_to.connect()
    for byte in b"POST /whole HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nab":
        await http.send(bytes([byte]))
        await asyncio.sleep(0)
    for byte in encode(b"PO"):
        await other.send(bytes([byte]))
        await asyncio.sleep(0)
    assert await other.receive() == b"PO"
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        assert (await http.reader.readline()).startswith(b"HTTP/1.1 200")


async def test_a_client_that_leaves_before_it_was_clear_harms_nobody(spoken_to: EchoServer) -> None:
    for first in (b"", b"P", b"\x16"):
        reader, writer = await asyncio.open_connection("localhost", spoken_to.port)
        writer.write(first)
        writer.write_eof()
        assert await Client(reader, writer).ended()
    client = await spoken_to.connect()
    await client.send(encode(b"still served"))
    assert await client.receive() == b"still served"


async def test_http_that_cannot_be_read_is_refused_in_http(server: EchoServer) -> None:
    client = await server.connect()
    await client.send(b"GET / HTTP/1.1\r\nno colon here\r\n\r\n")
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        assert (await client.reader.readline()).startswith(b"HTTP/1.1 400")


async def test_requests_that_are_sent_together_are_answered_in_order(server: EchoServer) -> None:
    client = await server.connect()
    await client.send(b"".join(b"GET /%d HTTP/1.1\r\nhost: a\r\n\r\n" % number for number in range(20)))
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        for number in range(20):
            await client.reader.readuntil(b"\r\n\r\n")
            path = b"/%d" % number
            assert await client.reader.readexactly(len(path)) == path


async def test_a_length_beside_chunks_is_not_believed(server: EchoServer) -> None:
    client = await server.connect()
    head = b"POST /whole HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"
    await client.send(head + b"4\r\nabcd\r\n0\r\n\r\n")
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await client.reader.readuntil(b"\r\n\r\n")
        assert await client.reader.readexactly(4) == b"abcd"


async def test_a_client_that_waits_for_permission_to_send_gets_it(server: EchoServer) -> None:
    client = await server.connect()
    await client.send(b"POST /whole HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n")
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        await client.send(b"ab")
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_the_path_chooses_the_admin_door_here_too(server: EchoServer) -> None:
    async with server.session() as session, session.get(server.url("/_asterism/health")) as response:
        assert await response.read() == b"/_asterism/health"


async def test_http_2_is_not_offered(certificate: CertificateFiles) -> None:
    async with echo_server("http+websocket", certificate=certificate) as running:
        context = ssl.create_default_context(cafile=str(certificate.certificate))
        context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("localhost", running.port, ssl=context)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()


@given(st.sampled_from([b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"MERGE "]))
def test_a_method_is_known_when_it_is_whole(method: bytes) -> None:
    assert [sniff_http(method[:size]) for size in range(len(method))] == [None] * len(method)
    assert sniff_http(method + b"/") is Spoken.HTTP


@pytest.mark.parametrize("first", [b"AMQP", b"\x16", b"\x00", b"A", b"*1\r\n", b"GETX", b"get "])
def test_anything_else_is_another_protocol(first: bytes) -> None:
    assert sniff_http(first) is Spoken.OTHER
