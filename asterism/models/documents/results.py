"""The answers of the documents floor: values that a door turns into its own words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


# Made for every request, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class ItemAnswer:
    """The outcome of an operation on one item. `body` is that of the item (of the deleted item, after a delete)."""

    body: bytes
    etag: str
    range_id: int
    lsn: int
    charge: float
    created: bool = False


class Stopped(Enum):
    """The reason why a page ended."""

    END_OF_DATA = "end of data"
    ITEM_COUNT = "item count"
    PAGE_BYTES = "page bytes"
    TIME = "time"
    BUDGET_SPENT = "budget spent"


@dataclass(frozen=True, slots=True)
class Scope:
    """A half-open interval of the hash line that a feed or query is confined to.

    `start` and `end` compare with the bytes that item keys begin with, so one logical partition is the interval of
    all keys that begin with its effective key.
    """

    start: bytes
    end: bytes
