"""The keys and records of collections inside a partition (docs/storage-format.md has them byte by byte).

Documents, unique keys and retried writes are routed by their keys, which begin with the point of the logical partition.
Index entries and the log of changes are routed by their values, which begin with the reference of a document (K5).
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

from asterism.errors import StoredDamage
from asterism.keyspaces.routing.families import CHANGE_LOG, INDEX, ITEMS, UNIQUE_KEYS, VERSIONS, id_key
from asterism.storage.contract import LSN_BYTES
from asterism.values.bson.key_bytes import encode_key

__all__ = ["CHANGE_LOG", "INDEX", "ITEMS", "UNIQUE_KEYS", "VERSIONS"]

# Outcomes of retryable writes: point, digest of the session -> the last transaction number and its outcomes.
RETRIES = b"\x14"
# Places of outcomes whose point a repeated write cannot know: digest of the session, transaction number, point ->
# point, wall milliseconds.
SESSION_PLACES = b"\x96"

_FORMAT = 1
_HEADER = struct.Struct(">BQHQ")
_HEADER_ENDS = LSN_BYTES + _HEADER.size
_INDEX_HEAD = struct.Struct(">cIHB")
_LOG_KEY = struct.Struct(">cQHQ")
_LOG_SUFFIX = struct.Struct(">HQ")
NUMBER_BYTES = 8
# Key bytes of an index entry, all fields together; longer ones are cut, and the document decides.
INDEX_KEY_BYTES_MAX = 400
_DIGEST_BYTES = 16
_PLACE_TIME_BYTES = 8

# Entries of documents with an array on the indexed path, and those whose key was cut, lie behind all others. Of an
# array two conditions may be met by two elements, so that only one of them may bound a scan; cut keys are not in order.
SINGLE_VALUES = 0
ARRAY_VALUES = 1


class DocumentKey(NamedTuple):
    """The place of a document: the point of its logical partition and its id as it stands in keys."""

    point: bytes
    id_key: bytes

    @property
    def stored(self) -> bytes:
        return ITEMS + self.point + self.id_key

    @property
    def reference(self) -> bytes:
        return self.point + self.id_key


class StoredDocument(NamedTuple):
    """A document as it is stored. `version` is what an expectation of it compares."""

    version: bytes
    number: int
    place: int
    changed_at: int
    body: bytes


def document_key(point: bytes, document_id: object) -> DocumentKey:
    return DocumentKey(point, id_key(encode_key(document_id)))


def pack_document(*, number: int, place: int, changed_at: int, body: bytes) -> bytes:
    """Return the record behind the LSN that the engine writes in front of it."""
    return _HEADER.pack(_FORMAT, number, place, changed_at) + body


def unpack_document(stored: bytes, key: bytes) -> StoredDocument:
    try:
        form, number, place, changed_at = _HEADER.unpack_from(stored, LSN_BYTES)
    except struct.error:
        raise StoredDamage(what="document", key=key.hex()) from None
    if form != _FORMAT:
        raise StoredDamage(what="document", key=key.hex())
    return StoredDocument(stored[:LSN_BYTES], number, place, changed_at, stored[_HEADER_ENDS:])


def body_of(stored: bytes) -> bytes:
    return stored[_HEADER_ENDS:]


def index_prefix(collection: int, index: int, region: int) -> bytes:
    return _INDEX_HEAD.pack(INDEX, collection, index, region)


def index_entry(prefix: bytes, keys: bytes, number: int) -> bytes:
    return prefix + keys[:INDEX_KEY_BYTES_MAX] + number.to_bytes(NUMBER_BYTES, "big")


def collection_index_span(collection: int) -> tuple[bytes, bytes]:
    return INDEX + collection.to_bytes(4, "big"), INDEX + (collection + 1).to_bytes(4, "big")


def unique_entry(point: bytes, collection: int, index: int, keys: bytes) -> bytes:
    digest = hashlib.blake2b(keys, digest_size=_DIGEST_BYTES).digest()
    return UNIQUE_KEYS + point + collection.to_bytes(4, "big") + index.to_bytes(2, "big") + digest


def session_digest(session: bytes) -> bytes:
    return hashlib.blake2b(session, digest_size=_DIGEST_BYTES).digest()


def retry_key(point: bytes, session: bytes) -> bytes:
    return RETRIES + point + session_digest(session)


def session_place(point: bytes, session: bytes, number: int, *, wall_milliseconds: int) -> tuple[bytes, bytes]:
    """Return the entry by which an outcome is found from its session and number alone."""
    return session_places(session, number) + point, point + wall_milliseconds.to_bytes(_PLACE_TIME_BYTES, "big")


def session_places(session: bytes, number: int) -> bytes:
    """Return the prefix of the entries of all places where a session has written under a number."""
    return SESSION_PLACES + session_digest(session) + number.to_bytes(NUMBER_BYTES, "big")


def place_time(stored: bytes) -> int:
    return int.from_bytes(stored[-_PLACE_TIME_BYTES:], "big")


def log_suffix(*, place: int, number: int) -> bytes:
    return _LOG_SUFFIX.pack(place, number)


def image_key(version: bytes, *, place: int, number: int) -> bytes:
    """The key of a body that a later change has displaced; `version` is the LSN of the change that wrote it."""
    return VERSIONS + version + _LOG_SUFFIX.pack(place, number)


def log_place(key: bytes) -> tuple[int, int, int]:
    """Return LSN, place in the batch and document number of a key of the log."""
    _, lsn, place, number = _LOG_KEY.unpack(key)
    return lsn, place, number


_IMAGE_TIME_BYTES = 8


def pack_image(point: bytes, displaced_at: int, body: bytes) -> bytes:
    return point + displaced_at.to_bytes(_IMAGE_TIME_BYTES, "big") + body


def image_body(stored: bytes, point_bytes: int) -> bytes:
    return stored[point_bytes + _IMAGE_TIME_BYTES :]


def image_time(stored: bytes, point_bytes: int) -> int:
    """Return the wall-clock milliseconds at which a body was displaced."""
    return int.from_bytes(stored[point_bytes : point_bytes + _IMAGE_TIME_BYTES], "big")
