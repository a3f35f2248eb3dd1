"""Where a query goes on: small, opaque to clients, and true after a split, a merge and a restart.

Nothing in it names a partition. A query without order goes on at a place on the hash line; one in the order of an index
goes on behind an entry of that index; one whose results are known only when all items are goes on behind a number of
results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from asterism.errors import MalformedRequest
from asterism.values.json_text import dumps, loads


@dataclass(frozen=True, slots=True)
class Continuation:
    """All of it is optional; a query that begins has none."""

    # A place on the hash line: the first that was not read.
    place: bytes | None = None
    # (value bytes, item number) of the last index entry whose item was answered or passed over.
    entry: tuple[bytes, int] | None = None
    # Results that were passed over because of OFFSET, and those that were answered.
    skipped: int = 0
    returned: int = 0
    # Rows of the item at `place` (or behind `entry`) that were answered already: a JOIN makes many of one item.
    rows: int = 0
    # Where the results behind `returned` may still be found (see `result_sets`).
    result_set: str | None = None

    def to_bytes(self) -> bytes:
        entry = None if self.entry is None else [self.entry[0].hex(), self.entry[1]]
        place = None if self.place is None else self.place.hex()
        told = [place, entry, self.skipped, self.returned, self.rows]
        return dumps(told if self.result_set is None else [*told, self.result_set])

    @classmethod
    def from_bytes(cls, told: bytes) -> Continuation:
        try:
            place, entry, skipped, returned, rows, *more = cast(list[Any], loads(told))
            return cls(
                place=None if place is None else bytes.fromhex(place),
                entry=None if entry is None else (bytes.fromhex(entry[0]), _count(entry[1])),
                skipped=_count(skipped),
                returned=_count(returned),
                rows=_count(rows),
                result_set=more[0] if more and isinstance(more[0], str) else None,
            )
        except (MalformedRequest, ValueError, TypeError, IndexError):
            raise MalformedRequest(
                reason="Invalid Continuation Token: it is none that this server has given."
            ) from None


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError
    return value


BEGINNING = Continuation()
