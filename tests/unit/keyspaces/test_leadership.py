"""Which process leads, and that the work of one that does not is over. The simulation has found each of these."""

from __future__ import annotations

import asyncio
from random import Random

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.processes.coordination import Coordination, leader_of
from asterism.storage.contract import EngineFailed
from asterism.storage.memory import MemoryEngine, MemoryStore
from tests.support.virtual_time import in_virtual_time, run_virtual


class Background:
    """Work that takes its time to start."""

    def __init__(self) -> None:
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.runs = False

    async def start(self) -> None:
        await self.may_start.wait()
        self.runs = True

    async def stop(self) -> None:
        self.runs = False


async def open_catalog(store: MemoryStore) -> Catalog:
    loop = asyncio.get_running_loop()
    catalog = Catalog(MemoryEngine(store), random_bytes=Random(1).randbytes, monotonic=loop.time, is_shared=True)
    await catalog.open()
    return catalog


def coordination_of(catalog: Catalog, store: MemoryStore, background: Background) -> Coordination:
    loop = asyncio.get_running_loop()
    return Coordination(
        MemoryEngine(store), catalog, monotonic=loop.time, background=background, presence=[], name="process"
    )


@in_virtual_time
async def test_a_process_takes_the_lead_from_the_leader_it_has_decided_on_and_from_no_other() -> None:
    """It may learn of another leader while it waits for its turn to write; that one is alive."""
    store = MemoryStore()
    first, second = await open_catalog(store), await open_catalog(store)
    assert await first.take_leadership(b"first", after=None)
    await second.follow()
    assert not await second.take_leadership(b"second", after=None)
    assert (first.leader, second.leader) == (b"first", b"first")
    assert await second.take_leadership(b"second", after=b"first")


@in_virtual_time
async def test_a_process_knows_what_has_changed_between_the_opening_of_its_catalog_and_its_start() -> None:
    store = MemoryStore()
    first = await open_catalog(store)
    leading = coordination_of(first, store, Background())
    await leading.start()
    second = await open_catalog(store)
    await first.create_database("account", "d", None, now=1)
    following = coordination_of(second, store, Background())
    await following.start()
    await asyncio.sleep(1)
    assert second.find_database("account", "d") is not None
    await following.stop()
    await leading.stop()


@in_virtual_time
async def test_a_leader_that_is_deposed_while_it_starts_its_work_ends_it() -> None:
    store, background = MemoryStore(), Background()
    catalog, other = await open_catalog(store), await open_catalog(store)
    coordination = coordination_of(catalog, store, background)
    background.may_start.clear()
    starting = asyncio.create_task(coordination.start())
    while not catalog.leads:
        await asyncio.sleep(0.1)
    await other.follow()
    assert await other.take_leadership(_mark_after(other.leader), after=other.leader)
    while catalog.leads:
        await asyncio.sleep(0.1)
    background.may_start.set()
    await starting
    await asyncio.sleep(0.5)
    assert not background.runs
    await coordination.stop()


def _mark_after(mark: bytes | None) -> bytes:
    term, _ = leader_of(mark)
    return (term + 1).to_bytes(8, "big") + (99).to_bytes(8, "big")


def test_work_ends_although_its_cancellation_is_lost() -> None:
    """`asyncio.gather` raises the error of a call that fails at the moment of the cancellation, and nothing else."""

    async def main() -> None:
        fails = asyncio.Event()

        async def fail() -> None:
            await fails.wait()
            raise EngineFailed("the node does not answer")

        async def work() -> None:
            while True:
                try:
                    await asyncio.gather(fail(), asyncio.sleep(3600))
                except EngineFailed:
                    await asyncio.sleep(3600)

        task = asyncio.create_task(work())
        await asyncio.sleep(1)
        fails.set()
        await asyncio.sleep(0)
        await end_tasks([task])
        assert task.cancelled()

    run_virtual(main(), seconds_max=60)
