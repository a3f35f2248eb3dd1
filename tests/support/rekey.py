"""Shared parts of tests of `asterism rekey`: the command, a container to copy, and a client that writes meanwhile."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from azure.cosmos import ContainerProxy
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment

ITEM_COUNT = 300


def run_rekey(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "rekey", *arguments],
        capture_output=True,
        text=True,
        env={**environment(), "ASTERISM_ENDPOINT": server.endpoint},
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def run_well(server: RunningServer, *arguments: str) -> dict[str, Any]:
    finished = run_rekey(server, *arguments, "--format", "json")
    assert (finished.returncode, finished.stderr) == (0, "")
    reply: dict[str, Any] = json.loads(finished.stdout)
    return reply


def contents(container: ContainerProxy) -> list[dict[str, Any]]:
    """Return the items in the order of their ids, without the server's properties."""
    items = [
        {name: value for name, value in item.items() if not name.startswith("_")} for item in container.read_all_items()
    ]
    return sorted(items, key=lambda item: str((item["id"], item.get("pk"))))


def until_true(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


class Writer(threading.Thread):
    """Client that creates, changes, moves between the new keys, deletes and creates again, until `stopping` is set."""

    def __init__(self, container: ContainerProxy, name: str) -> None:
        super().__init__()
        self._container = container
        self._name = name
        self.stopping = threading.Event()
        self.rounds = 0
        # The status of the refusal that ended it, if any, and the acknowledged state of each of its items.
        self.refused = 0
        self.acknowledged: dict[str, int | None] = {}

    def run(self) -> None:
        try:
            self._write()
        except CosmosHttpResponseError as refusal:
            self.refused = refusal.status_code

    def _write(self) -> None:
        while not self.stopping.is_set():
            self.rounds += 1
            number = self.rounds % 40
            item_id, key = f"{self._name}-{number}", f"k{number % 7}"
            self._container.upsert_item({"id": item_id, "pk": key, "day": self.rounds % 5, "n": self.rounds})
            self.acknowledged[item_id] = self.rounds
            gone = (self.rounds * 7) % 40
            try:
                self._container.delete_item(f"{self._name}-{gone}", f"k{gone % 7}")
            except CosmosResourceNotFoundError:
                continue
            self.acknowledged[f"{self._name}-{gone}"] = None


def fill(container: ContainerProxy) -> None:
    for number in range(ITEM_COUNT):
        container.create_item({"id": f"old-{number}", "pk": f"k{number % 30}", "day": number % 9, "n": number})
    container.create_item({"id": "without", "pk": "k"})
