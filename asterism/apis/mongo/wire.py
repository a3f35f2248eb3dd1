"""The wire protocol: bytes to messages and answers to bytes. Nothing here waits or knows a socket.

A message that is framed well but holds no document becomes a `Message` with a `problem`: its sender gets an error, and
the connection goes on. Bytes that cannot be framed end the connection.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from asterism.apis.transports.codec import ByteBuffer, MalformedBytes
from asterism.values.bson.codec import InvalidBson, decode
from asterism.values.bson.raw_documents import elements
from asterism.values.bson.types import Document

OP_REPLY = 1
OP_QUERY = 2004
OP_COMPRESSED = 2012
OP_MSG = 2013

CHECKSUM_PRESENT = 1
MORE_TO_COME = 2
EXHAUST_ALLOWED = 1 << 16
_KNOWN_REQUIRED_BITS = CHECKSUM_PRESENT | MORE_TO_COME
_REQUIRED_BITS = 0xFFFF

MESSAGE_BYTES_MAX = 48_000_000
_HEADER = struct.Struct("<iiii")
_FLAGS = struct.Struct("<I")
_LENGTH = struct.Struct("<i")
_COMPRESSED_HEAD = struct.Struct("<iiB")
_REPLY_HEAD = struct.Struct("<iqii")
_AWAIT_CAPABLE = 8
NO_COMPRESSION = 0
ZLIB = 2


@dataclass(slots=True)
class Message:
    """A request: its command as a document, and the documents of sections beside it, as bytes."""

    request_id: int
    opcode: int
    flags: int = 0
    raw_body: bytes = b""
    body: Document = field(default_factory=dict)
    sections: dict[str, list[bytes]] = field(default_factory=dict)
    # Of OP_QUERY: the namespace.
    namespace: str = ""
    compressor: int = NO_COMPRESSION
    # The bytes were framed, but are no documents.
    problem: str = ""

    @property
    def wants_no_reply(self) -> bool:
        return bool(self.flags & MORE_TO_COME)

    @property
    def allows_exhaust(self) -> bool:
        return bool(self.flags & EXHAUST_ALLOWED)

    def raw_array(self, name: str) -> list[bytes] | None:
        """Return the documents of an array of the command as bytes, from its section or from the body; None if it is
        not an array of documents."""
        section = self.sections.get(name)
        if section is not None:
            return section
        for kind, found, start, _ in elements(self.raw_body):
            if found == name.encode():
                if kind != 0x04:
                    return None
                parts = [(inner, self.raw_body[at:end]) for inner, _, at, end in elements(self.raw_body, start)]
                return [raw for _, raw in parts] if all(inner == 0x03 for inner, _ in parts) else None
        return None


class MongoCodec:
    """The messages of one connection."""

    def __init__(self) -> None:
        self._buffer = ByteBuffer()
        self._pending = 0

    @property
    def pending_bytes(self) -> int:
        return self._pending

    def receive(self, data: bytes) -> Iterator[Message]:
        buffer = self._buffer
        buffer.append(data)
        while len(buffer) >= _HEADER.size:
            (length,) = _LENGTH.unpack(buffer.peek(4))
            if not _HEADER.size <= length <= MESSAGE_BYTES_MAX:
                raise MalformedBytes(f"a message of {length} bytes")
            if len(buffer) < length:
                self._pending = length
                return
            self._pending = 0
            yield read_message(buffer.take(length))
        self._pending = len(buffer)


def read_message(data: bytes) -> Message:
    """Read one whole message. Raises MalformedBytes if its frame is broken."""
    _, request_id, _, opcode = _HEADER.unpack_from(data)
    if opcode == OP_COMPRESSED:
        return _decompressed(request_id, data)
    return _read(request_id, opcode, data, _HEADER.size, NO_COMPRESSION)


def _decompressed(request_id: int, data: bytes) -> Message:
    try:
        opcode, size, compressor = _COMPRESSED_HEAD.unpack_from(data, _HEADER.size)
    except struct.error:
        raise MalformedBytes("a compressed message without its head") from None
    start = _HEADER.size + _COMPRESSED_HEAD.size
    if size < 0 or size > MESSAGE_BYTES_MAX:
        raise MalformedBytes(f"a compressed message of {size} bytes")
    if compressor == NO_COMPRESSION:
        inner = data[start:]
    elif compressor == ZLIB:
        inflater = zlib.decompressobj()
        try:
            inner = inflater.decompress(data[start:], size + 1)
        except zlib.error:
            raise MalformedBytes("a compressed message that cannot be inflated") from None
    else:
        raise MalformedBytes(f"a message with the unknown compressor {compressor}")
    if len(inner) != size or opcode == OP_COMPRESSED:
        raise MalformedBytes("a compressed message of another size than it says")
    return _read(request_id, opcode, inner, 0, compressor)


def _read(request_id: int, opcode: int, data: bytes, start: int, compressor: int) -> Message:
    message = Message(request_id, opcode, compressor=compressor)
    if opcode == OP_MSG:
        _read_sections(message, data, start)
    elif opcode == OP_QUERY:
        _read_query(message, data, start)
    else:
        message.problem = f"opcode {opcode} is not supported"
    return message


def _read_sections(message: Message, data: bytes, start: int) -> None:
    try:
        (message.flags,) = _FLAGS.unpack_from(data, start)
    except struct.error:
        raise MalformedBytes("a message without flags") from None
    if message.flags & _REQUIRED_BITS & ~_KNOWN_REQUIRED_BITS:
        raise MalformedBytes(f"unknown flags {message.flags:#x}")
    end = len(data)
    if message.flags & CHECKSUM_PRESENT:
        end -= 4
    at = start + 4
    has_body = False
    try:
        while at < end:
            kind = data[at]
            at += 1
            (size,) = _LENGTH.unpack_from(data, at)
            if size < 5 or at + size > end:
                raise MalformedBytes("a section that is longer than its message")
            if kind == 0 and not has_body:
                has_body = True
                message.raw_body = data[at : at + size]
            elif kind == 1:
                _read_sequence(message, data, at + 4, at + size)
            else:
                raise MalformedBytes(f"a section of the kind {kind}")
            at += size
    except struct.error:
        raise MalformedBytes("a section that is cut off") from None
    if not has_body:
        raise MalformedBytes("a message without a command")
    try:
        message.body = decode(message.raw_body)
    except InvalidBson as problem:
        message.problem = str(problem)


def _read_sequence(message: Message, data: bytes, at: int, end: int) -> None:
    stop = data.find(b"\x00", at, end)
    if stop < 0:
        raise MalformedBytes("a section without a name")
    name = data[at:stop].decode("utf-8", "replace")
    documents: list[bytes] = []
    at = stop + 1
    while at < end:
        (size,) = _LENGTH.unpack_from(data, at)
        if size < 5 or at + size > end:
            message.problem = f"a document of the section '{name}' has a wrong length"
            return
        documents.append(data[at : at + size])
        at += size
    if name in message.sections:
        message.problem = f"the section '{name}' is there twice"
        return
    message.sections[name] = documents


def _read_query(message: Message, data: bytes, start: int) -> None:
    stop = data.find(b"\x00", start + 4)
    if stop < 0 or stop + 9 > len(data):
        raise MalformedBytes("a query that is cut off")
    message.namespace = data[start + 4 : stop].decode("utf-8", "replace")
    at = stop + 9
    try:
        (size,) = _LENGTH.unpack_from(data, at)
        message.raw_body = data[at : at + size]
        message.body = decode(message.raw_body)
    except (struct.error, InvalidBson) as problem:
        message.problem = str(problem) or "not a document"


def encode_reply(message: Message, answer: bytes, *, reply_id: int, flags: int = 0) -> bytes:
    """Return the bytes of an answer, in the form and with the compressor of its request."""
    if message.opcode == OP_QUERY:
        body = _REPLY_HEAD.pack(_AWAIT_CAPABLE, 0, 0, 1) + answer
        return _HEADER.pack(_HEADER.size + len(body), reply_id, message.request_id, OP_REPLY) + body
    body = _FLAGS.pack(flags) + b"\x00" + answer
    if message.compressor == ZLIB:
        packed = _COMPRESSED_HEAD.pack(OP_MSG, len(body), ZLIB) + zlib.compress(body, 1)
        return _HEADER.pack(_HEADER.size + len(packed), reply_id, message.request_id, OP_COMPRESSED) + packed
    return _HEADER.pack(_HEADER.size + len(body), reply_id, message.request_id, OP_MSG) + body
