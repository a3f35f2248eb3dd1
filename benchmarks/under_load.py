"""The latency and errors that clients see while a partition of 100,000 items is split or moved under a mixed load."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator

from benchmarks.administration import read_all_ids
from benchmarks.load import Load, run_all
from benchmarks.measurement import Measurement
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import Creates, create_container, create_database, reads

CONTAINER = "reshaped"
ITEMS = 100_000
# Smaller than elsewhere: these cases are about the number of items.
ITEM_BYTES = 512
READ_ITEMS = 5000
CONNECTIONS = 16
BEFORE_SECONDS = 4.0
AFTER_SECONDS = 1.0
# One request in five is a create.
CREATE_SHARE = 0.2
P99_RATIO_AT_MOST = 5.0


async def fill(caller: Caller, port: int) -> list[str]:
    await create_database(caller)
    await create_container(caller, CONTAINER)
    creates = Creates(CONTAINER, prefix="s", item_bytes=ITEM_BYTES)
    filled = await run_all(port, creates.requests(ITEMS), connections=64)
    if filled.error_count:
        raise UnexpectedAnswer(f"items could not be created: {dict(filled.statuses)}")
    return creates.created_ids


def _mix(read_requests: list[bytes], creates: Iterator[bytes]) -> Iterator[bytes]:
    chance = random.Random(7)
    while True:
        yield next(creates) if chance.random() < CREATE_SHARE else chance.choice(read_requests)


async def measure_under_load(
    case: str, caller: Caller, port: int, item_ids: list[str], reshape: Callable[[], Awaitable[float]]
) -> list[Measurement]:
    """`reshape` changes the partition that holds `item_ids`, and answers how many seconds that took."""
    creates = Creates(CONTAINER, prefix="w", item_bytes=ITEM_BYTES)
    some_ids = random.Random(11).sample(item_ids, READ_ITEMS)
    load = Load(port, _mix(reads(CONTAINER, some_ids), creates.requests()), connections=CONNECTIONS)
    await load.start()
    await asyncio.sleep(BEFORE_SECONDS)
    began = time.perf_counter()
    seconds = await reshape()
    ended = time.perf_counter()
    await asyncio.sleep(AFTER_SECONDS)
    result = await load.finish()
    found = await read_all_ids(caller, CONTAINER)

    expected = {*item_ids, *creates.created_ids}
    before_ms = result.percentile_ms(99, after=result.started + 1, before=began)
    during_ms = result.percentile_ms(99, after=began, before=ended)
    doubled = sum(count - 1 for count in found.values())
    return [
        Measurement(case, "duration", seconds, "s", note=f"{ITEMS:,} items, {result.rate_per_second:,.0f} req/s"),
        Measurement(case, "p99 before", before_ms, "ms"),
        Measurement(case, "p99 during", during_ms, "ms"),
        Measurement(case, "p99 during / before", during_ms / before_ms, "x", at_most=P99_RATIO_AT_MOST),
        Measurement(case, "client errors", result.error_count, "", at_most=0),
        Measurement(case, "items lost", len(expected - found.keys()), "", at_most=0, note=f"of {len(expected):,}"),
        Measurement(case, "items doubled or unknown", doubled + len(found.keys() - expected), "", at_most=0),
    ]
