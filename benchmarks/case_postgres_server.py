"""A server over PostgreSQL beside the least that can be done with it: point reads beside a bare server, durable creates
beside bare asyncpg.

Each server has a core to itself; the database shares the other with the load, the same for both sides. They take turns,
so that whatever disturbs the machine for a while disturbs both.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

from benchmarks.case_point_read import CONTAINER, fill
from benchmarks.load import LoadResult, run_load
from benchmarks.measurement import Measurement
from benchmarks.processes import (
    NotMeasured,
    RunningServer,
    free_port,
    fresh_folder,
    load_core,
    output_on_server_core,
    python_module,
    running,
    running_asterism,
)
from benchmarks.subject import Subject
from benchmarks.wire import UnexpectedAnswer
from benchmarks.workload import READ_ITEMS, Creates, reads
from tests.support.postgres import PostgresServer
from tests.support.postgres import running_server as running_postgres

CASE = "postgres_server"
CONNECTIONS = 32
ROUNDS = 5
ROUND_SECONDS = 2.0
WARM_UP_SECONDS = 0.4
BARE_WRITES_PER_ROUND = 1500
BARE_SECONDS_MAX = 60

TO_BARE_AT_LEAST = 0.5


@contextmanager
def database_server() -> Iterator[PostgresServer]:
    try:
        with running_postgres() as server:
            assert server.process is not None
            os.sched_setaffinity(server.process.pid, {load_core()})
            yield server
    except AssertionError as problem:
        raise NotMeasured(str(problem)) from problem


@contextmanager
def running_bare(connection_string: str) -> Iterator[RunningServer]:
    port = free_port()
    command = python_module("benchmarks.bare_granian_postgres", str(port), connection_string, str(READ_ITEMS))
    probe = b"GET /i00000000 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    with running(command, port=port, log_name="bare_granian_postgres", probe=probe) as server:
        yield server


async def loaded(port: int, requests: Iterator[bytes]) -> LoadResult:
    result = await run_load(
        port, requests, connections=CONNECTIONS, seconds=ROUND_SECONDS, warm_up_seconds=WARM_UP_SECONDS
    )
    if result.error_count:
        raise UnexpectedAnswer(f"not every request was answered: {dict(result.statuses)}")
    return result


def bare_writes(connection_string: str, first: int, *, connections: int, together: int) -> float:
    """Items per second of bare asyncpg, so many in a transaction, on the servers' core."""
    command = python_module(
        "benchmarks.bare_postgres_writer",
        connection_string,
        *map(str, (connections, BARE_WRITES_PER_ROUND, first, together)),
    )
    return float(output_on_server_core(command, what="bare asyncpg", seconds_max=BARE_SECONDS_MAX))


def committed(server: PostgresServer) -> int:
    """Transactions of Asterism's database so far. The server reports them a moment late."""
    time.sleep(1.5)
    return int(server.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'asterism'"))


async def measure(subject: Subject) -> list[Measurement]:
    requests = reads(CONTAINER, [f"i{number:08d}" for number in range(READ_ITEMS)])
    our_reads, bare_reads, our_writes, bare_alone, bare_together = [], [], [], [], []
    with ExitStack() as stack:
        server = stack.enter_context(database_server())
        bare_string = server.create_database("bare")
        store = ("--store", server.create_database())
        beside = stack.enter_context(running_bare(bare_string)).port
        ours = stack.enter_context(running_asterism(subject, stack.enter_context(fresh_folder()), *store)).port
        await fill(ours)
        for number in range(ROUNDS):
            bare_reads.append(await loaded(beside, itertools.cycle(requests)))
            our_reads.append(await loaded(ours, itertools.cycle(requests)))
            transactions = committed(server)
            creates = Creates(CONTAINER, prefix=f"r{number}-")
            our_writes.append(await loaded(ours, creates.requests()))
            together = max(1, round(len(creates.created_ids) / (committed(server) - transactions)))
            first = 2 * number * BARE_WRITES_PER_ROUND
            bare_alone.append(bare_writes(bare_string, first, connections=CONNECTIONS, together=1))
            first += BARE_WRITES_PER_ROUND
            # Ours follow one another, because they get their numbers in order: so do these.
            bare_together.append(bare_writes(bare_string, first, connections=1, together=together))
    return [
        rate("point reads, asterism", our_reads),
        *compared("point reads", "granian + asyncpg", [result.rate_per_second for result in bare_reads], our_reads),
        rate("durable creates, asterism", our_writes),
        *compared("durable creates", "asyncpg, one a transaction", bare_alone, our_writes),
        *compared("durable creates", f"asyncpg, {together} a transaction", bare_together, our_writes),
    ]


def rate(name: str, ours: list[LoadResult]) -> Measurement:
    p50, p99 = (median(result.percentile_ms(percent) for result in ours) for percent in (50, 99))
    note = f"{CONNECTIONS} connections, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    return Measurement(CASE, name, median(result.rate_per_second for result in ours), "/s", note=note)


def compared(name: str, other: str, bare: list[float], ours: list[LoadResult]) -> list[Measurement]:
    of_rounds = median(result.rate_per_second / theirs for result, theirs in zip(ours, bare, strict=True))
    return [
        Measurement(CASE, f"{name}, bare {other}", median(bare), "/s"),
        Measurement(
            CASE, f"{name}, to bare {other}", of_rounds, "", at_least=TO_BARE_AT_LEAST, note="in the median round"
        ),
    ]
