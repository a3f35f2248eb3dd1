"""The wire protocol: bytes to messages and answers to bytes. Nothing here waits or knows a socket.

A message that is framed well but holds no document becomes a `Message` with a `problem`: its sender gets an error, and
the connection goes on. Bytes that cannot be framed end the connection.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from asterism.apis.mongo.checksum import crc32c
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
_CHECKSUM = struct.Struct("<I")
_REPLY_HEAD = struct.Struct("<iqii")
# Flags of the reply to an old opcode.
_QUERY_FAILURE = 2
_AWAIT_CAPABLE = 8
NO_COMPRESSION = 0
ZLIB = 2
# Their answers carry secrets or begin a connection, and are never compressed.
_NEVER_COMPRESSED = frozenset(
    {"hello", "isMaster", "ismaster", "saslStart", "saslContinue", "getnonce", "authenticate", "createUser",
     "updateUser"}
)  # fmt: skip


class _NoDocument(Exception):
    """A message is framed well, but what it holds is no command."""


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
    # A field that the command has twice.
    duplicate: str = ""

    @property
    def wants_no_reply(self) -> bool:
        return bool(self.flags & MORE_TO_COME)

    @property
    def is_old(self) -> bool:
        """True for a message of the protocol before OP_MSG; only `hello` is answered in it."""
        return self.opcode != OP_MSG

    @property
    def allows_exhaust(self) -> bool:
        return bool(self.flags & EXHAUST_ALLOWED)


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
    _, request_id, response_to, opcode = _HEADER.unpack_from(data)
    if opcode != OP_COMPRESSED:
        return _read(request_id, opcode, data, NO_COMPRESSION)
    opcode, compressor, inner = _decompressed(data)
    # The checksum of a compressed message is that of the message before it was compressed.
    head = _HEADER.pack(_HEADER.size + len(inner), request_id, response_to, opcode)
    return _read(request_id, opcode, head + inner, compressor)


def _decompressed(data: bytes) -> tuple[int, int, bytes]:
    """Return opcode, compressor and content of a compressed message."""
    try:
        opcode, size, compressor = _COMPRESSED_HEAD.unpack_from(data, _HEADER.size)
    except struct.error:
        raise MalformedBytes("a compressed message without its head") from None
    start = _HEADER.size + _COMPRESSED_HEAD.size
    # Looked at before anything is inflated.
    if not 0 <= size <= MESSAGE_BYTES_MAX - _HEADER.size:
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
    return opcode, compressor, inner


def _read(request_id: int, opcode: int, data: bytes, compressor: int) -> Message:
    message = Message(request_id, opcode, compressor=compressor)
    if opcode == OP_MSG:
        _read_sections(message, data)
    elif opcode == OP_QUERY:
        _read_query(message, data)
    else:
        message.problem = f"The opcode {opcode} is not supported; use OP_MSG."
    if compressor != NO_COMPRESSION and next(iter(message.body), "") in _NEVER_COMPRESSED:
        message.compressor = NO_COMPRESSION
    return message


def _read_sections(message: Message, data: bytes) -> None:
    try:
        (message.flags,) = _FLAGS.unpack_from(data, _HEADER.size)
    except struct.error:
        raise MalformedBytes("a message without flags") from None
    if message.flags & _REQUIRED_BITS & ~_KNOWN_REQUIRED_BITS:
        raise MalformedBytes(f"unknown flags {message.flags:#x}")
    end = len(data)
    at = _HEADER.size + _FLAGS.size
    if message.flags & CHECKSUM_PRESENT:
        end -= _CHECKSUM.size
        if end < at or crc32c(data[:end]) != _CHECKSUM.unpack_from(data, end)[0]:
            raise MalformedBytes("a message that does not match its checksum")
    try:
        _take_sections(message, data, at, end)
    except (_NoDocument, struct.error) as problem:
        message.problem = str(problem) or "A section is cut off."
        return
    _read_body(message)


def _take_sections(message: Message, data: bytes, at: int, end: int) -> None:
    has_body = False
    while at < end:
        kind = data[at]
        at += 1
        (size,) = _LENGTH.unpack_from(data, at)
        if size < 5 or at + size > end:
            raise _NoDocument("A section has a wrong length.")
        if kind == 0 and not has_body:
            has_body = True
            message.raw_body = data[at : at + size]
        elif kind == 1:
            _read_sequence(message, data, at + 4, at + size)
        else:
            raise _NoDocument("A message has one section of the kind 0, and any number of the kind 1.")
        at += size
    if not has_body:
        raise _NoDocument("The message has no command.")


def _read_body(message: Message) -> None:
    try:
        message.body = decode(message.raw_body)
        # A dict keeps the last of two fields with one name, so that only a walk finds the first.
        message.duplicate = _duplicate(message.raw_body, len(message.body))
    except (InvalidBson, struct.error, ValueError, IndexError) as problem:
        message.problem = message.problem or f"The command is not valid BSON: {problem}"


def _duplicate(raw: bytes, different: int) -> str:
    """Return the name of a field that is there twice; "" if none is."""
    names = [name for _, name, _, _ in elements(raw)]
    if len(names) == different:
        return ""
    return max(names, key=names.count).decode("utf-8", "replace")


def _read_sequence(message: Message, data: bytes, at: int, end: int) -> None:
    stop = data.find(b"\x00", at, end)
    if stop < 0:
        raise _NoDocument("A section has no name.")
    name = data[at:stop].decode("utf-8", "replace")
    documents: list[bytes] = []
    at = stop + 1
    while at < end:
        size = _LENGTH.unpack_from(data, at)[0] if at + _LENGTH.size <= end else 0
        if size < 5 or at + size > end:
            raise _NoDocument(f"A document of the section '{name}' has a wrong length.")
        documents.append(data[at : at + size])
        at += size
    if name in message.sections:
        raise _NoDocument(f"The section '{name}' is there twice.")
    message.sections[name] = documents


def _read_query(message: Message, data: bytes) -> None:
    stop = data.find(b"\x00", _HEADER.size + 4)
    if stop < 0 or stop + 9 > len(data):
        raise MalformedBytes("a query that is cut off")
    message.namespace = data[_HEADER.size + 4 : stop].decode("utf-8", "replace")
    # Behind the name: how many documents to skip and to return.
    at = stop + 9
    size = _LENGTH.unpack_from(data, at)[0] if at + _LENGTH.size <= len(data) else 0
    message.raw_body = data[at : at + size] if size > 0 else b""
    _read_body(message)


def encode_reply(
    message: Message,
    answer: bytes,
    *,
    reply_id: int,
    response_to: int | None = None,
    flags: int = 0,
    is_failure: bool = False,
) -> bytes:
    """Return the bytes of an answer, in the form and with the compressor of its request.

    `response_to` is the id of the reply before, for the later ones of a request with several.
    """
    request_id = message.request_id if response_to is None else response_to
    if message.is_old:
        body = _REPLY_HEAD.pack(_AWAIT_CAPABLE | (_QUERY_FAILURE if is_failure else 0), 0, 0, 1) + answer
        return _HEADER.pack(_HEADER.size + len(body), reply_id, request_id, OP_REPLY) + body
    body = _FLAGS.pack(flags) + b"\x00" + answer
    if message.compressor == ZLIB:
        packed = _COMPRESSED_HEAD.pack(OP_MSG, len(body), ZLIB) + zlib.compress(body, 1)
        return _HEADER.pack(_HEADER.size + len(packed), reply_id, request_id, OP_COMPRESSED) + packed
    return _HEADER.pack(_HEADER.size + len(body), reply_id, request_id, OP_MSG) + body
