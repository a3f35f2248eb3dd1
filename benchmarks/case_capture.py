"""Point reads of which a sample is captured, beside the same reads on the same server without a capture."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.administration import admin_request
from benchmarks.case_point_read import CONTAINER, fill, measure_reads
from benchmarks.measurement import Measurement
from benchmarks.processes import RunningServer, fresh_folder, running_asterism
from benchmarks.subject import Subject
from benchmarks.wire import Caller
from benchmarks.workload import DATABASE

CASE = "capture"
# Rounds of both kinds take turns, because a capture costs less than the machine's speed changes in a minute.
ROUNDS = 12
# The default of `asterism capture start`.
SAMPLING = 0.1

TO_UNCAPTURED_AT_LEAST = 0.97


async def measure(subject: Subject) -> list[Measurement]:
    with fresh_folder() as folder, running_asterism(subject, folder) as server:
        await fill(server.port)
        await measure_reads(server.port)
        plain: list[_Round] = []
        captured: list[_Round] = []
        everything: list[_Round] = []
        for _ in range(ROUNDS):
            plain.append(await _round(server))
            captured.append(await _captured_round(server, sampling=SAMPLING))
            everything.append(await _captured_round(server, sampling=1.0))
    return [
        Measurement(CASE, "point reads", _rate(plain), "/s"),
        Measurement(CASE, f"point reads, {SAMPLING:.0%} of them captured", _rate(captured), "/s"),
        Measurement(CASE, "point reads, all of them captured", _rate(everything), "/s"),
        Measurement(
            CASE,
            f"rate with {SAMPLING:.0%} captured / without",
            statistics.median(
                kept.rate_per_second / read.rate_per_second for kept, read in zip(captured, plain, strict=True)
            ),
            "x",
            at_least=TO_UNCAPTURED_AT_LEAST,
        ),
        Measurement(
            CASE,
            f"CPU of a read with {SAMPLING:.0%} captured / without",
            _cpu_seconds(captured) / _cpu_seconds(plain),
            "x",
            note="other load on the machine disturbs it less",
        ),
        Measurement(
            CASE, "CPU of a read with all captured / without", _cpu_seconds(everything) / _cpu_seconds(plain), "x"
        ),
    ]


@dataclass(frozen=True)
class _Round:
    rate_per_second: float
    # Of the server, per request that was counted; those of the warm-up are in both kinds of rounds.
    cpu_seconds: float


def _rate(rounds: list[_Round]) -> float:
    return statistics.median(each.rate_per_second for each in rounds)


def _cpu_seconds(rounds: list[_Round]) -> float:
    # The least: other programs can only add to it.
    return min(each.cpu_seconds for each in rounds)


async def _round(server: RunningServer) -> _Round:
    before = server.cpu_seconds()
    result = await measure_reads(server.port)
    return _Round(result.rate_per_second, (server.cpu_seconds() - before) / len(result.latencies))


async def _captured_round(server: RunningServer, *, sampling: float) -> _Round:
    caller = Caller(server.port)
    names = {"database": DATABASE, "container": CONTAINER}
    start = admin_request("POST", "capture/start", body=names | {"sampling": sampling, "bytes_max": 2**30})
    await caller.expect(start, 201)
    measured = await _round(server)
    await caller.expect(admin_request("POST", "capture/stop", body=names), 200)
    await caller.close()
    return measured
