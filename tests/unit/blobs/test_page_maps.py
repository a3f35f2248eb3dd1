from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import StoredDamage
from asterism.models.blobs.page_maps import (
    CHUNK_BYTES,
    CHUNK_PAGES,
    PAGE_BYTES,
    ChunkPart,
    ChunkVersion,
    PageMap,
    PageSpan,
    SpanJoiner,
    changed_since,
    clear_pages,
    data_spans,
    difference_spans,
    pack_map,
    pages_between,
    parts_of,
    plan_removal,
    runs,
    seen_versions,
    unpack_map,
    write_pages,
)

PAGES = 3 * CHUNK_PAGES
SPANS = st.tuples(st.integers(0, PAGES - 1), st.integers(1, CHUNK_PAGES + 9)).map(
    lambda span: (span[0], min(PAGES, span[0] + span[1]))
)
# None takes a snapshot; a fill of 0 clears the pages.
STEPS = st.lists(st.one_of(st.none(), st.tuples(SPANS, st.integers(0, 255))), max_size=25)


class ChunkedBlob:
    """The versions of chunks as the store keeps them."""

    def __init__(self) -> None:
        self.epoch = 0
        self.kept: dict[tuple[int, int], tuple[bytes, PageMap]] = {}

    def versions(self) -> list[ChunkVersion]:
        return [ChunkVersion(chunk, epoch, pages) for (chunk, epoch), (_, pages) in sorted(self.kept.items())]

    def change(self, first: int, end: int, fill: int) -> None:
        for part in parts_of(first * PAGE_BYTES, end * PAGE_BYTES):
            newest = max((epoch for chunk, epoch in self.kept if chunk == part.chunk), default=None)
            data, pages = (b"", PageMap()) if newest is None else self.kept[part.chunk, newest]
            is_new = newest != self.epoch
            if fill:
                written = bytes([fill]) * (PAGE_BYTES * (part.end - part.first))
                after = write_pages(data, pages, part.first, written, is_new_epoch=is_new)
            else:
                after = clear_pages(data, pages, part.first, part.end, is_new_epoch=is_new)
            self.kept[part.chunk, self.epoch] = after

    def read(self, epoch: int) -> bytes:
        content = bytearray(PAGES * PAGE_BYTES)
        for version in seen_versions(self.versions(), epoch):
            data = self.kept[version.chunk, version.epoch][0]
            content[version.chunk * CHUNK_BYTES : version.chunk * CHUNK_BYTES + len(data)] = data
        return bytes(content)

    def remove_unseen(self, epochs: list[int]) -> None:
        for chunk in range(PAGES // CHUNK_PAGES):
            removal = plan_removal([version for version in self.versions() if version.chunk == chunk], epochs)
            for epoch in removal.deleted:
                del self.kept[chunk, epoch]
            for epoch, pages in removal.maps.items():
                self.kept[chunk, epoch] = self.kept[chunk, epoch][0], pages


class PlainBlob:
    """The same pages, one by one, with the number of the last change of each."""

    def __init__(self) -> None:
        self.pages: list[int | None] = [None] * PAGES
        self.changed_in = [-1] * PAGES

    def change(self, first: int, end: int, fill: int, epoch: int) -> None:
        for page in range(first, end):
            if fill or self.pages[page] is not None:
                self.changed_in[page] = epoch
            self.pages[page] = fill or None

    def content(self) -> bytes:
        return b"".join(bytes([page or 0]) * PAGE_BYTES for page in self.pages)

    def spans(self, is_listed: list[bool], *, is_clear: bool = False) -> list[PageSpan]:
        joiner = SpanJoiner(0, PAGES * PAGE_BYTES)
        single = (
            PageSpan(page * PAGE_BYTES, (page + 1) * PAGE_BYTES, is_clear) for page in range(PAGES) if is_listed[page]
        )
        return [*joiner.add(single), *joiner.finish()]


def joined(spans: Iterator[PageSpan]) -> list[PageSpan]:
    joiner = SpanJoiner(0, PAGES * PAGE_BYTES)
    return [*joiner.add(spans), *joiner.finish()]


@settings(deadline=None)
@given(STEPS, st.sets(st.integers(0, 25)))
def test_every_snapshot_reads_as_it_was_taken_and_differs_by_what_changed(
    steps: list[tuple[tuple[int, int], int] | None], dropped: set[int]
) -> None:
    chunked, plain = ChunkedBlob(), PlainBlob()
    contents: dict[int, tuple[bytes, list[int | None], list[int]]] = {}
    for step in steps:
        if step is None:
            contents[chunked.epoch] = plain.content(), list(plain.pages), list(plain.changed_in)
            chunked.epoch += 1
        else:
            (first, end), fill = step
            chunked.change(first, end, fill)
            plain.change(first, end, fill, chunked.epoch)
    contents[chunked.epoch] = plain.content(), list(plain.pages), list(plain.changed_in)

    left = [epoch for epoch in sorted(contents) if epoch not in dropped or epoch == chunked.epoch]
    chunked.remove_unseen(left)

    for place, epoch in enumerate(left):
        content, pages, changed_in = contents[epoch]
        assert chunked.read(epoch) == content
        expected = plain.spans([page is not None for page in pages])
        assert joined(data_spans(seen_versions(chunked.versions(), epoch))) == expected
        for earlier in left[:place]:
            changed = [changed_at > earlier for changed_at in changed_in]
            found = joined(difference_spans(changed_since(chunked.versions(), earlier, epoch)))
            with_data = [changed[page] and pages[page] is not None for page in range(PAGES)]
            cleared = [changed[page] and pages[page] is None for page in range(PAGES)]
            assert [span for span in found if not span.is_clear] == plain.spans(with_data)
            assert [span for span in found if span.is_clear] == plain.spans(cleared, is_clear=True)


@given(STEPS)
def test_nothing_is_left_of_a_blob_that_no_record_sees(steps: list[tuple[tuple[int, int], int] | None]) -> None:
    chunked = ChunkedBlob()
    for step in steps:
        if step is None:
            chunked.epoch += 1
        else:
            (first, end), fill = step
            chunked.change(first, end, fill)
    chunked.remove_unseen([])
    assert not chunked.kept


@given(st.integers(0, 2**64 - 1))
def test_the_runs_of_a_set_are_the_set(pages: int) -> None:
    found = list(runs(pages))
    assert sum(pages_between(first, end) for first, end in found) == pages
    assert all(end < first for (_, end), (first, _) in pairwise(found))


def test_a_span_of_bytes_is_divided_by_chunks() -> None:
    assert list(parts_of(CHUNK_BYTES - 512, 2 * CHUNK_BYTES + 1024)) == [
        ChunkPart(0, 63, 64),
        ChunkPart(1, 0, 64),
        ChunkPart(2, 0, 2),
    ]
    assert ChunkPart(1, 3, 4).start_bytes == CHUNK_BYTES + 3 * PAGE_BYTES


def test_spans_are_joined_and_cut_to_the_part_that_is_asked_for() -> None:
    joiner = SpanJoiner(512, 4096)
    assert joiner.add([PageSpan(0, 1024), PageSpan(1024, 2048)]) == []
    assert joiner.add([PageSpan(2560, 9999)]) == [PageSpan(512, 2048)]
    assert joiner.finish() == [PageSpan(2560, 4096)]


def test_a_map_is_sixteen_bytes_and_others_are_damage() -> None:
    pages = PageMap(2**64 - 1, 5)
    assert unpack_map(pack_map(pages)) == pages
    with pytest.raises(StoredDamage):
        unpack_map(b"short")
