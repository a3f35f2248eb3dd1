"""Events as callers get them, the places in a log where reading begins, and the outcomes of appends."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asterism.models.event_logs.layout import ChunkHead, NewEvent

# Memory for an event besides its bytes: the object, its number, and its place in lists.
_EVENT_MEMORY_BYTES: Final = 250
_CHUNK_MEMORY_BYTES: Final = 500


class Event:
    """An event of a log."""

    __slots__ = ("content", "enqueued_ms", "partition_key", "rendered", "sequence")

    def __init__(self, sequence: int, enqueued_ms: int, content: bytes, partition_key: bytes | None) -> None:
        self.sequence = sequence
        self.enqueued_ms = enqueued_ms
        self.content = content
        self.partition_key = partition_key
        # The event as a door sends it: kept here by the door, so that readers of the same chunk share it.
        self.rendered: bytes | None = None


class Chunk:
    """The events of one append, in memory: never changed, and shared by all readers."""

    __slots__ = (
        "_enqueued_ms",
        "_events",
        "_stored_events",
        "content_bytes",
        "end_sequence",
        "first_sequence",
        "memory_bytes",
    )

    def __init__(self, head: ChunkHead, events: Sequence[NewEvent]) -> None:
        self.first_sequence = head.first_sequence
        self.end_sequence = head.end_sequence
        self._enqueued_ms = head.enqueued_ms
        self._stored_events: Sequence[NewEvent] = events
        self._events: list[Event] | None = None
        self.content_bytes = sum(len(event.content) for event in events)
        # Doors keep a second copy of each content.
        self.memory_bytes = 2 * self.content_bytes + _EVENT_MEMORY_BYTES * len(events) + _CHUNK_MEMORY_BYTES

    @property
    def events(self) -> list[Event]:
        """The events, made for the first reader: many chunks have none while they are in memory."""
        events = self._events
        if events is None:
            events = self._events = [
                Event(sequence, self._enqueued_ms, content, key)
                for sequence, (content, key) in enumerate(self._stored_events, self.first_sequence)
            ]
            self._stored_events = ()
        return events


# --- places -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FromStart:
    """The oldest event that is kept."""


@dataclass(frozen=True, slots=True)
class FromLatest:
    """The first event that is appended from now on."""


@dataclass(frozen=True, slots=True)
class FromSequence:
    """The event with a sequence number, or the first behind it."""

    sequence: int
    is_inclusive: bool


@dataclass(frozen=True, slots=True)
class FromTime:
    """The first event that was enqueued behind a moment, or at it."""

    enqueued_ms: int
    is_inclusive: bool


Place = FromStart | FromLatest | FromSequence | FromTime


@dataclass(frozen=True, slots=True)
class BehindEnd:
    """The place is behind the end of the log: it belongs to another hub, or to one of this name that was deleted."""

    next_sequence: int


# --- outcomes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Appended:
    """The events are durable, under consecutive numbers."""

    first_sequence: int
    enqueued_ms: int


class BusyReason(enum.Enum):
    THROUGHPUT = "The hub has used up its throughput units."
    PARTITION_DOWN = "The partition does not answer at present."


@dataclass(frozen=True, slots=True)
class Busy:
    """Nothing was appended: the caller may try again after a time."""

    reason: BusyReason
    retry_after_seconds: float


AppendResult = Appended | Busy


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """A partition of a hub at one moment."""

    begin_sequence: int
    # -1 if there has been no event.
    last_sequence: int
    last_enqueued_ms: int | None
    is_empty: bool
    stored_bytes: int
    stored_events: int

    @property
    def last_offset(self) -> str:
        return offset_text(self.last_sequence)


def offset_text(sequence: int) -> str:
    """Return the offset of an event as clients keep it: its sequence number, which one search serves (E4)."""
    return str(sequence)
