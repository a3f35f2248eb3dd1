"""The content of a blob: the bytes themselves, or the list of the data that they lie in.

A *segment* is a stretch of the content that lies in data of one id. Few segments stand in the record; those of a long
block list, and the earlier ones of an append blob, stand in *manifests* of up to a thousand. Data and manifests of an
append blob only grow: a snapshot has its own size and list, and never looks behind them.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from asterism.errors import StoredDamage
from asterism.models.blobs.layout import CONTENT_ID_BYTES, DATA_ID_BYTES

_NO_ID: Final = bytes(CONTENT_ID_BYTES)
_INLINE = 0
_SEGMENTS = 1
_PAGES = 2

# The content of an empty blob: no bytes at all.
NO_CONTENT: Final = b""

_LISTED = struct.Struct(f">B{CONTENT_ID_BYTES}sLQ")
_PAGED = struct.Struct(f">B{CONTENT_ID_BYTES}sL")
_SEGMENT = struct.Struct(f">{DATA_ID_BYTES}sQB")
_OFFSET = struct.Struct(">Q")


class Segment(NamedTuple):
    """A stretch of a content: the first `size` bytes of its data. `block_id` is empty where there are no blocks."""

    data_id: bytes
    size: int
    block_id: bytes = b""


@dataclass(frozen=True, slots=True)
class Content:
    """A decoded content: `inline` has it all; or `pages` and `tail` list its segments; or, for a page blob,
    `content_id` and `epoch` name its pages."""

    content_id: bytes = _NO_ID
    inline: bytes | None = None
    # The offset of the first segment of each manifest.
    pages: tuple[int, ...] = ()
    # Behind the manifests, from `tail_at` on.
    tail_at: int = 0
    tail: tuple[Segment, ...] = ()
    epoch: int | None = None

    def page_at(self, offset: int) -> int:
        """Return the number of the manifest that has an offset before `tail_at`."""
        return bisect_right(self.pages, offset) - 1


def pack_content(content: Content) -> bytes:
    if content.inline is not None:
        return bytes([_INLINE]) + content.inline if content.inline else NO_CONTENT
    if content.epoch is not None:
        return _PAGED.pack(_PAGES, content.content_id, content.epoch)
    head = _LISTED.pack(_SEGMENTS, content.content_id, len(content.pages), content.tail_at)
    return head + b"".join(map(_OFFSET.pack, content.pages)) + pack_segments(content.tail)


def unpack_content(stored: bytes) -> Content:
    if not stored:
        return Content(inline=b"")
    if stored[0] == _INLINE:
        return Content(inline=stored[1:])
    try:
        if stored[0] == _PAGES:
            _, content_id, epoch = _PAGED.unpack(stored)
            return Content(content_id, epoch=epoch)
        _, content_id, page_count, tail_at = _LISTED.unpack_from(stored)
        tail_bytes_at = _LISTED.size + page_count * _OFFSET.size
        pages = struct.unpack_from(f">{page_count}Q", stored, _LISTED.size)
        return Content(content_id, None, pages, tail_at, tuple(unpack_segments(stored[tail_bytes_at:])))
    except struct.error:
        raise StoredDamage(what="blob content") from None


def pack_segments(segments: Iterable[Segment]) -> bytes:
    parts: list[bytes] = []
    for data_id, size, block_id in segments:
        parts.append(_SEGMENT.pack(data_id, size, len(block_id)))
        if block_id:
            parts.append(block_id)
    return b"".join(parts)


def unpack_segments(stored: bytes) -> list[Segment]:
    segments: list[Segment] = []
    at, end = 0, len(stored)
    head_bytes = _SEGMENT.size
    try:
        while at < end:
            data_id, size, id_bytes = _SEGMENT.unpack_from(stored, at)
            at += head_bytes
            segments.append(Segment(data_id, size, stored[at : at + id_bytes]))
            at += id_bytes
    except struct.error:
        raise StoredDamage(what="blob segments") from None
    return segments


def total_bytes(segments: Sequence[Segment]) -> int:
    return sum([segment.size for segment in segments])
