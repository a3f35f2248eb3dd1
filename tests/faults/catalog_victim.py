"""Run as a process of its own: a leader that drains the catalog's node and dies by SIGKILL at a given point."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.server.fleet.config import read_fleet
from asterism.storage import handover, nodes
from tests.faults.migration_victim import die, dying
from tests.faults.reshape_victim import say

POINTS = ("SEALED", "PREPARED", "COPIED", "OPENED")


def arm(point: str) -> None:
    if point == "SEALED":
        handover._copy = dying(handover._copy, before=True)
    elif point == "PREPARED":
        handover._prepare = dying(handover._prepare, before=False)
    elif point == "COPIED":
        handover._open = dying(handover._open, before=True)
    elif point == "OPENED":
        nodes.hand_over = dying(nodes.hand_over, before=False)


async def main(file: Path, data: Path, point: str) -> None:
    config = ServerConfig(fleet=read_fleet(file), fleet_file=file)
    async with assembled(config, DataDirectory(data)) as assembly:
        catalog = assembly.services.documents.catalog
        while not catalog.leads:
            await asyncio.sleep(0.02)
        say("leads")
        await asyncio.to_thread(sys.stdin.readline)
        arm(point)
        node = catalog.nodes.named("a")
        assert node is not None
        await assembly.migration._mover.drain(node)
        await asyncio.sleep(150)
        say("survived")
        die()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
