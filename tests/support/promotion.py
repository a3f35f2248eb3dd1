"""Shared parts of tests of `asterism promote-tenant`: the command, and a container with a large tenant."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from azure.cosmos import ContainerProxy

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

BIG = "big"
BIG_ITEMS = 150
OTHER_ITEMS = 60


def promote(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "promote-tenant", *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def promote_well(server: RunningServer, *arguments: str) -> dict[str, Any]:
    finished = promote(server, *arguments, "--format", "json")
    assert (finished.returncode, finished.stderr) == (0, "")
    reply: dict[str, Any] = json.loads(finished.stdout)
    return reply


def fill(container: ContainerProxy) -> None:
    for number in range(BIG_ITEMS):
        container.create_item({"id": f"i{number}", "pk": BIG, "n": number})
    for number in range(OTHER_ITEMS):
        container.create_item({"id": f"i{number}", "pk": f"k{number % 7}", "n": number})
