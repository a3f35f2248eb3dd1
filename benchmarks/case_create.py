"""A durable create of a 1 KB item with ten properties, beside the bare engine and a peer."""

from __future__ import annotations

import json
from statistics import median

from benchmarks.load import LoadResult, middle, run_load
from benchmarks.measurement import Measurement, not_measured
from benchmarks.peer_vercel import running_vercel
from benchmarks.processes import NotMeasured, fresh_folder, output_on_server_core, python_module, running_asterism
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import Creates, create_container, create_database

CASE = "create"
CONTAINER = "created"
CONNECTIONS = 32
# Server and bare engine take turns, so that whatever disturbs the machine for a while disturbs both.
ROUNDS = 3
ROUND_SECONDS = 2.5
WARM_UP_SECONDS = 0.5
BARE_BATCHES = 10_000
BARE_SECONDS_MAX = 60

TO_BARE_AT_LEAST = 0.5
RATE_AT_LEAST = 4000.0


async def prepare(port: int) -> None:
    caller = Caller(port)
    await create_database(caller)
    await create_container(caller, CONTAINER)
    await caller.close()


async def measure_creates(port: int, *, prefix: str) -> LoadResult:
    result = await run_load(
        port,
        Creates(CONTAINER, prefix=prefix).requests(),
        connections=CONNECTIONS,
        seconds=ROUND_SECONDS,
        warm_up_seconds=WARM_UP_SECONDS,
    )
    if result.error_count:
        raise UnexpectedAnswer(f"items could not be created: {dict(result.statuses)}")
    return result


def measure_bare_engine() -> float:
    """Batches per second of the engine alone, in a process of its own on the server's core."""
    with fresh_folder() as folder:
        command = python_module(
            "benchmarks.bare_engine",
            *("--directory", str(folder), "--tasks", str(CONNECTIONS)),
            *("--batches", str(BARE_BATCHES)),
        )
        printed = output_on_server_core(command, what="the bare engine", seconds_max=BARE_SECONDS_MAX)
    return float(json.loads(printed)["batches_per_second"])


async def measure(subject: Subject) -> list[Measurement]:
    rounds: list[LoadResult] = []
    bare_rates: list[float] = []
    missing: list[Measurement] = []
    with fresh_folder() as data, running_asterism(subject, data) as server:
        await prepare(server.port)
        for number in range(ROUNDS):
            rounds.append(await measure_creates(server.port, prefix=f"r{number}-"))
            try:
                bare_rates.append(measure_bare_engine())
            except NotMeasured as problem:
                missing = [not_measured(CASE, "ratio to bare engine", str(problem))]
    ours = middle(rounds)
    found = [rate("asterism", ours, at_least=RATE_AT_LEAST), *missing]
    if bare_rates:
        bare_rate = median(bare_rates)
        ratio = ours.rate_per_second / bare_rate
        found.append(Measurement(CASE, "bare engine", bare_rate, "/s"))
        found.append(Measurement(CASE, "ratio to bare engine", ratio, "x", at_least=TO_BARE_AT_LEAST))
    return found if subject.is_compared else [*found, *await compare_with_peer(ours)]


async def compare_with_peer(ours: LoadResult) -> list[Measurement]:
    """For information: the peer keeps nothing on disk."""
    try:
        with running_vercel(keep_alive=True) as server:
            await prepare(server.port)
            peer = await measure_creates(server.port, prefix="p-")
    except (NotMeasured, UnexpectedAnswer, OSError) as problem:
        return [not_measured(CASE, "ratio to @vercel/cosmosdb-server, kept alive", str(problem))]
    ratio = ours.rate_per_second / peer.rate_per_second
    return [
        rate("@vercel/cosmosdb-server, kept alive", peer),
        Measurement(CASE, "ratio to @vercel/cosmosdb-server, kept alive", ratio, "x"),
    ]


def rate(name: str, result: LoadResult, *, at_least: float | None = None) -> Measurement:
    note = f"p50 {result.percentile_ms(50):.2f} ms, p99 {result.percentile_ms(99):.2f} ms"
    note = f"{note}, generator {result.generator_load:.0%}"
    return Measurement(CASE, name, result.rate_per_second, "/s", at_least=at_least, note=note)
