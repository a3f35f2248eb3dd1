"""Queries over 100,000 items in two partitions: by index, in its order, by statistics, and by looking at every item.

And the shapes of case_query_shapes, on data of their own.
"""

from __future__ import annotations

import itertools
import time
from contextlib import ExitStack
from statistics import median
from typing import Any

from benchmarks import case_query_shapes
from benchmarks.administration import admin_request, online_ids, partitions
from benchmarks.load import Load, LoadResult, middle, run_load
from benchmarks.measurement import Measurement, not_measured
from benchmarks.peer_vercel import running_vercel
from benchmarks.processes import NotMeasured, fresh_folder, running_asterism
from benchmarks.query_data import BUNCH_ITEMS, COUNT, ORDERED, SCAN, equalities, fill, item_id, query_request
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import DATABASE, reads

CASE = "query"
LARGE, SMALL = "large", "small"
ITEMS = {LARGE: 100_000, SMALL: 10_000}
CONNECTIONS = 16
ROUNDS = 3
ROUND_SECONDS = 1.5
WARM_UP_SECONDS = 0.3
SCANS = 5
SCAN_READ_CONNECTIONS = 8
SCANS_DURING_READS = 4

RATE_AT_LEAST = 1500.0
TO_PEER_AT_LEAST = 20.0
LATENCY_RATIO_AT_MOST = 1.5
LOADED_PER_PARTITION_AT_MOST = 10
SCANNED_PER_SECOND_AT_LEAST = 100_000.0
READ_P99_MS_AT_MOST = 20.0

PEER = "@vercel/cosmosdb-server"


async def measure(subject: Subject) -> list[Measurement]:
    with ExitStack() as stack:
        server = stack.enter_context(running_asterism(subject, stack.enter_context(fresh_folder())))
        caller = Caller(server.port)
        for container, count in ITEMS.items():
            await fill(server.port, container, count)
        found = await measure_equality(server.port, caller)
        found += await measure_loaded(caller)
        found += await measure_scan(server.port, caller)
        found += [] if subject.is_compared else await measure_peer(stack, server.port)
        await caller.close()
    return [*await case_query_shapes.measure(subject), *found]


# --- by index ---------------------------------------------------------------------------------------------------------


async def check_equality(caller: Caller, container: str) -> None:
    """Speed counts only for servers that find what there is."""
    answer = await caller.expect(next(equalities(container, ITEMS[container])), 200)
    found = len(answer.json()["Documents"])
    if found != BUNCH_ITEMS:
        raise UnexpectedAnswer(f"the equality found {found} items instead of {BUNCH_ITEMS}")


async def measure_equality(port: int, caller: Caller) -> list[Measurement]:
    await check_equality(caller, LARGE)
    rates: list[LoadResult] = []
    alone: dict[str, list[LoadResult]] = {LARGE: [], SMALL: []}
    for _ in range(ROUNDS):
        rates.append(await load(port, LARGE, connections=CONNECTIONS))
        for container in alone:
            alone[container].append(await load(port, container, connections=1))
    result = middle(rates)
    medians = {container: median(result.percentile_ms(50) for result in found) for container, found in alone.items()}
    note = f"p50 {result.percentile_ms(50):.2f} ms, generator {result.generator_load:.0%}, {CONNECTIONS} connections"
    return [
        Measurement(CASE, "equality, 10 results", result.rate_per_second, "/s", at_least=RATE_AT_LEAST, note=note),
        Measurement(CASE, "its p50 alone, 10,000 items", medians[SMALL], "ms"),
        Measurement(CASE, "its p50 alone, 100,000 items", medians[LARGE], "ms"),
        Measurement(
            CASE, "p50, 10 times the items", medians[LARGE] / medians[SMALL], "x", at_most=LATENCY_RATIO_AT_MOST
        ),
    ]


async def load(port: int, container: str, *, connections: int) -> LoadResult:
    requests = equalities(container, ITEMS[container])
    result = await run_load(
        port, requests, connections=connections, seconds=ROUND_SECONDS, warm_up_seconds=WARM_UP_SECONDS
    )
    if result.error_count:
        raise UnexpectedAnswer(f"queries failed: {dict(result.statuses)}")
    return result


async def measure_peer(stack: ExitStack, port: int) -> list[Measurement]:
    """Both with the smaller data, in turns."""
    found: list[Measurement] = []
    for name, keep_alive in ((PEER, False), (f"{PEER}, kept alive", True)):
        try:
            peer = stack.enter_context(running_vercel(keep_alive=keep_alive))
            await fill(peer.port, SMALL, ITEMS[SMALL])
            caller = Caller(peer.port)
            await check_equality(caller, SMALL)
            await caller.close()
            rounds = [
                (
                    await load(port, SMALL, connections=CONNECTIONS),
                    await load(peer.port, SMALL, connections=CONNECTIONS),
                )
                for _ in range(ROUNDS)
            ]
        except (NotMeasured, UnexpectedAnswer, OSError) as problem:
            return [*found, not_measured(CASE, f"ratio to {name}", str(problem))]
        ours, theirs = (middle(list(results)).rate_per_second for results in zip(*rounds, strict=True))
        note = f"{ours:,.0f}/s to {theirs:,.1f}/s, {ITEMS[SMALL]:,} items"
        found.append(Measurement(CASE, f"ratio to {name}", ours / theirs, "x", at_least=TO_PEER_AT_LEAST, note=note))
    return found


# --- what is loaded ---------------------------------------------------------------------------------------------------


async def measure_loaded(caller: Caller) -> list[Measurement]:
    count = len(online_ids(await partitions(caller, LARGE)))
    ordered, counted = await explained(caller, ORDERED), await explained(caller, COUNT)
    return [
        Measurement(
            CASE,
            "ORDER BY LIMIT 10, loaded",
            ordered["explanation"]["items_loaded"],
            "items",
            # In all of them, so no partition can have loaded more.
            at_most=LOADED_PER_PARTITION_AT_MOST,
            note=f"{count} partitions, index {', '.join(ordered['explanation']['indexes'])}",
        ),
        Measurement(
            CASE,
            "COUNT(1), loaded",
            counted["explanation"]["items_loaded"],
            "items",
            at_most=0,
            note=f"counted {counted['results'][0]:,}",
        ),
    ]


async def explained(caller: Caller, text: str) -> dict[str, Any]:
    body = {"database": DATABASE, "container": LARGE, "query": text, "explain": True}
    answer = await caller.expect(admin_request("POST", "query", body=body), 200)
    explanation: dict[str, Any] = answer.json()
    return explanation


# --- every item -------------------------------------------------------------------------------------------------------


async def measure_scan(port: int, caller: Caller) -> list[Measurement]:
    rates = [ITEMS[LARGE] / await scan(caller) for _ in range(SCANS)]
    chosen = [item_id(number) for number in range(0, ITEMS[LARGE], 100)]
    load = Load(port, itertools.cycle(reads(LARGE, chosen)), connections=SCAN_READ_CONNECTIONS)
    await load.start()
    seconds = [await scan(caller) for _ in range(SCANS_DURING_READS)]
    result = await load.finish()
    if result.error_count:
        raise UnexpectedAnswer(f"reads failed: {dict(result.statuses)}")
    note = f"{result.rate_per_second:,.0f} reads/s and {ITEMS[LARGE] / median(seconds):,.0f} items scanned/s"
    return [
        Measurement(CASE, "scan", median(rates), "items/s", at_least=SCANNED_PER_SECOND_AT_LEAST, note=SCAN),
        Measurement(
            CASE, "p99 of reads during scans", result.percentile_ms(99), "ms", at_most=READ_P99_MS_AT_MOST, note=note
        ),
    ]


async def scan(caller: Caller) -> float:
    """The seconds a scan of all items takes, page by page."""
    started = time.perf_counter()
    continuation: str | None = None
    while True:
        answer = await caller.expect(query_request(LARGE, SCAN, continuation=continuation), 200)
        continuation = answer.headers.get("x-ms-continuation")
        if continuation is None:
            return time.perf_counter() - started
