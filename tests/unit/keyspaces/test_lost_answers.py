"""Jobs and changes of the catalog whose outcome the store did not report. The simulation has found each of these."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from asterism.keyspaces.catalog.store import HISTORY
from asterism.models.documents.container import Container
from asterism.storage.contract import Batch, EngineFailed, ExpectationFailed
from asterism.storage.memory import MemoryEngine, MemoryStore
from asterism.values.identifiers import NodeNumber, PartitionNumber
from tests.support.scripted_engine import ScriptedEngine
from tests.support.virtual_time import run_virtual, virtual_clock
from tests.support.world import ACCOUNT, World, open_gateway

SECONDS_MAX = 120.0


@dataclass(frozen=True)
class Site:
    """Two gateways over two nodes. The first leads, and its calls to node 0, which has the catalog, follow a script.
    The second never hears of a change by itself."""

    first: World
    second: World
    script: ScriptedEngine

    async def container(self) -> Container:
        made = await self.first.container()
        for number in range(20):
            await made.create_item({"id": str(number), "pk": str(number)}, None)
        return made

    async def of_second(self) -> Container:
        await self.second.catalog.follow()
        return self.second.store.container_for_items(ACCOUNT, "d", "c")


class Deaf(ScriptedEngine):
    def watch(self, _: PartitionNumber, __: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


@asynccontextmanager
async def two_gateways() -> AsyncIterator[Site]:
    stores = [MemoryStore(), MemoryStore()]
    script, deaf = ScriptedEngine(MemoryEngine(stores[0])), Deaf(MemoryEngine(stores[0]))
    clock = virtual_clock(asyncio.get_running_loop())
    async with (
        open_gateway(script.as_engine(), clock=clock, is_first=True, others=[MemoryEngine(stores[1])]) as first,
        open_gateway(deaf.as_engine(), clock=clock, others=[MemoryEngine(stores[1])]) as second,
    ):
        yield Site(first, second, script)


def run(test: Callable[[Site], Awaitable[None]]) -> None:
    async def main() -> None:
        async with two_gateways() as site:
            await test(site)

    run_virtual(main(), seconds_max=SECONDS_MAX)


def publishes(_: PartitionNumber, __: int, batch: Batch) -> bool:
    return any(key.startswith(HISTORY) for key, _ in batch.puts)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.1)


async def write_until(done: asyncio.Task[None], container: Container) -> list[str]:
    """Write items until something is done; return those that were acknowledged."""
    written: list[str] = []
    while not done.done():
        item_id = f"new {len(written)}"
        await container.create_item({"id": item_id, "pk": item_id}, None)
        written.append(item_id)
        await asyncio.sleep(0.01)
    return written


async def check_items(site: Site, container: Container, ids: list[str]) -> None:
    await site.first.catalog.follow()
    for item_id in [*map(str, range(20)), *ids]:
        await container.read_item(item_id.encode(), (item_id,))
    await site.first.check_statistics(container)


@pytest.mark.parametrize("kind", ["split", "move"])
def test_no_write_is_lost_when_a_publication_is_not_answered(kind: str) -> None:
    """The sources must not be opened again: a process that does not know the new map would write to them."""

    async def test(site: Site) -> None:
        container, lagging, reshaper = await site.container(), await site.of_second(), site.first.reshaper
        is_lost = site.script.lose_answer("apply", of=publishes)
        if kind == "split":
            job = await reshaper.split(container.keyspace, 0)
        else:
            source = container.keyspace.record.map.ranges[0]
            job = await reshaper.move(container.keyspace, 0, NodeNumber(1 - source.node))
        finished = asyncio.create_task(reshaper.finished(job))
        await is_lost.wait()
        at_once = [f"at once {number}" for number in range(50)]
        for item_id in at_once:
            await lagging.create_item({"id": item_id, "pk": item_id}, None)
        written = await write_until(finished, lagging)
        await check_items(site, container, [*at_once, *written])
        await until(lambda: not reshaper.progress and not site.first.catalog.garbage)

    run(test)


def test_a_publication_that_arrives_late_finds_another_map() -> None:
    """A batch may be applied after its caller was told that the node does not answer; by then it must be harmless."""

    async def test(site: Site) -> None:
        container, lagging = await site.container(), await site.of_second()
        late: list[Callable[[], Awaitable[Any]]] = []

        async def hold_back(call: Callable[[], Awaitable[Any]], *arguments: Any) -> Any:
            if not late and publishes(*arguments):
                late.append(call)
                raise EngineFailed("the node does not answer")
            return await call()

        site.script.scripts["apply"] = hold_back
        job = await site.first.reshaper.split(container.keyspace, 0)
        finished = asyncio.create_task(site.first.reshaper.finished(job))
        await until(lambda: bool(late))
        # It waits for the seal to be lifted.
        await lagging.create_item({"id": "between", "pk": "between"}, None)
        with pytest.raises(ExpectationFailed):
            await late[0]()
        written = await write_until(finished, lagging)
        await check_items(site, container, ["between", *written])

    run(test)


def test_a_job_brings_on_a_fence_that_new_settings_have_left_behind() -> None:
    """No request comes that would do it, and the job would try again for ever."""

    async def test(site: Site) -> None:
        keyspace = (await site.container()).keyspace
        site.script.fail_once("set_fence")
        with pytest.raises(EngineFailed):
            await site.first.catalog.replace_keyspace_settings(keyspace, dict(keyspace.record.settings), now=1)
        await site.first.reshaper.finished(await site.first.reshaper.move(keyspace, 0, NodeNumber(1)))
        assert keyspace.record.map.ranges[0].node == 1

    run(test)


def test_a_keyspace_whose_partitions_cannot_be_made_is_refused_as_the_store_refuses() -> None:
    async def test(site: Site) -> None:
        container, catalog = await site.container(), site.first.catalog
        database = catalog.databases[container.record.database_rid]
        site.script.fail_once("create_partition")
        with pytest.raises(EngineFailed):
            await catalog.create_keyspace(
                database, "other", container.record.definition, {}, nodes=[NodeNumber(0)] * 2, throughput=None, now=1
            )

    run(test)
