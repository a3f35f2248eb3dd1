"""A table store in memory, with the promises of the real one: what the tests of the door alone use."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from asterism.apis.table.entity_codec import MergeRefused, merge
from asterism.apis.table.filter_spans import order
from asterism.apis.table.store_contract import Key, TableLike
from asterism.apis.table.stored import (
    TICKS_PER_SECOND,
    EntityPage,
    EntityWrite,
    FailureReason,
    OperationFailed,
    Spent,
    StoredEntity,
    TableKind,
    WriteKind,
)
from asterism.errors import ResourceExists, ResourceNotFound
from asterism.limits import PAGE_BYTES_MAX
from asterism.throughput.budgets import Throughput

_MUST_EXIST = {WriteKind.REPLACE, WriteKind.MERGE, WriteKind.DELETE}
_MERGES = {WriteKind.MERGE, WriteKind.INSERT_OR_MERGE}


class MemoryTable:
    def __init__(self, name: str, kind: TableKind, now_ticks: Callable[[], int]) -> None:
        self.name = name
        self.kind = kind
        self.documents: dict[str, bytes] = {}
        self.is_deleted = False
        self._now_ticks = now_ticks
        self._entities: dict[Key, StoredEntity] = {}

    def _spend(self, spent: Spent | None, charge: float) -> None:
        if self.is_deleted:
            raise ResourceNotFound(kind="table", name=self.name)
        if spent is not None and self.kind == "cosmos":
            spent.charge += charge

    async def get(self, partition_key: str, row_key: str, spent: Spent | None = None) -> StoredEntity | None:
        self._spend(spent, 1.0)
        return self._entities.get((partition_key, row_key))

    async def apply(
        self, operations: Sequence[EntityWrite], spent: Spent | None = None
    ) -> Sequence[StoredEntity | None]:
        self._spend(spent, 5.0 * len(operations))
        assert len({one.partition_key for one in operations}) == 1
        after: list[StoredEntity | None] = []
        for index, one in enumerate(operations):
            after.append(self._after(index, one, self._entities.get((one.partition_key, one.row_key))))
        for one, stored in zip(operations, after, strict=True):
            if stored is None:
                del self._entities[one.partition_key, one.row_key]
            else:
                self._entities[one.partition_key, one.row_key] = stored
        return after

    def _after(self, index: int, one: EntityWrite, before: StoredEntity | None) -> StoredEntity | None:
        if one.kind is WriteKind.INSERT and before is not None:
            raise OperationFailed(index, FailureReason.EXISTS)
        if one.kind in _MUST_EXIST and before is None:
            raise OperationFailed(index, FailureReason.NOT_FOUND)
        if before is not None and one.if_match not in (None, "*", before.etag_time):
            raise OperationFailed(index, FailureReason.ETAG_MISMATCH)
        if one.kind is WriteKind.DELETE:
            return None
        properties = one.properties
        if before is not None and one.kind in _MERGES:
            try:
                properties = merge(before.properties, properties)
            except MergeRefused as refused:
                raise OperationFailed(index, refused.reason) from None
        ticks = self._now_ticks()
        ticks = ticks if before is None else max(ticks, before.etag_time + 1)
        return StoredEntity(one.partition_key, one.row_key, ticks, properties)

    async def scan(
        self,
        lower: Key | None,
        upper: Key | None,
        *,
        limit: int,
        entries_examined_max: int,
        accept: Callable[[StoredEntity], bool] | None = None,
        spent: Spent | None = None,
    ) -> EntityPage:
        self._spend(spent, 2.0)
        keys = sorted(self._entities, key=order)
        first = 0 if lower is None else bisect_left(keys, order(lower), key=order)
        end = len(keys) if upper is None else bisect_left(keys, order(upper), key=order)
        found: list[StoredEntity] = []
        page_bytes = 0
        for at in range(first, end):
            entity = self._entities[keys[at]]
            taken = accept is None or accept(entity)
            is_full = len(found) >= limit or page_bytes >= PAGE_BYTES_MAX
            if at - first >= entries_examined_max or (taken and is_full):
                return EntityPage(found, keys[at])
            if taken:
                found.append(entity)
                page_bytes += len(entity.properties)
        return EntityPage(found, None)


class MemoryTableStore:
    is_shared = False

    async def catch_up(self) -> int:
        return 0

    def __init__(self, wall_seconds: Callable[[], float]) -> None:
        self._wall_seconds = wall_seconds
        self._tables: dict[tuple[str, str], MemoryTable] = {}
        self._documents: dict[tuple[str, str], bytes] = {}

    def _now_ticks(self) -> int:
        return int(self._wall_seconds() * TICKS_PER_SECOND)

    def find_table(self, account: str, name: str) -> MemoryTable | None:
        found = self._tables.get((account, name))
        return found if found is not None else self._tables.get((account, name.lower()))

    async def create_table(
        self, account: str, name: str, *, kind: TableKind, throughput: Throughput | None
    ) -> MemoryTable:
        identity = name.lower() if kind == "storage" else name
        if (account, identity) in self._tables:
            raise ResourceExists(kind="table", name=name)
        table = MemoryTable(name, kind, self._now_ticks)
        self._tables[account, identity] = table
        return table

    async def delete_table(self, account: str, name: str) -> None:
        for identity in (name, name.lower()):
            table = self._tables.pop((account, identity), None)
            if table is not None:
                table.is_deleted = True
                return
        raise ResourceNotFound(kind="table", name=name)

    async def list_tables(self, account: str, after: str | None, limit: int) -> Sequence[str]:
        names = sorted(table.name for (owner, _), table in self._tables.items() if owner == account)
        return [name for name in names if after is None or name > after][:limit]

    def _place(self, table: TableLike | None) -> dict[str, bytes] | None:
        return table.documents if isinstance(table, MemoryTable) else None

    async def get_document(self, account: str, table: TableLike | None, name: str) -> bytes | None:
        place = self._place(table)
        return self._documents.get((account, name)) if place is None else place.get(name)

    async def put_document(self, account: str, table: TableLike | None, name: str, content: bytes) -> None:
        place = self._place(table)
        if place is None:
            self._documents[account, name] = content
        else:
            place[name] = content
