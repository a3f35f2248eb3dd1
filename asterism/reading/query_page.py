"""A page of a query's results, and why a stream of them ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from asterism.reading.continuation import Continuation


class Ended(Enum):
    """Why a stream of results stops before the end of the data."""

    PAGE = "the page is full"
    QUERY = "the query has all its results"


@dataclass(frozen=True, slots=True)
class QueryPage:
    """Results as JSON texts. `continuation` is absent only at the end of the data."""

    results: list[bytes]
    continuation: Continuation | None
    charge: float
    # The newest partition read, for the response's headers: clients learn of a split by an id they do not know.
    range_id: int
    lsn: int
    items_loaded: int
    bytes_loaded: int
    bytes_returned: int
    index_lookups: int
    indexes_used: tuple[str, ...]
    ranges_read: tuple[int, ...]
    # True if items were read that no index had named.
    has_scanned: bool
