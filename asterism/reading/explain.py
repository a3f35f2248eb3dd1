"""The explanation of a page: the partitions it read, by which indexes, how much it loaded, what it cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.reading.runnable import Runnable


class ExplainedPage(Protocol):
    @property
    def ranges_read(self) -> Iterable[int]: ...
    @property
    def indexes_used(self) -> Iterable[str]: ...
    @property
    def has_scanned(self) -> bool: ...
    @property
    def index_lookups(self) -> int: ...
    @property
    def items_loaded(self) -> int: ...
    @property
    def bytes_loaded(self) -> int: ...
    @property
    def results(self) -> Collection[bytes]: ...
    @property
    def charge(self) -> float: ...


def explanation(
    keyspace: Keyspace, query: Runnable, page: ExplainedPage, *, logical_partitions: int | None
) -> dict[str, object]:
    """Return the explanation of one page, the same at every door; callers that read several pages add up the counts.
    `logical_partitions` is the number of those that the query reads, None for all."""
    return {
        "kind": query.kind.value,
        "logical_partitions": logical_partitions,
        "partitions": [str(range_id) for range_id in sorted(page.ranges_read)],
        "of_partitions": len(keyspace.record.map.ranges),
        "indexes": sorted(page.indexes_used),
        "scan": page.has_scanned,
        "index_lookups": page.index_lookups,
        "items_loaded": page.items_loaded,
        "bytes_loaded": page.bytes_loaded,
        "results": len(page.results),
        "request_units": page.charge,
    }
