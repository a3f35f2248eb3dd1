"""From the wish for a server for tests to the moment when it is ready: by `asterism.testing`, and by its fixture."""

from __future__ import annotations

import json
import os
import sys
from statistics import median

from benchmarks.measurement import Measurement
from benchmarks.processes import BUILD, fresh_folder, output_on_server_core
from benchmarks.subject import Subject

CASE = "fixture"
STARTS = 5
SECONDS_AT_MOST = 0.6
RUN_SECONDS_MAX = 60.0

# Each run is a process of its own: the first server of a process is the one that waits for the program to be loaded.
_COLD = """
import json, time
from asterism.testing import Server
began = time.perf_counter()
with Server():
    print(json.dumps({"start": [time.perf_counter() - began]}))
"""
_WARM = """
import json, time
from asterism.testing import Server
from asterism.testing.launcher import warm_up
warm_up()
# Longer than the program takes to be loaded; a server would tell the moment, and would then be the first one.
time.sleep(4)
seconds = {"start": [], "stop": [], "disk": [], "reset": []}
for data in ["memory"] * 6 + ["disk"] * 3:
    began = time.perf_counter()
    server = Server(data=data).start()
    ready = time.perf_counter()
    server.reset()
    emptied = time.perf_counter()
    server.stop()
    seconds["start" if data == "memory" else "disk"].append(ready - began)
    seconds["reset"].append(emptied - ready)
    seconds["stop"].append(time.perf_counter() - emptied)
print(json.dumps(seconds))
"""
_CONFTEST = """
import json, time
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    began = time.perf_counter()
    result = yield
    if fixturedef.argname in ("asterism_server", "asterism"):
        with open("seconds.txt", "a") as file:
            file.write(f"{time.perf_counter() - began}\\n")
    return result
"""
_TESTS = """
from azure.cosmos import CosmosClient

def test_first(asterism):
    assert asterism.cosmos_endpoint

def test_second(asterism):
    assert asterism.cosmos_endpoint
"""


async def measure(subject: Subject) -> list[Measurement]:
    # Writes the compiled modules, which an installed package has.
    _seconds(subject, _COLD)
    cold = [seconds for _ in range(STARTS) for seconds in _seconds(subject, _COLD)["start"]]
    warm = _seconds(subject, _WARM)
    first, *later = warm["start"]
    fixtures = [_fixture_seconds(subject) for _ in range(STARTS)]
    of_tests = [each for run in fixtures for each in run[1:]]
    return [
        Measurement(
            CASE,
            "fixture, session, median",
            median(run[0] for run in fixtures),
            "s",
            at_most=SECONDS_AT_MOST,
            note=f"of {STARTS} runs of pytest with two tests",
        ),
        Measurement(CASE, "fixture, session, worst", max(run[0] for run in fixtures), "s"),
        Measurement(CASE, "fixture, each test, worst", max(of_tests), "s", note="emptied"),
        Measurement(CASE, "server, program loaded, first", first, "s", at_most=SECONDS_AT_MOST),
        Measurement(CASE, "server, later, worst", max(later), "s", at_most=SECONDS_AT_MOST),
        Measurement(CASE, "server, later, on disk, worst", max(warm["disk"]), "s"),
        Measurement(CASE, "server, first of a process", median(cold), "s", note="loads the program"),
        Measurement(CASE, "reset, empty server", median(warm["reset"]), "s"),
        Measurement(CASE, "stop", median(warm["stop"]), "s"),
    ]


def _environment(subject: Subject) -> dict[str, str]:
    """Return the environment with compiled modules of its own, also where the machine's settings say to write none."""
    kept = {name: value for name, value in subject.environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": os.fspath(BUILD / "bytecode")}


def _seconds(subject: Subject, program: str) -> dict[str, list[float]]:
    output = output_on_server_core(
        [sys.executable, "-c", program],
        what="a server for tests",
        seconds_max=RUN_SECONDS_MAX,
        environment=_environment(subject),
        on_all_cores=True,
    )
    return dict(json.loads(output))


def _fixture_seconds(subject: Subject) -> list[float]:
    """Return how long the fixture took: the server of the session first, then each test's share of it."""
    with fresh_folder() as folder:
        (folder / "conftest.py").write_text(_CONFTEST)
        (folder / "test_shop.py").write_text(_TESTS)
        (folder / "pytest.ini").write_text("[pytest]\n")
        output_on_server_core(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", os.fspath(folder)],
            what="pytest with the fixture",
            seconds_max=RUN_SECONDS_MAX,
            environment=_environment(subject),
            folder=folder,
            on_all_cores=True,
        )
        return [float(line) for line in (folder / "seconds.txt").read_text().split()]
