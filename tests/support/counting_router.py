"""A router that counts what is read through it: what a query costs, without a clock."""

from __future__ import annotations

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import INDEX
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Engine, ScanPage, Span


class CountingRouter(PartitionRouter):
    """Counts the index entries that scans return."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.index_entries = 0

    async def scan(
        self,
        keyspace: Keyspace,
        seen: KeyspaceRecord,
        partition: PartitionRange,
        span: Span,
        *,
        limit: int,
        bytes_max: int | None,
        reverse: bool = False,
    ) -> ScanPage | None:
        page = await super().scan(keyspace, seen, partition, span, limit=limit, bytes_max=bytes_max, reverse=reverse)
        if page is not None and span.start[:1] == INDEX:
            self.index_entries += len(page.entries)
        return page
