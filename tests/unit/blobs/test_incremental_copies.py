"""Incremental copies beside other changes: of the source, of the target, and by another copy to the same target."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from asterism.models.blobs import copy_changes, incremental_copies, pages_reading
from asterism.models.blobs.calls import NewBlob, Snapshot, SnapshotDeletion
from asterism.models.blobs.changes import ChangeOfLease, SetLegalHold, SetMetadata
from asterism.models.blobs.collecting import collect_garbage
from asterism.models.blobs.conditions import Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.copied_data import CopiedPart
from asterism.models.blobs.copies import ORPHANED_SECONDS
from asterism.models.blobs.copy_job import CopyJob, CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.incremental_copies import copy_incrementally
from asterism.models.blobs.layout import COPIES, point_of
from asterism.models.blobs.leases import AcquireLease
from asterism.models.blobs.page_maps import CHUNK_BYTES
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.upkeep import BlobUpkeep
from asterism.values.ticks import timestamp_text
from tests.support.blobs import BlobWorld, get, run_blobs

SIZE = 8 * CHUNK_BYTES
LEASE = "00000000-0000-0000-0000-000000000001"


async def write_and_snapshot(container: Container, data: bytes) -> CopySource:
    await container.pages.put_pages("source", 0, data * (SIZE // len(data)))
    moment = (await container.snapshot("source")).snapshot
    which = Snapshot(moment)
    url = f"http://127.0.0.1/acct/c/source?snapshot={timestamp_text(moment)}"
    return CopySource(container, which, await container.find("source", which), url)


async def three_snapshots(container: Container) -> list[CopySource]:
    await container.put_blob("source", None, NewBlob(BlobKind.PAGE, SIZE))
    return [await write_and_snapshot(container, data) for data in (b"0", b"1", b"2")]


def snapshot_of(record: BlobRecord) -> Snapshot:
    assert record.copy_state is not None
    assert record.copy_state.destination_snapshot is not None
    return Snapshot(record.copy_state.destination_snapshot)


async def refusal(call: Awaitable[object]) -> BlobFailure:
    with pytest.raises(BlobRefused) as caught:
        await call
    return caught.value.failure


def after_first_batch(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Awaitable[object]]) -> None:
    """Let copies store one chunk at a time, and do something else once the first is stored."""
    monkeypatch.setattr(incremental_copies, "_BATCH_BYTES", CHUNK_BYTES)
    acts = iter([act])

    async def store_copied(space: BlobSpace, point: bytes, job: CopyJob, part: CopiedPart) -> CopyJob:
        after = await copy_changes.store_copied(space, point, job, part)
        for first in acts:
            await first()
        return after

    monkeypatch.setattr(incremental_copies, "store_copied", store_copied)


def test_a_second_copy_to_the_same_target_is_refused_while_the_first_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, third = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)
        failures: list[BlobFailure] = []

        async def copy_beside() -> None:
            failures.append(await refusal(copy_incrementally(container, "copy", third)))

        after_first_batch(monkeypatch, copy_beside)
        copied = await copy_incrementally(container, "copy", second)
        assert failures == [BlobFailure.PENDING_COPY]
        assert await get(container, "copy", snapshot_of(copied)) == b"1" * SIZE
        assert await world.entries(container, COPIES) == []
        copied = await copy_incrementally(container, "copy", third)
        assert await get(container, "copy", snapshot_of(copied)) == b"2" * SIZE
        await world.check_statistics(container)

    run_blobs(test)


def test_concurrent_copies_to_one_target_never_mix_their_snapshots() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, third = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)
        calls = [copy_incrementally(container, "copy", source) for source in (second, third)]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        copied = [(data, record) for data, record in zip(b"12", ended, strict=True) if isinstance(record, BlobRecord)]
        assert copied
        for data, record in copied:
            assert await get(container, "copy", snapshot_of(record)) == bytes([data]) * SIZE
        await world.check_statistics(container)

    run_blobs(test)


def test_a_copy_takes_over_from_one_whose_process_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, third = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)
        taken_over: list[BlobRecord] = []

        async def copy_later() -> None:
            world.skew.seconds += ORPHANED_SECONDS + 1
            taken_over.append(await copy_incrementally(container, "copy", third))

        after_first_batch(monkeypatch, copy_later)
        assert await refusal(copy_incrementally(container, "copy", second)) is BlobFailure.PENDING_COPY
        assert await get(container, "copy", snapshot_of(taken_over[0])) == b"2" * SIZE
        await world.check_statistics(container)

    run_blobs(test)


def test_upkeep_forgets_a_copy_that_was_cut_off_and_the_next_does_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, _ = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)

        async def lose_power() -> None:
            raise SystemError

        async def leave(*_: object) -> None:
            pass

        after_first_batch(monkeypatch, lose_power)
        monkeypatch.setattr(incremental_copies, "remove_entry", leave)
        with pytest.raises(SystemError):
            await copy_incrementally(container, "copy", second)
        assert len(await world.entries(container, COPIES)) == 1
        world.skew.seconds += ORPHANED_SECONDS + 1
        await BlobUpkeep(world.blobs).sweep()
        assert await world.entries(container, COPIES) == []
        copied = await copy_incrementally(container, "copy", second)
        assert await get(container, "copy", snapshot_of(copied)) == b"1" * SIZE
        await world.check_statistics(container)

    run_blobs(test)


def test_a_change_of_the_target_beside_a_copy_keeps_both(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, _ = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)
        after_first_batch(monkeypatch, lambda: container.snapshot("copy"))
        copied = await copy_incrementally(container, "copy", second)
        assert await get(container, "copy", snapshot_of(copied)) == b"1" * SIZE
        await world.check_statistics(container)

    run_blobs(test)


def test_a_copy_whose_source_and_its_pages_go_meanwhile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container, other = await world.container(), await world.container("d")
        source = (await three_snapshots(container))[0]

        async def delete_source() -> None:
            await container.delete("source", snapshots=SnapshotDeletion.INCLUDE)
            await collect_garbage(container.space, point_of("source"), container.space.now())

        after_first_batch(monkeypatch, delete_source)
        monkeypatch.setattr(pages_reading, "PIECE_BYTES", CHUNK_BYTES)
        assert await refusal(copy_incrementally(other, "copy", source)) is BlobFailure.SOURCE_CONDITION_NOT_MET
        target = await other.find("copy")
        assert (target.copy_state, target.snapshots_kept) == (None, 0)
        assert await world.entries(other, COPIES) == []
        await world.check_statistics(other)

    run_blobs(test)


def test_a_copy_whose_source_goes_after_the_last_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container, other = await world.container(), await world.container("d")
        source = (await three_snapshots(container))[0]
        after_first_batch(monkeypatch, lambda: container.delete("source", snapshots=SnapshotDeletion.INCLUDE))
        assert await refusal(copy_incrementally(other, "copy", source)) is BlobFailure.NOT_FOUND

    run_blobs(test)


def test_a_lease_that_the_target_gets_during_a_copy_is_honored(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, third = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)
        lease = ChangeOfLease(AcquireLease(LEASE, -1))
        after_first_batch(monkeypatch, lambda: container.change("copy", lease))
        assert await refusal(copy_incrementally(container, "copy", second)) is BlobFailure.LEASE_ID_MISSING
        copied = await copy_incrementally(container, "copy", third, Conditions(lease_id=LEASE))
        assert await get(container, "copy", snapshot_of(copied)) == b"2" * SIZE

    run_blobs(test)


def test_a_condition_on_the_etag_holds_until_the_copy_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, _ = await three_snapshots(container)
        etag = (await copy_incrementally(container, "copy", first)).etag
        after_first_batch(monkeypatch, lambda: container.change("copy", SetMetadata({"a": "1"})))
        call = copy_incrementally(container, "copy", second, Conditions(if_match=(etag,)))
        assert await refusal(call) is BlobFailure.CONDITION_NOT_MET

    run_blobs(test)


def test_a_target_under_a_legal_hold_takes_no_copy() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, _ = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)
        await container.change("copy", SetLegalHold(True))
        assert await refusal(copy_incrementally(container, "copy", second)) is BlobFailure.LEGAL_HOLD

    run_blobs(test)


def test_a_target_is_deleted_with_its_snapshots_once_versions_are_kept() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first, second, _ = await three_snapshots(container)
        await copy_incrementally(container, "copy", first)
        await copy_incrementally(container, "copy", second)
        rules = AccountRules(versioning=True)
        await container.delete("copy", rules=rules, snapshots=SnapshotDeletion.INCLUDE)
        assert await refusal(container.find("copy")) is BlobFailure.NOT_FOUND
        await world.check_statistics(container)

    run_blobs(test)
