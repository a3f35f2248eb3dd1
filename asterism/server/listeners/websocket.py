"""Websockets over a byte stream (RFC 6455), from the request for an upgrade to the last good-bye."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import h11
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, SERVER, Protocol

from asterism.apis.transports.http import ClientGone, Headers
from asterism.apis.transports.websocket import ABNORMAL_CLOSURE, GOING_AWAY, NORMAL_CLOSURE, WebSocketDoor
from asterism.server.listeners.tcp_stream import TcpStream

Result = TypeVar("Result")

_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16
_VERSION = "13"
_INTERNAL_ERROR = 1011
_INVALID_TEXT = 1007
# Messages that are handed over without a wait before others have their turn.
_TURN_MESSAGES = 64
# How long the client's good-bye is waited for after the server's.
_CLOSE_SECONDS_MAX = 2.0


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    path: str
    query_string: str
    headers: Mapping[str, str]
    scheme: str


def is_upgrade(method: str, headers: Mapping[str, str]) -> bool:
    """Tell a request for a websocket from any other."""
    return method == "GET" and "websocket" in _tokens(headers.get("upgrade")) and "sec-websocket-key" in headers


def _tokens(value: str | None) -> list[str]:
    return [token.strip().lower() for token in (value or "").split(",")]


async def serve_websocket(
    door: WebSocketDoor,
    request: UpgradeRequest,
    connection: h11.Connection,
    stream: TcpStream,
    *,
    message_bytes_max: int,
) -> None:
    """Serve a connection whose client has asked for an upgrade, to its end."""
    socket = StreamWebSocket(request, connection, stream, message_bytes_max=message_bytes_max)
    problem = _problem_of(request.headers)
    if problem is not None:
        await socket.refuse(*problem)
        return
    try:
        await door.serve_websocket(socket)
    except ClientGone:
        pass
    except Exception:
        await socket.end(_INTERNAL_ERROR)
        raise
    await socket.end(GOING_AWAY if stream.is_draining else NORMAL_CLOSURE)


def _problem_of(headers: Mapping[str, str]) -> tuple[int, bytes] | None:
    """Return status and text for a request that asks for something else than a websocket of today."""
    if "upgrade" not in _tokens(headers.get("connection")):
        return 400, b"A request for a websocket needs the header Connection: Upgrade."
    if headers.get("sec-websocket-version") != _VERSION:
        return 426, b"This server speaks version 13 of websockets."
    try:
        key = base64.b64decode(headers["sec-websocket-key"], validate=True)
    except binascii.Error:
        key = b""
    return None if len(key) == _KEY_BYTES else (400, b"The header Sec-WebSocket-Key is not 16 bytes in base64.")


class StreamWebSocket:
    """A WebSocket over a byte stream. One task receives; any number may send."""

    def __init__(
        self, request: UpgradeRequest, connection: h11.Connection, stream: TcpStream, *, message_bytes_max: int
    ) -> None:
        self.path = request.path
        self.query_string = request.query_string
        self.headers: Headers = request.headers
        self.scheme = request.scheme
        offered = request.headers.get("sec-websocket-protocol", "")
        self.offered_subprotocols: Sequence[str] = [name.strip() for name in offered.split(",") if name.strip()]
        self.peer_address = stream.peer_address
        self.local_address = stream.local_address
        self.server_name = stream.server_name
        self.close_code: int | None = None
        self._key = request.headers.get("sec-websocket-key", "")
        self._connection = connection
        self._stream = stream
        self._message_bytes_max = message_bytes_max
        self._protocol: Protocol | None = None
        self._is_refused = False
        self._messages: deque[str | bytes] = deque()
        self._turn_messages = 0
        # Of a message that comes in several frames.
        self._parts: list[bytes] = []
        self._is_text = False

    @property
    def is_draining(self) -> bool:
        return self._stream.is_draining

    @property
    def idle_seconds_max(self) -> float | None:
        return self._stream.idle_seconds_max

    @idle_seconds_max.setter
    def idle_seconds_max(self, seconds: float | None) -> None:
        self._stream.idle_seconds_max = seconds

    async def accept(self, *, subprotocol: str | None = None) -> None:
        key = self._key.encode()
        # The protocol's own proof that this end understood the request; nothing is kept secret by it.
        proof = base64.b64encode(hashlib.sha1(key + _KEY_SUFFIX, usedforsecurity=False).digest())
        headers = [(b"upgrade", b"websocket"), (b"connection", b"Upgrade"), (b"sec-websocket-accept", proof)]
        if subprotocol is not None:
            assert subprotocol in self.offered_subprotocols, "a client that did not offer it would close"
            headers.append((b"sec-websocket-protocol", subprotocol.encode()))
        answer = self._connection.send(h11.InformationalResponse(status_code=101, headers=headers))
        assert answer is not None
        self._protocol = Protocol(SERVER, max_size=self._message_bytes_max)
        # Whatever the client has sent behind its request is the beginning of the websocket.
        self._take(self._connection.trailing_data[0])
        await self._stream.write(answer)
        await self._flush()

    async def refuse(self, status: int, body: bytes = b"") -> None:
        self._is_refused = True
        headers = [("content-length", str(len(body))), ("content-type", "text/plain"), ("connection", "close")]
        if status == 426:
            headers.append(("sec-websocket-version", _VERSION))
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self._stream.send(self._connection.send(event) or b"")
        await self._stream.flushed()

    async def receive(self) -> str | bytes | None:
        protocol = self._opened()
        self._turn_messages += 1
        if self._turn_messages >= _TURN_MESSAGES:
            self._turn_messages = 0
            await asyncio.sleep(0)
        while not self._messages:
            if self.close_code is not None:
                return None
            # The size of a message is known when it is whole.
            data = await self._stream.read(pending_bytes=len(protocol.reader.buffer) + (protocol.current_size or 0))
            if data:
                self._take(data)
                await self._flush()
            elif self.is_draining:
                # The good-bye comes when the door has sent its answers to what it received.
                return None
            else:
                self.close_code = ABNORMAL_CLOSURE
        return self._messages.popleft()

    async def send(self, message: str | bytes) -> None:
        protocol = self._opened()
        if protocol.state is not OPEN:
            raise ClientGone
        if isinstance(message, str):
            protocol.send_text(message.encode())
        else:
            protocol.send_binary(message)
        await self._flush()

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        return await self._stream.while_connected(work)

    async def until_draining(self) -> None:
        await self._stream.until_draining()

    async def close(self, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        protocol = self._opened()
        if protocol.state is OPEN:
            protocol.send_close(code, reason)
            self.close_code = code
            await self._flush()

    async def end(self, code: int) -> None:
        """Close if the door has not, and give the client a moment to answer: also after a failure, since a client whose
        connection ends before it has answered may take that for what happened, instead of the code."""
        if self._protocol is None:
            if not self._is_refused:
                # The door has returned without a word; that is a refusal too.
                await self.refuse(404)
            return
        try:
            await self.close(code)
            async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                while self._protocol.close_rcvd is None:
                    data = await self._stream.read(pending_bytes=1)
                    if not data:
                        return
                    self._take(data)
                    self._messages.clear()
        except (ClientGone, TimeoutError):
            return

    def _opened(self) -> Protocol:
        assert self._protocol is not None, "accept the websocket first"
        return self._protocol

    def _take(self, data: bytes) -> None:
        """Make messages of bytes; answers to pings and good-byes are left for `_flush`."""
        protocol = self._opened()
        if data:
            protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._take_frame(event)
        last = protocol.close_rcvd or protocol.close_sent
        if last is not None and self.close_code is None:
            self.close_code = int(last.code)

    def _take_frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.TEXT or frame.opcode is Opcode.BINARY:
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return
        self._parts.append(bytes(frame.data))
        if not frame.fin:
            return
        whole = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        try:
            self._messages.append(whole.decode() if self._is_text else whole)
        except UnicodeDecodeError:
            self._opened().fail(_INVALID_TEXT, "a text message is not UTF-8")

    async def _flush(self) -> None:
        data = b"".join(self._opened().data_to_send())
        if data:
            await self._stream.write(data)
