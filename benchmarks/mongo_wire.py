"""Messages of MongoDB's protocol, ready as bytes, and a closed-loop load of them.

One message is under way on each connection. Of the replies only the first of each connection and every 500th are read.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from bson import decode, encode

from benchmarks.load import percentile
from benchmarks.wire import UnexpectedAnswer

DATABASE = "load"
COLLECTION = "c"
# With its other fields, a document has about 1 KB.
_TEXT = "x" * 820
_HEADER = struct.Struct("<iiiiI")
_NUMBER = struct.Struct("<i")
_OP_MSG = 2013
_HEADER_BYTES = 16
_REPLY_BODY_AT = 21
_CHECKED_EVERY = 500


def message(command: dict[str, Any], documents: list[bytes] | None = None, *, database: str = DATABASE) -> bytes:
    """Return a command as a message; `documents` go into a section beside it, as drivers send inserts."""
    body = b"\x00" + encode({**command, "$db": database})
    if documents is not None:
        content = b"documents\x00" + b"".join(documents)
        body += b"\x01" + struct.pack("<i", len(content) + 4) + content
    return _HEADER.pack(_HEADER.size + len(body), 1, 0, _OP_MSG, 0) + body


def _template() -> tuple[bytes, bytes, bytes]:
    """Return the bytes of a document around its `_id` and its `n`, so that inserts need no encoder."""
    mark = 0x7A7B7C7D
    fields = {"_id": mark, "n": mark, "tenant": "t1", "score": 0.5, "tags": ["a", "b"], "text": _TEXT}
    before, between, after = encode(fields).split(_NUMBER.pack(mark))
    return before, between, after


_BEFORE, _BETWEEN, _AFTER = _template()


def document(number: int) -> bytes:
    packed = _NUMBER.pack(number)
    return b"".join((_BEFORE, packed, _BETWEEN, packed, _AFTER))


def find(condition: dict[str, Any], **fields: Any) -> bytes:
    return message({"find": COLLECTION, "filter": condition, **fields})


def insert(numbers: Iterator[int], count: int) -> bytes:
    return message({"insert": COLLECTION}, [document(next(numbers)) for _ in range(count)])


def inserts(first: int, count: int) -> Iterator[bytes]:
    """Yield inserts of `count` new documents each, with ids from `first` on."""
    numbers = itertools.count(first)
    while True:
        yield insert(numbers, count)


def increment(number: int) -> bytes:
    update = {"q": {"_id": number}, "u": {"$inc": {"score": 1}}}
    return message({"update": COLLECTION, "updates": [update]})


def grouped(first: int) -> bytes:
    """An aggregate over 100 documents that an index finds."""
    matched = {"$match": {"n": {"$gte": first, "$lt": first + 100}}}
    totals = {"$group": {"_id": "$tenant", "total": {"$sum": "$score"}, "count": {"$sum": 1}}}
    return message({"aggregate": COLLECTION, "pipeline": [matched, totals], "cursor": {}})


class Talker:
    """A connection for set-up: one command after the other, each of which must succeed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> Talker:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: bytes) -> dict[str, Any]:
        self._writer.write(request)
        head = await self._reader.readexactly(4)
        rest = await self._reader.readexactly(int.from_bytes(head, "little") - 4)
        return _checked((head + rest)[_REPLY_BODY_AT:])

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def _checked(reply: bytes) -> dict[str, Any]:
    found: dict[str, Any] = decode(reply)
    if not found.get("ok") or "writeErrors" in found:
        raise UnexpectedAnswer(str(found)[:200])
    return found


@dataclass(frozen=True)
class MongoLoad:
    seconds: float
    latencies: array[float]

    @property
    def rate_per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile_ms(self, percent: float) -> float:
        return percentile(self.latencies, percent) * 1000


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], latencies: array[float]) -> None:
        self._requests = requests
        self._latencies = latencies
        self._buffer = bytearray()
        self._answered = 0
        self._sent_at = 0.0
        self._until = 0.0
        self._transport: asyncio.Transport | None = None
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def start(self, until: float) -> None:
        self._until = until
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        request = next(self._requests)
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        if len(buffer) < _HEADER_BYTES or len(buffer) < int.from_bytes(buffer[:4], "little"):
            return
        now = time.perf_counter()
        if self._answered % _CHECKED_EVERY == 0:
            try:
                _checked(bytes(buffer[_REPLY_BODY_AT:]))
            except UnexpectedAnswer as problem:
                self._finish(problem)
                return
        buffer.clear()
        self._answered += 1
        self._latencies.append(now - self._sent_at)
        if now < self._until:
            self._send()
        else:
            self._finish(None)

    def connection_lost(self, _: Exception | None) -> None:
        self._finish(UnexpectedAnswer("the server closed a connection"))

    def _finish(self, problem: Exception | None) -> None:
        if self.finished.done():
            return
        if problem is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(problem)
        if self._transport is not None:
            self._transport.close()


async def run_mongo_load(port: int, requests: Iterator[bytes], *, connections: int, seconds: float) -> MongoLoad:
    loop = asyncio.get_running_loop()
    latencies: array[float] = array("d")
    opened = [
        (await loop.create_connection(lambda: _Connection(requests, latencies), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    begun = time.perf_counter()
    for connection in opened:
        connection.start(begun + seconds)
    await asyncio.gather(*(connection.finished for connection in opened))
    return MongoLoad(time.perf_counter() - begun, latencies)
