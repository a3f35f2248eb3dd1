"""Page blobs and copies under concurrent writers, upkeep, splits, and on their way between accounts."""

from __future__ import annotations

import asyncio

import pytest

from asterism.models.blobs import copied_data, copies
from asterism.models.blobs.calls import CURRENT, NewBlob, Snapshot
from asterism.models.blobs.conditions import NO_CONDITIONS
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.layout import GARBAGE_SECONDS
from asterism.models.blobs.page_maps import PAGE_BYTES
from asterism.models.blobs.record import BlobKind
from asterism.models.blobs.rules import NO_RULES
from asterism.models.blobs.upkeep import BlobUpkeep
from tests.support.blobs import BlobWorld, get, put, run_blobs

PAGES = 200


def test_pages_of_concurrent_writers_all_arrive() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await container.put_blob("p", None, NewBlob(BlobKind.PAGE, PAGES * PAGE_BYTES))

        async def write(first: int) -> None:
            for page in range(first, PAGES, 4):
                await container.pages.put_pages("p", page * PAGE_BYTES, bytes([page % 255 + 1]) * PAGE_BYTES)

        await asyncio.gather(*(write(first) for first in range(4)))
        expected = b"".join(bytes([page % 255 + 1]) * PAGE_BYTES for page in range(PAGES))
        assert await get(container, "p") == expected
        await world.check_statistics(container)

    run_blobs(test)


def test_upkeep_beside_writers_loses_no_page_and_no_difference() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await container.put_blob("p", None, NewBlob(BlobKind.PAGE, PAGES * PAGE_BYTES))
        first = Snapshot((await container.snapshot("p")).snapshot)
        is_done = asyncio.Event()

        async def sweep() -> None:
            while not is_done.is_set():
                world.skew.seconds += GARBAGE_SECONDS + 1
                await BlobUpkeep(world.blobs).sweep()
                await asyncio.sleep(0)

        sweeping = asyncio.create_task(sweep())
        for page in range(PAGES):
            taken = Snapshot((await container.snapshot("p")).snapshot)
            await container.pages.put_pages("p", page * PAGE_BYTES, bytes([page % 255 + 1]) * PAGE_BYTES)
            await container.delete("p", taken)
            await asyncio.sleep(0)
        is_done.set()
        await sweeping
        assert await get(container, "p") == b"".join(bytes([page % 255 + 1]) * PAGE_BYTES for page in range(PAGES))
        assert await get(container, "p", first) == bytes(PAGES * PAGE_BYTES)
        _, difference = await container.pages.ranges("p", previous=first)
        assert [tuple(span) for span in difference.spans] == [(0, PAGES * PAGE_BYTES, False)]
        await world.check_statistics(container)

    run_blobs(test)


def test_a_copy_goes_on_while_its_containers_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)
    monkeypatch.setattr(copied_data, "BATCH_BYTES", 64 * 1024)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        data = bytes(range(256)) * 4096
        for number in range(10):
            await put(container, f"source{number}", data)
        for number in range(10):
            source = CopySource(container, CURRENT, await container.find(f"source{number}"), "http://source")
            await world.blobs.copies.copy(container, f"copy{number}", source, NewBlob(), NO_CONDITIONS, NO_RULES)
        reshaper, keyspace = world.world.reshaper, container.keyspace
        for _ in range(2):
            for partition in keyspace.record.map.ranges:
                await reshaper.finished(await reshaper.split(keyspace, partition.id))
        for number in range(10):
            record = await container.find(f"copy{number}")
            while record.copy_state is not None and record.copy_state.status == "pending":
                await asyncio.sleep(0.01)
                record = await container.find(record.name)
            assert await get(container, record.name) == data
        await world.check_statistics(container)

    run_blobs(test)


def test_a_blob_is_copied_to_another_account() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        other = await world.blobs.create_container("another", "c")
        await put(container, "source", b"data" * 5000)
        source = CopySource(container, CURRENT, await container.find("source"), "http://source")
        await world.blobs.copies.copy(other, "copy", source, NewBlob(), NO_CONDITIONS, NO_RULES)
        assert await get(other, "copy") == b"data" * 5000

    run_blobs(test)
