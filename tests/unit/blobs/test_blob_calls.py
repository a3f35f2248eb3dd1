"""Conditions, versions, deletions, restorations and holds of blobs; containers and their states."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from asterism.models.blobs.calls import (
    ListQuery,
    NewBlob,
    Snapshot,
    SnapshotDeletion,
    Version,
)
from asterism.models.blobs.changes import SetHttpHeaders, SetMetadata
from asterism.models.blobs.conditions import Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.incremental_copies import copy_incrementally
from asterism.models.blobs.record import BlobKind, BlobRecord, CopyState, Role, pack_blob, unpack_blob
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.state import AccessPolicy, ContainerState
from asterism.models.blobs.store import ContainerPlace
from asterism.models.blobs.upkeep import BlobUpkeep
from tests.support.blobs import ACCOUNT, BlobWorld, append, create_append, get, listed, put, put_block, run_blobs

VERSIONING = AccountRules(versioning=True)
RETENTION = AccountRules(blob_retention_days=7, container_retention_days=7)


def refused(failure: BlobFailure) -> pytest.RaisesExc[BlobRefused]:
    return pytest.RaisesExc(BlobRefused, check=lambda error: error.failure is failure)


# --- conditions -------------------------------------------------------------------------------------------------------


def test_reads_and_writes_go_by_their_conditions() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first = await put(container, "blob", b"1")
        second = await put(container, "blob", b"2")
        assert second.etag > first.etag
        with refused(BlobFailure.CONDITION_NOT_MET):
            await container.find("blob", conditions=Conditions(if_match=(first.etag,)))
        with refused(BlobFailure.NOT_MODIFIED):
            await container.find("blob", conditions=Conditions(if_none_match=(first.etag, second.etag)))
        later = second.modified_at // 10_000_000
        with refused(BlobFailure.NOT_MODIFIED):
            await container.find("blob", conditions=Conditions(modified_since=later))
        with refused(BlobFailure.CONDITION_NOT_MET):
            await container.find("blob", conditions=Conditions(unmodified_since=later - 1))
        with refused(BlobFailure.EXISTS):
            await put(container, "blob", b"3", conditions=Conditions(if_none_match=("*",)))
        with refused(BlobFailure.CONDITION_NOT_MET):
            await put(container, "new", b"3", conditions=Conditions(if_match=("*",)))
        with refused(BlobFailure.CONDITION_NOT_MET):
            await container.delete("blob", conditions=Conditions(if_match=(first.etag,)))
        assert (await container.find("blob", conditions=Conditions(if_match=("*",), lease_id=None))).size == 1

    run_blobs(test)


@pytest.mark.parametrize(
    ("position", "max_size", "failure"),
    [
        (3, None, BlobFailure.APPEND_POSITION_CONDITION_NOT_MET),
        (None, 8, BlobFailure.MAX_SIZE_CONDITION_NOT_MET),
    ],
)
def test_appends_go_by_position_and_size(position: int | None, max_size: int | None, failure: BlobFailure) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await create_append(container, "log")
        await append(container, "log", b"12345")
        async with container.begin_upload("log") as upload:
            await upload.write(b"6789")
            with refused(failure):
                await container.append("log", upload, position=position, max_size=max_size)
            appended = await container.append("log", upload, position=5, max_size=9)
        assert appended.offset == 5
        assert await get(container, "log") == b"123456789"

    run_blobs(test)


def test_a_call_for_another_kind_of_blob_is_refused() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "block", b"data")
        await create_append(container, "append")
        with refused(BlobFailure.WRONG_KIND):
            await append(container, "block", b"data")
        with refused(BlobFailure.WRONG_KIND):
            await put_block(container, "append", b"a", b"data")
        with refused(BlobFailure.WRONG_KIND):
            await container.commit_blocks("append", [], NewBlob())

    run_blobs(test)


# --- versions, snapshots, deletions -----------------------------------------------------------------------------------


def test_every_version_of_a_blob_can_be_read() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        first = await put(container, "blob", b"1", rules=VERSIONING)
        second = await put(container, "blob", b"2", rules=VERSIONING)
        third = await container.change("blob", SetMetadata({"a": "b"}), rules=VERSIONING)
        await container.change("blob", SetHttpHeaders(content_type="text/plain"), rules=VERSIONING)
        assert first.version is not None
        assert second.version is not None
        assert third.version is not None
        contents = [await get(container, "blob", Version(made.version or 0)) for made in (first, second, third)]
        assert contents == [b"1", b"2", b"2"]
        assert await container.delete("blob", rules=VERSIONING)
        with refused(BlobFailure.NOT_FOUND):
            await container.find("blob")
        assert await get(container, "blob", Version(third.version)) == b"2"
        await container.delete("blob", Version(second.version), rules=VERSIONING)
        kept = await listed(container, ListQuery(versions=True))
        assert [record.version for record in kept] == [first.version, third.version]
        await world.check_statistics(container)

    run_blobs(test)


async def overwrite(container: Container, rules: AccountRules) -> None:
    await put(container, "blob", b"after", rules=rules)


async def set_metadata(container: Container, rules: AccountRules) -> None:
    await container.change("blob", SetMetadata({"a": "1"}), rules=rules)


async def take_snapshot(container: Container, rules: AccountRules) -> None:
    await container.snapshot("blob", rules=rules)


async def delete(container: Container, rules: AccountRules) -> None:
    await container.delete("blob", rules=rules, snapshots=SnapshotDeletion.INCLUDE)


@pytest.mark.parametrize("call", [overwrite, set_metadata, take_snapshot, delete])
@pytest.mark.parametrize("retention", [None, 7])
def test_a_blob_that_replaced_a_soft_deleted_one_becomes_a_version_when_versions_are_kept(
    call: Callable[[Container, AccountRules], Awaitable[None]], retention: int | None
) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", b"one", rules=RETENTION)
        await put(container, "blob", b"two", rules=RETENTION)
        await call(container, AccountRules(versioning=True, blob_retention_days=retention))
        versions = [record for record in await listed(container, ListQuery(versions=True)) if record.version]
        assert versions[0].version is not None
        assert await get(container, "blob", Version(versions[0].version)) == b"two"
        await container.undelete("blob")
        kept = await listed(container, ListQuery(snapshots=True))
        snapshots = [record.snapshot for record in kept if record.snapshot]
        assert await get(container, "blob", Snapshot(snapshots[0])) == b"one"
        await world.check_statistics(container)

    run_blobs(test)


@pytest.mark.parametrize("retention", [None, 7])
def test_the_target_of_an_incremental_copy_is_deleted_as_a_version(retention: int | None) -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await container.put_blob("source", None, NewBlob(BlobKind.PAGE, 512))
        which = Snapshot((await container.snapshot("source")).snapshot)
        source = CopySource(container, which, await container.find("source", which), "http://h/acct/c/source")
        await copy_incrementally(container, "blob", source)
        await delete(container, AccountRules(versioning=True, blob_retention_days=retention))
        versions = await listed(container, ListQuery(prefix="blob", versions=True))
        assert [record.role for record in versions] == [Role.VERSION]
        await world.check_statistics(container)

    run_blobs(test)


def test_the_current_version_cannot_be_deleted_as_a_version() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        record = await put(container, "blob", b"1", rules=VERSIONING)
        with refused(BlobFailure.VERSION_IS_CURRENT):
            await container.delete("blob", Version(record.version or 0), rules=VERSIONING)

    run_blobs(test)


def test_snapshots_keep_a_blob_from_being_deleted_without_a_choice() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", b"1")
        taken = await container.snapshot("blob", {"x": "y"})
        assert taken.record.etag == (await container.find("blob")).etag
        assert (await container.find("blob", Snapshot(taken.snapshot))).metadata == {"x": "y"}
        with refused(BlobFailure.SNAPSHOTS_PRESENT):
            await container.delete("blob")
        await container.delete("blob", snapshots=SnapshotDeletion.ONLY)
        with refused(BlobFailure.NOT_FOUND):
            await container.find("blob", Snapshot(taken.snapshot))
        await container.snapshot("blob")
        await container.delete("blob", snapshots=SnapshotDeletion.INCLUDE)
        with refused(BlobFailure.NOT_FOUND):
            await container.find("blob")
        with refused(BlobFailure.NOT_FOUND):
            await container.delete("blob")

    run_blobs(test)


def test_undelete_restores_the_blob_its_snapshots_and_what_was_replaced() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", b"1", rules=RETENTION)
        taken = await container.snapshot("blob")
        await put(container, "blob", b"2", rules=RETENTION)
        await container.delete("blob", rules=RETENTION, snapshots=SnapshotDeletion.INCLUDE)
        await put(container, "blob", b"3", rules=RETENTION)
        await container.delete("blob", rules=RETENTION)
        await container.undelete("blob")
        assert await get(container, "blob") == b"3"
        assert await get(container, "blob", Snapshot(taken.snapshot)) == b"1"
        found = await listed(container, ListQuery(snapshots=True))
        assert [record.role for record in found] == [Role.SNAPSHOT] * 3 + [Role.CURRENT]
        contents = sorted([await get(container, "blob", Snapshot(record.snapshot or 0)) for record in found[:3]])
        assert contents == [b"1", b"1", b"2"]
        await world.check_statistics(container)

    run_blobs(test)


def test_a_deleted_snapshot_can_be_removed_for_good() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        await put(container, "blob", b"1", rules=RETENTION)
        taken = Snapshot((await container.snapshot("blob")).snapshot)
        assert await container.delete("blob", taken, rules=RETENTION)
        with refused(BlobFailure.NOT_FOUND):
            await container.delete("blob", taken, rules=RETENTION)
        assert not await container.delete("blob", taken, rules=RETENTION, permanent=True)
        assert await listed(container, ListQuery(snapshots=True, deleted=True)) == await listed(container, ListQuery())

    run_blobs(test)


def test_a_held_blob_is_neither_replaced_nor_deleted() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        until = world.blobs.services.next_ticks() + 10**9
        await put(container, "held", b"1", NewBlob(has_legal_hold=True))
        await put(container, "locked", b"1", NewBlob(immutable_until=until, immutability_mode="Unlocked"))
        for name, failure in (("held", BlobFailure.LEGAL_HOLD), ("locked", BlobFailure.IMMUTABLE)):
            with refused(failure):
                await put(container, name, b"2")
            with refused(failure):
                await container.delete(name)
        world.skew.seconds += 1000
        await container.delete("locked")

    run_blobs(test)


def test_an_expiring_blob_is_gone_at_its_moment_and_removed_by_upkeep() -> None:
    async def test(world: BlobWorld) -> None:
        container = await world.container()
        moment = world.blobs.services.next_ticks() + 10**9
        await put(container, "blob", b"1" * 10_000, NewBlob(expires_at=moment))
        await container.find("blob")
        world.skew.seconds += 101
        with refused(BlobFailure.NOT_FOUND):
            await container.find("blob")
        for _ in range(2):
            await BlobUpkeep(world.blobs).sweep()
            world.skew.seconds += 400
        (partition,) = container.keyspace.record.map.ranges
        assert await world.world.everything(partition.partition) == []

    run_blobs(test)


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_record_is_stored_whole() -> None:
    record = BlobRecord(
        "n\ud800ame",
        BlobKind.PAGE,
        *(1, 2, 3, 4),
        role=Role.VERSION,
        is_deleted=True,
        is_sealed=True,
        has_legal_hold=True,
        is_tier_inferred=True,
        is_incremental_copy=True,
        sequence_number=9,
        version=5,
        snapshot=6,
        snapshots_kept=7,
        versions_kept=8,
        deleted_kept=9,
        stored_content=b"\x00data",
        content_type="text/plain",
        content_md5=b"m" * 16,
        metadata={"a": "b"},
        tags={"t": "é"},
        tier="Hot",
        copy_state=CopyState("id", "source", "pending", 1, 2),
        expires_at=10,
    )
    assert unpack_blob(bytes(8) + pack_blob(record)) == record


# --- containers -------------------------------------------------------------------------------------------------------


def test_containers_are_listed_by_name_and_prefix_and_found_until_they_are_deleted() -> None:
    async def test(world: BlobWorld) -> None:
        blobs = world.blobs
        for name in ("beta", "alpha", "beth"):
            await blobs.create_container(ACCOUNT, name)
        await blobs.create_container("other", "alpha")
        with refused(BlobFailure.CONTAINER_EXISTS):
            await blobs.create_container(ACCOUNT, "alpha")
        assert [found.name for found in blobs.list_containers(ACCOUNT)] == ["alpha", "beta", "beth"]
        (found,) = blobs.list_containers(ACCOUNT, prefix="be", start=ContainerPlace("bet"), limit=1)
        assert found.name == "beta"
        await blobs.delete_container(ACCOUNT, "beta")
        assert blobs.find_container(ACCOUNT, "beta") is None
        with refused(BlobFailure.CONTAINER_NOT_FOUND):
            await blobs.delete_container(ACCOUNT, "beta")

    run_blobs(test)


def test_the_state_of_a_container_changes_under_conditions() -> None:
    async def test(world: BlobWorld) -> None:
        blobs, container = world.blobs, await world.container()
        before = container.state

        def change(state: ContainerState, now: int) -> ContainerState:
            return replace(state.touched(now), policies=(AccessPolicy("p", permissions="r"),), metadata={"A": "b"})

        after = await blobs.change_container(container, change, Conditions(if_match=(before.etag,)))
        assert after.etag > before.etag
        found = blobs.find_container(ACCOUNT, "c")
        assert found is not None
        assert found.state == after
        with refused(BlobFailure.CONDITION_NOT_MET):
            await blobs.change_container(container, change, Conditions(if_match=(before.etag,)))

    run_blobs(test)


def test_a_deleted_container_is_restored_beside_one_that_took_its_name() -> None:
    async def test(world: BlobWorld) -> None:
        blobs, first = world.blobs, await world.container()
        await put(first, "blob", b"first")
        await blobs.delete_container(ACCOUNT, "c", rules=RETENTION)
        assert blobs.find_container(ACCOUNT, "c") is None
        second = await world.container()
        await put(second, "blob", b"second")
        (deleted,) = [found for found in blobs.list_containers(ACCOUNT, deleted=True) if found.state.is_deleted]
        version = deleted.state.deleted_version or ""
        with refused(BlobFailure.CONTAINER_EXISTS):
            await blobs.restore_container(ACCOUNT, "c", version, "c")
        await blobs.delete_container(ACCOUNT, "c")
        restored = await blobs.restore_container(ACCOUNT, "c", version, "c")
        assert await get(restored, "blob") == b"first"
        found = blobs.find_container(ACCOUNT, "c")
        assert found is not None
        assert await get(found, "blob") == b"first"
        await blobs.delete_container(ACCOUNT, "c", rules=RETENTION)
        world.skew.seconds += 8 * 24 * 3600
        await BlobUpkeep(blobs).sweep()
        assert blobs.list_containers(ACCOUNT, deleted=True) == []

    run_blobs(test)


def test_documents_of_an_account_are_kept() -> None:
    async def test(world: BlobWorld) -> None:
        assert await world.blobs.get_account_document(ACCOUNT, "properties") is None
        assert await world.blobs.replace_account_document(ACCOUNT, "properties", b"{}", before=None)
        assert await world.blobs.get_account_document(ACCOUNT, "properties") == b"{}"

    run_blobs(test)
