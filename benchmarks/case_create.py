"""A durable create of a 1 KB item with ten properties, beside the bare engine and a peer."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from benchmarks.disk_writes import WrittenBytes, read_written, read_written_when_quiet
from benchmarks.load import LoadResult, middle, run_load
from benchmarks.measurement import Measurement, not_measured
from benchmarks.peer_vercel import running_vercel
from benchmarks.processes import (
    NotMeasured,
    RunningServer,
    environment_with_benchmarks,
    fresh_folder,
    output_on_server_core,
    python_module,
    running_asterism,
)
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import Creates, create_container, create_database

CASE = "create"
CONTAINER = "created"
CONNECTIONS = 32
# Server, bare engine and peer take turns, so that whatever disturbs the machine for a while disturbs all of them.
ROUNDS = 3
ROUND_SECONDS = 2.5
WARM_UP_SECONDS = 0.5
LONE_ROUND_SECONDS = 1.5
BARE_BATCHES = 10_000
BARE_SECONDS_MAX = 60

TO_BARE_AT_LEAST = 0.5
TO_PEER_AT_LEAST = 0.55
RATE_AT_LEAST = 4000.0

PEER = "@vercel/cosmosdb-server, kept alive"


async def prepare(port: int) -> None:
    caller = Caller(port)
    await create_database(caller)
    await create_container(caller, CONTAINER)
    await caller.close()


async def measure_creates(
    port: int, creates: Creates, *, connections: int = CONNECTIONS, seconds: float = ROUND_SECONDS
) -> LoadResult:
    result = await run_load(
        port, creates.requests(), connections=connections, seconds=seconds, warm_up_seconds=WARM_UP_SECONDS
    )
    if result.error_count:
        raise UnexpectedAnswer(f"items could not be created: {dict(result.statuses)}")
    return result


def measure_bare_engine(subject: Subject, missing: list[Measurement]) -> float | None:
    """Batches per second of the checkout's engine alone, in a process of its own on the server's core."""
    with fresh_folder() as folder:
        command = python_module(
            "benchmarks.bare_engine",
            *("--directory", str(folder), "--tasks", str(CONNECTIONS)),
            *("--batches", str(BARE_BATCHES)),
        )
        environment = environment_with_benchmarks(subject, folder)
        try:
            printed = output_on_server_core(
                command, what="the bare engine", seconds_max=BARE_SECONDS_MAX, environment=environment
            )
        except NotMeasured as problem:
            missing.append(not_measured(CASE, "ratio to bare engine", str(problem)))
            return None
    return float(json.loads(printed)["batches_per_second"])


@dataclass(frozen=True)
class Round:
    """The results of one turn of each side; None for a side that was not measured."""

    ours: LoadResult
    # Items of this turn, those of the warm-up too.
    created: int
    peer: LoadResult | None
    bare_rate: float | None


async def measure(subject: Subject) -> list[Measurement]:
    missing: list[Measurement] = []
    with ExitStack() as stack:
        data = stack.enter_context(fresh_folder())
        server = stack.enter_context(running_asterism(subject, data))
        await prepare(server.port)
        peer_port = None if subject.is_compared else await start_peer(stack, missing)
        written_before = read_written(server.process.pid, data)
        rounds = [await measure_round(subject, server, peer_port, number, missing) for number in range(ROUNDS)]
        written = (await read_written_when_quiet(server.process.pid, data)).since(written_before)
        lone = [await measure_lone(server, number) for number in range(ROUNDS)]
    ours = middle([found.ours for found in rounds])
    return [
        rate("asterism", ours, at_least=RATE_AT_LEAST),
        Measurement(CASE, "asterism, p99", median(found.ours.percentile_ms(99) for found in rounds), "ms"),
        rate("asterism, 1 connection", middle(lone)),
        Measurement(CASE, "asterism, 1 connection, p50", median(result.percentile_ms(50) for result in lone), "ms"),
        *written_bytes(rounds, written),
        *compare_with_bare_engine(ours, [found.bare_rate for found in rounds if found.bare_rate is not None]),
        *compare_with_peer(ours, [found.peer for found in rounds if found.peer is not None]),
        *missing,
    ]


async def measure_round(
    subject: Subject, server: RunningServer, peer_port: int | None, number: int, missing: list[Measurement]
) -> Round:
    creates = Creates(CONTAINER, prefix=f"r{number}-")
    ours = await measure_creates(server.port, creates)
    peer = None if peer_port is None else await measure_peer(peer_port, number, missing)
    return Round(ours, len(creates.created_ids), peer, measure_bare_engine(subject, missing))


async def measure_lone(server: RunningServer, number: int) -> LoadResult:
    creates = Creates(CONTAINER, prefix=f"l{number}-")
    return await measure_creates(server.port, creates, connections=1, seconds=LONE_ROUND_SECONDS)


async def measure_peer(port: int, number: int, missing: list[Measurement]) -> LoadResult | None:
    try:
        return await measure_creates(port, Creates(CONTAINER, prefix=f"r{number}-"))
    except (UnexpectedAnswer, OSError) as problem:
        missing.append(not_measured(CASE, f"ratio to {PEER}", str(problem)))
        return None


async def start_peer(stack: ExitStack, missing: list[Measurement]) -> int | None:
    """Return the port of the peer; None if it does not run."""
    try:
        port = stack.enter_context(running_vercel(keep_alive=True)).port
        await prepare(port)
    except (NotMeasured, UnexpectedAnswer, OSError) as problem:
        missing.append(not_measured(CASE, f"ratio to {PEER}", str(problem)))
        return None
    return port


def written_bytes(rounds: list[Round], written: WrittenBytes) -> list[Measurement]:
    """Bytes of all rounds together, until the server was quiet; answers to clients are not written to disk."""
    created = sum(found.created for found in rounds)
    calls = (written.calls - sum(found.ours.received_bytes for found in rounds)) / created
    pages = written.pages / created
    # The device has also written for the bare engine.
    return [
        Measurement(CASE, "bytes written per create", calls, "B", note="given to calls that write files"),
        Measurement(CASE, "bytes of dirty pages per create", pages, "B", note="counted too often with large pages"),
    ]


def compare_with_bare_engine(ours: LoadResult, bare_rates: list[float]) -> list[Measurement]:
    if not bare_rates:
        return []
    bare_rate = median(bare_rates)
    ratio = ours.rate_per_second / bare_rate
    return [
        Measurement(CASE, "bare engine", bare_rate, "/s"),
        Measurement(CASE, "ratio to bare engine", ratio, "x", at_least=TO_BARE_AT_LEAST),
    ]


def compare_with_peer(ours: LoadResult, results: list[LoadResult]) -> list[Measurement]:
    """The peer at its best: it keeps nothing on disk, and connections stay open."""
    if not results:
        return []
    peer = middle(results)
    ratio = ours.rate_per_second / peer.rate_per_second
    return [rate(PEER, peer), Measurement(CASE, f"ratio to {PEER}", ratio, "x", at_least=TO_PEER_AT_LEAST)]


def rate(name: str, result: LoadResult, *, at_least: float | None = None) -> Measurement:
    note = f"p50 {result.percentile_ms(50):.2f} ms, p99 {result.percentile_ms(99):.2f} ms"
    note = f"{note}, generator {result.generator_load:.0%}"
    return Measurement(CASE, name, result.rate_per_second, "/s", at_least=at_least, note=note)
