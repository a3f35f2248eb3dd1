"""kill -9 in the middle of the conversion of an older store: the next start finishes it, and every entry is exact."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asterism.storage.lmdb import LmdbEngine
from tests.support.index_check import check_index
from tests.support.older_store import unpack_older_store
from tests.support.world import open_gateway

ROOT = Path(__file__).parents[2]


async def check_after_restart(directory: Path) -> None:
    store = LmdbEngine.open(directory)
    async with open_gateway(store, is_first=True) as world:
        await world.store.conversion.run()
        await world.store.conversion.finished()
        containers = [world.store._container(one) for one in world.catalog.keyspaces.values()]
        assert sorted(one.record.name for one in containers) == ["deep", "first", "flat"]
        for container in containers:
            await world.check_statistics(container)
            await check_index(world, container)
    await store.close()


@pytest.mark.parametrize("slices", [1, 8, 16, 24])
def test_a_conversion_that_was_killed_is_done_again(tmp_path: Path, slices: int) -> None:
    unpack_older_store(tmp_path)
    directory = tmp_path / "store"
    command = [sys.executable, "-m", "tests.faults.conversion_victim", str(directory), str(slices)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    asyncio.run(check_after_restart(directory))
