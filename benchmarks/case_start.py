"""From the start of the process to the first answer."""

from __future__ import annotations

from statistics import median

from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.subject import Subject

CASE = "start"
STARTS = 5
SECONDS_AT_MOST = 1.0


async def measure(subject: Subject) -> list[Measurement]:
    """Each time with an empty folder, then once more on the data of the last one."""
    empty = []
    for _ in range(STARTS):
        with fresh_folder() as data:
            with running_asterism(subject, data) as server:
                empty.append(server.start_seconds)
            with running_asterism(subject, data) as server:
                again = server.start_seconds
    return [
        Measurement(CASE, "first answer, worst", max(empty), "s", at_most=SECONDS_AT_MOST, note=f"of {STARTS}"),
        Measurement(CASE, "first answer, median", median(empty), "s"),
        Measurement(CASE, "first answer, existing data", again, "s", at_most=SECONDS_AT_MOST),
    ]
