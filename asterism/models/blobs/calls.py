"""Arguments and answers of the calls on a container."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple, Protocol

from asterism.models.blobs.record import BlobKind, BlobRecord, CopyState


class Snapshot(NamedTuple):
    """The snapshot that was taken at a moment."""

    ticks: int


class Version(NamedTuple):
    """The version that was made at a moment: a previous one, or the current blob."""

    ticks: int


class Current(NamedTuple):
    """The blob itself."""


CURRENT: Final = Current()
Which = Current | Snapshot | Version


@dataclass(frozen=True, slots=True)
class Key:
    """The key of the customer's that a call brings, by its digest; an encryption scope instead of it."""

    sha256: str | None = None
    scope: str | None = None


NO_KEY: Final = Key()


@dataclass(frozen=True, slots=True)
class NewBlob:
    """The properties of a blob that is made, or made anew."""

    kind: BlobKind = BlobKind.BLOCK
    # Of a page blob; the size of others is that of their data.
    size: int = 0
    sequence_number: int = 0
    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    content_md5: bytes | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    # None: the tier of the account, which shows as inferred.
    tier: str | None = None
    key: Key = NO_KEY
    immutable_until: int | None = None
    immutability_mode: str | None = None
    has_legal_hold: bool = False
    expires_at: int | None = None
    copy_state: CopyState | None = None
    is_sealed: bool = False
    is_incremental_copy: bool = False


class RecordChange(Protocol):
    """A change of the properties of a blob (`changes.py`). `apply` is pure: it returns a changed copy, or raises
    BlobRefused."""

    # The change gives the blob another etag and modification time.
    touches: ClassVar[bool]
    # With versioning, the blob as it was becomes a previous version.
    makes_version: ClassVar[bool]
    # A blob under a lease needs the lease's id.
    checks_lease: ClassVar[bool]
    # An immutability policy or a legal hold forbids the change.
    is_forbidden_by_hold: ClassVar[bool]
    # Snapshots and previous versions can be changed so.
    fits_snapshots: ClassVar[bool]

    def apply(self, record: BlobRecord, now: int, /) -> BlobRecord: ...


# --- blocks ---------------------------------------------------------------------------------------------------------


class BlockSource(StrEnum):
    """The place in which a block of a list is looked up."""

    COMMITTED = "Committed"
    UNCOMMITTED = "Uncommitted"
    LATEST = "Latest"


class BlockEntry(NamedTuple):
    source: BlockSource
    block_id: bytes


class Block(NamedTuple):
    block_id: bytes
    size: int


class BlockLists(NamedTuple):
    """Blocks of a blob. `record` is None if it has uncommitted blocks only."""

    record: BlobRecord | None
    committed: Sequence[Block]
    uncommitted: Sequence[Block]


class Appended(NamedTuple):
    record: BlobRecord
    # The place of the data in the blob.
    offset: int


class Snapshotted(NamedTuple):
    """The blob after a snapshot was taken of it, and the moment that names the snapshot."""

    record: BlobRecord
    snapshot: int


# --- listing --------------------------------------------------------------------------------------------------------


class Marker(NamedTuple):
    """The entry that a listing resumes at: its name or prefix, and its moment in VERSIONS if it has one."""

    name: str
    moment: int | None = None


@dataclass(frozen=True, slots=True)
class ListQuery:
    prefix: str = ""
    delimiter: str = ""
    after: Marker | None = None
    # Blobs and prefixes together.
    limit: int = 5_000
    snapshots: bool = False
    versions: bool = False
    # Soft-deleted blobs, and soft-deleted snapshots and versions if those are listed.
    deleted: bool = False
    # Names that have uncommitted blocks only.
    uncommitted: bool = False


class ListPage(NamedTuple):
    """Blobs and prefixes (texts) in the order of their names. Of one name: snapshots and versions from the oldest on,
    then the blob. `next` is None only at the end."""

    entries: list[BlobRecord | str]
    next: Marker | None


class TagPage(NamedTuple):
    """Blobs whose tags match, in the order of their names; `next` is the name to resume at."""

    entries: list[BlobRecord]
    next: str | None


class SnapshotDeletion(StrEnum):
    """The part of the snapshots in a deletion; without a choice they refuse it."""

    INCLUDE = "include"
    ONLY = "only"
