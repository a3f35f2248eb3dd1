"""Random writers of a few edges, at the same time and stopped at any call to the store: no edge is left without its
entry (D11)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.errors import ItemExists, ItemNotFound
from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.container import Container
from asterism.storage.contract import Batch, Engine
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.support.incoming_edges import edge, false_entries
from tests.support.world import World, open_world

SOURCE = ("p",)
# The first is the edges' own logical partition; of the others some lie in other physical ones.
SINK_KEYS = ("p", "q0", "q1", "q2")


class Crash(BaseException):
    """The end of a writer, as a crash of its process would be for it."""


@dataclass
class Writer:
    """One write, which crashes at its call `crash_at`, before the store has applied it or after."""

    kind: str
    edge_id: str
    sink_key: str
    crash_at: int | None
    is_before: bool
    calls: int = 0


_writer: ContextVar[Writer | None] = ContextVar("writer", default=None)


class CrashingEngine:
    """Delays every call a little, by chance, and lets writers crash at their batches."""

    def __init__(self, engine: Engine, chance: random.Random) -> None:
        self._engine = engine
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def _wait(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)

    async def read(self, *arguments: Any, **options: Any) -> Any:
        await self._wait()
        return await self._engine.read(*arguments, **options)

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        await self._wait()
        writer = _writer.get()
        if writer is None:
            return await self._engine.apply(partition, epoch, batch)
        writer.calls += 1
        crashes = writer.calls == writer.crash_at
        if crashes and writer.is_before:
            raise Crash
        lsn = await self._engine.apply(partition, epoch, batch)
        if crashes:
            raise Crash
        return lsn


async def run_writer(container: Container, writer: Writer) -> None:
    _writer.set(writer)
    document = edge(writer.edge_id, pk=SOURCE[0], sink_pk=writer.sink_key)
    item_id = writer.edge_id.encode()
    try:
        match writer.kind:
            case "create":
                await container.create_item(document, None)
            case "upsert":
                await container.upsert_item(document, None)
            case "delete":
                await container.delete_item(item_id, SOURCE)
            case "touch":
                found = await container.read_item(item_id, SOURCE)
                await container.upsert_item({**container.codec.decode(found.body), "n": 1}, None)
            case _:
                others = [edge(f"{writer.edge_id}{key}", pk=SOURCE[0], sink_pk=key) for key in SINK_KEYS]
                operations = [Operation(OperationKind.UPSERT, each["id"].encode(), each) for each in others]
                await container.run_batch(SOURCE, [*operations, Operation(OperationKind.UPSERT, item_id, document)])
    except (ItemExists, ItemNotFound, Crash):
        pass


writers = st.builds(
    Writer,
    kind=st.sampled_from(["create", "upsert", "upsert", "delete", "touch", "batch"]),
    edge_id=st.sampled_from(["a", "b"]),
    sink_key=st.sampled_from(SINK_KEYS),
    crash_at=st.one_of(st.none(), st.integers(1, 4)),
    is_before=st.booleans(),
)


async def run_rounds(world: World, rounds: Sequence[Sequence[Writer]], seed: int, *, is_walked: bool) -> None:
    container = await world.container(throughput=Manual(40_000), incomingEdges=not is_walked)
    router = world.router
    router._engine = CrashingEngine(router._engine, random.Random(seed))  # type: ignore[assignment]  # a proxy
    for place, writers_of_round in enumerate(rounds):
        running = [asyncio.create_task(run_writer(container, writer)) for writer in writers_of_round]
        if is_walked and place == len(rounds) // 2:
            await world.store.replace_container(container, {**container.record.settings, "incomingEdges": True})
        await asyncio.gather(*running)
        if not is_walked:
            await false_entries(world, container)
    await world.store.reindexer.finished(container.keyspace)
    assert container.has_all_incoming_edges
    await false_entries(world, container)
    await world.check_statistics(container)


@pytest.mark.parametrize("is_walked", [False, True])
def test_no_edge_is_left_without_its_entry(is_walked: bool) -> None:
    @settings(max_examples=60, deadline=None)
    @given(rounds=st.lists(st.lists(writers, min_size=1, max_size=4), min_size=2, max_size=8), seed=st.integers(0, 999))
    def check(rounds: list[list[Writer]], seed: int) -> None:
        async def scenario() -> None:
            async with asyncio.timeout(180), open_world(None) as world:
                await run_rounds(world, rounds, seed, is_walked=is_walked)

        asyncio.run(scenario())

    check()
