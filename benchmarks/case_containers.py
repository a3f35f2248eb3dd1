"""Creating containers, and a server that has two thousand of them."""

from __future__ import annotations

import time
from statistics import median, quantiles

from benchmarks.case_point_read import fill, measure_reads
from benchmarks.load import middle
from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.subject import Subject
from benchmarks.wire import Caller
from benchmarks.workload import create_container

CASE = "containers"
CONTAINERS = 2000
SECONDS_MAX = 60.0
READ_ROUNDS = 3
CREATE_MS_AT_MOST = 10.0


async def measure(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_asterism(subject, data) as server:
        await fill(server.port)
        before = middle([await measure_reads(server.port) for _ in range(READ_ROUNDS)])
        caller = Caller(server.port)
        milliseconds = await create_many(caller)
        await caller.close()
        after = middle([await measure_reads(server.port) for _ in range(READ_ROUNDS)])
        resident_mb = server.resident_bytes() / 1e6
    return [
        Measurement(CASE, "create, median", median(milliseconds), "ms", at_most=CREATE_MS_AT_MOST),
        Measurement(CASE, "create, p99", quantiles(milliseconds, n=100)[98], "ms"),
        Measurement(CASE, "containers", len(milliseconds), "", at_least=CONTAINERS),
        Measurement(CASE, "resident memory then", resident_mb, "MB"),
        Measurement(CASE, "read rate then / before", after.rate_per_second / before.rate_per_second, "x"),
    ]


async def create_many(caller: Caller) -> list[float]:
    milliseconds: list[float] = []
    deadline = time.perf_counter() + SECONDS_MAX
    while len(milliseconds) < CONTAINERS and time.perf_counter() < deadline:
        started = time.perf_counter()
        await create_container(caller, f"c{len(milliseconds):05d}")
        milliseconds.append((time.perf_counter() - started) * 1000)
    return milliseconds
