"""The load of the demonstration: the same operations at the same rate into each container, over several connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from asterism.cli.data_client import DataClient, DataReply
from asterism.cli.demo_telemetry import Operation, Telemetry
from asterism.cli.failure import CommandFailed
from asterism.values.json.text import dumps

# Of each container. A request takes a few milliseconds, so that two already reach the highest rate on most machines.
CONNECTIONS = 3
# So often the thread that shows the progress looks.
_LOOK_SECONDS = 0.2
_UPSERT = {"x-ms-documentdb-is-upsert": "True", "prefer": "return=minimal"}


@dataclass(frozen=True, slots=True)
class DemoContainer:
    database: str
    name: str
    # The property whose value is the partition key.
    key_property: str

    @property
    def link(self) -> str:
        return f"dbs/{self.database}/colls/{self.name}"


@dataclass(slots=True)
class Tally:
    """Answers of the server to the operations of a container."""

    accepted: int = 0
    throttled: int = 0
    request_units: float = 0.0

    def add(self, reply: DataReply) -> None:
        """Count a reply. A throttled reading is lost; a reader that then does not find it is answered all the same."""
        if reply.status == 429:
            self.throttled += 1
            return
        if reply.status >= 400 and reply.status != 404:
            raise CommandFailed(f"the server refuses the load of the demonstration: {reply.message}")
        self.accepted += 1
        self.request_units += float(reply.headers.get("x-ms-request-charge", "0"))


def due_seconds(number: int, *, rate: int) -> float:
    """Return the time of an operation after the start of the load."""
    return number / rate


def merged(tallies: Sequence[Tally]) -> Tally:
    return Tally(
        sum(tally.accepted for tally in tallies),
        sum(tally.throttled for tally in tallies),
        sum(tally.request_units for tally in tallies),
    )


def busiest_share(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """Return the share of the busiest partition in the request units spent between two looks; None without any."""
    spent = [units - before.get(range_id, 0.0) for range_id, units in after.items()]
    total = sum(spent)
    return max(spent) / total if total > 0 else None


class Load:
    """Threads that send the operations, each its part of them, until the time has passed or `stop` is called."""

    def __init__(
        self,
        telemetry: Telemetry,
        containers: Sequence[DemoContainer],
        *,
        connect: Callable[[], DataClient],
        rate: int,
        seconds: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._telemetry = telemetry
        self._containers = containers
        self._connect = connect
        self._rate = rate
        self._seconds = seconds
        self._monotonic = monotonic
        self._stopped = threading.Event()
        self._tallies = {container: [Tally() for _ in range(CONNECTIONS)] for container in containers}

    def tally(self, container: DemoContainer) -> Tally:
        """Return the answers so far."""
        return merged(self._tallies[container])

    def run(self, show: Callable[[float], None]) -> None:
        """Send the load; call `show` with the seconds since its start. An interrupt ends all threads first."""
        started_at = self._monotonic()
        pool = ThreadPoolExecutor(len(self._containers) * CONNECTIONS)
        tasks = [
            pool.submit(self._send_part, container, part, started_at)
            for container in self._containers
            for part in range(CONNECTIONS)
        ]
        try:
            self._follow(tasks, started_at, show)
        finally:
            self._stopped.set()
            pool.shutdown()
        for task in tasks:
            task.result()

    def _follow(self, tasks: Sequence[Future[None]], started_at: float, show: Callable[[float], None]) -> None:
        while True:
            done, running = wait(tasks, timeout=_LOOK_SECONDS, return_when=FIRST_EXCEPTION)
            show(min(self._monotonic() - started_at, self._seconds))
            if not running or any(task.exception() is not None for task in done):
                return

    def _send_part(self, container: DemoContainer, part: int, started_at: float) -> None:
        client = self._connect()
        try:
            for number in range(part, self._seconds * self._rate, CONNECTIONS):
                early_seconds = started_at + due_seconds(number, rate=self._rate) - self._monotonic()
                if early_seconds > 0 and self._stopped.wait(early_seconds):
                    return
                # A server that answers too slowly gets less than the rate, and never a queue of late operations.
                if self._stopped.is_set() or self._monotonic() - started_at > self._seconds:
                    return
                reply = send_operation(client, container, self._telemetry.operation(number))
                self._tallies[container][part].add(reply)
        finally:
            client.close()


def send_operation(client: DataClient, container: DemoContainer, operation: Operation) -> DataReply:
    """Send an operation once: a throttled one is counted, not retried."""
    reading: Mapping[str, Any] = operation.reading
    link = container.link
    key = {"x-ms-documentdb-partitionkey": dumps([reading[container.key_property]]).decode()}
    if operation.is_read:
        item = f"{link}/docs/{reading['id']}"
        return client.ask_once("GET", item, type_="docs", link=item, headers=key)
    return client.ask_once("POST", f"{link}/docs", dict(reading), type_="docs", link=link, headers={**_UPSERT, **key})
