"""Commands of the program, run as their user runs them."""

from __future__ import annotations

import subprocess

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment


def run(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def run_well(server: RunningServer, *arguments: str) -> str:
    finished = run(server, *arguments)
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def failure_of(server: RunningServer, *arguments: str) -> str:
    finished = run(server, *arguments)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    return line
