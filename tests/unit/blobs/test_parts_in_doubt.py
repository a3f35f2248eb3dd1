"""Parts of uploads and copies that may be stored or not, because their task was canceled: nothing is counted twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from asterism.models.blobs import copied_data
from asterism.models.blobs.calls import CURRENT, NewBlob
from asterism.models.blobs.conditions import NO_CONDITIONS
from asterism.models.blobs.container import Container
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.layout import CHUNK_BYTES, DATA, UPLOAD_SECONDS_MAX, UPLOADS
from asterism.models.blobs.rules import NO_RULES
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.upkeep import BlobUpkeep
from asterism.storage.contract import Batch
from tests.support.blobs import BlobWorld, put, run_blobs

LARGE = bytes(4 * 1024 * 1024)


async def upload(_: BlobWorld, container: Container) -> None:
    await put(container, "blob", LARGE)


async def copy(world: BlobWorld, container: Container) -> None:
    source = CopySource(container, CURRENT, await container.find("source"), "http://127.0.0.1/acct/c/source")
    await world.blobs.copies.copy(container, "blob", source, NewBlob(), NO_CONDITIONS, NO_RULES)


@pytest.mark.parametrize("write", [upload, copy])
def test_a_part_whose_task_was_canceled_is_removed_and_counted_by_upkeep(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[BlobWorld, Container], Awaitable[None]]
) -> None:
    store_part, stored = BlobSpace.store_part, 0

    async def canceled_in_the_second(space: BlobSpace, point: bytes, batch: Batch, bytes_delta: int) -> None:
        nonlocal stored
        await store_part(space, point, batch, bytes_delta)
        stored += 1
        if stored == 2:
            raise asyncio.CancelledError

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", bytes(range(256)) * 4096 * 4)
        before = await world.entries(container, DATA)
        monkeypatch.setattr(copied_data, "BATCH_BYTES", CHUNK_BYTES)
        monkeypatch.setattr(BlobSpace, "store_part", canceled_in_the_second)
        with pytest.raises(asyncio.CancelledError):
            await write(world, container)
        await world.check_statistics(container)
        world.skew.seconds += UPLOAD_SECONDS_MAX + 1
        await BlobUpkeep(world.blobs).sweep()
        assert await world.entries(container, DATA) == before
        assert await world.entries(container, UPLOADS) == []
        await world.check_statistics(container)

    run_blobs(test)
