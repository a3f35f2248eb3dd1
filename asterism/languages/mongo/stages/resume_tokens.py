"""Resume tokens: the place of an event in a change stream, as the text that clients send back.

`_data` is the hexadecimal form of: a mark, the time of the event (so that tokens sort roughly as events do), the length
and a checksum of the rest, the rest, and an end mark. Clients never look into it. Bytes behind the end are passed over.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

# The first byte of MongoDB's own tokens, which begin with a timestamp, too.
_MARK = 0x82
_END = b"\x04"
_HEADER = struct.Struct(">BQII")
_BODY = struct.Struct(">BBHHH")
_BINARY_KIND = 1


class TokenKind(IntEnum):
    # Everything before it was seen; no event is at this place.
    HIGH_WATER_MARK = 0
    EVENT = 1
    # The event that ends the stream; the `invalidate` is still to come.
    LAST_EVENT = 2
    INVALIDATE = 3


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """A place in a stream. `position` is for the reader of changes, the rest for checks of the stream that resumes."""

    kind: TokenKind
    # Hybrid time.
    time: int
    position: bytes
    # The collection of the event; "" for a whole database, and for a token without an event.
    database: str = ""
    collection: str = ""
    # The event is seen by streams with `showExpandedEvents` only.
    is_expanded_only: bool = False
    # Of an event that was split, how many fragments have been given.
    fragments: int = 0

    def to_text(self) -> str:
        return self.to_bytes().hex().upper()

    def to_bytes(self) -> bytes:
        database, collection = self.database.encode(), self.collection.encode()
        body = (
            _BODY.pack(self.kind, self.is_expanded_only, self.fragments, len(database), len(collection))
            + database
            + collection
            + self.position
        )
        return _HEADER.pack(_MARK, self.time, len(body), zlib.crc32(body)) + body + _END

    @property
    def document(self) -> Document:
        return {"_data": self.to_text()}


def read_token(document: Document) -> ResumeToken:
    """Return the token that a client sends back; MongoFailure for what cannot be one."""
    data = document.get("_data")
    if isinstance(data, bytes) and document.get("_kind") == _BINARY_KIND:
        return _unpack(bytes(data))
    if type(data) is not str:
        raise MongoFailure(40647, "Bad resume token: _data of missing or of wrong type")
    bits = document.get("_typeBits")
    if bits is not None and not isinstance(bits, bytes):
        raise MongoFailure(40648, "Bad resume token: _typeBits of wrong type")
    if not data:
        raise MongoFailure(40649, "Bad resume token: it is empty")
    return _unpack(_from_hex(data))


def _from_hex(text: str) -> bytes:
    try:
        if len(text) % 2 or not text.isalnum():
            raise ValueError
        return bytes.fromhex(text)
    except ValueError:
        raise MongoFailure(9, "Bad resume token: _data is not a string of hexadecimal digits") from None


def _unpack(data: bytes) -> ResumeToken:
    if data[:1] != bytes((_MARK,)):
        raise MongoFailure(50811, "Bad resume token: it begins with an unknown type")
    if len(data) < _HEADER.size:
        raise MongoFailure(15, "Bad resume token: it ends too early")
    _, time, length, checksum = _HEADER.unpack_from(data)
    body = data[_HEADER.size : _HEADER.size + length]
    if len(body) < length:
        raise MongoFailure(15, "Bad resume token: it ends too early")
    if zlib.crc32(body) != checksum or length < _BODY.size:
        raise not_ours()
    kind, is_expanded_only, fragments, database_length, collection_length = _BODY.unpack_from(body)
    names = body[_BODY.size :]
    try:
        return ResumeToken(
            TokenKind(kind),
            time,
            names[database_length + collection_length :],
            names[:database_length].decode(),
            names[database_length : database_length + collection_length].decode(),
            bool(is_expanded_only),
            fragments,
        )
    except ValueError:
        raise not_ours() from None


def not_ours(_: Any = None) -> MongoFailure:
    return MongoFailure(260, "Bad resume token: it was not issued by this server")
