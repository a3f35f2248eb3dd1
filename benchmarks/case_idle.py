"""The cost of a server without requests."""

from __future__ import annotations

import asyncio

from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.subject import Subject

CASE = "idle"
SETTLE_SECONDS = 2.0
WATCHED_SECONDS = 5.0
RESIDENT_MB_AT_MOST = 100.0
# The kernel counts in hundredths of a second: one tick in five seconds is as good as none.
CPU_PERCENT_AT_MOST = 0.4


async def measure(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_asterism(subject, data, throttle=True) as server:
        await asyncio.sleep(SETTLE_SECONDS)
        cpu_before = server.cpu_seconds()
        await asyncio.sleep(WATCHED_SECONDS)
        cpu_percent = (server.cpu_seconds() - cpu_before) / WATCHED_SECONDS * 100
        resident_mb = server.resident_bytes() / 1e6
    return [
        Measurement(CASE, "resident memory", resident_mb, "MB", at_most=RESIDENT_MB_AT_MOST),
        Measurement(CASE, "processor", cpu_percent, "%", at_most=CPU_PERCENT_AT_MOST),
    ]
