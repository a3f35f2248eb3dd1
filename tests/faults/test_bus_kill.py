"""kill -9 under all kinds of work with queues and topics, then a restart.

Every acknowledged message is there exactly once, in the place where its last acknowledged settlement has put it; none
of those that were completed returns; sessions keep their order and their state; counts agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.messaging_server import MessagingServer
from tests.faults.bus_loads import all_loads, run_until_kill
from tests.support.server import running_server

ALONE: tuple[str, ...] = ()
TOGETHER = ("--workers", "2")


@contextmanager
def running_bus(data: Path, *options: str) -> Iterator[MessagingServer]:
    with running_server(data, *options, doors=("nosql", "amqp"), alone=True) as running:
        yield MessagingServer(running)


@pytest.mark.parametrize(
    ("options", "is_partitioned", "rounds"),
    [(ALONE, False, 2), (ALONE, True, 15), (TOGETHER, False, 15), (TOGETHER, True, 3)],
)
async def test_acknowledged_messages_survive_a_kill_and_settled_ones_do_not_return(
    tmp_path: Path, options: tuple[str, ...], is_partitioned: bool, rounds: int
) -> None:
    loads = all_loads()
    with running_bus(tmp_path / "data", *options) as messaging:
        for load in loads:
            load.create(messaging, is_partitioned=is_partitioned)
        await run_until_kill(messaging, loads, rounds)
    with running_bus(tmp_path / "data", *options) as messaging:
        async with messaging.aio_client() as client:
            for load in loads:
                await load.check(messaging, client)
