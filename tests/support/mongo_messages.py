"""Messages of MongoDB's protocol as bytes, and a client that sends them without a driver in between."""

from __future__ import annotations

import socket
import struct
import zlib
from types import TracebackType
from typing import Any, NamedTuple, Self

from bson import decode, encode
from bson.codec_options import CodecOptions, DatetimeConversion

from asterism.apis.mongo.checksum import crc32c

HEADER = struct.Struct("<iiii")
OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
CHECKSUM_PRESENT, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16
_WAIT_SECONDS_MAX = 60.0
_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_AUTO)


def framed(opcode: int, content: bytes, *, request_id: int = 7) -> bytes:
    return HEADER.pack(HEADER.size + len(content), request_id, 0, opcode) + content


def op_msg(body: dict[str, Any] | bytes, *, flags: int = 0, sections: bytes = b"", request_id: int = 7) -> bytes:
    raw = body if isinstance(body, bytes) else encode(body)
    content = struct.pack("<I", flags) + b"\x00" + raw + sections
    if not flags & CHECKSUM_PRESENT:
        return framed(OP_MSG, content, request_id=request_id)
    whole = HEADER.pack(HEADER.size + len(content) + 4, request_id, 0, OP_MSG) + content
    return whole + struct.pack("<I", crc32c(whole))


def sequence(name: str, *documents: bytes) -> bytes:
    content = name.encode() + b"\x00" + b"".join(documents)
    return b"\x01" + struct.pack("<i", len(content) + 4) + content


def op_query(body: dict[str, Any], *, namespace: str = "admin.$cmd", request_id: int = 7) -> bytes:
    content = struct.pack("<i", 0) + namespace.encode() + b"\x00" + struct.pack("<ii", 0, -1) + encode(body)
    return framed(OP_QUERY, content, request_id=request_id)


def op_compressed(message: bytes, *, size: int | None = None, compressor: int = 2) -> bytes:
    _, request_id, _, opcode = HEADER.unpack_from(message)
    content = message[HEADER.size :]
    head = struct.pack("<iiB", opcode, len(content) if size is None else size, compressor)
    return framed(OP_COMPRESSED, head + zlib.compress(content), request_id=request_id)


class Reply(NamedTuple):
    opcode: int
    reply_id: int
    response_to: int
    flags: int
    body: dict[str, Any]


def read_reply(data: bytes) -> Reply:
    _, reply_id, response_to, opcode = HEADER.unpack_from(data)
    if opcode == OP_REPLY:
        (flags,) = struct.unpack_from("<i", data, HEADER.size)
        return Reply(opcode, reply_id, response_to, flags, decode(data[HEADER.size + 20 :], _OPTIONS))
    content = data[HEADER.size :]
    if opcode == OP_COMPRESSED:
        content = zlib.decompress(content[9:])
    (flags,) = struct.unpack_from("<I", content)
    return Reply(opcode, reply_id, response_to, flags, decode(content[5:], _OPTIONS))


class ConnectionEnded(Exception):
    """The server has closed the connection instead of an answer."""


class RawClient:
    """One connection to the server's MongoDB port."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_WAIT_SECONDS_MAX)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> Reply | None:
        """Return the next reply; None when the server has closed the connection."""
        try:
            head = self._take(4)
            if not head:
                return None
            (length,) = struct.unpack("<i", head)
            return read_reply(head + self._take(length - 4))
        except ConnectionError:
            return None

    def exchange(self, data: bytes) -> Reply:
        self.send(data)
        reply = self.receive()
        if reply is None:
            raise ConnectionEnded
        return reply

    def command(self, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self.exchange(op_msg({**body, "$db": body.get("$db", "test")}, **more)).body

    def _take(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                return parts
            parts += part
        return parts
