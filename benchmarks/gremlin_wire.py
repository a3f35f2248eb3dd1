"""Requests to a Gremlin server, ready as websocket frames, and a closed-loop load of them."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import time
import uuid
from array import array
from collections.abc import Iterator
from typing import Any, cast

from benchmarks.closed_loop import LoadConnection, MessageLoad
from benchmarks.wire import ACCOUNT_KEY, UnexpectedAnswer

MIME = b"application/vnd.gremlin-v2.0+json"
_PARTIAL = b'"code":206'
_CONNECT_SECONDS_MAX = 30.0


def frame(payload: bytes) -> bytes:
    """Return a binary message of a client. Its mask is zero, which leaves the payload as it is."""
    length = len(payload)
    if length < 126:
        head = struct.pack(">BB", 0x82, 0x80 | length)
    elif length < 65536:
        head = struct.pack(">BBH", 0x82, 0x80 | 126, length)
    else:
        head = struct.pack(">BBQ", 0x82, 0x80 | 127, length)
    return head + b"\x00\x00\x00\x00" + payload


def request(op: str, arguments: dict[str, Any], *, processor: str = "") -> bytes:
    body = {"requestId": str(uuid.uuid4()), "op": op, "processor": processor, "args": arguments}
    return frame(bytes([len(MIME)]) + MIME + json.dumps(body).encode())


def script(text: str, bindings: dict[str, Any] | None = None, *, source: str = "g") -> bytes:
    arguments = {"gremlin": text, "aliases": {"g": source}, "language": "gremlin-groovy", "bindings": bindings or {}}
    return request("eval", arguments)


def login(graph: str) -> bytes:
    text = base64.b64encode(f"\0{graph}\0{ACCOUNT_KEY}".encode()).decode()
    return request("authentication", {"sasl": text}, processor="traversal")


def message_at(buffer: bytearray) -> tuple[int, int] | None:
    """Return where the payload of the first message of a server begins and ends; None while it is not complete."""
    if len(buffer) < 2:
        return None
    length, start = buffer[1] & 0x7F, 2
    if length == 126:
        start = 4
        length = int.from_bytes(buffer[2:4], "big")
    elif length == 127:
        start = 10
        length = int.from_bytes(buffer[2:10], "big")
    if len(buffer) < start + length:
        return None
    return start, start + length


class GremlinTalker:
    """A connection that has logged in, for set-up and single questions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()

    @classmethod
    async def connect(cls, port: int, graph: str, *, path: str = "/") -> GremlinTalker:
        """Connect, and log in with the first request; a server that asks for no login is taken as it is."""
        async with asyncio.timeout(_CONNECT_SECONDS_MAX):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
            talker = cls(reader, writer)
            writer.write(upgrade(path))
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 101 " not in head.split(b"\r\n", 1)[0] + b" ":
                raise UnexpectedAnswer(head.decode(errors="replace")[:200])
            reply = await talker._ask(script("g.inject(0)"))
            if reply["status"]["code"] == 407:
                reply = await talker._ask(login(graph))
            _check(reply)
        return talker

    async def ask(self, text: str, bindings: dict[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return all results, and the attributes of the last message."""
        results: list[Any] = []
        self._writer.write(script(text, bindings))
        while True:
            reply = await self._message()
            _check(reply)
            results += reply["result"]["data"] or []
            if reply["status"]["code"] != 206:
                return results, reply["status"]["attributes"]

    async def _ask(self, sent: bytes) -> dict[str, Any]:
        self._writer.write(sent)
        return await self._message()

    async def _message(self) -> dict[str, Any]:
        while (found := message_at(self._buffer)) is None:
            data = await self._reader.read(1 << 16)
            if not data:
                raise UnexpectedAnswer("the server closed a connection")
            self._buffer += data
        start, end = found
        reply: dict[str, Any] = json.loads(bytes(self._buffer[start:end]))
        del self._buffer[:end]
        return reply

    def release(self) -> asyncio.Transport:
        """Give the connection away; the talker is of no use then."""
        return cast(asyncio.Transport, self._writer.transport)

    async def close(self) -> None:
        self._writer.close()


def upgrade(path: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "host: 127.0.0.1", "upgrade: websocket", "connection: Upgrade"]
    lines += ["sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version: 13", "", ""]
    return "\r\n".join(lines).encode()


def _check(reply: dict[str, Any]) -> None:
    if reply["status"]["code"] not in (200, 204, 206):
        raise UnexpectedAnswer(str(reply["status"])[:300])


class _Load(LoadConnection):
    """One connection of a load, taken over from a talker."""

    def check(self, reply: bytes) -> None:
        _check(json.loads(reply))

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer
        buffer += data
        while (found := message_at(buffer)) is not None:
            start, end = found
            if buffer.find(_PARTIAL, start, end) < 0:
                self.answered(start, end)
            else:
                del buffer[:end]


async def run_gremlin_load(
    port: int, graph: str, requests: Iterator[bytes], *, connections: int, seconds: float, path: str = "/"
) -> MessageLoad:
    latencies: array[float] = array("d")
    talkers = [await GremlinTalker.connect(port, graph, path=path) for _ in range(connections)]
    begun = time.perf_counter()
    loads: list[_Load] = []
    for talker in talkers:
        load = _Load(requests, latencies)
        transport = talker.release()
        transport.set_protocol(load)
        load.start(transport, begun + seconds)
        loads.append(load)
    await asyncio.gather(*(load.finished for load in loads))
    return MessageLoad(time.perf_counter() - begun, latencies)
