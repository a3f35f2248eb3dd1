"""One partition of a hub: a log of events in the order of their sequence numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, assert_never

from asterism.errors import StorageUnavailable
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.limits import MIB
from asterism.models.event_logs.appender import Appender
from asterism.models.event_logs.budget import HubBudget
from asterism.models.event_logs.events import (
    Appended,
    AppendResult,
    BehindEnd,
    Busy,
    BusyReason,
    Chunk,
    Event,
    FromLatest,
    FromSequence,
    FromStart,
    FromTime,
    PartitionProperties,
    Place,
)
from asterism.models.event_logs.layout import (
    ChunkHead,
    Front,
    NewEvent,
    Tail,
    chunks_span,
    first_sequence_of,
    front_key,
    tail_key,
    unpack_events,
    unpack_front,
    unpack_head,
    unpack_tail,
)
from asterism.models.event_logs.log_end import LogEnd
from asterism.models.event_logs.services import EventLogServices, of_hub
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.contract import ScanPage, Span
from asterism.throughput import charge
from asterism.throughput.token_bucket import BudgetSpent

# One read from the store: some milliseconds, and enough for many pages of small events.
_PAGE_CHUNKS_MAX: Final = 256
_PAGE_BYTES_MAX: Final = MIB
# An append that the store did not answer lets others avoid the partition for this long.
DOWN_SECONDS: Final = 5.0


class PartitionLog:
    """Appends to one partition and reads it. One object per partition and process."""

    def __init__(
        self,
        hub_name: str,
        keyspace: Keyspace,
        partition: int,
        services: EventLogServices,
        budget: Callable[[], HubBudget | None],
    ) -> None:
        self.partition = partition
        self.keyspace = keyspace
        self.id = (keyspace.record.rid, partition)
        self._hub_name = hub_name
        self._services = services
        self._budget = budget
        self._point = numbered_point(partition)
        self.end = LogEnd(hub_name, keyspace, partition, services)
        self._appender = Appender(hub_name, keyspace, partition, self.end, services)
        self._down_until = float("-inf")
        # As this process knows it: events before it may still be in memory, and are not read any more.
        self.front = Front()

    async def stop(self) -> None:
        self.end.stop()
        await self._appender.stop()

    # --- appending ----------------------------------------------------------------------------------------------------

    @property
    def is_down(self) -> bool:
        """Return whether the store did not answer an append in the last few seconds."""
        return self._services.clock.monotonic_seconds() < self._down_until

    def append(self, events: Sequence[NewEvent]) -> Awaitable[AppendResult]:
        """Append events together, in the order of the calls: the place is taken at once, also before the result is
        awaited. Durable when the result is `Appended`.

        The result raises ResourceNotFound if the hub was deleted, and StorageUnavailable if it is unknown whether the
        events were appended.
        """
        content_bytes = sum(len(event.content) for event in events)
        busy = self._busy(len(events), content_bytes)
        if busy is not None:
            result: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
            result.set_result(busy)
            return result
        return self._outcome(self._appender.append(events, content_bytes))

    def _busy(self, events: int, content_bytes: int) -> Busy | None:
        now = self._services.clock.monotonic_seconds()
        if now < self._down_until:
            return Busy(BusyReason.PARTITION_DOWN, self._down_until - now)
        budget = self._budget()
        if budget is not None:
            admission = budget.take_in(events=events, bytes_in=content_bytes, now=now)
            if isinstance(admission, BudgetSpent):
                return Busy(BusyReason.THROUGHPUT, admission.retry_after_seconds)
        return None

    async def _outcome(self, appended: Awaitable[Appended]) -> Appended:
        try:
            result = await appended
        except StorageUnavailable:
            self._down_until = self._services.clock.monotonic_seconds() + DOWN_SECONDS
            raise
        self._down_until = float("-inf")
        return result

    # --- the ends of the log ------------------------------------------------------------------------------------------

    async def ends(self) -> tuple[Front, Tail]:
        """Read both ends of the log, from one moment."""
        keys = [front_key(self.partition), tail_key(self.partition)]
        with of_hub(self._hub_name, self.keyspace):
            _, _, (front, tail) = await self._services.router.read(self.keyspace, self._point, keys)
        found = unpack_tail(tail)
        self.end.found(found)
        self.moved_front(unpack_front(front))
        return self.front, found

    def moved_front(self, front: Front) -> None:
        """Take over a front that was read or written; it never moves back."""
        self.front = max(self.front, front)

    async def properties(self) -> PartitionProperties:
        front, tail = await self.ends()
        return PartitionProperties(
            begin_sequence=front.first_sequence,
            last_sequence=tail.next_sequence - 1,
            last_enqueued_ms=tail.enqueued_ms if tail.next_sequence else None,
            is_empty=front.first_sequence == tail.next_sequence,
            stored_bytes=tail.bytes_written - front.bytes_removed,
            stored_events=tail.next_sequence - front.first_sequence,
        )

    async def find(self, place: Place) -> int | BehindEnd:
        """Return the sequence number from which to read."""
        match place:
            case FromStart():
                front, _ = await self.ends()
                return front.first_sequence
            case FromLatest():
                return (await self.end.now()).next_sequence
            case FromSequence(sequence, is_inclusive):
                front, tail = await self.ends()
                start = sequence if is_inclusive else sequence + 1
                return (
                    max(start, front.first_sequence) if start <= tail.next_sequence else BehindEnd(tail.next_sequence)
                )
            case FromTime(enqueued_ms, is_inclusive):
                front, tail = await self.ends()
                least = enqueued_ms if is_inclusive else enqueued_ms + 1
                return await self.first_chunk(
                    front.first_sequence, tail.next_sequence, lambda head: head.enqueued_ms >= least
                )
            case _:
                assert_never(place)

    # --- searching ----------------------------------------------------------------------------------------------------

    async def first_chunk(self, start: int, end: int, is_behind: Callable[[ChunkHead], bool]) -> int:
        """Return the first sequence number of the first chunk in [start, end) for which `is_behind` holds, which then
        holds for all later ones; `end` if it holds for none. A bisection: there is no index of times and sizes."""
        while start < end:
            head = await self.chunk_at((start + end) // 2)
            if head is None:
                # Removed meanwhile.
                start = (start + end) // 2 + 1
            elif is_behind(head):
                end = head.first_sequence
            else:
                start = head.end_sequence
        return start

    async def chunk_at(self, sequence: int) -> ChunkHead | None:
        """Return the head of the chunk with an event, or of the nearest before it."""
        span = chunks_span(self.partition, 0, sequence + 1)
        page = await self._scan(span, limit=1, reverse=True)
        return None if not page.entries else _head_of(*page.entries[0])

    async def _scan(self, span: Span, *, limit: int, reverse: bool = False) -> ScanPage:
        keyspace = self.keyspace
        while True:
            record = keyspace.record
            with of_hub(self._hub_name, keyspace):
                page = await self._services.router.scan(
                    keyspace,
                    record,
                    record.map.find(self._point),
                    span,
                    limit=limit,
                    bytes_max=_PAGE_BYTES_MAX,
                    reverse=reverse,
                )
            if page is not None:
                return page

    # --- reading ------------------------------------------------------------------------------------------------------

    def reader(self, start: int) -> LogReader:
        return LogReader(self, start)

    async def read(self, start: int, *, events_max: int, bytes_max: int) -> list[Event]:
        """Return events from a sequence number on: at least one if there is any that is known to this process."""
        return await LogReader(self, start).read(events_max=events_max, bytes_max=bytes_max)

    def cached_chunk(self, first_sequence: int) -> Chunk | None:
        return self._services.cache.get(self.id, first_sequence)

    async def chunk_from(self, sequence: int) -> Chunk | None:
        """Read the chunk with an event, or the first behind it; None at the end of the log."""
        page = await self._scan(chunks_span(self.partition, sequence, 2**63), limit=_PAGE_CHUNKS_MAX)
        entries = page.entries
        if not entries or first_sequence_of(entries[0][0]) > sequence:
            # The event is inside of a chunk, or has been removed.
            below = await self._scan(chunks_span(self.partition, 0, sequence + 1), limit=1, reverse=True)
            within = [entry for entry in below.entries if _head_of(*entry).end_sequence > sequence]
            entries = [*within, *entries]
        chunks = [Chunk(_head_of(key, value), unpack_events(value)) for key, value in entries]
        for chunk in chunks:
            self._services.cache.add(self.id, chunk)
        return chunks[0] if chunks else None

    def spend_reading(self, content_bytes: int) -> None:
        """Count a page for the statistics of the partition, and take it from the hub's throughput."""
        budget = self._budget()
        if budget is not None:
            budget.spend_out(content_bytes, now=self._services.clock.monotonic_seconds())
        partition = self.keyspace.record.map.find(self._point)
        self.keyspace.spend(partition, charge.feed_page(items=1, page_bytes=content_bytes), self._point)

    def wait_seconds_out(self) -> float:
        """Return how long readers must wait for the hub's throughput."""
        budget = self._budget()
        return 0.0 if budget is None else budget.wait_seconds_out(now=self._services.clock.monotonic_seconds())


class LogReader:
    """A place in a log that moves on with what is read. It costs no write, and nothing while it waits."""

    __slots__ = ("_chunk", "log", "next_sequence")

    def __init__(self, log: PartitionLog, start: int) -> None:
        self.log = log
        self.next_sequence = start
        self._chunk: Chunk | None = None

    async def read(self, *, events_max: int, bytes_max: int) -> list[Event]:
        """Return the next events: at least one if there is any that is known to this process (`LogEnd.has`), and as
        many as are at hand within the limits; `bytes_max` is passed by the last event at most."""
        found: list[Event] = []
        size = 0
        while len(found) < events_max and size < bytes_max:
            chunk = self._chunk
            if chunk is None or chunk.end_sequence <= self.next_sequence:
                chunk = await self._next_chunk(is_needed=not found)
                if chunk is None:
                    break
            start = self.next_sequence - chunk.first_sequence
            if start == 0 and len(chunk.events) <= events_max - len(found) and chunk.content_bytes <= bytes_max - size:
                found += chunk.events
                size += chunk.content_bytes
                self.next_sequence = chunk.end_sequence
                continue
            for event in chunk.events[start : start + events_max - len(found)]:
                found.append(event)
                size += len(event.content)
                if size >= bytes_max:
                    break
            self.next_sequence = found[-1].sequence + 1
        if found:
            self.log.spend_reading(size)
        return found

    def go_back(self, sequence: int) -> None:
        """Read again from an event that was read and not used."""
        self.next_sequence = sequence
        self._chunk = None

    async def _next_chunk(self, *, is_needed: bool) -> Chunk | None:
        """Return the chunk at the next event; None at the end of the log, or if only the store has it and events are at
        hand already."""
        log = self.log
        self.next_sequence = max(self.next_sequence, log.front.first_sequence)
        chunk = log.cached_chunk(self.next_sequence)
        end = log.end.known
        if chunk is None and is_needed and end is not None and end.next_sequence > self.next_sequence:
            chunk = await log.chunk_from(self.next_sequence)
            # Events that are not there any more have been removed; all of them, if there is no chunk.
            present = end.next_sequence if chunk is None else chunk.first_sequence
            self.next_sequence = max(self.next_sequence, present)
        self._chunk = chunk
        return chunk


def _head_of(key: bytes, value: bytes) -> ChunkHead:
    return unpack_head(first_sequence_of(key), value)
