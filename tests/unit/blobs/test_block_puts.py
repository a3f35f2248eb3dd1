"""Blocks that are put while something else happens to their blob."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from asterism.models.blobs.calls import BlockEntry, BlockSource, ListQuery, NewBlob, Version
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.upkeep import BlobUpkeep
from asterism.models.blobs.uploads import Upload
from asterism.values.ticks import TICKS_PER_SECOND
from tests.support.blobs import BlobWorld, get, listed, put, put_block, run_blobs


async def delete_the_last_version(world: BlobWorld, container: Container) -> Callable[[], Awaitable[object]]:
    rules = AccountRules(versioning=True)
    version = (await put(container, "blob", b"1", rules=rules)).version
    assert version is not None
    await container.delete("blob", rules=rules)
    return lambda: container.delete("blob", Version(version))


async def remove_the_deleted_blob(world: BlobWorld, container: Container) -> Callable[[], Awaitable[object]]:
    await put(container, "blob", b"1")
    await container.delete("blob", rules=AccountRules(blob_retention_days=1))
    world.skew.seconds += 2 * 24 * 3600
    return BlobUpkeep(world.blobs).sweep


async def remove_the_expired_blob(world: BlobWorld, container: Container) -> Callable[[], Awaitable[object]]:
    await put(container, "blob", b"1", NewBlob(expires_at=world.blobs.services.next_ticks() + TICKS_PER_SECOND))
    world.skew.seconds += 2
    return BlobUpkeep(world.blobs).sweep


def put_block_before_next_commit(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = BlobSpace.commit

    async def late_commit(space: BlobSpace, change: BlobChange, upload: Upload | None = None) -> None:
        monkeypatch.undo()
        await put_block(container, "blob", b"1", b"data")
        await commit(space, change, upload)

    monkeypatch.setattr(BlobSpace, "commit", late_commit)


@pytest.mark.parametrize("prepare", [delete_the_last_version, remove_the_deleted_blob, remove_the_expired_blob])
def test_a_block_is_kept_that_is_put_while_the_last_record_of_its_blob_goes(
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[BlobWorld, Container], Awaitable[Callable[[], Awaitable[object]]]],
) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        remove = await prepare(world, container)
        put_block_before_next_commit(container, monkeypatch)
        await remove()
        assert [record.name for record in await listed(container, ListQuery(uncommitted=True))] == ["blob"]
        await container.commit_blocks("blob", [BlockEntry(BlockSource.LATEST, b"1")], NewBlob())
        assert await get(container, "blob") == b"data"
        await world.check_statistics(container)

    run_blobs(test)


def test_blocks_outlive_the_expired_blob_that_they_are_to_replace() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        sweep = await remove_the_expired_blob(world, container)
        await put_block(container, "blob", b"1", b"data")
        await sweep()
        await container.commit_blocks("blob", [BlockEntry(BlockSource.LATEST, b"1")], NewBlob())
        assert await get(container, "blob") == b"data"
        await world.check_statistics(container)

    run_blobs(test)


def test_of_two_first_blocks_with_ids_of_different_lengths_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", b"1")
        put_block_before_next_commit(container, monkeypatch)
        with pytest.raises(BlobRefused) as caught:
            await put_block(container, "blob", b"22", b"data")
        assert caught.value.failure is BlobFailure.INVALID_BLOB_OR_BLOCK
        assert [block.block_id for block in (await container.block_list("blob")).uncommitted] == [b"1"]

    run_blobs(test)
