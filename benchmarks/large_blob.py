"""Upload and download of one large blob by threads with blocking sockets: the client is cheaper than any server."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks import storage_wire
from benchmarks.wire import UnexpectedAnswer, answer_length, parse_answer

BLOCK_BYTES = 4 * 1024 * 1024
UPLOAD_CONNECTIONS = 8
SOCKET_SECONDS_MAX = 60.0
_RECEIVE_BYTES = 1 << 20
_NUMBER_BYTES = 8


class LargeBlob:
    """Content that no two blocks share, of which only one block is in memory."""

    def __init__(self, block_count: int) -> None:
        self.block_count = block_count
        self.length = block_count * BLOCK_BYTES
        self._rest = os.urandom(BLOCK_BYTES - _NUMBER_BYTES)
        self._md5: str | None = None

    def block(self, number: int) -> tuple[bytes, bytes]:
        """Return a block in two parts, so that it is not copied."""
        return number.to_bytes(_NUMBER_BYTES, "big"), self._rest

    @property
    def md5(self) -> str:
        if self._md5 is None:
            digest = hashlib.md5(usedforsecurity=False)
            for number in range(self.block_count):
                for part in self.block(number):
                    digest.update(part)
            self._md5 = digest.hexdigest()
        return self._md5


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=SOCKET_SECONDS_MAX)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _expect(connection: socket.socket, status: int) -> None:
    data = b""
    while not answer_length(data):
        part = connection.recv(65536)
        if not part:
            raise UnexpectedAnswer("the server closed a connection of an upload")
        data += part
    answer = parse_answer(data)
    if answer.status != status:
        raise UnexpectedAnswer(f"{answer.status} instead of {status}: {answer.body[:300]!r}")


def upload(port: int, container: str, name: str, blob: LargeBlob) -> float:
    """Stage the blocks from several connections, commit them; return the seconds of both."""
    numbers = iter(range(blob.block_count))
    lock = threading.Lock()

    def send_blocks() -> None:
        with _connect(port) as connection:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                connection.sendall(storage_wire.block_head(container, name, number, BLOCK_BYTES))
                for part in blob.block(number):
                    connection.sendall(part)
                _expect(connection, 201)

    began = time.perf_counter()
    with ThreadPoolExecutor(UPLOAD_CONNECTIONS) as pool:
        for future in [pool.submit(send_blocks) for _ in range(UPLOAD_CONNECTIONS)]:
            future.result()
    with _connect(port) as connection:
        connection.sendall(storage_wire.commit_blocks(container, name, blob.block_count))
        _expect(connection, 201)
    return time.perf_counter() - began


def download(port: int, request: bytes, *, length: int, take: Callable[[memoryview], object] | None = None) -> float:
    """Receive the answer to one request; return its seconds. The content goes to `take`, else nowhere."""
    buffer = memoryview(bytearray(_RECEIVE_BYTES))
    began = time.perf_counter()
    with _connect(port) as connection:
        connection.sendall(request)
        head, first = _receive_head(connection)
        if b"\r\ncontent-length: %d\r\n" % length not in head.lower() + b"\r\n":
            raise UnexpectedAnswer(f"not a download of {length} bytes: {head[:300]!r}")
        if take is not None:
            take(memoryview(first))
        left = length - len(first)
        while left > 0:
            count = connection.recv_into(buffer)
            if not count:
                raise UnexpectedAnswer(f"the server ended a download {left} bytes too early")
            if take is not None:
                take(buffer[:count])
            left -= count
    if left < 0:
        raise UnexpectedAnswer("the server sent more than the content")
    return time.perf_counter() - began


def _receive_head(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise UnexpectedAnswer("the server closed the connection of a download")
        data += part
    head, _, first = data.partition(b"\r\n\r\n")
    if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 206")):
        raise UnexpectedAnswer(f"no download: {data[:500]!r}")
    return head, first


def check_content(port: int, request: bytes, blob: LargeBlob) -> None:
    """Raise UnexpectedAnswer unless a download has the length and the MD5 of the blob."""
    digest = hashlib.md5(usedforsecurity=False)
    download(port, request, length=blob.length, take=digest.update)
    if digest.hexdigest() != blob.md5:
        raise UnexpectedAnswer("a download has other bytes than were uploaded")
