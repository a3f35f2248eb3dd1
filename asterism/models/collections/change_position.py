"""The position of a reader of changes: for each keyspace, an LSN for every point of the line.

It names no partition, so it stays true through splits, merges and moves. Within a batch it also names the last entry
that was seen. As bytes it is compact: clients get it with every change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from asterism.errors import MalformedRequest
from asterism.partitioning.feed_position import FeedPosition
from asterism.values.identifiers import Lsn

_FORM = 1
# Numbers are stored in eight bytes, and what follows the largest LSN must fit in them.
_NUMBER_MAX = 2**63 - 2
_SINCE_MAX = 2**64
_SHIFT_MAX = 63


class SeenInBatch(NamedTuple):
    """The last entry that was seen of a batch with more of them: its key, in the part of the line that was read."""

    keyspace: bytes
    start: bytes
    end: bytes
    lsn: int
    place: int
    number: int

    def covers(self, keyspace: bytes, point: bytes, entry: tuple[int, int, int]) -> bool:
        """Return whether an entry (LSN, place, number) of the batch has been seen."""
        return (
            keyspace == self.keyspace
            and self.start <= point < self.end
            and entry[0] == self.lsn
            and entry <= (self.lsn, self.place, self.number)
        )


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """How far a reader has come, by the ids of keyspaces. One that is not named is read from its beginning."""

    keyspaces: Mapping[bytes, FeedPosition] = field(default_factory=dict)
    # Nearly always none or one: only a merge of partitions can leave several.
    partly: tuple[SeenInBatch, ...] = ()
    # Changes before this hybrid time are left out.
    since: int = 0

    def to_bytes(self) -> bytes:
        parts = bytearray((_FORM,))
        _put_number(parts, self.since)
        _put_number(parts, len(self.keyspaces))
        for rid, position in self.keyspaces.items():
            _put_bytes(parts, rid)
            _put_number(parts, len(position.steps))
            for start, lsn in position.steps:
                _put_bytes(parts, start)
                _put_number(parts, lsn)
        _put_number(parts, len(self.partly))
        for seen in self.partly:
            for data in (seen.keyspace, seen.start, seen.end):
                _put_bytes(parts, data)
            for number in (seen.lsn, seen.place, seen.number):
                _put_number(parts, number)
        return bytes(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> ChangePosition:
        """Return the position that bytes spell; MalformedRequest if they spell none."""
        reader = _Reader(data)
        if reader.byte() != _FORM:
            raise _refusal()
        since = reader.number(_SINCE_MAX)
        keyspaces: dict[bytes, FeedPosition] = {}
        for _ in range(reader.number()):
            rid = reader.bytes()
            steps = tuple((reader.bytes(), Lsn(reader.number())) for _ in range(reader.number()))
            if not steps or steps[0][0] != b"" or any(left[0] >= right[0] for left, right in pairwise(steps)):
                raise _refusal()
            keyspaces[rid] = FeedPosition(steps)
        partly = [
            SeenInBatch(
                reader.bytes(), reader.bytes(), reader.bytes(), reader.number(), reader.number(), reader.number()
            )
            for _ in range(reader.number())
        ]
        return cls(keyspaces, tuple(partly), since)


class _Reader:
    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        if self._at >= len(self._data):
            raise _refusal()
        self._at += 1
        return self._data[self._at - 1]

    def number(self, most: int = _NUMBER_MAX) -> int:
        result = shift = 0
        while result <= most:
            part = self.byte()
            result |= (part & 0x7F) << shift
            if part < 0x80 and result <= most:
                return result
            shift += 7
            if shift > _SHIFT_MAX:
                break
        raise _refusal()

    def bytes(self) -> bytes:
        length = self.number()
        end = self._at + length
        if end > len(self._data):
            raise _refusal()
        found = self._data[self._at : end]
        self._at = end
        return found


def _put_number(parts: bytearray, number: int) -> None:
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)


def _put_bytes(parts: bytearray, data: bytes) -> None:
    _put_number(parts, len(data))
    parts += data


def _refusal() -> MalformedRequest:
    return MalformedRequest(reason="The resume token was not issued by this server.")
