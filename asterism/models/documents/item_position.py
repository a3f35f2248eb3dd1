"""Positions in the order of creation, true after a split, a merge, a move and a restart.

A reader goes through the physical partitions in the order of the hash line, and through each of them in the order in
which its items were created. The rest that it has not read is a list of pieces: an interval of the line, and the
smallest item number that is still wanted there. A position names no partition. After a split its first piece lies in
two partitions, and each of them is read from the same number on; after a merge it is a part of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asterism.errors import MalformedRequest
from asterism.models.documents.results import Scope
from asterism.values.records import pack_record, unpack_token

# An item number as eight bytes, then the item's reference: sorts as items were created.
Numbered = bytes

_NUMBER_END = 1 << 64


# Made for every slice of a scan, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class Piece:
    """The items of [start, end) whose numbers are `least` or more."""

    start: bytes
    end: bytes
    least: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """The pieces that are left: they lie side by side from `start` on, each with its end and its least number. Behind
    the last of them, everything is left."""

    start: bytes
    steps: tuple[tuple[bytes, int], ...] = ()

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Position:
        """Return the position at which exactly these pieces, and all that is behind them, are left."""
        return cls(pieces[0].start, tuple((piece.end, piece.least) for piece in pieces))

    def to_json(self) -> list[Any]:
        return [self.start.hex(), [[end.hex(), least] for end, least in self.steps]]

    @classmethod
    def from_json(cls, record: Any) -> Position:
        """Raise ValueError, TypeError or IndexError for what `to_json` cannot have made."""
        start, steps = record
        return cls(bytes.fromhex(start), tuple((bytes.fromhex(end), _number(least)) for end, least in steps))

    def to_bytes(self) -> bytes:
        return pack_record(self.to_json())

    @classmethod
    def from_bytes(cls, token: bytes) -> Position:
        try:
            return cls.from_json(unpack_token(token))
        except (MalformedRequest, ValueError, TypeError, IndexError):
            raise invalid_token() from None


def invalid_token() -> MalformedRequest:
    return MalformedRequest(reason="Invalid continuation token: it was not issued by this server.")


def pieces_of(scope: Scope, position: Position | None) -> list[Piece]:
    """Return what is left of a scope, in the order in which it is to be read."""
    if position is None:
        return [Piece(scope.start, scope.end)] if scope.start < scope.end else []
    pieces = []
    at = position.start
    for end, least in (*position.steps, (scope.end, 0)):
        low, high = max(at, scope.start), min(end, scope.end)
        if low < high:
            pieces.append(Piece(low, high, least))
        at = max(at, end)
    return pieces


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < _NUMBER_END:
        raise ValueError
    return value
