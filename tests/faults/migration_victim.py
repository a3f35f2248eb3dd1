"""Run as a process of its own: serves a data directory, migrates it to a fleet, and dies by SIGKILL at a given point.

Every acknowledged write is a line on standard output.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from asterism.keyspaces.reshaping.job import Step
from asterism.models.documents.container import Container
from asterism.server.assemble import assembled
from asterism.server.config import ServerConfig
from asterism.server.data_directory import DataDirectory
from asterism.server.fleet import migration
from asterism.storage import handover
from asterism.throughput.budgets import Manual
from tests.faults.reshape_victim import say

ITEMS = 200
# Besides the steps of a move.
CATALOG_STEPS = ("NOTED", "CATALOG_SEALED", "CATALOG_COPIED", "CATALOG_OPENED", "MOVED_SAID")
PROPERTIES = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(call: Callable[..., Coroutine[Any, Any, Any]], *, before: bool) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def wrapped(*arguments: Any) -> Any:
        if before:
            die()
        await call(*arguments)
        die()

    return wrapped


def arm(point: str) -> None:
    """Replace the function of the given moment of the hand-over by one that dies."""
    if point == "NOTED":
        migration.write_migration_note = dying(migration.write_migration_note, before=False)
    elif point == "CATALOG_SEALED":
        handover._copy = dying(handover._copy, before=True)
    elif point == "CATALOG_COPIED":
        handover._open = dying(handover._open, before=True)
    elif point == "CATALOG_OPENED":
        migration.record_move = dying(migration.record_move, before=True)
    elif point == "MOVED_SAID":
        migration.record_move = dying(migration.record_move, before=False)


async def write_for_ever(container: Container) -> None:
    number = 0
    while True:
        number += 1
        item_id = str(number % 60)
        say(f"try {number} {item_id}")
        await container.upsert_item({"id": item_id, "pk": item_id, "n": number}, (item_id,))
        say(f"wrote {number} {item_id}")


async def main(directory: Path, point: str) -> None:
    from tests.faults.test_migration_crash import fleet_of

    def on_step(reached: Step) -> None:
        if reached.name == point:
            die()

    async with assembled(ServerConfig(), DataDirectory(directory / "data"), on_step=on_step) as assembly:
        database = await assembly.services.documents.create_database("asterism", "d", None)
        container = await assembly.services.documents.create_container(database, PROPERTIES, Manual(12_000))
        for number in range(ITEMS):
            await container.create_item({"id": f"old-{number}", "pk": str(number % 60)}, None)
        writer = asyncio.create_task(write_for_ever(container))
        arm(point)
        await assembly.migration.to_fleet(fleet_of(directory), where="the fleet")
        while assembly.migration.progress().phase != "done":
            await asyncio.sleep(0.01)
        writer.cancel()
        say("survived")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
