"""The place where a query resumes: small, opaque to clients, and valid after a split, a merge and a restart.

Nothing in it names a partition. A query without order resumes at a position in the order of creation; one with an order
resumes behind a position in that order, whatever its filter and its plan are by then; one whose results need all items
resumes behind a number of results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from asterism.errors import MalformedRequest
from asterism.models.documents.item_position import Position, invalid_token
from asterism.reading.order_plan import OrderPosition
from asterism.values.json.text import dumps, loads


@dataclass(frozen=True, slots=True)
class Continuation:
    """The state that a page hands to the next one; a query that begins has the default of every field."""

    # The position, in the order of creation, of the first item that was not read.
    position: Position | None = None
    # The position, in the order of ORDER BY, of the last row that was answered or skipped.
    ordered: OrderPosition | None = None
    # Results that OFFSET skipped, and results that were answered.
    skipped: int = 0
    returned: int = 0
    # Items behind `position`, by their numbers, of which some rows were answered already: a JOIN makes many of one.
    # Usually it is the first of them; a split may bring others before it.
    begun: Mapping[int, int] = field(default_factory=dict)
    # The name under which results that were not answered yet may still be kept (see `result_sets`).
    result_set: str | None = None
    # True if the first piece of `position` is scanned, because its index names too many items.
    is_scanned: bool = False

    def to_bytes(self) -> bytes:
        position = None if self.position is None else self.position.to_json()
        ordered = None if self.ordered is None else [self.ordered.key.hex(), *self.ordered[1:]]
        fields = [position, ordered, self.skipped, self.returned, list(self.begun.items())]
        if self.is_scanned:
            return dumps([*fields, self.result_set, 1])
        return dumps(fields if self.result_set is None else [*fields, self.result_set])

    @classmethod
    def from_bytes(cls, token: bytes) -> Continuation:
        try:
            position, ordered, skipped, returned, begun, *more = cast(list[Any], loads(token))
            return cls(
                position=None if position is None else Position.from_json(position),
                ordered=None if ordered is None else _ordered(*ordered),
                skipped=_count(skipped),
                returned=_count(returned),
                begun={_count(number): _count(rows) for number, rows in begun},
                result_set=more[0] if more and isinstance(more[0], str) else None,
                is_scanned=more[1:] == [1],
            )
        except (MalformedRequest, ValueError, TypeError, IndexError):
            raise invalid_token() from None


def _ordered(key: str, number: object, rows: object) -> OrderPosition:
    return OrderPosition(bytes.fromhex(key), _count(number), _count(rows))


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError
    return value


BEGINNING = Continuation()
