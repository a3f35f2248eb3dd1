"""The entry of a copy that is under way: its source, and how far it has come.

0   16  id of the copy
16   8  bytes of the source that are copied
24   8  moment at which the process that copies wrote last, in ticks
32      JSON: the target's name, the source, and whether the copy is incremental: such a copy is never resumed
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from asterism.errors import StoredDamage
from asterism.models.blobs.calls import CURRENT, Snapshot, Version, Which
from asterism.models.blobs.container import Container
from asterism.models.blobs.record import BlobRecord
from asterism.values.json.text import dumps_parsed, parse_stored

_HEAD = struct.Struct(">16sQQ")
_SNAPSHOT: Final = "snapshot"
_VERSION: Final = "version"
_INCREMENTAL: Final = "incremental"


@dataclass(frozen=True, slots=True)
class CopySource:
    """A record that was found, with its container; `url` is what the copy shows as its source."""

    container: Container
    which: Which
    record: BlobRecord
    url: str


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The place of the source of a copy, and the etag without which it is another."""

    account: str
    container: str
    name: str
    etag: int
    # "snapshot", "version", or None for the blob itself; its moment.
    kind: str | None = None
    moment: int = 0

    @classmethod
    def of(cls, account: str, container: str, name: str, etag: int, which: Which) -> Self:
        match which:
            case Snapshot(ticks):
                return cls(account, container, name, etag, _SNAPSHOT, ticks)
            case Version(ticks):
                return cls(account, container, name, etag, _VERSION, ticks)
            case _:
                return cls(account, container, name, etag)

    @property
    def which(self) -> Which:
        if self.kind is None:
            return CURRENT
        return Snapshot(self.moment) if self.kind == _SNAPSHOT else Version(self.moment)


@dataclass(frozen=True, slots=True)
class CopyJob:
    copy_id: bytes
    target: str
    source: SourcePlace
    progress: int = 0
    written_at: int = 0
    is_incremental: bool = False

    def to_bytes(self) -> bytes:
        described: dict[str, Any] = {"target": self.target, "source": asdict(self.source)}
        if self.is_incremental:
            described[_INCREMENTAL] = True
        return _HEAD.pack(self.copy_id, self.progress, self.written_at) + dumps_parsed(described)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        try:
            copy_id, progress, written_at = _HEAD.unpack_from(stored)
            described = parse_stored(stored[_HEAD.size :])
            source, is_incremental = SourcePlace(**described["source"]), described.get(_INCREMENTAL, False)
            return cls(copy_id, described["target"], source, progress, written_at, is_incremental)
        except (struct.error, KeyError, TypeError):
            raise StoredDamage(what="copy of a blob") from None
