"""Run as a process of its own: converts an older store, and dies by SIGKILL after the given slice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import MIB
from asterism.models.documents.upkeep import conversion
from asterism.storage.lmdb import LmdbEngine
from tests.support.world import open_gateway

SLICE_ITEMS = 7


async def main(directory: Path, slices: int) -> None:
    left = slices

    def on_progress(_name: str, _done: int, _total: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    conversion.CONVERTED_ITEMS = SliceSize(SLICE_ITEMS, MIB)
    store = LmdbEngine.open(directory)
    async with open_gateway(store, is_first=True) as world:
        world.store.conversion.on_progress = on_progress
        await world.store.conversion.run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
