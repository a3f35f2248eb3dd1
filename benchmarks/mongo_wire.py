"""Messages of MongoDB's protocol, ready as bytes, and a closed-loop load of them."""

from __future__ import annotations

import asyncio
import itertools
import struct
import time
from array import array
from collections.abc import Iterator
from typing import Any

from bson import decode, encode

from benchmarks.closed_loop import LoadConnection, MessageLoad
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


class _Connection(LoadConnection):
    def check(self, reply: bytes) -> None:
        _checked(reply)

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer
        buffer += data
        if len(buffer) >= _HEADER_BYTES and len(buffer) >= int.from_bytes(buffer[:4], "little"):
            self.answered(_REPLY_BODY_AT, len(buffer))


async def run_mongo_load(port: int, requests: Iterator[bytes], *, connections: int, seconds: float) -> MessageLoad:
    loop = asyncio.get_running_loop()
    latencies: array[float] = array("d")
    opened = [
        await loop.create_connection(lambda: _Connection(requests, latencies), "127.0.0.1", port)
        for _ in range(connections)
    ]
    begun = time.perf_counter()
    for transport, connection in opened:
        connection.start(transport, begun + seconds)
    await asyncio.gather(*(connection.finished for _, connection in opened))
    return MessageLoad(time.perf_counter() - begun, latencies)
