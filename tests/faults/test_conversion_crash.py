"""kill -9 in the middle of the conversion of an older store: the next start finishes it, and every entry is exact."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asterism.storage.lmdb import LmdbEngine
from tests.faults.victims import run_victim
from tests.support.index_check import check_index
from tests.support.older_store import unpack_older_store
from tests.support.world import open_gateway


async def check_after_restart(directory: Path) -> None:
    store = LmdbEngine.open(directory)
    async with open_gateway(store, is_first=True) as world:
        await world.store.conversion.run()
        await world.store.conversion.finished()
        containers = [world.store._container(keyspace) for keyspace in world.catalog.keyspaces.values()]
        assert sorted(container.record.name for container in containers) == ["deep", "first", "flat"]
        for container in containers:
            await world.check_statistics(container)
            await check_index(world, container)
    await store.close()


@pytest.mark.parametrize("slices", [1, 8, 16, 24])
def test_a_conversion_that_was_killed_is_done_again(tmp_path: Path, slices: int) -> None:
    unpack_older_store(tmp_path)
    directory = tmp_path / "store"
    run_victim("conversion_victim", directory, str(slices))
    asyncio.run(check_after_restart(directory))
