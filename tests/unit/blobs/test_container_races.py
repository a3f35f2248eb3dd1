"""Calls on one container at once: each is decided on the state that the others have left."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from asterism.errors import ResourceExists
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.models.blobs import store
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.leases import AcquireLease, apply_lease_action
from asterism.models.blobs.rules import AccountRules
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.state import ContainerState
from asterism.models.blobs.store import KEY
from asterism.storage.contract import Expectation
from asterism.values.identifiers import NodeNumber
from tests.support.blobs import ACCOUNT, BlobWorld, get, put, put_block, run_blobs
from tests.support.stores import open_store

LEASE = "00000000-0000-0000-0000-000000000001"
DAY_SECONDS = 24 * 3600
RETENTION = AccountRules(container_retention_days=7)


def refused(failure: BlobFailure) -> pytest.RaisesExc[BlobRefused]:
    return pytest.RaisesExc(BlobRefused, check=lambda error: error.failure is failure)


async def deleted_version(world: BlobWorld) -> str:
    """Make and delete a container with a blob; return the version that restores it."""
    container = await world.container()
    await put(container, "blob", b"old")
    await world.blobs.delete_container(ACCOUNT, "c", rules=RETENTION)
    assert container.state.deleted_version is not None
    return container.state.deleted_version


@pytest.mark.parametrize("is_restored_first", [True, False])
def test_one_of_a_restoration_and_a_creation_at_once_gets_the_name(is_restored_first: bool) -> None:
    async def test(world: BlobWorld) -> None:
        version = await deleted_version(world)
        calls = [world.blobs.restore_container(ACCOUNT, "c", version, "c"), world.blobs.create_container(ACCOUNT, "c")]
        ends = await asyncio.gather(*calls[:: 1 if is_restored_first else -1], return_exceptions=True)
        assert [end.failure for end in ends if isinstance(end, BlobRefused)] == [BlobFailure.CONTAINER_EXISTS]
        assert len(world.blobs.list_containers(ACCOUNT)) == 1

    run_blobs(test)


async def test_a_change_is_decided_again_when_another_process_takes_a_name_that_it_expects(tmp_path: Path) -> None:
    engine = await open_store(tmp_path)
    first, second = (Catalog(engine, random_bytes=os.urandom, monotonic=lambda: 0.0, is_shared=True) for _ in range(2))
    await first.open()
    database = await first.create_database(ACCOUNT, "d", None, now=1)
    await second.open()

    def decide() -> list[Expectation]:
        if second.find_keyspace(database.rid, "a") is not None:
            raise ResourceExists(kind="container", name="a")
        return second.expect_names(database.rid, ["a"])

    await first.create_keyspace(database, "a", KEY, {}, nodes=[NodeNumber(0)], throughput=None, now=1)
    with pytest.raises(ResourceExists):
        await second.create_keyspace(
            database, "b", KEY, {}, nodes=[NodeNumber(0)], throughput=None, now=1, decided_on=decide
        )
    await engine.close()


def test_a_container_that_was_restored_is_not_removed_as_due() -> None:
    async def test(world: BlobWorld) -> None:
        version = await deleted_version(world)
        (deleted,) = world.blobs.list_containers(ACCOUNT, deleted=True)
        until = deleted.state.retained_until
        assert until is not None
        restored = await world.blobs.restore_container(ACCOUNT, "c", version, "c")
        await world.blobs.remove_due(deleted, until)
        assert await get(restored, "blob") == b"old"

    run_blobs(test)


def test_a_container_is_restored_until_its_retention_ends() -> None:
    async def test(world: BlobWorld) -> None:
        version = await deleted_version(world)
        world.skew.seconds += 7 * DAY_SECONDS + 1
        with refused(BlobFailure.CONTAINER_NOT_FOUND):
            await world.blobs.restore_container(ACCOUNT, "c", version, "c")

    run_blobs(test)


@pytest.mark.parametrize("rules", [AccountRules(), RETENTION])
def test_a_container_whose_lease_was_acquired_meanwhile_is_not_deleted(rules: AccountRules) -> None:
    def acquire(state: ContainerState, now: int) -> ContainerState:
        return replace(state, lease=apply_lease_action(state.lease, AcquireLease(LEASE, 60), now))

    async def test(world: BlobWorld) -> None:
        blobs, container = world.blobs, await world.container()
        deleting = asyncio.gather(
            blobs.change_container(container, acquire), blobs.delete_container(ACCOUNT, "c", rules=rules)
        )
        with refused(BlobFailure.LEASE_ID_MISSING):
            await deleting
        assert blobs.find_container(ACCOUNT, "c") is not None

    run_blobs(test)


def test_the_state_of_an_earlier_program_is_read() -> None:
    state = {"created_at": 1, "modified_at": 2, "etag": 3, "has_legal_hold": False, "metadata": {"a": "b"}}
    read = ContainerState.from_settings({"container": "c", "state": state})
    assert read == ContainerState(1, 2, 3, {"a": "b"})


def test_a_container_is_deleted_once_of_two_calls() -> None:
    async def test(world: BlobWorld) -> None:
        await world.container()
        calls = [world.blobs.delete_container(ACCOUNT, "c", rules=RETENTION) for _ in range(2)]
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert [end.failure for end in ends if isinstance(end, BlobRefused)] == [BlobFailure.CONTAINER_NOT_FOUND]

    run_blobs(test)


@pytest.mark.parametrize("rules", [AccountRules(), RETENTION])
def test_a_container_whose_blobs_can_be_held_is_deleted_once_it_is_empty(rules: AccountRules) -> None:
    async def test(world: BlobWorld) -> None:
        blobs = world.blobs
        container = await blobs.create_container(ACCOUNT, "c", has_version_immutability=True)
        await put_block(container, "unborn", b"1", b"data")
        await put(container, "blob", b"data")
        with refused(BlobFailure.IMMUTABLE_CONTAINER_NOT_EMPTY):
            await blobs.delete_container(ACCOUNT, "c", rules=rules)
        assert await get(container, "blob") == b"data"
        await container.delete("blob")
        await blobs.delete_container(ACCOUNT, "c", rules=rules)
        assert blobs.find_container(ACCOUNT, "c") is None
        assert len(blobs.list_containers(ACCOUNT, deleted=True)) == (rules.container_retention_days is not None)

    run_blobs(test)


@pytest.mark.parametrize("rules", [AccountRules(), RETENTION])
def test_a_container_is_not_deleted_with_a_held_blob_that_came_meanwhile(
    rules: AccountRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(world: BlobWorld) -> None:
        blobs = world.blobs
        container = await blobs.create_container(ACCOUNT, "c", has_version_immutability=True)
        has_blobs = store.has_blobs

        async def put_after_the_look(space: BlobSpace) -> bool:
            monkeypatch.setattr(store, "has_blobs", has_blobs)
            found = await has_blobs(space)
            await put(container, "blob", b"data", NewBlob(has_legal_hold=True))
            return found

        monkeypatch.setattr(store, "has_blobs", put_after_the_look)
        with refused(BlobFailure.IMMUTABLE_CONTAINER_NOT_EMPTY):
            await blobs.delete_container(ACCOUNT, "c", rules=rules)
        assert await get(container, "blob") == b"data"

    run_blobs(test)
