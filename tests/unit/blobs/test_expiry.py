"""Blobs that expire: while they are copied to, with blocks that were put since, and while they are held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from asterism.models.blobs import copies
from asterism.models.blobs.calls import CURRENT, ListQuery, NewBlob, RecordChange
from asterism.models.blobs.changes import (
    UNLOCKED,
    DeleteImmutability,
    ExpiryMode,
    SetExpiry,
    SetImmutability,
    SetLegalHold,
)
from asterism.models.blobs.conditions import NO_CONDITIONS
from asterism.models.blobs.container import Container
from asterism.models.blobs.copy_job import CopyJob, CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.layout import COPIES, DATA, ROOTS, UPLOADS, copy_key, point_of
from asterism.models.blobs.rules import NO_RULES, AccountRules
from asterism.models.blobs.tags_search import TagTest
from asterism.models.blobs.upkeep import BlobUpkeep
from asterism.storage.contract import Batch
from asterism.values.ticks import TICKS_PER_SECOND
from tests.support.blobs import BlobWorld, get, listed, put, run_blobs

DAY = 24 * 3600
LARGE = bytes(range(256)) * 4096


def refused(failure: BlobFailure) -> pytest.RaisesExc[BlobRefused]:
    return pytest.RaisesExc(BlobRefused, check=lambda error: error.failure is failure)


def in_a_second(world: BlobWorld) -> int:
    return world.blobs.services.next_ticks() + TICKS_PER_SECOND


async def upkeep_after(world: BlobWorld, seconds: float) -> None:
    world.skew.seconds += seconds
    await BlobUpkeep(world.blobs).sweep()


# --- targets of copies ------------------------------------------------------------------------------------------------


async def begin_copy(world: BlobWorld, container: Container, expires_at: int | None = None) -> CopyJob:
    """Leave a copy of `source` to `copy` that no process carries out; return its entry."""
    source = CopySource(container, CURRENT, await container.find("source"), "http://127.0.0.1/acct/c/source")
    new = NewBlob(expires_at=expires_at)
    await world.blobs.copies.copy(container, "copy", source, new, NO_CONDITIONS, NO_RULES)
    await world.blobs.copies.stop()
    ((_, stored),) = await world.entries(container, COPIES)
    return CopyJob.from_bytes(stored)


@pytest.fixture
def _in_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "COPY_INLINE_BYTES", 1000)


@pytest.mark.usefixtures("_in_background")
def test_the_expiry_of_a_blob_is_not_set_while_it_is_copied_to() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        await begin_copy(world, container)
        with refused(BlobFailure.PENDING_COPY):
            await container.change("copy", SetExpiry(ExpiryMode.RELATIVE_TO_NOW, 1000))

    run_blobs(test)


@pytest.mark.usefixtures("_in_background")
def test_a_copy_ends_with_its_expired_target_and_leaves_the_next_blob_alone() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        await begin_copy(world, container, in_a_second(world))
        world.skew.seconds += copies.ORPHANED_SECONDS + 1
        await put(container, "copy", b"new")
        assert await world.entries(container, COPIES) == []
        assert await world.blobs.copies.resume([container]) == 0
        assert await get(container, "copy") == b"new"
        await world.check_statistics(container)

    run_blobs(test)


@pytest.mark.usefixtures("_in_background")
def test_a_copy_that_takes_the_place_of_an_expired_target_is_carried_out() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        first = await begin_copy(world, container, in_a_second(world))
        world.skew.seconds += copies.ORPHANED_SECONDS + 1
        second = await begin_copy(world, container)
        assert second.copy_id != first.copy_id
        await asyncio.wait([world.blobs.copies.run(container.space, point_of("copy"), second.copy_id)])
        assert await get(container, "copy") == LARGE

    run_blobs(test)


@pytest.mark.usefixtures("_in_background")
def test_upkeep_ends_the_copy_of_a_target_that_has_expired() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "source", LARGE)
        await begin_copy(world, container, in_a_second(world))
        await upkeep_after(world, 10)
        assert await world.entries(container, COPIES) == []
        await upkeep_after(world, 8 * DAY)
        assert [key for key, _ in await world.entries(container, DATA) if key[1:].startswith(point_of("copy"))] == []
        assert await world.entries(container, UPLOADS) == []
        await world.check_statistics(container)

    run_blobs(test)


async def put_other(container: Container) -> None:
    await put(container, "copy", b"other")


async def delete(container: Container) -> None:
    await container.delete("copy")


@pytest.mark.usefixtures("_in_background")
@pytest.mark.parametrize("replace_target", [put_other, delete])
def test_a_copy_whose_target_is_gone_is_forgotten_with_its_data(
    replace_target: Callable[[Container], Awaitable[None]],
) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        space, point = container.space, point_of("copy")
        await put(container, "source", LARGE)
        job = await begin_copy(world, container)
        await world.blobs.copies.abort(container, "copy", str(UUID(bytes=job.copy_id)))
        await replace_target(container)
        before = await world.entries(container, ROOTS), await world.entries(container, DATA)
        # Earlier releases have left such entries when a target had expired.
        await space.store_part(point, Batch(puts=[(copy_key(point), job.to_bytes())]), 0)
        await world.blobs.copies.run(space, point, job.copy_id)
        await BlobUpkeep(world.blobs).sweep()
        assert await world.entries(container, COPIES) == []
        assert (await world.entries(container, ROOTS), await world.entries(container, DATA)) == before
        await world.check_statistics(container)

    run_blobs(test)


# --- holds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hold", "release"),
    [
        (SetLegalHold(True), SetLegalHold(False)),
        (SetImmutability(2**60, UNLOCKED), DeleteImmutability()),
    ],
)
def test_a_blob_that_is_held_expires_when_the_hold_ends(hold: RecordChange, release: RecordChange) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", LARGE, NewBlob(expires_at=in_a_second(world), tags={"a": "1"}))
        await container.change("blob", hold)
        await upkeep_after(world, 10)
        assert await get(container, "blob") == LARGE
        assert [record.name for record in await listed(container, ListQuery())] == ["blob"]
        found = await container.find_by_tags([TagTest("a", "=", "1")])
        assert [record.name for record in found.entries] == ["blob"]
        await container.change("blob", release)
        with refused(BlobFailure.NOT_FOUND):
            await container.find("blob")
        await upkeep_after(world, 1)
        await upkeep_after(world, DAY)
        assert await world.entries(container, ROOTS) == await world.entries(container, DATA) == []
        await world.check_statistics(container)

    run_blobs(test)


# --- restoring --------------------------------------------------------------------------------------------------------


def test_a_deleted_blob_is_restored_in_place_of_one_that_has_expired() -> None:
    async def test(world: BlobWorld) -> None:
        container, rules = await world.container(), AccountRules(blob_retention_days=7)
        await put(container, "blob", b"precious", rules=rules)
        await container.delete("blob", rules=rules)
        await put(container, "blob", LARGE, NewBlob(expires_at=in_a_second(world)), rules=rules)
        world.skew.seconds += 2
        await container.undelete("blob")
        assert await get(container, "blob") == b"precious"
        await upkeep_after(world, DAY)
        assert await get(container, "blob") == b"precious"
        assert await world.entries(container, DATA) == []
        await world.check_statistics(container)

    run_blobs(test)


def test_a_name_whose_only_blob_has_expired_has_nothing_to_restore() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", b"1", NewBlob(expires_at=in_a_second(world)))
        world.skew.seconds += 2
        with refused(BlobFailure.NOT_FOUND):
            await container.undelete("blob")

    run_blobs(test)
