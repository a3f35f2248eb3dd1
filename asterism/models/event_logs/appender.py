"""Appends to one partition: one batch at a time, and what arrives meanwhile goes into the next.

So every batch expects the end that the one before has left, and the rate does not depend on how small the appends are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import Final

from asterism.errors import StorageUnavailable, TooMuchContention
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.contention import ATTEMPTS_MAX
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.limits import MIB
from asterism.models.event_logs.events import Appended, Chunk
from asterism.models.event_logs.layout import (
    ChunkHead,
    NewEvent,
    Tail,
    chunk_key,
    pack_chunk,
    pack_tail,
    tail_key,
)
from asterism.models.event_logs.log_end import LogEnd
from asterism.models.event_logs.services import EventLogServices, of_hub
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.contract import Batch, Expectation, ExpectationFailed
from asterism.throughput import charge

# Appends are joined up to this much; a larger one is a chunk by itself. A reader of one event loads its chunk.
CHUNK_BYTES_MAX: Final = MIB
CHUNK_EVENTS_MAX: Final = 1_000


class _Append:
    """Events that wait for their turn, and the future of their caller."""

    __slots__ = ("content_bytes", "events", "result")

    def __init__(self, events: Sequence[NewEvent], content_bytes: int, result: asyncio.Future[Appended]) -> None:
        self.events = events
        self.content_bytes = content_bytes
        self.result = result


class Appender:
    def __init__(
        self, hub_name: str, keyspace: Keyspace, partition: int, end: LogEnd, services: EventLogServices
    ) -> None:
        self._hub_name = hub_name
        self._keyspace = keyspace
        self._partition = partition
        self._point = numbered_point(partition)
        self._end = end
        self._services = services
        # A partition has no largest size: retention bounds it.
        self._committer = Committer(
            keyspace, services.router, services.reshaper, logical_bytes_max=None, physical_bytes_max=None
        )
        self._log_id = (keyspace.record.rid, partition)
        self._waiting: deque[_Append] = deque()
        self._run: asyncio.Task[None] | None = None

    def append(self, events: Sequence[NewEvent], content_bytes: int) -> Awaitable[Appended]:
        """Take a place in the order of appends, now; the events are durable when the result is there.

        Once called it goes on, also if the caller does not wait for it.
        """
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Appended] = loop.create_future()
        self._waiting.append(_Append(events, content_bytes, result))
        if self._run is None or self._run.done():
            self._run = loop.create_task(self._append_waiting())
        return result

    async def stop(self) -> None:
        """Return when nothing is under way."""
        while self._run is not None and not self._run.done():
            await asyncio.wait({self._run})

    async def _append_waiting(self) -> None:
        while self._waiting:
            group = self._next_group()
            try:
                first, enqueued_ms = await self._append_group(group)
            except BaseException as problem:
                self._end.forget()
                _fail(group, problem)
                if not isinstance(problem, Exception):
                    _fail(self._waiting, problem)
                    raise
            else:
                for append in group:
                    if not append.result.done():
                        append.result.set_result(Appended(first, enqueued_ms))
                    first += len(append.events)

    def _next_group(self) -> list[_Append]:
        waiting = self._waiting
        first = waiting.popleft()
        group, events, content_bytes = [first], len(first.events), first.content_bytes
        while waiting:
            events += len(waiting[0].events)
            content_bytes += waiting[0].content_bytes
            if events > CHUNK_EVENTS_MAX or content_bytes > CHUNK_BYTES_MAX:
                break
            group.append(waiting.popleft())
        return group

    async def _append_group(self, group: Sequence[_Append]) -> tuple[int, int]:
        """Append events as one chunk; return the number of the first, and when they were enqueued."""
        events = group[0].events if len(group) == 1 else [event for append in group for event in append.events]
        end = self._end
        tail = end.known or await end.look()
        for _ in range(ATTEMPTS_MAX):
            # No event is older than the one before it, whatever the clock does (E3).
            enqueued_ms = max(tail.enqueued_ms, self._services.now_ms())
            try:
                stored_bytes = await self._commit(tail, events, enqueued_ms)
            except ExpectationFailed:
                # Another process was faster.
                tail = await end.look()
                continue
            first = tail.next_sequence
            head = ChunkHead(first, len(events), enqueued_ms, tail.bytes_written)
            self._services.cache.add(self._log_id, Chunk(head, events))
            end.found(Tail(head.end_sequence, tail.bytes_written + stored_bytes, enqueued_ms))
            return first, enqueued_ms
        raise TooMuchContention

    async def _commit(self, tail: Tail, events: Sequence[NewEvent], enqueued_ms: int) -> int:
        """Append events at an end of the log, in one batch that expects it (E1); return their stored bytes."""
        chunk = pack_chunk(events, enqueued_ms=enqueued_ms, bytes_before=tail.bytes_written)
        after = Tail(tail.next_sequence + len(events), tail.bytes_written + len(chunk), enqueued_ms)
        key = tail_key(self._partition)
        batch = Batch(
            expectations=[Expectation(key, pack_tail(tail) if tail.next_sequence else None)],
            puts=[(key, pack_tail(after)), (chunk_key(self._partition, tail.next_sequence), chunk)],
        )
        with of_hub(self._hub_name, self._keyspace), self._keyspace.in_flight:
            await self._committer.commit(
                self._point,
                batch,
                bytes_delta=len(chunk),
                items_delta=len(events),
                cost=charge.write(len(chunk), indexed_paths=0),
            )
        return len(chunk)


def _fail(appends: Sequence[_Append] | deque[_Append], problem: BaseException) -> None:
    error = problem if isinstance(problem, Exception) else StorageUnavailable(reason="the server stops")
    for append in appends:
        if not append.result.done():
            append.result.set_exception(error)
            # Taken note of, should its caller be gone.
            append.result.exception()
