"""How `asterism import` writes: container by container, items in bulk over several connections."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from asterism.cli.data_client import THROTTLED_SECONDS_MAX, Answer, DataClient
from asterism.cli.dump_file import ContainerLine, read_dump
from asterism.cli.failure import CommandFailed
from asterism.values.json_text import dumps

CONNECTIONS = 4
# Requests that may wait or be under way; each has at most a batch of items in memory.
_REQUESTS_MAX = CONNECTIONS * 2
_BATCH_ITEMS = 100
# Half of what a bulk request may have, because each operation has a wrapping too. Larger items go alone.
_BATCH_BYTES = 1024 * 1024
_BULK = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "False",
    "x-ms-cosmos-batch-continue-on-error": "True",
    "prefer": "return=minimal",
}
_UPSERT = {"x-ms-documentdb-is-upsert": "True", "prefer": "return=minimal"}


def import_file(
    file: Path, clients: Sequence[DataClient], database: str | None, container: str | None
) -> list[dict[str, Any]]:
    """What was imported: database, container and number of items of each."""
    from asterism.cli.transfer import byte_bar

    done: list[dict[str, Any]] = []
    try:
        size = file.stat().st_size
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from None
    with byte_bar(file.name, size) as show:
        writer: _Writer | None = None
        total = 0
        for number, bytes_read, told in read_dump(file):
            if isinstance(told, ContainerLine):
                if writer is not None:
                    if container is not None:
                        raise CommandFailed(f"line {number}: --container names one, and the file has another container")
                    writer.finish()
                line = _renamed(told, database, container)
                make_container(clients[0], line, number)
                writer = _Writer(f"dbs/{line.database}/colls/{line.name}", clients)
                done.append({"database": line.database, "container": line.name, "items": 0})
            elif writer is not None:
                writer.add(number, told.item, told.indexing)
                done[-1]["items"] += 1
                total += 1
            show(bytes_read, total)
        if writer is None:
            raise CommandFailed(f"{file} is empty")
        writer.finish()
    return done


def _renamed(line: ContainerLine, database: str | None, container: str | None) -> ContainerLine:
    settings = {**line.settings, "id": container or line.name}
    return replace(line, database=database or line.database, settings=settings)


def make_container(client: DataClient, line: ContainerLine, number: int) -> None:
    """The container with its scripts. One that is there keeps its settings, and must have the same partition key."""
    link = f"dbs/{line.database}"
    shared = _throughput_headers(line.database_throughput)
    _check(client.ask("POST", "dbs", {"id": line.database}, type_="dbs", link="", headers=shared), number, but=409)
    answer = client.ask(
        "POST", f"{link}/colls", line.settings, type_="colls", link=link, headers=_throughput_headers(line.throughput)
    )
    _check(answer, number, but=409)
    own = f"{link}/colls/{line.name}"
    if answer.status == 409:
        there = client.need("GET", own, type_="colls", link=own).body
        wanted = line.settings.get("partitionKey")
        if wanted is not None and there["partitionKey"] != wanted:
            raise CommandFailed(
                f"line {number}: {line.database}/{line.name} is there with the partition key "
                f"{', '.join(there['partitionKey']['paths'])}; --container gives the imported one another name"
            )
    for segment, scripts in line.scripts.items():
        for script in scripts:
            _check(client.ask("POST", f"{own}/{segment}", script, type_=segment, link=own, headers=_UPSERT), number)


def _throughput_headers(throughput: dict[str, Any] | None) -> dict[str, str]:
    if throughput is None:
        return {}
    if "autoscale" in throughput:
        return {"x-ms-cosmos-offer-autopilot-settings": dumps(throughput["autoscale"]).decode()}
    return {"x-ms-offer-throughput": str(throughput.get("manual"))}


def _check(answer: Answer, number: int, *, but: int | None = None) -> None:
    if answer.status >= 400 and answer.status != but:
        raise CommandFailed(f"line {number}: {answer.message}")


@dataclass(slots=True)
class _Bulk:
    """Items of one request, each with the line that it comes from."""

    lines: list[int] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    bytes: int = 0
    # What the request says of indexing; one that says something has one item.
    indexing: str | None = None


class _Writer:
    """Upserts into one container, over several connections, with a bounded number of items in memory."""

    def __init__(self, link: str, clients: Iterable[DataClient]) -> None:
        self._link = link
        self._free: SimpleQueue[DataClient] = SimpleQueue()
        for client in clients:
            self._free.put(client)
        self._pool = ThreadPoolExecutor(CONNECTIONS)
        self._under_way: deque[Future[None]] = deque()
        self._bulk = _Bulk()

    def add(self, number: int, item: dict[str, Any], indexing: str | None) -> None:
        if indexing is not None:
            self._submit(_Bulk([number], [item], indexing=indexing))
            return
        size = len(dumps(item))
        if self._bulk.items and (len(self._bulk.items) == _BATCH_ITEMS or self._bulk.bytes + size > _BATCH_BYTES):
            self._flush()
        self._bulk.lines.append(number)
        self._bulk.items.append(item)
        self._bulk.bytes += size

    def finish(self) -> None:
        """Returns when everything is stored."""
        self._flush()
        self._wait(0)
        self._pool.shutdown()

    def _flush(self) -> None:
        if self._bulk.items:
            self._submit(self._bulk)
            self._bulk = _Bulk()

    def _submit(self, bulk: _Bulk) -> None:
        self._wait(_REQUESTS_MAX - 1)
        self._under_way.append(self._pool.submit(self._write, bulk))

    def _wait(self, left_max: int) -> None:
        while len(self._under_way) > left_max:
            try:
                self._under_way.popleft().result()
            except BaseException:
                self._pool.shutdown(cancel_futures=True)
                raise

    def _write(self, bulk: _Bulk) -> None:
        client = self._free.get()
        try:
            if len(bulk.items) == 1:
                path = f"{self._link}/docs"
                headers = _UPSERT if bulk.indexing is None else {**_UPSERT, "x-ms-indexing-directive": bulk.indexing}
                answer = client.ask("POST", path, bulk.items[0], type_="docs", link=self._link, headers=headers)
                _check(answer, bulk.lines[0])
            else:
                self._write_bulk(client, bulk)
        finally:
            self._free.put(client)

    def _write_bulk(self, client: DataClient, bulk: _Bulk) -> None:
        """All of the items; those that the throughput had no room for are sent again."""
        left = list(zip(bulk.lines, bulk.items, strict=True))
        give_up_at = time.monotonic() + THROTTLED_SECONDS_MAX
        while left:
            operations = [{"operationType": "Upsert", "resourceBody": item} for _, item in left]
            answer = client.ask("POST", f"{self._link}/docs", operations, type_="docs", link=self._link, headers=_BULK)
            _check(answer, left[0][0])
            again, wait_ms = [], 0
            for line, result in zip(left, answer.body, strict=True):
                status = result["statusCode"]
                if status == 429 and time.monotonic() < give_up_at:
                    again.append(line)
                    wait_ms = max(wait_ms, result.get("retryAfterMilliseconds", 0))
                elif status >= 400:
                    raise CommandFailed(f"line {line[0]}: {result.get('message', f'the server answered {status}')}")
            left = again
            time.sleep(wait_ms / 1000)
