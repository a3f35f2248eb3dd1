"""The keys and values of hubs inside a partition (docs/storage-format.md has them byte by byte).

A hub is a keyspace on a numbered line, and each point of it is a partition of the hub. Its events lie in *chunks*: the
events of one append, under the sequence number of the first. Two small records describe the ends of the log, one for
those that append and one for those that remove, so that neither makes the other repeat its work.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from asterism.errors import StoredDamage
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.contract import Span

# point -> the end of the log, as `Tail`
TAILS: Final = b"\x18"
# point -> the beginning of the log, as `Front`; absent while nothing has been removed
FRONTS: Final = b"\x19"
# point, first sequence number -> events
CHUNKS: Final = b"\x1a"
# point, consumer group in lower case -> the receiver with an epoch, as `ReceiverClaim`
RECEIVERS: Final = b"\x1b"

HOLDER_BYTES: Final = 16

_SEQUENCE = struct.Struct(">Q")
_TAIL = struct.Struct(">QQQ")
_FRONT = struct.Struct(">QQ")
_CLAIM = struct.Struct(f">qQ{HOLDER_BYTES}s")
_HEAD = struct.Struct(">QQLB")
_HAS_KEYS: Final = 1
# The length of a partition key that is not there.
_NO_KEY: Final = 0xFFFF
PARTITION_KEY_BYTES_MAX: Final = _NO_KEY - 1


class Tail(NamedTuple):
    """The end of a log."""

    next_sequence: int = 0
    # Of all chunks that were ever appended.
    bytes_written: int = 0
    # When the last event was enqueued, in milliseconds since 1970; 0 if there has been none.
    enqueued_ms: int = 0


class Front(NamedTuple):
    """The beginning of a log: the events and the bytes before it have been removed."""

    first_sequence: int = 0
    bytes_removed: int = 0


class ReceiverClaim(NamedTuple):
    """The receiver with an epoch that has a partition to itself within its group, until a moment."""

    epoch: int
    until_ms: int
    holder: bytes


class NewEvent(NamedTuple):
    """An event to append: its content, which only doors understand, and its partition key in UTF-8."""

    content: bytes
    partition_key: bytes | None = None


class ChunkHead(NamedTuple):
    """The part of a chunk that searches need."""

    first_sequence: int
    event_count: int
    enqueued_ms: int
    # Of all chunks before it that were ever appended.
    bytes_before: int

    @property
    def end_sequence(self) -> int:
        return self.first_sequence + self.event_count


# --- keys -------------------------------------------------------------------------------------------------------------


def tail_key(partition: int) -> bytes:
    return TAILS + numbered_point(partition)


def front_key(partition: int) -> bytes:
    return FRONTS + numbered_point(partition)


def chunk_key(partition: int, first_sequence: int) -> bytes:
    return CHUNKS + numbered_point(partition) + _SEQUENCE.pack(first_sequence)


def receiver_key(partition: int, group: str) -> bytes:
    return RECEIVERS + numbered_point(partition) + group.lower().encode()


def chunks_span(partition: int, first_sequence: int, end_sequence: int) -> Span:
    """Return the span of the chunks that begin in an interval of sequence numbers."""
    return Span(chunk_key(partition, first_sequence), chunk_key(partition, end_sequence))


def first_sequence_of(key: bytes) -> int:
    (sequence,) = _SEQUENCE.unpack(key[-_SEQUENCE.size :])
    return int(sequence)


# --- values -----------------------------------------------------------------------------------------------------------


def pack_tail(tail: Tail) -> bytes:
    return _TAIL.pack(*tail)


def unpack_tail(value: bytes | None) -> Tail:
    if value is None:
        return Tail()
    try:
        return Tail(*_TAIL.unpack(value))
    except struct.error:
        raise StoredDamage(what="end of an event log") from None


def pack_front(front: Front) -> bytes:
    return _FRONT.pack(*front)


def unpack_front(value: bytes | None) -> Front:
    if value is None:
        return Front()
    try:
        return Front(*_FRONT.unpack(value))
    except struct.error:
        raise StoredDamage(what="beginning of an event log") from None


def pack_claim(claim: ReceiverClaim) -> bytes:
    return _CLAIM.pack(*claim)


def unpack_claim(value: bytes) -> ReceiverClaim:
    try:
        return ReceiverClaim(*_CLAIM.unpack(value))
    except struct.error:
        raise StoredDamage(what="claim of a receiver") from None


def pack_chunk(events: Sequence[NewEvent], *, enqueued_ms: int, bytes_before: int) -> bytes:
    """Return the stored bytes of a chunk: a head, the lengths, the contents, the keys."""
    count = len(events)
    contents = [event.content for event in events]
    keys = [event.partition_key for event in events]
    has_keys = any(key is not None for key in keys)
    parts = [_HEAD.pack(enqueued_ms, bytes_before, count, _HAS_KEYS if has_keys else 0)]
    parts.append(struct.pack(f">{count}L", *map(len, contents)))
    if has_keys:
        parts.append(struct.pack(f">{count}H", *(_NO_KEY if key is None else len(key) for key in keys)))
    parts.extend(contents)
    parts.extend(key for key in keys if key)
    return b"".join(parts)


def unpack_head(first_sequence: int, value: bytes) -> ChunkHead:
    try:
        enqueued_ms, bytes_before, count, _ = _HEAD.unpack_from(value)
    except struct.error:
        raise StoredDamage(what="chunk of events") from None
    return ChunkHead(first_sequence, count, enqueued_ms, bytes_before)


def unpack_events(value: bytes) -> list[NewEvent]:
    """Return the events of a chunk; StoredDamage if its lengths do not add up."""
    try:
        _, _, count, flags = _HEAD.unpack_from(value)
        lengths = struct.unpack_from(f">{count}L", value, _HEAD.size)
        at = _HEAD.size + 4 * count
        key_lengths = struct.unpack_from(f">{count}H", value, at) if flags & _HAS_KEYS else None
    except struct.error:
        raise StoredDamage(what="chunk of events") from None
    at += 2 * count if key_lengths is not None else 0
    contents: list[bytes] = []
    for length in lengths:
        contents.append(value[at : at + length])
        at += length
    if key_lengths is None:
        events = [NewEvent(content) for content in contents]
    else:
        events = []
        for content, length in zip(contents, key_lengths, strict=True):
            if length == _NO_KEY:
                events.append(NewEvent(content))
            else:
                events.append(NewEvent(content, value[at : at + length]))
                at += length
    if at != len(value):
        raise StoredDamage(what="chunk of events")
    return events
