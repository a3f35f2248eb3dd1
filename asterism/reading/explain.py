"""The explanation of a page: the partitions it read, by which indexes, how much it loaded, what it cost."""

from __future__ import annotations

from asterism.models.documents.container import Container
from asterism.reading.query_page import QueryPage
from asterism.reading.runnable import Runnable


def explanation(container: Container, query: Runnable, page: QueryPage) -> dict[str, object]:
    """Return the explanation of one page, the same at every door; callers that read several pages add up the counts."""
    return {
        "kind": query.kind.value,
        "partitions": [str(range_id) for range_id in page.ranges_read],
        "of_partitions": len(container.keyspace.record.map.ranges),
        "indexes": list(page.indexes_used),
        "scan": page.has_scanned,
        "index_lookups": page.index_lookups,
        "items_loaded": page.items_loaded,
        "bytes_loaded": page.bytes_loaded,
        "results": len(page.results),
        "request_units": page.charge,
    }
