"""The engine alone, on the server's core: batches, bytes written, reads beside writers, and opening after a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import Any

from benchmarks.measurement import Measurement
from benchmarks.processes import environment_with_benchmarks, fresh_folder, output_on_server_core, python_module
from benchmarks.subject import Subject

CASE = "engine"
TASKS = 32
# The kinds take turns, so that whatever disturbs the machine for a while disturbs all of them.
ROUNDS = 3
BATCHES = 4000
# Each of these waits for a disk alone.
LONE_BATCHES = 300
PACED_SECONDS = 1.5
CRASH_BATCHES = 5000
SECONDS_MAX = 60.0

# The benchmark's items share most of their values, as items of an application do; in the worst case none are shared.
ITEMS, RANDOM_ITEMS, LONE, CRASH = "items", "random values", "1 task", "crash"
COMMANDS = {
    ITEMS: ("bare_engine", "--tasks", TASKS, "--batches", BATCHES, "--paced-seconds", PACED_SECONDS),
    RANDOM_ITEMS: (
        *("bare_engine", "--tasks", TASKS, "--batches", BATCHES, "--paced-seconds", PACED_SECONDS),
        "--random-values",
    ),
    LONE: ("bare_engine", "--tasks", 1, "--batches", LONE_BATCHES),
    CRASH: ("engine_restart", "--batches", CRASH_BATCHES),
}

Figures = dict[str, Any]


def run(subject: Subject, kind: str) -> Figures:
    """Return the figures of one run, in a process of its own with the checkout's engine."""
    module, *options = map(str, COMMANDS[kind])
    with fresh_folder() as folder:
        printed = output_on_server_core(
            python_module(f"benchmarks.{module}", "--directory", str(folder), *options),
            what=f"the engine alone ({kind})",
            seconds_max=SECONDS_MAX,
            environment=environment_with_benchmarks(subject, folder),
        )
    figures: Figures = json.loads(printed)
    return figures


async def measure(subject: Subject) -> list[Measurement]:
    several: dict[str, list[Figures]] = {ITEMS: [], RANDOM_ITEMS: [], LONE: []}
    for _ in range(ROUNDS):
        for kind, runs in several.items():
            runs.append(run(subject, kind))
    crash = run(subject, CRASH)
    return [
        *writes(f"{TASKS} tasks", several[ITEMS]),
        *writes(LONE, several[LONE]),
        *reads("", several[ITEMS]),
        *writes(f"{TASKS} tasks, {RANDOM_ITEMS}", several[RANDOM_ITEMS]),
        *reads(f", {RANDOM_ITEMS}", several[RANDOM_ITEMS]),
        *restarts(crash),
    ]


def writes(name: str, runs: list[Figures]) -> Iterator[Measurement]:
    for label, field, unit in (
        ("batches", "batches_per_second", "/s"),
        ("batches, closing included", "batches_per_second_closed", "/s"),
        ("apply p50", "apply_p50_ms", "ms"),
        ("apply p99", "apply_p99_ms", "ms"),
        ("bytes written per batch", "call_bytes_per_batch", "B"),
        ("bytes to the device per batch", "device_bytes_per_batch", "B"),
    ):
        yield Measurement(CASE, f"{label}, {name}", median(run[field] for run in runs), unit)


def reads(name: str, runs: list[Figures]) -> Iterator[Measurement]:
    for call, label in (("read", "read of an item"), ("scan", "scan of 100 entries")):
        for state, field, when in (
            ("idle", f"{call}_microseconds", "idle"),
            ("during_writes", f"{call}_microseconds", "during writes"),
            ("during_writes", f"{call}_microseconds_mean", "during writes, mean"),
        ):
            value = median(run[state][field] for run in runs)
            yield Measurement(CASE, f"{label}, {when}{name}", value, "µs")
    rate = median(run["paced_batches_per_second"] for run in runs)
    yield Measurement(CASE, f"batches during reads{name}", rate, "/s")


def restarts(crash: Figures) -> Iterator[Measurement]:
    beside_mb = crash["other_bytes"] / 1e6
    note = f"{CRASH_BATCHES:,} batches, {beside_mb:,.1f} MB beside the store's file, first read included"
    yield Measurement(CASE, "open after a crash", crash["open_ms"], "ms", note=note)
    yield Measurement(CASE, "open after a close", crash["open_closed_ms"], "ms")
