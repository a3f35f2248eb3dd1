"""A partition of 100,000 items splits under a mixed load: nobody notices, nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

from benchmarks.administration import online_ids, partitions, read_all_ids, split_and_wait
from benchmarks.load import Load, run_all
from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import Creates, create_container, create_database, reads

CASE = "split"
CONTAINER = "splitting"
ITEMS = 100_000
# Smaller than elsewhere: this case is about the number of items.
ITEM_BYTES = 512
READ_ITEMS = 5000
CONNECTIONS = 16
BEFORE_SECONDS = 4.0
AFTER_SECONDS = 1.0
SPLIT_SECONDS_MAX = 90.0
# One request in five is a create.
CREATE_SHARE = 0.2
P99_RATIO_AT_MOST = 5.0


def mix(read_requests: list[bytes], creates: Iterator[bytes]) -> Iterator[bytes]:
    chance = random.Random(7)
    while True:
        yield next(creates) if chance.random() < CREATE_SHARE else chance.choice(read_requests)


async def fill(caller: Caller, port: int) -> list[str]:
    await create_database(caller)
    await create_container(caller, CONTAINER)
    creates = Creates(CONTAINER, prefix="s", item_bytes=ITEM_BYTES)
    filled = await run_all(port, creates.requests(ITEMS), connections=64)
    if filled.error_count:
        raise UnexpectedAnswer(f"items could not be created: {dict(filled.statuses)}")
    return creates.created_ids


async def measure() -> list[Measurement]:
    with fresh_folder() as data, running_asterism(data) as server:
        caller = Caller(server.port)
        item_ids = await fill(caller, server.port)
        (range_id,) = online_ids(await partitions(caller, CONTAINER))

        creates = Creates(CONTAINER, prefix="w", item_bytes=ITEM_BYTES)
        some_ids = random.Random(11).sample(item_ids, READ_ITEMS)
        load = Load(server.port, mix(reads(CONTAINER, some_ids), creates.requests()), connections=CONNECTIONS)
        await load.start()
        await asyncio.sleep(BEFORE_SECONDS)
        split_started = time.perf_counter()
        split_seconds = await split_and_wait(caller, CONTAINER, range_id, seconds_max=SPLIT_SECONDS_MAX)
        split_ended = time.perf_counter()
        await asyncio.sleep(AFTER_SECONDS)
        result = await load.finish()

        found = await read_all_ids(caller, CONTAINER)
        await caller.close()
    expected = {*item_ids, *creates.created_ids}
    before_ms = result.percentile_ms(99, after=result.started + 1, before=split_started)
    during_ms = result.percentile_ms(99, after=split_started, before=split_ended)
    doubled = sum(count - 1 for count in found.values())
    return [
        Measurement(CASE, "duration", split_seconds, "s", note=f"{ITEMS:,} items, {result.rate_per_second:,.0f} req/s"),
        Measurement(CASE, "p99 before", before_ms, "ms"),
        Measurement(CASE, "p99 during", during_ms, "ms"),
        Measurement(CASE, "p99 during / before", during_ms / before_ms, "x", at_most=P99_RATIO_AT_MOST),
        Measurement(CASE, "client errors", result.error_count, "", at_most=0),
        Measurement(CASE, "items lost", len(expected - found.keys()), "", at_most=0, note=f"of {len(expected):,}"),
        Measurement(CASE, "items doubled or unknown", doubled + len(found.keys() - expected), "", at_most=0),
    ]
