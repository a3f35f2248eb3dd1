"""Doors that say everything again, over each transport. They show the least that a door is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from asterism.apis.transports.codec import ByteBuffer, MalformedBytes
from asterism.apis.transports.http import Answer, Request, Response, StreamedResponse
from asterism.apis.transports.messages import LastReply, Reply, serve_messages
from asterism.apis.transports.tcp import ByteStream
from asterism.apis.transports.websocket import WebSocket, WebSocketStream

LENGTH_BYTES = 4
MESSAGE_BYTES_MAX = 1024 * 1024
SUBPROTOCOL = "echo"


def encode(message: bytes) -> bytes:
    """Return a message as it goes over the wire: its length in four bytes, then itself."""
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


class LengthPrefixedCodec:
    """The codec that belongs to `encode`."""

    def __init__(self, *, message_bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._message_bytes_max = message_bytes_max
        self._buffer = ByteBuffer()
        self.pending_bytes = 0

    def receive(self, data: bytes) -> Iterator[bytes]:
        buffer = self._buffer
        buffer.append(data)
        while len(buffer) >= LENGTH_BYTES:
            size = int.from_bytes(buffer.peek(LENGTH_BYTES), "big")
            if size > self._message_bytes_max:
                raise MalformedBytes(f"a message of {size} bytes")
            if len(buffer) < LENGTH_BYTES + size:
                self.pending_bytes = LENGTH_BYTES + size
                return
            buffer.skip(LENGTH_BYTES)
            yield buffer.take(size)
        self.pending_bytes = len(buffer)


class EchoHandler:
    """Answers each message with itself; three messages mean something else."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    async def answer(self, message: bytes) -> Reply:
        if message == b"quit":
            raise LastReply(encode(b"bye"))
        if message == b"wait":
            await self._stream.while_connected(asyncio.Event().wait())
        if message.startswith(b"repeat "):
            return self._repeat(int(message.removeprefix(b"repeat ")))
        return encode(message)

    def refuse(self, error: MalformedBytes) -> bytes:
        return encode(f"refused: {error}".encode())

    async def _repeat(self, count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield encode(bytes(64 * 1024))


class EchoTcp:
    """Messages of up to a megabyte, each behind its length."""

    async def serve(self, stream: ByteStream) -> None:
        await serve_messages(stream, LengthPrefixedCodec(), EchoHandler(stream))


class EchoWebSocket:
    """Messages of both kinds; with the subprotocol `echo`, the bytes of `EchoTcp`."""

    async def serve_websocket(self, socket: WebSocket) -> None:
        if socket.path == "/nowhere":
            await socket.refuse(404, b"no such path")
            return
        if SUBPROTOCOL in socket.offered_subprotocols:
            await socket.accept(subprotocol=SUBPROTOCOL)
            await EchoTcp().serve(WebSocketStream(socket))
            return
        await socket.accept()
        while (message := await socket.receive()) is not None:
            if message == "leave":
                await socket.close(4000, "as asked")
                return
            await socket.send(message)


class EchoHttp:
    """Bodies whole or in pieces, by route."""

    async def answer(self, request: Request) -> Answer:
        headers = [("content-type", request.headers.get("content-type") or "application/octet-stream")]
        if request.path == "/stream":
            return StreamedResponse(200, headers, request.body_chunks())
        if request.path == "/short":
            return StreamedResponse(200, headers, request.body_chunks(bytes_max=1000))
        if request.path == "/zeros":
            return StreamedResponse(200, headers, _zeros(int(request.query_string)))
        if request.path == "/fails":
            return StreamedResponse(200, headers, _fails())
        if request.path == "/events":
            return StreamedResponse(200, [("content-type", "text/event-stream")], _events(), is_endless=True)
        body = request.body if request.read_body is None else await request.read_body()
        return Response(200, [*headers, ("door", "echo")], body or request.path.encode())


async def _zeros(size: int) -> AsyncIterator[bytes]:
    piece = bytes(64 * 1024)
    for start in range(0, size, len(piece)):
        yield piece[: size - start]


async def _fails() -> AsyncIterator[bytes]:
    yield bytes(1000)
    raise ValueError("the door cannot go on")


async def _events() -> AsyncIterator[bytes]:
    yield b"data: hello\n\n"
    await asyncio.Event().wait()


class EchoMixed(EchoTcp, EchoWebSocket, EchoHttp):
    """All of them on one port."""
