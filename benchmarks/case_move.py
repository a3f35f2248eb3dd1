"""A partition of 100,000 items moves from one PostgreSQL node to another under a mixed load: no request fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.administration import move_and_wait, partitions
from benchmarks.measurement import Measurement
from benchmarks.processes import NotMeasured, fresh_folder, running_asterism, server_core
from benchmarks.subject import Subject
from benchmarks.under_load import CONTAINER, fill, measure_under_load
from benchmarks.wire import Caller
from tests.support.postgres import PostgresServer, running_server

CASE = "move"
MOVE_SECONDS_MAX = 400.0


@contextmanager
def nodes() -> Iterator[tuple[str, str]]:
    """The connection strings of two servers, on the core of the server that they serve."""
    try:
        with running_server() as first, running_server() as second:
            yield database_of(first), database_of(second)
    except AssertionError as problem:
        raise NotMeasured(str(problem)) from problem


def database_of(server: PostgresServer) -> str:
    assert server.process is not None
    os.sched_setaffinity(server.process.pid, {server_core()})
    return server.create_database()


async def measure(subject: Subject) -> list[Measurement]:
    with (
        nodes() as (first, second),
        fresh_folder() as data,
        running_asterism(subject, data, "--store", first, "--store", second) as server,
    ):
        caller = Caller(server.port)
        item_ids = await fill(caller, server.port)
        (partition,) = await partitions(caller, CONTAINER)
        target = "node2" if partition["node"] == "node1" else "node1"

        async def move() -> float:
            return await move_and_wait(caller, CONTAINER, partition["id"], target, seconds_max=MOVE_SECONDS_MAX)

        measured = await measure_under_load(CASE, caller, server.port, item_ids, move)
        await caller.close()
    return measured
