"""A partition of 100,000 items goes from one PostgreSQL node to another under a mixed load, and nobody notices."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.administration import move_and_wait, partitions, read_all_ids
from benchmarks.case_split import (
    AFTER_SECONDS,
    BEFORE_SECONDS,
    CONNECTIONS,
    CONTAINER,
    ITEM_BYTES,
    ITEMS,
    P99_RATIO_AT_MOST,
    READ_ITEMS,
    fill,
    mix,
)
from benchmarks.load import Load
from benchmarks.measurement import Measurement
from benchmarks.processes import NotMeasured, fresh_folder, running_asterism, server_core
from benchmarks.wire import Caller
from benchmarks.workload import Creates, reads
from tests.support.postgres import PostgresServer, running_server

CASE = "move"
MOVE_SECONDS_MAX = 400.0


@contextmanager
def nodes() -> Iterator[tuple[str, str]]:
    """The connection strings of two servers, on the core of the server that they serve."""
    try:
        with running_server() as one, running_server() as two:
            yield database_of(one), database_of(two)
    except AssertionError as problem:
        raise NotMeasured(str(problem)) from problem


def database_of(server: PostgresServer) -> str:
    assert server.process is not None
    os.sched_setaffinity(server.process.pid, {server_core()})
    return server.create_database()


async def measure() -> list[Measurement]:
    with (
        nodes() as (one, two),
        fresh_folder() as data,
        running_asterism(data, "--store", one, "--store", two) as server,
    ):
        caller = Caller(server.port)
        item_ids = await fill(caller, server.port)
        (partition,) = await partitions(caller, CONTAINER)
        target = "node2" if partition["node"] == "node1" else "node1"

        creates = Creates(CONTAINER, prefix="w", item_bytes=ITEM_BYTES)
        some_ids = random.Random(11).sample(item_ids, READ_ITEMS)
        load = Load(server.port, mix(reads(CONTAINER, some_ids), creates.requests()), connections=CONNECTIONS)
        await load.start()
        await asyncio.sleep(BEFORE_SECONDS)
        move_started = time.perf_counter()
        move_seconds = await move_and_wait(caller, CONTAINER, partition["id"], target, seconds_max=MOVE_SECONDS_MAX)
        move_ended = time.perf_counter()
        await asyncio.sleep(AFTER_SECONDS)
        result = await load.finish()

        found = await read_all_ids(caller, CONTAINER)
        await caller.close()
    expected = {*item_ids, *creates.created_ids}
    before_ms = result.percentile_ms(99, after=result.started + 1, before=move_started)
    during_ms = result.percentile_ms(99, after=move_started, before=move_ended)
    doubled = sum(count - 1 for count in found.values())
    return [
        Measurement(CASE, "duration", move_seconds, "s", note=f"{ITEMS:,} items, {result.rate_per_second:,.0f} req/s"),
        Measurement(CASE, "p99 before", before_ms, "ms"),
        Measurement(CASE, "p99 during", during_ms, "ms"),
        Measurement(CASE, "p99 during / before", during_ms / before_ms, "x", at_most=P99_RATIO_AT_MOST),
        Measurement(CASE, "client errors", result.error_count, "", at_most=0),
        Measurement(CASE, "items lost", len(expected - found.keys()), "", at_most=0, note=f"of {len(expected):,}"),
        Measurement(CASE, "items doubled or unknown", doubled + len(found.keys() - expected), "", at_most=0),
    ]
