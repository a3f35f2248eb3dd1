"""Rounds of upkeep: many due records at once, and damage and errors that stay where they are."""

from __future__ import annotations

import asyncio

import pytest

from asterism.models.blobs import upkeep
from asterism.models.blobs.calls import BlockEntry, BlockSource, NewBlob, SnapshotDeletion
from asterism.models.blobs.container import Container
from asterism.models.blobs.layout import (
    GARBAGE,
    RETENTION,
    ROOTS,
    UNCOMMITTED,
    UPLOADS,
    VERSIONS,
    point_of,
    retention_entry,
    root_key,
    upload_key,
)
from asterism.models.blobs.plan import BlobChange
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.upkeep import BlobUpkeep
from asterism.storage.contract import Batch
from tests.support.blobs import BlobWorld, get, put, put_block, run_blobs

SOFT_DELETE = AccountRules(blob_retention_days=1)
WEEKS_SECONDS = 15 * 24 * 3600
LARGE = bytes(300_000)
NAMES = ("a", "b", "c")


async def pass_weeks(world: BlobWorld) -> None:
    """Let everything become due, and what was released with it."""
    for _ in range(2):
        world.skew.seconds += WEEKS_SECONDS
        await BlobUpkeep(world.blobs).sweep()


async def leave_work(container: Container, name: str) -> None:
    """Leave an entry of each kind for upkeep: what was released, what is due, blocks, and a cut off upload."""
    await put(container, name, LARGE)
    await put(container, name, b"kept")
    await put(container, f"{name} gone", b"data", rules=SOFT_DELETE)
    await container.delete(f"{name} gone", rules=SOFT_DELETE)
    await put_block(container, f"{name} unborn", b"1", b"data")
    mark = Batch(puts=[(upload_key(point_of(name), name.encode() * 16), bytes(8))])
    await container.space.store_part(point_of(name), mark, 0)


@pytest.mark.parametrize("family", [GARBAGE, UPLOADS, RETENTION, UNCOMMITTED, VERSIONS])
def test_a_damaged_entry_of_a_blob_holds_up_no_other_blob(family: bytes) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for name in NAMES:
            await leave_work(container, name)
        (key, _), *_ = await world.entries(container, family)
        await container.space.store_part(point_of("a"), Batch(puts=[(key, b"\x01")]), 0)
        await pass_weeks(world)
        left = [await world.entries(container, listed) for listed in (GARBAGE, UPLOADS, RETENTION, UNCOMMITTED)]
        assert len([entry for entries in left for entry in entries]) == 1
        assert [await get(container, name) for name in NAMES] == [b"kept"] * 3

    run_blobs(test)


def test_an_error_that_nothing_should_cause_is_raised_once_all_else_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(space: BlobSpace, point: bytes, released_until: int) -> None:
        raise KeyError(point)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await leave_work(container, "a")
        monkeypatch.setattr(upkeep, "collect_garbage", fail)
        world.skew.seconds += WEEKS_SECONDS
        with pytest.RaisesGroup(KeyError):
            await BlobUpkeep(world.blobs).sweep()
        for family in (RETENTION, UPLOADS, UNCOMMITTED):
            assert await world.entries(container, family) == []

    run_blobs(test)


def test_upkeep_goes_on_after_a_round_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        has_gone_on = asyncio.Event()

        async def sweep_again(_: BlobUpkeep) -> None:
            has_gone_on.set()

        async def sweep_badly(_: BlobUpkeep) -> None:
            monkeypatch.setattr(BlobUpkeep, "sweep", sweep_again)
            raise ExceptionGroup("a round", [ValueError()])

        monkeypatch.setattr(BlobUpkeep, "sweep", sweep_badly)
        background = BlobUpkeep(world.blobs, round_seconds=0)
        await background.start()
        await has_gone_on.wait()
        await background.stop()

    run_blobs(test)


# --- due records ------------------------------------------------------------------------------------------------------


async def delete_with_snapshots(container: Container, name: str, count: int) -> None:
    await put(container, name, b"data", rules=SOFT_DELETE)
    for _ in range(count):
        await container.snapshot(name)
    await container.delete(name, rules=SOFT_DELETE, snapshots=SnapshotDeletion.INCLUDE)


def test_all_due_records_of_a_blob_are_removed_in_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = BlobSpace.commit
    points: list[bytes] = []

    async def commit_counted(space: BlobSpace, change: BlobChange) -> None:
        points.append(change.point)
        await commit(space, change)

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for name in NAMES:
            await delete_with_snapshots(container, name, 20)
        await container.undelete("b")
        # It belongs to a record that is not due any more.
        entry = retention_entry(1, point_of("c"), 1)
        await container.space.store_part(point_of("c"), Batch(puts=[entry]), 0)
        monkeypatch.setattr(BlobSpace, "commit", commit_counted)
        await pass_weeks(world)
        assert sorted(points) == [point_of("a"), point_of("c")]
        assert await world.entries(container, RETENTION) == []
        assert len(await world.entries(container, VERSIONS)) == 20
        assert [key for key, _ in await world.entries(container, ROOTS)] == [root_key(point_of("b"))]
        await world.check_statistics(container)

    run_blobs(test)


def test_a_root_stays_while_a_due_record_goes_and_a_block_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = BlobSpace.commit

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await delete_with_snapshots(container, "a", 1)

        async def commit_after_a_block(space: BlobSpace, change: BlobChange) -> None:
            monkeypatch.setattr(BlobSpace, "commit", commit)
            await put_block(container, "a", b"1", b"block")
            await commit(space, change)

        monkeypatch.setattr(BlobSpace, "commit", commit_after_a_block)
        world.skew.seconds += 2 * 24 * 3600
        await BlobUpkeep(world.blobs).sweep()
        assert await world.entries(container, VERSIONS) == []
        await container.commit_blocks("a", [BlockEntry(BlockSource.LATEST, b"1")], NewBlob())
        assert await get(container, "a") == b"block"
        await world.check_statistics(container)

    run_blobs(test)


def test_due_records_of_several_blobs_are_removed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = BlobSpace.commit

    async def test(world: BlobWorld) -> None:
        container = await world.container()
        for name in NAMES:
            await delete_with_snapshots(container, name, 1)
        all_at_work = asyncio.Barrier(len(NAMES))

        async def commit_together(space: BlobSpace, change: BlobChange) -> None:
            await all_at_work.wait()
            await commit(space, change)

        monkeypatch.setattr(BlobSpace, "commit", commit_together)
        world.skew.seconds += 2 * 24 * 3600
        async with asyncio.timeout(180):
            await BlobUpkeep(world.blobs).sweep()
        assert await world.entries(container, VERSIONS) == []

    run_blobs(test)
