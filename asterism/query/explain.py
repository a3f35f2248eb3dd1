"""What a page of a query had to do: where it looked, by which indexes, how much it loaded, what it cost."""

from __future__ import annotations

from asterism.documents.container import Container
from asterism.query.compile import CompiledQuery
from asterism.query.query_page import QueryPage


def explanation(container: Container, query: CompiledQuery, page: QueryPage) -> dict[str, object]:
    """As JSON, the same at every door. Of one page: who reads several adds the counts up."""
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
