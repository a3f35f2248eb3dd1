"""Tables: point get, durable insert, batches, memory and range queries, beside Azurite on the same core."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import table_wire
from benchmarks.load import LoadResult, middle, run_all, run_load
from benchmarks.measurement import Measurement, not_measured
from benchmarks.peer_azurite import running_azurite
from benchmarks.processes import (
    NotMeasured,
    RunningServer,
    free_port,
    fresh_folder,
    running,
)
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer

CASE = "tables"
CONNECTIONS = 16
BATCH_CONNECTIONS = 4
ROUNDS = 3
ROUND_SECONDS = 2.0
WARM_UP_SECONDS = 0.3
# Partitions of 100 entities.
READ_PARTITIONS = 100
MEMORY_PARTITIONS = 1000
SMALL_PARTITIONS = 100
LARGE_PARTITIONS = 10_000
# The large table is filled for at most this long; the note says how far it came.
FILL_SECONDS_MAX = 150.0

ASTERISM, PEER = "asterism", "azurite"
KILOBYTE_TEXT = "t" * 820
SHORT_TEXT = "t" * 40

GET_AT_LEAST, INSERT_AT_LEAST, BATCH_AT_LEAST = 4.0, 2.0, 2.0
RESIDENT_MB_AT_MOST = 250.0
RANGE_AT_MOST = 1.5


@contextmanager
def running_tables(subject: Subject, data: Path) -> Iterator[RunningServer]:
    """Asterism; the port is that of its tables."""
    port = free_port()
    arguments = ["--data", str(data), "--port", str(free_port()), "--table-port", str(port)]
    arguments += subject.known(("--cosmos-table-port", str(free_port())))
    probe = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    command = [*subject.command, *arguments]
    with running(command, port=port, log_name="tables", probe=probe, environment=subject.environment) as server:
        yield server


async def create(port: int, *tables: str) -> None:
    caller = Caller(port)
    for name in tables:
        await caller.expect(table_wire.create_table(name), 201, 204)
    await caller.close()


async def fill(port: int, table: str, partitions: int, text: str) -> None:
    requests = table_wire.batches(table, prefix="p", text=text, last=partitions)
    _check(await run_all(port, requests, connections=BATCH_CONNECTIONS), "filled")


def _check(result: LoadResult, what: str) -> LoadResult:
    if result.error_count:
        raise UnexpectedAnswer(f"a table could not be {what}: {dict(result.statuses)}")
    return result


# --- rates ------------------------------------------------------------------------------------------------------------


def gets(_: int) -> Iterator[bytes]:
    chosen = random.Random(6)
    names = [(chosen.randrange(READ_PARTITIONS), chosen.randrange(100)) for _ in range(2000)]
    return itertools.cycle([table_wire.get("Reads", f"p{pk:06d}", f"{rk:03d}") for pk, rk in names])


def inserts(round_number: int) -> Iterator[bytes]:
    return table_wire.inserts("Inserts", prefix=f"r{round_number}-", text=KILOBYTE_TEXT)


def batches(round_number: int) -> Iterator[bytes]:
    # Made ready before: a generator that builds 100 KB for each request would be what is measured.
    made = table_wire.batches("Batches", prefix=f"r{round_number}-", text=KILOBYTE_TEXT, last=60)
    return itertools.cycle(list(made))


Kind = tuple[str, Callable[[int], Iterator[bytes]], int, int, float]
KINDS: list[Kind] = [
    ("point get", gets, CONNECTIONS, 1, GET_AT_LEAST),
    ("insert", inserts, CONNECTIONS, 1, INSERT_AT_LEAST),
    ("batch of 100", batches, BATCH_CONNECTIONS, 100, BATCH_AT_LEAST),
]


async def measure_rates(ports: dict[str, int]) -> list[Measurement]:
    found: list[Measurement] = []
    for kind, make_requests, connections, entities, at_least in KINDS:
        rounds: dict[str, list[LoadResult]] = {name: [] for name in ports}
        for number in range(ROUNDS):
            for name, port in ports.items():
                result = await run_load(
                    port,
                    make_requests(number),
                    connections=connections,
                    seconds=ROUND_SECONDS,
                    warm_up_seconds=WARM_UP_SECONDS,
                )
                rounds[name].append(_check(result, f"measured ({kind}, {name})"))
        results = {name: middle(several) for name, several in rounds.items()}
        for name, result in results.items():
            note = f"p50 {result.percentile_ms(50):.2f} ms, p99 {result.percentile_ms(99):.2f} ms"
            note = f"{note}, generator {result.generator_load:.0%}"
            rate = result.rate_per_second * entities
            found.append(Measurement(CASE, f"{kind}, {name}", rate, "entities/s", note=note))
        if PEER in results:
            ratio = results[ASTERISM].rate_per_second / results[PEER].rate_per_second
            found.append(Measurement(CASE, f"{kind}, ratio", ratio, "x", at_least=at_least))
    return found


# --- memory and size --------------------------------------------------------------------------------------------------


async def measure_memory(server: RunningServer, name: str, *, at_most: float | None = None) -> Measurement:
    await create(server.port, "Memory")
    await fill(server.port, "Memory", MEMORY_PARTITIONS, KILOBYTE_TEXT)
    resident = server.resident_bytes() / 1e6
    return Measurement(CASE, f"resident with 100,000 entities of 1 KB, {name}", resident, "MB", at_most=at_most)


async def median_query_ms(port: int, table: str, partitions: int) -> float:
    chosen = random.Random(8)
    requests = [table_wire.range_query(table, f"p{chosen.randrange(partitions):06d}") for _ in range(400)]
    result = _check(await run_all(port, iter(requests), connections=1), "queried")
    return result.percentile_ms(50)


async def measure_ranges(port: int) -> list[Measurement]:
    await create(port, "Small", "Large")
    await fill(port, "Small", SMALL_PARTITIONS, SHORT_TEXT)
    filled, deadline = 0, time.monotonic() + FILL_SECONDS_MAX
    while filled < LARGE_PARTITIONS and time.monotonic() < deadline:
        requests = table_wire.batches("Large", prefix="p", text=SHORT_TEXT, first=filled, last=filled + 500)
        _check(await run_all(port, requests, connections=BATCH_CONNECTIONS), "filled")
        filled += 500
    small = await median_query_ms(port, "Small", SMALL_PARTITIONS)
    large = await median_query_ms(port, "Large", filled)
    note = f"{small:.2f} ms of 10,000, {large:.2f} ms of {filled * 100:,}"
    name = "range of 100 entities: large table to small"
    return [Measurement(CASE, name, large / small, "x", at_most=RANGE_AT_MOST, note=note)]


def start_peer(stack: ExitStack, servers: dict[str, RunningServer]) -> list[Measurement]:
    """Add the peer to the servers; return the measurements that are missing where it does not run."""
    try:
        servers[PEER] = stack.enter_context(running_azurite(stack.enter_context(fresh_folder())))
    except (NotMeasured, OSError) as problem:
        return [not_measured(CASE, f"ratios to {PEER}", str(problem))]
    return []


async def measure(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_tables(subject, data) as server:
        memory = [await measure_memory(server, ASTERISM, at_most=RESIDENT_MB_AT_MOST)]
        ranges = [] if subject.is_compared else await measure_ranges(server.port)
    missing: list[Measurement] = []
    with ExitStack() as stack:
        servers = {ASTERISM: stack.enter_context(running_tables(subject, stack.enter_context(fresh_folder())))}
        if not subject.is_compared:
            missing = start_peer(stack, servers)
        for server in servers.values():
            await create(server.port, "Reads", "Inserts", "Batches")
            await fill(server.port, "Reads", READ_PARTITIONS, KILOBYTE_TEXT)
        rates = await measure_rates({name: server.port for name, server in servers.items()})
        if PEER in servers:
            memory.append(await measure_memory(servers[PEER], f"{PEER} (and what the rounds before left)"))
    return [*rates, *memory, *ranges, *missing]
