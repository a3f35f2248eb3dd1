"""Microseconds of CPU and calls of functions of the hot paths, from the HTTP server's call to its answer.

For changes of the code between listener and disk: time on the CPU of one process varies less than requests per second
on a machine that others use, and the number of calls hardly at all.
"""

from __future__ import annotations

import json

from benchmarks.measurement import Measurement
from benchmarks.processes import (
    NotMeasured,
    environment_with_benchmarks,
    free_port,
    fresh_folder,
    output_on_server_core,
    python_module,
)
from benchmarks.subject import Subject
from benchmarks.wire import ACCOUNT_KEY

CASE = "in_process"
SECONDS_MAX = 90.0


async def measure(subject: Subject) -> list[Measurement]:
    with fresh_folder() as folder:
        result = folder / "result.json"
        options = ["--data", str(folder / "data"), "--port", str(free_port()), "--key", ACCOUNT_KEY]
        options += subject.known(
            ("--table-port", str(free_port())), ("--cosmos-table-port", str(free_port())), ("--no-throttle", None)
        )
        output_on_server_core(
            python_module("benchmarks.in_process", str(result), "--", *options),
            what="the server in process",
            seconds_max=SECONDS_MAX,
            environment=environment_with_benchmarks(subject, folder),
        )
        if not result.exists():
            raise NotMeasured("the server in process ended without a result")
        found: dict[str, dict[str, float]] = json.loads(result.read_text())
    return [
        *(Measurement(CASE, name, microseconds, "µs CPU") for name, microseconds in found["microseconds"].items()),
        *(Measurement(CASE, f"{name}, calls", count, "calls") for name, count in found["calls"].items()),
    ]
