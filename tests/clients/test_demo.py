"""`asterism demo` as its user meets it: a bad and a good key under the same load."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment, running_server

# Above the budget of a partition even on a machine that reaches a quarter of the rate.
LOAD = ("--seconds", "4", "--rate", "120")


@pytest.fixture(scope="module")
def throttling_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("demo")
    with running_server(directory / "data", doors=("nosql", "portal")) as running:
        yield running


def command(*arguments: str) -> list[str]:
    return [*PROGRAM, *arguments]


def variables(server: RunningServer) -> dict[str, str]:
    return {**environment(), "ASTERISM_ENDPOINT": server.endpoint}


def run(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    finished = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        env=variables(server),
        timeout=2 * WAIT_SECONDS_MAX,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished


def demo(server: RunningServer, *options: str) -> dict[str, Any]:
    return json.loads(run(server, "demo", "--format", "json", *options).stdout)


def loads_of(server: RunningServer, container: str) -> list[float]:
    """The share of each partition in the request units of its container."""
    reply = json.loads(run(server, "partitions", "asterism-demo", container, "--format", "json").stdout)
    spent = [partition["ru_consumed"] for partition in reply["partitions"]]
    return [units / sum(spent) for units in spent]


def test_the_same_load_throttles_by_date_and_spreads_by_device(throttling_server: RunningServer) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        result = demo(throttling_server, *LOAD)
        by_date, by_device = result["containers"]
        # Not before the machine reaches the rate, or a quarter of it.
        if by_date["throttled"] or time.monotonic() > give_up_at:
            break
    assert by_date["throttled"] > by_device["throttled"]
    assert by_date["accepted"] < by_device["accepted"]
    dates = sorted(loads_of(throttling_server, "telemetry-by-date"))
    assert len(dates) == 4
    assert dates[-1] > 0.95
    devices = sorted(loads_of(throttling_server, "telemetry-by-device"))
    assert len(devices) == 4
    assert devices[0] > 0.1
    assert devices[-1] < 0.5
    page = f"http://127.0.0.1:{throttling_server.ports['portal']}/compare"
    assert result["page"] == (
        f"{page}?left=asterism/asterism-demo/telemetry-by-date&right=asterism/asterism-demo/telemetry-by-device"
    )


def test_a_repeated_run_continues_and_the_database_can_be_removed(throttling_server: RunningServer) -> None:
    demo(throttling_server, "--seconds", "1")
    again = run(throttling_server, "demo", "--seconds", "1")
    assert "asterism-demo/telemetry-by-date" in again.stdout
    assert "busiest partition" in again.stdout
    assert "Remove them with: asterism demo --remove" in again.stdout
    removed = run(throttling_server, "demo", "--remove")
    assert removed.stdout == "The database asterism-demo is removed.\n"
    nothing = run(throttling_server, "demo", "--remove")
    assert nothing.stdout == "There is no database asterism-demo.\n"


def test_a_server_that_does_not_throttle_is_named_as_such(server: RunningServer) -> None:
    finished = run(server, "demo", "--seconds", "1", "--format", "json", "--portal", "http://elsewhere:1")
    assert "no request is throttled" in finished.stderr
    result = json.loads(finished.stdout)
    assert [container["throttled"] for container in result["containers"]] == [0, 0]
    assert result["page"].startswith("http://elsewhere:1/compare?left=")
    run(server, "demo", "--remove")


def test_an_interrupt_ends_the_load_and_says_how_far_it_came(throttling_server: RunningServer) -> None:
    with subprocess.Popen(
        command("demo", "--seconds", "600"),
        stderr=subprocess.PIPE,
        text=True,
        env=variables(throttling_server),
        # Tests that a shell runs in the background ignore interrupts, and their children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Watch both containers at http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(WAIT_SECONDS_MAX) == 130
    assert "Traceback" not in rest
