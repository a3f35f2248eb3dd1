"""A blob as it is stored: a fixed header, its name, the rarer properties as JSON, and its content last, which a listing
does not decode.

    0    1  format, 0x01
    1    1  kind of blob
    2    1  role of the record
    3    1  flags
    4    8  created, in ticks
    12   8  modified, in ticks
    20   8  etag, in ticks
    28   8  size
    36   8  sequence number of a page blob, or number of appended blocks
    44   8  version, in ticks, or 0
    52   8  snapshot, in ticks, or 0
    60   4  snapshots, of a root
    64   4  previous versions, of a root
    68   4  deleted records, of a root
    72   2  bytes of the name
    74   4  bytes of the JSON
    78      name in UTF-8, JSON, content
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any, Final

from asterism.errors import StoredDamage
from asterism.models.blobs.content import NO_CONTENT, Content, pack_content, unpack_content
from asterism.models.blobs.leases import Lease
from asterism.storage.contract import LSN_BYTES
from asterism.values.json.text import dumps_parsed, parse_stored
from asterism.values.ordered_text import ordered_text

_FORMAT = 1
_HEADER = struct.Struct(">BBBBQQQQQQQLLLHL")
_STORED_HEADER = struct.Struct(">8xBBBBQQQQQQQLLLHL")
_HEADER_BYTES = _HEADER.size
_NAME_AT = _STORED_HEADER.size
_NO_JSON = b""


class BlobKind(IntEnum):
    BLOCK = 1
    PAGE = 2
    APPEND = 3


class Role(IntEnum):
    """The part that a record plays for its blob. A deleted blob is a CURRENT record in VERSIONS."""

    CURRENT = 0
    SNAPSHOT = 1
    VERSION = 2


_KINDS: Final = {kind.value: kind for kind in BlobKind}
_ROLES: Final = {role.value: role for role in Role}

_ABSENT = 1
_DELETED = 2
_SEALED = 4
_LEGAL_HOLD = 8
_TIER_INFERRED = 16
_INCREMENTAL = 32


# The statuses of a copy.
PENDING: Final = "pending"
SUCCESS: Final = "success"
ABORTED: Final = "aborted"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class CopyState:
    """The latest copy that had the blob as its target, until its content is replaced."""

    copy_id: str
    source: str
    status: str
    bytes_copied: int
    bytes_total: int
    completed_at: int | None = None
    description: str | None = None
    # The snapshot that an incremental copy has made, in ticks.
    destination_snapshot: int | None = None


@dataclass(slots=True)
class BlobRecord:
    """A blob, a snapshot or a version. Treat those that were read as values: change a `copy()`.

    Moments are ticks. Fields from `content_type` on are optional, and stored only if they have a value.
    """

    name: str
    kind: BlobKind
    created_at: int
    modified_at: int
    # Rises with each change that clients can see.
    etag: int
    size: int = 0
    role: Role = Role.CURRENT
    # False for a root whose name has uncommitted blocks, snapshots or versions only.
    exists: bool = True
    is_deleted: bool = False
    is_sealed: bool = False
    has_legal_hold: bool = False
    # Nothing has set the tier: it is the account's default.
    is_tier_inferred: bool = False
    is_incremental_copy: bool = False
    sequence_number: int = 0
    # Of an append blob.
    committed_blocks: int = 0
    version: int | None = None
    snapshot: int | None = None
    # Of a root: the records of each kind that the blob has in VERSIONS.
    snapshots_kept: int = 0
    versions_kept: int = 0
    deleted_kept: int = 0
    # The bytes that `content` is made from.
    stored_content: bytes = NO_CONTENT

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    content_md5: bytes | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    tier: str | None = None
    tier_changed_at: int | None = None
    archive_status: str | None = None
    rehydrate_priority: str | None = None
    lease: Lease | None = None
    copy_state: CopyState | None = None
    cpk_sha256: str | None = None
    encryption_scope: str | None = None
    immutable_until: int | None = None
    immutability_mode: str | None = None
    deleted_at: int | None = None
    # The moment from which a deleted record is removed.
    retained_until: int | None = None
    expires_at: int | None = None

    def copy(self) -> BlobRecord:
        return copy(self)

    @property
    def content(self) -> Content:
        return unpack_content(self.stored_content)

    @content.setter
    def content(self, content: Content) -> None:
        self.stored_content = pack_content(content)

    @property
    def moment(self) -> int:
        """The place of a snapshot or a version in VERSIONS."""
        moment = self.snapshot if self.role is Role.SNAPSHOT else self.version
        return self.etag if moment is None else moment

    @property
    def is_page(self) -> bool:
        return self.kind is BlobKind.PAGE

    def is_expired(self, now: int) -> bool:
        """Return whether the blob does not exist any more. A legal hold or an immutability policy keeps it longer."""
        if self.expires_at is None or self.expires_at > now:
            return False
        return not self.has_legal_hold and (self.immutable_until is None or self.immutable_until <= now)

    @property
    def is_copy_pending(self) -> bool:
        """Return whether the blob is the target of a copy that has not ended."""
        return self.copy_state is not None and self.copy_state.status == PENDING


# The optional fields, by the names that they are stored under.
_PLAIN: Final = {
    "ct": "content_type",
    "ce": "content_encoding",
    "cl": "content_language",
    "cd": "content_disposition",
    "cc": "cache_control",
    "m": "metadata",
    "t": "tags",
    "at": "tier",
    "tc": "tier_changed_at",
    "as": "archive_status",
    "rp": "rehydrate_priority",
    "ck": "cpk_sha256",
    "es": "encryption_scope",
    "iu": "immutable_until",
    "im": "immutability_mode",
    "da": "deleted_at",
    "ru": "retained_until",
    "ex": "expires_at",
}
_PLAIN_ITEMS: Final = tuple(_PLAIN.items())
_MD5 = "h"
_LEASE = "l"
_COPY = "cs"


def pack_blob(record: BlobRecord) -> bytes:
    """Return the bytes of a record; the engine puts the LSN of the batch before them."""
    name = record.name.encode("utf-8", "surrogatepass")
    rest = _pack_rest(record)
    flags = (
        (0 if record.exists else _ABSENT)
        | (_DELETED if record.is_deleted else 0)
        | (_SEALED if record.is_sealed else 0)
        | (_LEGAL_HOLD if record.has_legal_hold else 0)
        | (_TIER_INFERRED if record.is_tier_inferred else 0)
        | (_INCREMENTAL if record.is_incremental_copy else 0)
    )
    header = _HEADER.pack(
        _FORMAT,
        record.kind,
        record.role,
        flags,
        record.created_at,
        record.modified_at,
        record.etag,
        record.size,
        record.sequence_number if record.kind is BlobKind.PAGE else record.committed_blocks,
        record.version or 0,
        record.snapshot or 0,
        record.snapshots_kept,
        record.versions_kept,
        record.deleted_kept,
        len(name),
        len(rest),
    )
    return b"%b%b%b%b" % (header, name, rest, record.stored_content)


def _pack_rest(record: BlobRecord) -> bytes:
    rest: dict[str, Any] = {}
    for stored_name, name in _PLAIN_ITEMS:
        value = getattr(record, name)
        if value is not None and value != {}:
            rest[stored_name] = value
    if record.content_md5 is not None:
        rest[_MD5] = record.content_md5.hex()
    if record.lease is not None:
        rest[_LEASE] = asdict(record.lease)
    if record.copy_state is not None:
        rest[_COPY] = asdict(record.copy_state)
    return dumps_parsed(rest) if rest else _NO_JSON


def unpack_blob(stored: bytes) -> BlobRecord:
    """Return the record of stored bytes, the LSN first."""
    try:
        return _unpack(stored)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError):
        raise StoredDamage(what="blob record") from None


def _unpack(stored: bytes) -> BlobRecord:
    (
        form,
        kind_number,
        role,
        flags,
        created_at,
        modified_at,
        etag,
        size,
        number,
        version,
        snapshot,
        snapshots,
        versions,
        deleted,
        name_bytes,
        rest_bytes,
    ) = _STORED_HEADER.unpack_from(stored)
    if form != _FORMAT:
        raise StoredDamage(what="blob record")
    rest_at = _NAME_AT + name_bytes
    content_at = rest_at + rest_bytes
    kind = _KINDS[kind_number]
    is_page = kind is BlobKind.PAGE
    record = BlobRecord(
        stored[_NAME_AT:rest_at].decode("utf-8", "surrogatepass"),
        kind,
        created_at,
        modified_at,
        etag,
        size,
        _ROLES[role],
        not flags & _ABSENT,
        bool(flags & _DELETED),
        bool(flags & _SEALED),
        bool(flags & _LEGAL_HOLD),
        bool(flags & _TIER_INFERRED),
        bool(flags & _INCREMENTAL),
        number if is_page else 0,
        0 if is_page else number,
        version or None,
        snapshot or None,
        snapshots,
        versions,
        deleted,
        stored[content_at:],
    )
    if rest_bytes:
        for stored_name, value in parse_stored(stored[rest_at:content_at]).items():
            name = _PLAIN.get(stored_name)
            if name is not None:
                setattr(record, name, value)
            else:
                _set_special(record, stored_name, value)
    return record


def _set_special(record: BlobRecord, stored_name: str, value: Any) -> None:
    if stored_name == _MD5:
        record.content_md5 = bytes.fromhex(value)
    elif stored_name == _LEASE:
        record.lease = Lease(**value)
    elif stored_name == _COPY:
        record.copy_state = CopyState(**value)
    # Others are a newer program's.


def name_of(stored: bytes) -> str:
    """Return the name of a record, the LSN first, without decoding the rest."""
    name_bytes = _STORED_HEADER.unpack_from(stored)[14]
    return stored[_NAME_AT : _NAME_AT + name_bytes].decode("utf-8", "surrogatepass")


def order_of(stored: bytes) -> tuple[bytes, bytes]:
    """Return the texts that place a record among those whose keys are cut (`OrderedScan`)."""
    return ordered_text(name_of(stored)), b""


def size_of(stored: bytes) -> int:
    """Return the bytes of a stored record that count as data."""
    return len(stored) - LSN_BYTES
