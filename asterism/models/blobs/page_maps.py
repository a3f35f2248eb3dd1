"""The pages of a page blob as maps of bits: 64 pages of 512 bytes are a chunk, which has a map of its own.

A chunk is kept once for each *epoch* in which it was written. A snapshot keeps the epoch that the blob was in, and the
blob goes on with the next; what a record sees of a chunk is its newest version that is not newer than the record's
epoch. A map has two sets of pages: those that have data (the others are zeros), and those that changed in its epoch,
which is all that the difference of two snapshots needs.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from asterism.errors import StoredDamage

PAGE_BYTES: Final = 512
CHUNK_PAGES: Final = 64
CHUNK_BYTES: Final = PAGE_BYTES * CHUNK_PAGES
# The service's limit of a page blob, and of the pages that one call writes.
PAGE_BLOB_BYTES_MAX: Final = 8 * 1024**4
WRITE_BYTES_MAX: Final = 4 * 1024**2

_MAP = struct.Struct(">QQ")
_ALL: Final = 2**CHUNK_PAGES - 1


class PageMap(NamedTuple):
    """Sets of pages of a chunk, the first page in the lowest bit."""

    with_data: int = 0
    changed: int = 0


class ChunkVersion(NamedTuple):
    """The map of a chunk in the epoch of its last write, as far as a record sees it."""

    chunk: int
    epoch: int
    pages: PageMap


class PageSpan(NamedTuple):
    """Bytes [start, end) of a page blob that have data, or that were cleared."""

    start: int
    end: int
    is_clear: bool = False


class ChunkPart(NamedTuple):
    """The pages of a chunk that a span of bytes covers, from `first` and before `end`."""

    chunk: int
    first: int
    end: int

    @property
    def start_bytes(self) -> int:
        """Return the place of the part in the blob."""
        return self.chunk * CHUNK_BYTES + self.first * PAGE_BYTES


def pack_map(pages: PageMap) -> bytes:
    return _MAP.pack(*pages)


def unpack_map(stored: bytes) -> PageMap:
    try:
        return PageMap(*_MAP.unpack(stored))
    except struct.error:
        raise StoredDamage(what="map of pages") from None


def parts_of(start: int, end: int) -> Iterator[ChunkPart]:
    """Divide bytes [start, end), which begin and end with a page, by chunks."""
    while start < end:
        chunk, first_byte = divmod(start, CHUNK_BYTES)
        end_byte = min(CHUNK_BYTES, first_byte + end - start)
        yield ChunkPart(chunk, first_byte // PAGE_BYTES, end_byte // PAGE_BYTES)
        start += end_byte - first_byte


def pages_between(first: int, end: int) -> int:
    """Return the set of pages from `first` and before `end`."""
    return (1 << end) - (1 << first)


# --- changes of a chunk ---------------------------------------------------------------------------------------------


def write_pages(
    data: bytes, pages: PageMap, first: int, written: bytes, *, is_new_epoch: bool
) -> tuple[bytes, PageMap]:
    """Return the data and the map of a chunk after a write of whole pages from page `first` on."""
    end = first + len(written) // PAGE_BYTES
    start_byte, end_byte = first * PAGE_BYTES, end * PAGE_BYTES
    # Data end with the last page that has any; pages before it that have none are zeros.
    after = b"".join((data[:start_byte].ljust(start_byte, b"\x00"), written, data[end_byte:]))
    touched = pages_between(first, end)
    changed = touched if is_new_epoch else pages.changed | touched
    return after, PageMap(pages.with_data | touched, changed)


def clear_pages(data: bytes, pages: PageMap, first: int, end: int, *, is_new_epoch: bool) -> tuple[bytes, PageMap]:
    """Return the data and the map of a chunk without the pages from `first` and before `end`. Pages that had no data
    have not changed."""
    cleared = pages_between(first, end) & pages.with_data
    with_data = pages.with_data & ~cleared
    kept = data[: with_data.bit_length() * PAGE_BYTES]
    start_byte, end_byte = first * PAGE_BYTES, min(end * PAGE_BYTES, len(kept))
    if start_byte < end_byte:
        kept = b"".join((kept[:start_byte], bytes(end_byte - start_byte), kept[end_byte:]))
    return kept, PageMap(with_data, cleared if is_new_epoch else pages.changed | cleared)


# --- versions of chunks ---------------------------------------------------------------------------------------------


def seen_versions(versions: Iterable[ChunkVersion], epoch: int) -> Iterator[ChunkVersion]:
    """Yield what a record of `epoch` sees of each chunk. The versions are in the order of their keys."""
    seen: ChunkVersion | None = None
    for version in versions:
        if seen is not None and version.chunk != seen.chunk:
            yield seen
            seen = None
        if version.epoch <= epoch:
            seen = version
    if seen is not None:
        yield seen


def changed_since(versions: Iterable[ChunkVersion], earlier: int, epoch: int) -> Iterator[ChunkVersion]:
    """Yield what a record of `epoch` sees of each chunk that changed after the epoch `earlier`, with all the pages that
    changed since then."""
    changed = 0
    seen: ChunkVersion | None = None
    for version in versions:
        if seen is not None and version.chunk != seen.chunk:
            yield seen._replace(pages=PageMap(seen.pages.with_data, changed))
            seen, changed = None, 0
        if earlier < version.epoch <= epoch:
            seen = version
            changed |= version.pages.changed
    if seen is not None:
        yield seen._replace(pages=PageMap(seen.pages.with_data, changed))


class ChunkRemoval(NamedTuple):
    """The versions of one chunk that no record sees: epochs to delete, and maps that take over what changed in them."""

    deleted: list[int]
    maps: dict[int, PageMap]


def plan_removal(versions: Sequence[ChunkVersion], epochs: Sequence[int]) -> ChunkRemoval:
    """Find the versions of one chunk, in order, that no record of the sorted `epochs` sees.

    A version that goes hands its changes to the next: only differences between records that are left are asked for,
    and no record is left between the two.
    """
    seen_epochs = set()
    own_epochs = [version.epoch for version in versions]
    for epoch in epochs:
        place = bisect_right(own_epochs, epoch)
        if place:
            seen_epochs.add(own_epochs[place - 1])
    removal = ChunkRemoval([], {})
    changed = 0
    for version in versions:
        if version.epoch not in seen_epochs:
            removal.deleted.append(version.epoch)
            changed |= version.pages.changed
        elif changed:
            removal.maps[version.epoch] = PageMap(version.pages.with_data, version.pages.changed | changed)
            changed = 0
    return removal


# --- spans ----------------------------------------------------------------------------------------------------------


def runs(pages: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of a set of pages: the first page of each, and the page behind it."""
    at = 0
    while pages:
        zeros = (pages & -pages).bit_length() - 1
        pages >>= zeros
        ones = (~pages & (pages + 1)).bit_length() - 1
        pages >>= ones
        yield at + zeros, at + zeros + ones
        at += zeros + ones


def data_spans(versions: Iterable[ChunkVersion]) -> Iterator[PageSpan]:
    """Yield the bytes of chunks that have data."""
    for version in versions:
        yield from _spans(version.chunk, version.pages.with_data, is_clear=False)


def difference_spans(versions: Iterable[ChunkVersion]) -> Iterator[PageSpan]:
    """Yield the bytes of chunks that changed, those with data and those that were cleared, in their order."""
    for version in versions:
        with_data, changed = version.pages
        yield from sorted(
            [
                *_spans(version.chunk, changed & with_data, is_clear=False),
                *_spans(version.chunk, changed & ~with_data & _ALL, is_clear=True),
            ]
        )


def _spans(chunk: int, pages: int, *, is_clear: bool) -> Iterator[PageSpan]:
    base = chunk * CHUNK_BYTES
    for first, end in runs(pages):
        yield PageSpan(base + first * PAGE_BYTES, base + end * PAGE_BYTES, is_clear)


class SpanJoiner:
    """Joins spans that touch, cut to a part of the blob; each call returns the spans that are complete."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self._open: list[PageSpan] = []

    def add(self, spans: Iterable[PageSpan]) -> list[PageSpan]:
        complete: list[PageSpan] = []
        for span in spans:
            start, end = max(span.start, self._start), min(span.end, self._end)
            if start >= end:
                continue
            last = self._open[-1] if self._open else None
            if last is not None and last.end == start and last.is_clear == span.is_clear:
                self._open[-1] = PageSpan(last.start, end, span.is_clear)
                continue
            complete += self._open
            self._open = [PageSpan(start, end, span.is_clear)]
        return complete

    def finish(self) -> list[PageSpan]:
        complete, self._open = self._open, []
        return complete
