"""The limit for the MongoDB door: uvloop, LMDB and raw BSON, with nothing between them.

Knows `find` by `_id`, by `n` and by a range of `n`, `insert`, and as much else as the load needs. No checks, no
partitions, no sessions. Inserts are durable: those that wait together share a transaction of a thread.

`python -m benchmarks.bare_mongo PORT FOLDER`
"""

from __future__ import annotations

import asyncio
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import lmdb
import uvloop
from bson import decode, encode

_HEADER = struct.Struct("<iiiiI")
_NUMBER = struct.Struct(">q")
_OK = encode({"ok": 1.0})
_MAP_BYTES = 8 << 30
_NAMESPACE = "load.c"

Entry = tuple[bytes, bytes]


class Store:
    """Documents by `_id`, and an index of `n`; both are 64-bit numbers."""

    def __init__(self, folder: Path) -> None:
        self.environment = lmdb.open(str(folder), map_size=_MAP_BYTES, max_dbs=2)
        self.documents = self.environment.open_db(b"documents")
        self.index = self.environment.open_db(b"index")
        self._waiting: list[tuple[list[Entry], asyncio.Future[None]]] = []
        self._writer = ThreadPoolExecutor(1)
        self._is_writing = False
        self._task: asyncio.Future[None] | None = None

    def by_id(self, number: int) -> list[bytes]:
        with self.environment.begin(buffers=False) as transaction:
            found = transaction.get(_NUMBER.pack(number), db=self.documents)
        return [] if found is None else [found]

    def by_range(self, start: int, end: int) -> list[bytes]:
        found: list[bytes] = []
        last = _NUMBER.pack(end)
        with self.environment.begin(buffers=False) as transaction:
            cursor = transaction.cursor(db=self.index)
            if cursor.set_range(_NUMBER.pack(start)):
                for key, number in cursor:
                    if key[:8] >= last:
                        break
                    found.append(transaction.get(number, db=self.documents) or b"")
        return found

    async def insert(self, documents: list[bytes]) -> None:
        entries = [(_number_after(raw, b"\x10_id\x00"), raw) for raw in documents]
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((entries, written))
        if not self._is_writing:
            self._is_writing = True
            self._task = asyncio.ensure_future(self._write_waiting())
        await written

    async def _write_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting, []
            await loop.run_in_executor(self._writer, self._write, [entry for entries, _ in group for entry in entries])
            for _, written in group:
                written.set_result(None)
        self._is_writing = False

    def _write(self, entries: list[Entry]) -> None:
        with self.environment.begin(write=True) as transaction:
            for key, raw in entries:
                transaction.put(key, raw, db=self.documents)
                transaction.put(_number_after(raw, b"\x10n\x00") + key, key, db=self.index)


def _number_after(raw: bytes, mark: bytes) -> bytes:
    """Return the 32-bit number behind the mark of its element, as a key."""
    start = raw.index(mark) + len(mark)
    return _NUMBER.pack(int.from_bytes(raw[start : start + 4], "little", signed=True))


def _cursor(bodies: list[bytes]) -> bytes:
    items = b"".join(b"\x03%d\x00%b" % (index, body) for index, body in enumerate(bodies))
    batch = struct.pack("<i", len(items) + 5) + items + b"\x00"
    rest = encode({"id": 0, "ns": _NAMESPACE})[4:-1]
    cursor = b"\x04firstBatch\x00" + batch + rest
    body = b"\x03cursor\x00" + struct.pack("<i", len(cursor) + 5) + cursor + b"\x00" + _OK[4:-1]
    return struct.pack("<i", len(body) + 5) + body + b"\x00"


class Server(asyncio.Protocol):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        while len(buffer) >= 16 and len(buffer) >= (size := int.from_bytes(buffer[:4], "little")):
            raw = bytes(buffer[:size])
            del buffer[:size]
            self._handle(raw)

    def _handle(self, raw: bytes) -> None:
        request_id = int.from_bytes(raw[4:8], "little")
        body_bytes = int.from_bytes(raw[21:25], "little")
        command: dict[str, Any] = decode(raw[21 : 21 + body_bytes])
        if "find" in command:
            ((field, condition),) = command["filter"].items()
            if field == "_id":
                bodies = self._store.by_id(condition)
            elif isinstance(condition, dict):
                bodies = self._store.by_range(condition["$gte"], condition["$lt"])
            else:
                bodies = self._store.by_range(condition, condition + 1)
            self._reply(request_id, _cursor(bodies))
        elif "insert" in command:
            documents = _documents(raw, 21 + body_bytes)
            inserted = asyncio.ensure_future(self._store.insert(documents))
            inserted.add_done_callback(lambda _: self._reply(request_id, encode({"n": len(documents), "ok": 1.0})))
        else:
            self._reply(request_id, _OK)

    def _reply(self, request_id: int, body: bytes) -> None:
        assert self._transport is not None
        self._transport.write(_HEADER.pack(21 + len(body), 1, request_id, 2013, 0) + b"\x00" + body)


def _documents(raw: bytes, start: int) -> list[bytes]:
    place = raw.index(b"\x00", start + 5) + 1
    found: list[bytes] = []
    while place < len(raw):
        size = int.from_bytes(raw[place : place + 4], "little")
        found.append(raw[place : place + size])
        place += size
    return found


async def main() -> None:
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    store = Store(folder)
    server = await asyncio.get_running_loop().create_server(lambda: Server(store), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
