"""Writes of `asterism import`: container by container, items in bulk over several connections."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from asterism.cli.data_client import THROTTLED_SECONDS_MAX, DataClient, DataReply
from asterism.cli.dump_file import CollectionLine, ContainerLine, DocumentLine, ItemLine, read_dump
from asterism.cli.failure import CommandFailed
from asterism.cli.import_documents import DocumentWriter, make_collection
from asterism.cli.mongo_server import MongoServer
from asterism.values.json.text import dumps

CONNECTIONS = 4
# Requests that are queued or in flight; each has at most a batch of items in memory.
_REQUESTS_MAX = CONNECTIONS * 2
_BATCH_ITEMS = 100
# Half the limit of a bulk request, because each operation has an envelope too. Larger items are sent singly.
_BATCH_BYTES = 1024 * 1024
_BULK = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "False",
    "x-ms-cosmos-batch-continue-on-error": "True",
    "prefer": "return=minimal",
}
_UPSERT = {"x-ms-documentdb-is-upsert": "True", "prefer": "return=minimal"}


def import_file(
    file: Path, clients: Sequence[DataClient], server: MongoServer, database: str | None, container: str | None
) -> list[dict[str, Any]]:
    """Import a file; return database, container and number of items of each container, or of each collection."""
    from asterism.cli.transfer import byte_bar

    done: list[dict[str, Any]] = []
    try:
        size = file.stat().st_size
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from None
    with byte_bar(file.name, size) as show:
        writer: BulkWriter | DocumentWriter | None = None
        total = 0
        for number, bytes_read, parsed in read_dump(file):
            if isinstance(parsed, ContainerLine | CollectionLine):
                if writer is not None:
                    if container is not None:
                        raise CommandFailed(
                            f"line {number}: the file has several containers; import it without --container"
                        )
                    writer.finish()
                writer, names = _begin(parsed, clients, server, database, container, number)
                done.append({**names, "items": 0})
            elif writer is not None:
                _add(writer, number, parsed)
                done[-1]["items"] += 1
                total += 1
            show(bytes_read, total)
        if writer is None:
            raise CommandFailed(f"{file} is empty")
        writer.finish()
    return done


def _begin(
    parsed: ContainerLine | CollectionLine,
    clients: Sequence[DataClient],
    server: MongoServer,
    database: str | None,
    container: str | None,
    number: int,
) -> tuple[BulkWriter | DocumentWriter, dict[str, Any]]:
    """Create a container or a collection; return the writer of its items, and its names."""
    if isinstance(parsed, CollectionLine):
        collection = replace(parsed, database=database or parsed.database, name=container or parsed.name)
        make_collection(server, collection, number)
        return DocumentWriter(server, collection), {"database": collection.database, "container": collection.name}
    line = _renamed(parsed, database, container)
    make_container(clients[0], line, number)
    names = {"database": line.database, "container": line.name}
    return BulkWriter(f"dbs/{line.database}/colls/{line.name}", clients), names


def _add(writer: BulkWriter | DocumentWriter, number: int, parsed: ItemLine | DocumentLine) -> None:
    if isinstance(writer, DocumentWriter) and isinstance(parsed, DocumentLine):
        writer.add(number, parsed.raw)
    elif isinstance(writer, BulkWriter) and isinstance(parsed, ItemLine):
        writer.add(number, parsed.item, parsed.indexing)
    else:
        raise CommandFailed(f"line {number}: items belong to containers, and documents to collections")


def _renamed(line: ContainerLine, database: str | None, container: str | None) -> ContainerLine:
    settings = {**line.settings, "id": container or line.name}
    return replace(line, database=database or line.database, settings=settings)


def make_container(client: DataClient, line: ContainerLine, number: int) -> None:
    """Create the container with its scripts. An existing one keeps its settings; its partition key must be the same."""
    link = f"dbs/{line.database}"
    shared = _throughput_headers(line.database_throughput)
    _check(client.ask("POST", "dbs", {"id": line.database}, type_="dbs", link="", headers=shared), number, but=409)
    answer = client.ask(
        "POST", f"{link}/colls", line.settings, type_="colls", link=link, headers=_throughput_headers(line.throughput)
    )
    _check(answer, number, but=409)
    container_link = f"{link}/colls/{line.name}"
    if answer.status == 409:
        existing = client.need("GET", container_link, type_="colls", link=container_link).body
        wanted = line.settings.get("partitionKey")
        if wanted is not None and existing["partitionKey"] != wanted:
            raise CommandFailed(
                f"line {number}: {line.database}/{line.name} already exists with the partition key "
                f"{', '.join(existing['partitionKey']['paths'])}; import it under another name with --container"
            )
    for segment, scripts in line.scripts.items():
        for script in scripts:
            _check(
                client.ask(
                    "POST", f"{container_link}/{segment}", script, type_=segment, link=container_link, headers=_UPSERT
                ),
                number,
            )


def _throughput_headers(throughput: dict[str, Any] | None) -> dict[str, str]:
    if throughput is None:
        return {}
    if "autoscale" in throughput:
        return {"x-ms-cosmos-offer-autopilot-settings": dumps(throughput["autoscale"]).decode()}
    return {"x-ms-offer-throughput": str(throughput.get("manual"))}


def _check(answer: DataReply, number: int, *, but: int | None = None) -> None:
    if answer.status >= 400 and answer.status != but:
        raise CommandFailed(f"line {number}: {answer.message}")


@dataclass(slots=True)
class _Bulk:
    """Items of one request, each with its line number."""

    lines: list[int] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    bytes: int = 0
    # The request's indexing directive; a request with a directive has one item.
    indexing: str | None = None


class BulkWriter:
    """Writer of upserts into one container, over several connections, with a bounded number of items in memory."""

    def __init__(self, link: str, clients: Iterable[DataClient]) -> None:
        self._link = link
        self._free: SimpleQueue[DataClient] = SimpleQueue()
        for client in clients:
            self._free.put(client)
        self._pool = ThreadPoolExecutor(CONNECTIONS)
        self._in_flight: deque[Future[None]] = deque()
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
        """Return when everything is stored."""
        self._flush()
        self._wait(0)
        self._pool.shutdown()

    def _flush(self) -> None:
        if self._bulk.items:
            self._submit(self._bulk)
            self._bulk = _Bulk()

    def _submit(self, bulk: _Bulk) -> None:
        self._wait(_REQUESTS_MAX - 1)
        self._in_flight.append(self._pool.submit(self._write, bulk))

    def _wait(self, left_max: int) -> None:
        while len(self._in_flight) > left_max:
            try:
                self._in_flight.popleft().result()
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
        """Write all of the items; throttled ones are sent again."""
        left = list(zip(bulk.lines, bulk.items, strict=True))
        give_up_at = time.monotonic() + THROTTLED_SECONDS_MAX
        while left:
            operations = [{"operationType": "Upsert", "resourceBody": item} for _, item in left]
            answer = client.ask("POST", f"{self._link}/docs", operations, type_="docs", link=self._link, headers=_BULK)
            _check(answer, left[0][0])
            throttled, wait_ms = [], 0
            for line, result in zip(left, answer.body, strict=True):
                status = result["statusCode"]
                if status == 429 and time.monotonic() < give_up_at:
                    throttled.append(line)
                    wait_ms = max(wait_ms, result.get("retryAfterMilliseconds", 0))
                elif status >= 400:
                    raise CommandFailed(f"line {line[0]}: {result.get('message', f'the server answered {status}')}")
            left = throttled
            time.sleep(wait_ms / 1000)
