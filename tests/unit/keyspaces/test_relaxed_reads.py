"""The age of the copy that a read asks for: the newest, or no older than its session has seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asterism.keyspaces.routing.router import PartitionRouter
from asterism.storage.contract import Engine
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.support.world import World, open_world


class ListeningEngine:
    """An engine that passes reads on and records their demands."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked: list[Lsn | None] = []

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        self.asked.append(at_least)
        return await self._engine.read(partition, epoch, keys, at_least=at_least)


async def asked_of_the_store(world: World, seen: dict[int, int] | None, *, copies: bool, relaxed: bool) -> Lsn | None:
    container = await world.container()
    range_id = container.record.map.ranges[0].id
    await world.reshaper.finished(await world.reshaper.split(container.keyspace, range_id))
    engine = ListeningEngine(world.engine)
    router = PartitionRouter(engine, may_read_copies=copies)  # type: ignore[arg-type]
    await (router.relaxed(seen) if relaxed else router).read(container.keyspace, b"", ())
    return engine.asked[0]


async def test_a_plain_read_asks_for_the_newest(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        assert await asked_of_the_store(world, {0: 5}, copies=True, relaxed=False) is None


async def test_a_relaxed_read_without_a_session_takes_any_copy(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        assert await asked_of_the_store(world, None, copies=True, relaxed=True) == 0


async def test_a_session_that_saw_the_parent_asks_as_much_of_its_child(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        assert await asked_of_the_store(world, {0: 5, 1: 3, 2: 9}, copies=True, relaxed=True) == 5


async def test_a_session_that_saw_the_child_asks_for_that(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        assert await asked_of_the_store(world, {0: 5, 1: 7}, copies=True, relaxed=True) == 7


async def test_a_store_without_copies_is_always_asked_for_the_newest(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        assert await asked_of_the_store(world, {0: 5}, copies=False, relaxed=True) is None
