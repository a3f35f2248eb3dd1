"""kill -9 under producers and consumers of a hub, then a restart.

Every acknowledged event is there once, a batch as a whole or not at all, those of a producer in their order, numbers
have no gaps, and what was read keeps its number: places that readers remember stay true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.messaging_server import MessagingServer
from tests.faults.bus_clients import admin_of, kill_all, until
from tests.faults.hub_loads import (
    BATCH_EVENTS,
    HUB,
    PARTITIONS,
    Producer,
    Reader,
    all_producers,
    last_sequences_of,
    read_everything,
)
from tests.support.server import running_server

ALONE: tuple[str, ...] = ()
TOGETHER = ("--workers", "2")


@contextmanager
def running_hubs(data: Path, *options: str) -> Iterator[MessagingServer]:
    with running_server(data, *options, doors=("nosql", "amqp"), alone=True) as running:
        yield MessagingServer(running)


async def run_until_kill(messaging: MessagingServer, producers: list[Producer], reader: Reader, batches: int) -> None:
    running = [*(producer.run(messaging) for producer in producers), reader.run(messaging)]
    tasks = [asyncio.create_task(work) for work in running]

    def is_time() -> bool:
        for task in tasks:
            if task.done():
                task.result()
        return len(reader.found) >= BATCH_EVENTS and min(each.sent for each in producers) >= batches * BATCH_EVENTS

    try:
        await until(is_time, "the producers do not get on")
        kill_all(messaging)
    finally:
        # Producers end by themselves; the reader would connect again for ever.
        await asyncio.wait(tasks[:-1], timeout=30)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("options", "batches"), [(ALONE, 2), (ALONE, 40), (TOGETHER, 15)])
async def test_acknowledged_events_survive_a_kill_in_their_order(
    tmp_path: Path, options: tuple[str, ...], batches: int
) -> None:
    producers, reader = all_producers(), Reader()
    with running_hubs(tmp_path / "data", *options) as messaging:
        body = {"namespace": "asterism", "entity": HUB, "kind": "hub", "partitions": PARTITIONS, "retention_hours": 24}
        admin_of(messaging).post("messaging/create", {**body, "groups": []})
        await run_until_kill(messaging, producers, reader, batches)
    with running_hubs(tmp_path / "data", *options) as messaging:
        found = await read_everything(messaging, last_sequences_of(messaging))
        assert reader.found.items() <= found.items()
        for producer in producers:
            producer.check(found)
        assert len(found) == len(set(found.values())), "an event is there twice"
        # The numbers go on where they ended.
        later = Producer("later", partition=3, batches=2)
        await later.run(messaging)
        following = await read_everything(messaging, last_sequences_of(messaging))
        assert found.items() <= following.items()
        later.check(following)
