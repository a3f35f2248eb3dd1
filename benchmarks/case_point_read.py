"""A point read of a 1 KB item, with key check and request units, beside a bare server and a peer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.load import LoadResult, middle, run_all, run_load
from benchmarks.measurement import Measurement, not_measured
from benchmarks.peer_vercel import running_vercel
from benchmarks.processes import (
    NotMeasured,
    RunningServer,
    free_port,
    fresh_folder,
    python_module,
    running,
    running_asterism,
)
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import READ_ITEMS, Creates, create_container, create_database, reads

CASE = "point_read"
CONTAINER = "items"
CONNECTIONS = 16
# The servers take turns, so that whatever disturbs the machine for a while disturbs all of them.
ROUNDS = 5
ROUND_SECONDS = 1.5
WARM_UP_SECONDS = 0.3

TO_BARE_AT_LEAST = 0.4
TO_PEER_AT_LEAST = 1.5

ASTERISM = "asterism"
BARE = "bare granian + lmdb"
PEER = "@vercel/cosmosdb-server"
PEER_KEPT_ALIVE = f"{PEER}, kept alive"


@contextmanager
def running_bare_granian() -> Iterator[RunningServer]:
    port = free_port()
    with fresh_folder() as folder:
        command = python_module("benchmarks.bare_granian", str(port), str(folder), str(READ_ITEMS))
        probe = b"GET /i00000000 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        with running(command, port=port, log_name="bare_granian", probe=probe) as server:
            yield server


async def fill(port: int) -> None:
    caller = Caller(port)
    await create_database(caller)
    await create_container(caller, CONTAINER)
    await caller.close()
    filled = await run_all(port, Creates(CONTAINER, prefix="i").requests(READ_ITEMS), connections=8)
    if filled.error_count:
        raise UnexpectedAnswer(f"items could not be created: {dict(filled.statuses)}")


async def measure_reads(port: int) -> LoadResult:
    requests = reads(CONTAINER, [f"i{number:08d}" for number in range(READ_ITEMS)])
    result = await run_load(
        port, itertools.cycle(requests), connections=CONNECTIONS, seconds=ROUND_SECONDS, warm_up_seconds=WARM_UP_SECONDS
    )
    if result.error_count:
        raise UnexpectedAnswer(f"items could not be read: {dict(result.statuses)}")
    return result


async def measure(subject: Subject) -> list[Measurement]:
    with ExitStack() as stack:
        ports = {BARE: stack.enter_context(running_bare_granian()).port}
        ports[ASTERISM] = stack.enter_context(running_asterism(subject, stack.enter_context(fresh_folder()))).port
        await fill(ports[ASTERISM])
        missing = [] if subject.is_compared else await start_peers(stack, ports)
        rounds = [{name: await measure_reads(port) for name, port in ports.items()} for _ in range(ROUNDS)]
    results = {name: middle([found[name] for found in rounds]) for name in ports}
    ratios = [
        ratio(results, BARE, at_least=TO_BARE_AT_LEAST),
        *(ratio(results, name, at_least=TO_PEER_AT_LEAST) for name in (PEER, PEER_KEPT_ALIVE) if name in results),
    ]
    return [*(rate(name, result) for name, result in results.items()), *ratios, *missing]


async def start_peers(stack: ExitStack, ports: dict[str, int]) -> list[Measurement]:
    """Add the peer's ports; return a note if it does not run."""
    for name, keep_alive in ((PEER, False), (PEER_KEPT_ALIVE, True)):
        try:
            port = stack.enter_context(running_vercel(keep_alive=keep_alive)).port
            await fill(port)
        except (NotMeasured, UnexpectedAnswer, OSError) as problem:
            return [not_measured(CASE, f"ratio to {name}", str(problem))]
        ports[name] = port
    return []


def ratio(results: dict[str, LoadResult], other: str, *, at_least: float) -> Measurement:
    value = results[ASTERISM].rate_per_second / results[other].rate_per_second
    return Measurement(CASE, f"ratio to {other}", value, "x", at_least=at_least)


def rate(name: str, result: LoadResult) -> Measurement:
    note = f"p50 {result.percentile_ms(50):.2f} ms, p99 {result.percentile_ms(99):.2f} ms"
    return Measurement(CASE, name, result.rate_per_second, "/s", note=f"{note}, generator {result.generator_load:.0%}")
