"""kill -9 under mixed writes of blobs, then a restart.

Every acknowledged blob is there with its bytes, a blob that was being written has its old content or its new one,
copies go on, what was cut off is removed in the background, and the counters agree with the data.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from asterism.access.keys import DEVELOPMENT_ACCOUNT
from asterism.models.blobs.calls import ListQuery, SnapshotDeletion
from asterism.models.blobs.container import Container
from asterism.models.blobs.layout import (
    BLOCK_COUNTS,
    BLOCKS,
    COPIES,
    DATA,
    GARBAGE,
    MANIFESTS,
    PAGE_MAPS,
    PAGES,
    ROOTS,
    UNCOMMITTED,
    UPLOADS,
    VERSIONS,
)
from asterism.models.blobs.upkeep import BlobUpkeep
from tests.clients.blob_server import BlobServer
from tests.faults.blob_loads import BOX, COPIED_BYTES, LOADS, Copies, Load, client_of, data_of
from tests.support.blobs import BlobWorld, get, listed, open_blobs
from tests.support.raw import wait_until
from tests.support.server import running_server

HOUR_SECONDS = 3600.0
# Blocks that were never committed stay for a week.
LONG_SECONDS = 8 * 24 * HOUR_SECONDS
FAMILIES = (
    *(ROOTS, VERSIONS, BLOCKS, MANIFESTS, DATA, PAGE_MAPS, PAGES),
    *(GARBAGE, UPLOADS, UNCOMMITTED, COPIES, BLOCK_COUNTS),
)


@contextmanager
def running_store(data: Path) -> Iterator[BlobServer]:
    """Run a server whose store a test opens afterwards."""
    with running_server(data, doors=("nosql", "blob"), embedded=True, alone=True) as running:
        yield BlobServer(running)


def kill_under(loads: list[Load], data: Path, is_time: Callable[[], bool]) -> None:
    with running_store(data) as blobs:
        client_of(blobs).create_container()
        threads = [threading.Thread(target=load.run, args=(blobs,)) for load in loads]
        for thread in threads:
            thread.start()
        wait_until(is_time)
        blobs.running.kill()
        for thread in threads:
            thread.join()
    assert [load.refusal for load in loads] == [None] * len(loads)


@pytest.mark.parametrize("writes", [2, 9])
def test_acknowledged_blobs_survive_a_kill_and_the_rest_is_cleaned_up(tmp_path: Path, writes: int) -> None:
    copies, written = Copies(0), [load(number) for number, load in enumerate([*LOADS, *LOADS[:4]])]
    loads = [copies, *written]
    kill_under(loads, tmp_path, lambda: copies.is_copying and min(load.acknowledged for load in written) >= writes)
    with running_store(tmp_path) as blobs:
        for load in loads:
            load.check(client_of(blobs))
        assert blobs.running.end()[0] == 0
    asyncio.run(check_upkeep(tmp_path / "store"))


async def check_upkeep(store: Path) -> None:
    async with open_blobs(store) as world, asyncio.timeout(180):
        container = world.blobs.find_container(DEVELOPMENT_ACCOUNT, BOX)
        assert container is not None
        await world_is_consistent(world, container)
        assert await world.entries(container, UPLOADS) != []
        await copies_end(world, container)
        await pass_time(world, 2 * HOUR_SECONDS)
        assert await world.entries(container, UPLOADS) == []
        await world_is_consistent(world, container)
        await check_removal(world, container)
        await world.blobs.copies.stop()


async def world_is_consistent(world: BlobWorld, container: Container) -> None:
    await world.check_statistics(container)
    # Every blob that is listed can be read to its end.
    for record in await listed(container, ListQuery()):
        assert len(await get(container, record.name)) == record.size


async def copies_end(world: BlobWorld, container: Container) -> None:
    await pass_time(world, 60)
    while await world.entries(container, COPIES):
        await asyncio.sleep(0.02)
    expected = data_of(Copies.source, COPIED_BYTES)
    for record in await listed(container, ListQuery(prefix="copies/")):
        assert record.copy_state is not None
        assert record.copy_state.status == "success"
        assert await get(container, record.name) == expected


async def check_removal(world: BlobWorld, container: Container) -> None:
    """Delete every blob: then nothing is left in the store, so no entry was without an owner."""
    for record in await listed(container, ListQuery()):
        await container.delete(record.name, snapshots=SnapshotDeletion.INCLUDE)
    await pass_time(world, LONG_SECONDS)
    await pass_time(world, HOUR_SECONDS)
    assert {family: len(await world.entries(container, family)) for family in FAMILIES} == dict.fromkeys(FAMILIES, 0)
    await world.check_statistics(container)


async def pass_time(world: BlobWorld, seconds: float) -> None:
    world.skew.seconds += seconds
    await BlobUpkeep(world.blobs).sweep()
