"""Collection of garbage beside the writers of its blob."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from asterism.models.blobs import collecting, pages_removal
from asterism.models.blobs.calls import NewBlob, Snapshot
from asterism.models.blobs.collecting import collect_garbage
from asterism.models.blobs.layout import CHUNK_BYTES, DATA, GARBAGE, GARBAGE_SECONDS, PAGES, point_of
from asterism.models.blobs.page_maps import CHUNK_BYTES as PAGES_BYTES
from asterism.models.blobs.page_maps import PAGE_BYTES
from asterism.models.blobs.record import BlobKind
from asterism.models.blobs.space import BlobSpace
from asterism.storage.contract import Batch
from tests.support.blobs import BlobWorld, append, create_append, get, run_blobs


def write_after_each_part(monkeypatch: pytest.MonkeyPatch, write: Callable[[], Awaitable[object]]) -> list[int]:
    """Let a writer come after each batch without a root; return a list that gets an element for each."""
    store_part = BlobSpace.store_part
    written: list[int] = []

    async def store_and_write(space: BlobSpace, point: bytes, batch: Batch, bytes_delta: int) -> None:
        await store_part(space, point, batch, bytes_delta)
        await write()
        written.append(bytes_delta)

    monkeypatch.setattr(BlobSpace, "store_part", store_and_write)
    return written


def test_a_blob_is_written_between_the_batches_that_remove_its_former_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_REMOVED_BYTES_MAX", CHUNK_BYTES)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_append(container, "a")
        for _ in range(4):
            await append(container, "a", bytes(CHUNK_BYTES))
        await create_append(container, "a")
        world.skew.seconds += GARBAGE_SECONDS + 1
        written = write_after_each_part(monkeypatch, lambda: append(container, "a", b"x"))
        await collect_garbage(container.space, point_of("a"), container.space.now())
        assert len(written) > 4
        assert await get(container, "a") == b"x" * len(written)
        assert await world.entries(container, GARBAGE) == []
        assert sum(len(value) for _, value in await world.entries(container, DATA)) == len(written)
        await world.check_statistics(container)

    run_blobs(test)


def test_a_page_blob_is_written_between_the_batches_that_remove_its_former_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages_removal, "_VERSIONS_MAX", 1)
    chunks = 8

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        size = chunks * PAGES_BYTES
        await container.put_blob("p", None, NewBlob(BlobKind.PAGE, size))
        first = Snapshot((await container.snapshot("p")).snapshot)
        await container.pages.put_pages("p", 0, b"1" * size)
        second = Snapshot((await container.snapshot("p")).snapshot)
        await container.pages.put_pages("p", 0, b"2" * size)
        await container.delete("p", second)
        world.skew.seconds += GARBAGE_SECONDS + 1
        last = size - PAGE_BYTES
        # The last chunk is the one that the collection comes to last.
        written = write_after_each_part(monkeypatch, lambda: container.pages.put_pages("p", last, b"3" * PAGE_BYTES))
        await collect_garbage(container.space, point_of("p"), container.space.now())
        assert len(written) > chunks
        assert await get(container, "p") == b"2" * last + b"3" * PAGE_BYTES
        assert await get(container, "p", first) == bytes(size)
        _, difference = await container.pages.ranges("p", previous=first)
        assert [tuple(span) for span in difference.spans] == [(0, size, False)]
        assert await world.entries(container, GARBAGE) == []
        assert len(await world.entries(container, PAGES)) == chunks
        await world.check_statistics(container)

    run_blobs(test)


def test_pages_that_are_written_after_a_snapshot_during_a_collection_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_removal, "_VERSIONS_MAX", 1)
    chunks = 4

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        size = chunks * PAGES_BYTES
        await container.put_blob("p", None, NewBlob(BlobKind.PAGE, size))
        await container.pages.put_pages("p", 0, b"1" * size)
        first = Snapshot((await container.snapshot("p")).snapshot)
        await container.pages.put_pages("p", 0, b"2" * size)
        await container.delete("p", first)
        world.skew.seconds += GARBAGE_SECONDS + 1
        taken: list[Snapshot] = []

        async def snapshot_and_write() -> None:
            taken.append(Snapshot((await container.snapshot("p")).snapshot))
            await container.pages.put_pages("p", 0, b"3" * size)

        write_after_each_part(monkeypatch, snapshot_and_write)
        await collect_garbage(container.space, point_of("p"), container.space.now())
        assert [await get(container, "p", which) for which in taken[:2]] == [b"2" * size, b"3" * size]
        assert await get(container, "p") == b"3" * size
        await world.check_statistics(container)

    run_blobs(test)
