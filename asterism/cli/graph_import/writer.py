"""Writes of an import: documents of a logical partition together, as one transactional batch each, because a batch
costs the server half of what its operations cost one by one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final

from asterism.cli.data_client import THROTTLED_SECONDS_MAX, DataClient
from asterism.cli.failure import CommandFailed
from asterism.cli.graph_import.records import BadElement, KeyValue
from asterism.errors import AsterismError
from asterism.values.json.text import dumps

CONNECTIONS: Final = 4
# Requests that are queued or in flight; each has at most a batch of documents in memory.
_REQUESTS_MAX: Final = CONNECTIONS * 2
_BATCH_DOCUMENTS: Final = 100
# Half the limit of a batch, because each operation has an envelope too. Larger documents are sent singly.
_BATCH_BYTES: Final = 1024 * 1024
# Documents wait for others of their logical partition up to this amount of text.
_WAITING_BYTES_MAX: Final = 48 * 1024 * 1024
# Below it, a batch of its own costs more than the documents in a bulk of many partitions.
_OWN_BATCH_DOCUMENTS: Final = 20
_UPSERT: Final = {"x-ms-documentdb-is-upsert": "True", "prefer": "return=minimal"}
_ATOMIC: Final = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "True",
    "prefer": "return=minimal",
}
_BULK: Final = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "False",
    "x-ms-cosmos-batch-continue-on-error": "True",
    "prefer": "return=minimal",
}
_THROTTLED: Final = 429
_NOT_RUN: Final = 424


@dataclass(slots=True)
class _Group:
    """Documents of one request as JSON texts, each with the place in the files that it comes from."""

    texts: list[bytes] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    size: int = 0

    def add(self, text: bytes, place: tuple[str, int]) -> None:
        self.texts.append(text)
        self.places.append(place)
        self.size += len(text)

    def has_room_for(self, text: bytes) -> bool:
        return len(self.texts) < _BATCH_DOCUMENTS and self.size + len(text) <= _BATCH_BYTES


class GraphWriter:
    """Writer of upserts into one container, over several connections, with a bounded number of documents in memory."""

    def __init__(self, link: str, clients: Iterable[DataClient], *, has_partitions: bool) -> None:
        self._link = link
        self._has_partitions = has_partitions
        self._free: SimpleQueue[DataClient] = SimpleQueue()
        for client in clients:
            self._free.put(client)
        self._pool = ThreadPoolExecutor(CONNECTIONS)
        self._in_flight: deque[Future[None]] = deque()
        self._groups: dict[str, _Group] = {}
        self._waiting_bytes = 0

    def add(self, key: KeyValue, document: dict[str, Any], place: tuple[str, int]) -> None:
        """Take a document of the logical partition `key`; `place` is file and line, for messages."""
        try:
            text = dumps(document)
        except AsterismError as error:
            raise BadElement(str(getattr(error, "reason", error))) from None
        if len(text) > _BATCH_BYTES:
            self._submit(None, _Group([text], [place]))
            return
        header = dumps([key]).decode() if self._has_partitions else ""
        group = self._groups.get(header)
        if group is None:
            group = self._groups[header] = _Group()
        elif not group.has_room_for(text):
            self._submit(header, group)
            self._waiting_bytes -= group.size
            group = self._groups[header] = _Group()
        group.add(text, place)
        self._waiting_bytes += len(text)
        if self._waiting_bytes > _WAITING_BYTES_MAX:
            self._flush()

    def finish(self) -> None:
        """Return when everything is stored."""
        self._flush()
        self._wait(0)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _flush(self) -> None:
        mixed = _Group()
        for header, group in self._groups.items():
            if header and len(group.texts) >= _OWN_BATCH_DOCUMENTS:
                self._submit(header, group)
                continue
            for text, place in zip(group.texts, group.places, strict=True):
                if not mixed.has_room_for(text):
                    self._submit(None, mixed)
                    mixed = _Group()
                mixed.add(text, place)
        if mixed.texts:
            self._submit(None, mixed)
        self._groups.clear()
        self._waiting_bytes = 0

    def _submit(self, header: str | None, group: _Group) -> None:
        self._wait(_REQUESTS_MAX - 1)
        self._in_flight.append(self._pool.submit(self._write, header or None, group))

    def _wait(self, left_max: int) -> None:
        while len(self._in_flight) > left_max:
            self._in_flight.popleft().result()

    def _write(self, header: str | None, group: _Group) -> None:
        client = self._free.get()
        try:
            if len(group.texts) == 1:
                self._write_single(client, group)
            elif header is not None:
                self._write_together(client, header, group)
            else:
                self._write_each(client, group)
        finally:
            self._free.put(client)

    def _write_single(self, client: DataClient, group: _Group) -> None:
        path = f"{self._link}/docs"
        answer = client.ask("POST", path, group.texts[0], type_="docs", link=self._link, headers=_UPSERT)
        if answer.status >= 400:
            raise failure_at(group.places[0], answer.message)

    def _write_together(self, client: DataClient, header: str, group: _Group) -> None:
        answer = client.ask(
            "POST",
            f"{self._link}/docs",
            _operations(group.texts),
            type_="docs",
            link=self._link,
            headers={**_ATOMIC, "x-ms-documentdb-partitionkey": header},
        )
        if answer.status >= 400:
            raise failure_at(group.places[0], answer.message)
        for place, result in zip(group.places, answer.body, strict=True):
            if result["statusCode"] >= 400 and result["statusCode"] != _NOT_RUN:
                raise failure_at(place, _message(result))

    def _write_each(self, client: DataClient, group: _Group) -> None:
        """Write all of the documents; throttled ones are sent again."""
        left = list(zip(group.texts, group.places, strict=True))
        give_up_at = time.monotonic() + THROTTLED_SECONDS_MAX
        while left:
            body = _operations([text for text, _ in left])
            answer = client.ask("POST", f"{self._link}/docs", body, type_="docs", link=self._link, headers=_BULK)
            if answer.status >= 400:
                raise failure_at(left[0][1], answer.message)
            throttled, wait_ms = [], 0
            for entry, result in zip(left, answer.body, strict=True):
                status = result["statusCode"]
                if status == _THROTTLED and time.monotonic() < give_up_at:
                    throttled.append(entry)
                    wait_ms = max(wait_ms, result.get("retryAfterMilliseconds", 0))
                elif status >= 400:
                    raise failure_at(entry[1], _message(result))
            left = throttled
            time.sleep(wait_ms / 1000)


def _operations(texts: list[bytes]) -> bytes:
    return b'[{"operationType":"Upsert","resourceBody":%b}]' % (
        b'},{"operationType":"Upsert","resourceBody":'.join(texts)
    )


def _message(result: dict[str, Any]) -> str:
    return str(result.get("message", f"the server answered {result['statusCode']}"))


def failure_at(place: tuple[str, int], message: str) -> CommandFailed:
    file, line = place
    return CommandFailed(f"{file}, line {line}: {message}")
