"""The change feed of one partition: how fast it is read, how soon it has a write. Point reads during expiry."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Coroutine
from statistics import median
from typing import Any

from benchmarks.administration import online_ids, partitions
from benchmarks.batch_data import fill_in_batches
from benchmarks.load import run_all, run_load
from benchmarks.measurement import Measurement, not_measured
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.subject import Subject
from benchmarks.wire import Answer, Caller, UnexpectedAnswer, signed_request
from benchmarks.workload import READ_ITEMS, Creates, container_link, create_container, create_database, reads

CASE = "feed"
CHANGING, EXPIRING, READ = "changing", "expiring", "read"

FEED_ITEMS = 30_000
PAGE_ITEMS = 1000
FEED_ROUNDS = 5
WRITES = 50
POLL_SECONDS = 0.005
# So long the reader has been polling for nothing when a write comes, and a random part of a poll more.
CAUGHT_UP_SECONDS = 0.02

EXPIRING_ITEMS = 100_000
# On a machine that is too slow to create all of them in time, fewer.
EXPIRING_ITEMS_MIN = 30_000
FILL_SHARE_ITEMS = 10_000
FILL_SECONDS_MAX = 15.0
# Smaller than elsewhere: this is about the number of items.
EXPIRING_ITEM_BYTES = 512
# Long enough to create all of them and to see point reads undisturbed.
LIFE_SECONDS = 28
BEFORE_SECONDS = 3.0
WARM_UP_SECONDS = 1.0
# Reads that leave the server no pause, and reads that do, for which any delay stands out. Removing what has expired
# comes after requests, so it may take longer than both.
BUSY_SECONDS = 8.0
BUSY_CONNECTIONS = 16
PACED_SECONDS_MAX = 30.0
PACED_CONNECTIONS = 4
PACE_SECONDS = 0.008
PACED_RATE = PACED_CONNECTIONS / PACE_SECONDS
REMOVAL_POLL_SECONDS = 0.5

RATE_AT_LEAST = 50_000.0
SEEN_MS_AT_MOST = 50.0
P99_RATIO_AT_MOST = 3.0


async def measure(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_asterism(subject, data) as server:
        caller = Caller(server.port)
        await create_database(caller)
        await create_container(caller, CHANGING)
        await fill_in_batches(server.port, CHANGING, FEED_ITEMS)
        (range_id,) = online_ids(await partitions(caller, CHANGING))
        found = await measure_rate(caller, range_id)
        found += await measure_delay(server.port, caller, range_id)
        await caller.close()
    try:
        return [*found, *await measure_expiry(subject)]
    except UnexpectedAnswer as problem:
        return [*found, not_measured(CASE, "p99 with expiry", str(problem))]


# --- the change feed --------------------------------------------------------------------------------------------------


async def read_changes(caller: Caller, range_id: str, etag: str | None) -> Answer:
    link = container_link(CHANGING)
    headers = {
        "a-im": "Incremental Feed",
        "x-ms-documentdb-partitionkeyrangeid": range_id,
        "x-ms-max-item-count": str(PAGE_ITEMS),
    }
    if etag is not None:
        headers["if-none-match"] = etag
    request = signed_request("GET", f"/{link}/docs", resource_type="docs", link=link, headers=headers)
    return await caller.expect(request, 200, 304)


async def measure_rate(caller: Caller, range_id: str) -> list[Measurement]:
    await check_feed(caller, range_id)
    cpu_started, started = time.process_time(), time.perf_counter()
    rates = [FEED_ITEMS / await read_all(caller, range_id) for _ in range(FEED_ROUNDS)]
    reader_load = (time.process_time() - cpu_started) / (time.perf_counter() - started)
    note = f"one reader, {FEED_ITEMS:,} items of 1 KB, reader {reader_load:.0%}"
    name = f"read, pages of {PAGE_ITEMS:,}"
    return [Measurement(CASE, name, median(rates), "items/s", at_least=RATE_AT_LEAST, note=note)]


async def check_feed(caller: Caller, range_id: str) -> None:
    """Speed counts only if the feed has every item."""
    ids: set[str] = set()
    answer = await read_changes(caller, range_id, None)
    while answer.status == 200:
        ids.update(item["id"] for item in answer.json()["Documents"])
        answer = await read_changes(caller, range_id, answer.headers["etag"])
    if len(ids) != FEED_ITEMS:
        raise UnexpectedAnswer(f"the change feed told of {len(ids)} items instead of {FEED_ITEMS}")


async def read_all(caller: Caller, range_id: str) -> float:
    """The seconds it takes to catch up from the beginning."""
    started = time.perf_counter()
    answer = await read_changes(caller, range_id, None)
    while answer.status == 200:
        answer = await read_changes(caller, range_id, answer.headers["etag"])
    return time.perf_counter() - started


async def measure_delay(port: int, writer: Caller, range_id: str) -> list[Measurement]:
    reader = Caller(port)
    etag = (await read_changes(reader, range_id, "*")).headers["etag"]
    chance = random.Random(3)
    delays_ms: list[float] = []
    for request in Creates(CHANGING, prefix="w").requests(WRITES):
        next_change = asyncio.create_task(wait_for_change(reader, range_id, etag))
        await asyncio.sleep(CAUGHT_UP_SECONDS + chance.random() * POLL_SECONDS)
        sent = time.perf_counter()
        await writer.expect(request, 201)
        seen, etag = await next_change
        delays_ms.append((seen - sent) * 1000)
    await reader.close()
    note = f"{WRITES} writes, from sending one; a poll every {POLL_SECONDS * 1000:.0f} ms"
    return [
        Measurement(CASE, "write seen, median", median(delays_ms), "ms", at_most=SEEN_MS_AT_MOST, note=note),
        Measurement(CASE, "write seen, worst", max(delays_ms), "ms", at_most=SEEN_MS_AT_MOST),
    ]


async def wait_for_change(reader: Caller, range_id: str, etag: str) -> tuple[float, str]:
    """When the next change was there, and where to go on from it."""
    while True:
        answer = await read_changes(reader, range_id, etag)
        etag = answer.headers["etag"]
        if answer.status == 200:
            return time.perf_counter(), etag
        await asyncio.sleep(POLL_SECONDS)


# --- expiry -----------------------------------------------------------------------------------------------------------


async def measure_expiry(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_asterism(subject, data) as server:
        caller = Caller(server.port)
        requests = await prepare_reads(caller, server.port)
        await create_container(caller, EXPIRING, settings={"defaultTtl": LIFE_SECONDS})
        # Times to live count in whole seconds: no item can be due before this.
        first_due = time.perf_counter() + LIFE_SECONDS - 1
        item_count = await fill_expiring(server.port)
        paced_before = await paced_p99(server.port, requests, asyncio.sleep(BEFORE_SECONDS))
        busy_before = await busy_p99(server.port, requests, seconds=BEFORE_SECONDS)
        if item_count < EXPIRING_ITEMS_MIN or time.perf_counter() > first_due:
            raise UnexpectedAnswer(f"{item_count:,} items could not be created before the first of them expired")
        await asyncio.sleep(first_due + 1 - time.perf_counter())

        busy_during = await busy_p99(server.port, requests, seconds=BUSY_SECONDS)
        left = [item_count, await items_left(caller)]
        paced_started = time.perf_counter()
        paced_during = await paced_p99(server.port, requests, wait_until_removed(caller, PACED_SECONDS_MAX))
        paced_seconds = time.perf_counter() - paced_started
        left.append(await items_left(caller))
        await caller.close()
    busy_note = f"{left[0] - left[1]:,} of {item_count:,} items removed in {BUSY_SECONDS:.0f} s"
    paced_note = f"{left[1] - left[2]:,} of {item_count:,} items removed in {paced_seconds:.0f} s"
    return [
        compare(f"{BUSY_CONNECTIONS} busy connections", busy_before, busy_during, note=busy_note),
        compare(f"{PACED_RATE:,.0f} reads/s", paced_before, paced_during, note=paced_note),
    ]


def compare(name: str, before_ms: float, during_ms: float, *, note: str) -> Measurement:
    note = f"{before_ms:.2f} to {during_ms:.2f} ms; {note}"
    ratio = during_ms / before_ms
    return Measurement(CASE, f"p99 with expiry, {name}", ratio, "x", at_most=P99_RATIO_AT_MOST, note=note)


async def fill_expiring(port: int) -> int:
    """Returns how many items were created in the time there is."""
    deadline = time.perf_counter() + FILL_SECONDS_MAX
    count = 0
    while count < EXPIRING_ITEMS and time.perf_counter() < deadline:
        await fill_in_batches(port, EXPIRING, FILL_SHARE_ITEMS, prefix=f"e{count:06d}-", item_bytes=EXPIRING_ITEM_BYTES)
        count += FILL_SHARE_ITEMS
    return count


async def busy_p99(port: int, requests: list[bytes], *, seconds: float) -> float:
    result = await run_load(
        port,
        itertools.cycle(requests),
        connections=BUSY_CONNECTIONS,
        seconds=seconds,
        warm_up_seconds=WARM_UP_SECONDS,
    )
    if result.error_count:
        raise UnexpectedAnswer(f"reads failed: {dict(result.statuses)}")
    return result.percentile_ms(99)


async def paced_p99(port: int, requests: list[bytes], meanwhile: Coroutine[Any, Any, None]) -> float:
    """Of reads that each connection begins at a steady pace, until `meanwhile` is done."""
    latencies_ms: list[float] = []
    source = itertools.cycle(requests)
    ending = asyncio.create_task(meanwhile)

    async def read_on(place: int) -> None:
        caller = Caller(port)
        due = time.perf_counter() + PACE_SECONDS * place / PACED_CONNECTIONS
        while not ending.done():
            await asyncio.sleep(due - time.perf_counter())
            # From when it was due: a read that waits for the one before it waits for the server.
            await caller.expect(next(source), 200)
            latencies_ms.append((time.perf_counter() - due) * 1000)
            due += PACE_SECONDS
        await caller.close()

    await asyncio.gather(ending, *(read_on(place) for place in range(PACED_CONNECTIONS)))
    return sorted(latencies_ms)[int(len(latencies_ms) * 0.99)]


async def prepare_reads(caller: Caller, port: int) -> list[bytes]:
    await create_database(caller)
    await create_container(caller, READ)
    creates = Creates(READ, prefix="r")
    filled = await run_all(port, creates.requests(READ_ITEMS), connections=BUSY_CONNECTIONS)
    if filled.error_count:
        raise UnexpectedAnswer(f"items could not be created: {dict(filled.statuses)}")
    return reads(READ, creates.created_ids)


async def items_left(caller: Caller) -> int:
    """Those that are still there, be it hidden."""
    return sum(int(partition["items"]) for partition in await partitions(caller, EXPIRING))


async def wait_until_removed(caller: Caller, seconds_max: float) -> None:
    deadline = time.perf_counter() + seconds_max
    while await items_left(caller) and time.perf_counter() < deadline:
        await asyncio.sleep(REMOVAL_POLL_SECONDS)
