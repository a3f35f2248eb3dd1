"""A table: entities on a keyspace. What is written together is one batch, decided on what was read.

There are no locks: a batch expects what it was decided on, and is decided again on fresh data if that has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asterism.apis.table.entity_codec import MergeRefused, merge
from asterism.apis.table.entity_record import order_of, pack_entity, unpack_entity, unpack_known
from asterism.apis.table.stored import (
    EntityPage,
    EntityWrite,
    FailureReason,
    OperationFailed,
    Spent,
    StoredEntity,
    TableKind,
    WriteKind,
)
from asterism.clock import Clock
from asterism.errors import LogicalPartitionFull, PhysicalPartitionFull, TooMuchContention
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import ITEMS, LOGICAL_SIZES, TOTALS_KEY
from asterism.keyspaces.load_watch import LoadWatch
from asterism.keyspaces.ordered_items import Bound, ItemsPage, OrderedKeys, OrderedScan
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.reshaping import Reshaping
from asterism.limits import PAGE_BYTES_MAX, Limits
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import LSN_BYTES, Add, Batch, CeilingPassed, Expectation, ExpectationFailed
from asterism.throughput import charge
from asterism.values.ordered_text import last_part

# Writers of one entity overtake each other at most once per commit; this many turns is some tenths of a second.
ATTEMPTS_MAX = 100

# One page of the store holds the event loop for a millisecond or two.
_SCAN_ENTRIES = 500
_SCAN_BYTES = 512 * 1024

# (PartitionKey, RowKey); without a RowKey, the start of the partition as a lower bound and its end as an upper one.
EntityKey = tuple[str, str | None]

_INSERT = WriteKind.INSERT


@dataclass(frozen=True, slots=True)
class TableTools:
    """What tables need from the rest of the program."""

    owner: Owner
    reshaping: Reshaping
    load: LoadWatch
    limits: Limits
    clock: Clock
    next_ticks: Callable[[], int]


class Table:
    """One table's entities. Held for the length of a request."""

    __slots__ = ("_keys", "_logical_max", "_physical_max", "_tools", "account", "keyspace", "kind", "name")

    def __init__(self, account: str, name: str, kind: TableKind, keyspace: Keyspace, tools: TableTools) -> None:
        self.account = account
        self.name = name
        self.kind = kind
        self.keyspace = keyspace
        self._tools = tools
        self._keys = OrderedKeys(keyspace.record.definition)
        # A storage table's partition has no largest size: it is divided when it is large, and waits for nobody.
        is_limited = kind == "cosmos"
        self._logical_max = tools.limits.logical_partition_bytes_max if is_limited else None
        self._physical_max = tools.limits.physical_partition_bytes_max if is_limited else None

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, partition_key: str, row_key: str, spent: Spent | None = None) -> StoredEntity | None:
        point = self._keys.point(partition_key)
        keyspace, tools = self.keyspace, self._tools
        key = ITEMS + point + last_part(row_key)
        partition, _, (stored,) = await tools.owner.read(keyspace, point, (key,))
        cost = charge.MISS if stored is None else charge.point_read(len(stored))
        self._spend(partition, cost, point)
        if spent is not None:
            spent.charge += cost
        return None if stored is None else unpack_known(stored, partition_key, row_key)

    async def scan(
        self,
        lower: EntityKey | None,
        upper: EntityKey | None,
        *,
        limit: int,
        entries_examined_max: int,
        accept: Callable[[StoredEntity], bool] | None = None,
        spent: Spent | None = None,
    ) -> EntityPage:
        """Entities from `lower` on and before `upper`, in the order of their keys (hashed PartitionKeys: of their
        hashes). With `accept`, only those it takes; `next_key` is then the next that it takes, or the first that was
        not looked at any more."""
        bounds = self._bounds(lower, upper)
        reading = OrderedScan(self._tools.owner, self.keyspace, self._keys, *bounds, order_of)
        # One more than is looked at: it tells where to go on.
        wanted = (limit if accept is None else entries_examined_max) + 1
        entries_max = min(wanted, _SCAN_ENTRIES)
        pages = reading.pages(entries_max=entries_max, bytes_max=_SCAN_BYTES)
        entities: list[StoredEntity] = []
        page_bytes = examined = 0
        is_first = True
        try:
            async for page in pages:
                self._pay_page(page, is_first=is_first, spent=spent)
                is_first = False
                for _, stored in page.entries:
                    entity = unpack_entity(stored)
                    is_full = len(entities) >= limit
                    if examined >= entries_examined_max or page_bytes >= PAGE_BYTES_MAX:
                        return EntityPage(entities, (entity.partition_key, entity.row_key))
                    examined += 1
                    if accept is None or accept(entity):
                        if is_full:
                            return EntityPage(entities, (entity.partition_key, entity.row_key))
                        entities.append(entity)
                        page_bytes += len(stored)
        finally:
            await pages.aclose()
        return EntityPage(entities, None)

    def _bounds(self, lower: EntityKey | None, upper: EntityKey | None) -> tuple[Bound, Bound]:
        keys = self._keys
        if lower is not None and upper is not None and not keys.is_range and upper == (lower[0] + "\x00", ""):
            # By its hash the next PartitionKey is somewhere else; what is meant is the rest of this one.
            upper = (lower[0], None)
        start = Bound(FULL.start) if lower is None else keys.lower(*lower)
        end = Bound(FULL.end) if upper is None else keys.upper(*upper)
        return start, end

    def _pay_page(self, page: ItemsPage, *, is_first: bool, spent: Spent | None) -> None:
        cost = charge.feed_page(len(page.entries), sum([len(stored) for _, stored in page.entries]))
        first_entity = unpack_entity(page.entries[0][1])
        point = self._keys.point(first_entity.partition_key)
        if is_first:
            self._spend(page.partition, cost, point)
        else:
            # What was begun is finished; the next request waits for it.
            self.keyspace.owe(page.partition, cost, point)
        if spent is not None:
            spent.charge += cost

    # --- writing ----------------------------------------------------------------------------------------------------

    async def apply(self, operations: Sequence[EntityWrite], spent: Spent | None = None) -> list[StoredEntity | None]:
        """All of the operations or none, in one batch: they name entities of one PartitionKey, each only once.

        The answer has the entity after each operation, None after a delete. OperationFailed names the first operation
        that cannot be done.
        """
        point = self._keys.point(operations[0].partition_key)
        head = ITEMS + point
        keys = [head + last_part(one.row_key) for one in operations]
        if all(one.kind is _INSERT for one in operations):
            return await self._insert(operations, point, keys, spent)
        for turn in range(ATTEMPTS_MAX):
            partition, _, stored = await self._tools.owner.read(self.keyspace, point, keys)
            change = _Change(operations, keys, stored, self._tools.next_ticks())
            try:
                change.plan()
            except OperationFailed:
                self._spend(partition, charge.MISS, point)
                if spent is not None:
                    spent.charge += charge.MISS
                raise
            try:
                await self._commit(point, change, spent)
            except ExpectationFailed:
                await asyncio.sleep(0 if turn < ATTEMPTS_MAX // 2 else 0.001)
            else:
                return change.after
        raise TooMuchContention

    async def _insert(
        self, operations: Sequence[EntityWrite], point: bytes, keys: list[bytes], spent: Spent | None
    ) -> list[StoredEntity | None]:
        """Nothing is read: that nothing is there yet is expected, not looked up."""
        change = _Change(operations, keys, (None,) * len(keys), self._tools.next_ticks())
        change.plan()
        try:
            await self._commit(point, change, spent)
        except ExpectationFailed as failed:
            raise OperationFailed(keys.index(failed.key), FailureReason.EXISTS) from None
        return change.after

    async def _commit(self, point: bytes, change: _Change, spent: Spent | None) -> None:
        batch, deltas, cost = change.batch, (change.bytes_delta, change.items_delta), change.cost
        if change.bytes_delta or change.items_delta:
            batch.adds = [
                Add(LOGICAL_SIZES + point, deltas, self._logical_max),
                Add(TOTALS_KEY, deltas, self._physical_max),
            ]
        keyspace, tools = self.keyspace, self._tools

        def take_cost(partition: PartitionRange) -> None:
            self._spend(partition, cost, point)
            if spent is not None:
                spent.charge += cost

        admit: Callable[[PartitionRange], None] | None = take_cost
        for _ in range(ATTEMPTS_MAX):
            try:
                partition, _ = await tools.owner.apply(keyspace, point, batch, admit)
            except CeilingPassed as passed:
                if passed.key != TOTALS_KEY:
                    raise LogicalPartitionFull(bytes_max=self._logical_max or 0) from None
                if not await tools.reshaping.make_room(keyspace, point):
                    raise PhysicalPartitionFull(bytes_max=self._physical_max or 0) from None
                admit = None
            else:
                tools.reshaping.notice_growth(keyspace, partition, change.bytes_delta)
                return
        raise TooMuchContention

    def _spend(self, partition: PartitionRange, cost: float, point: bytes) -> None:
        self.keyspace.spend(partition, cost, point)
        load = self._tools.load
        if load.is_asleep and self._keys.is_range:
            load.wake()


class _Change:
    """Operations on what was found under their keys, as one batch."""

    __slots__ = ("_found", "_keys", "_operations", "_ticks", "after", "batch", "bytes_delta", "cost", "items_delta")

    def __init__(
        self, operations: Sequence[EntityWrite], keys: list[bytes], found: Sequence[bytes | None], ticks: int
    ) -> None:
        if len(keys) > 1 and len(set(keys)) < len(keys):
            raise ValueError("an entity is named by two operations of one batch")
        self._operations = operations
        self._keys = keys
        self._found = found
        self._ticks = ticks
        self.batch = Batch()
        self.after: list[StoredEntity | None] = []
        self.cost = 0.0
        self.bytes_delta = self.items_delta = 0

    def plan(self) -> None:
        for index, operation in enumerate(self._operations):
            stored = self._found[index]
            key = self._keys[index]
            if stored is None:
                if operation.kind not in _MAKE_NEW:
                    raise OperationFailed(index, FailureReason.NOT_FOUND)
                self.batch.expectations.append(Expectation(key, None))
                self._put(key, operation, operation.properties, self._ticks, None)
                continue
            before = unpack_known(stored, operation.partition_key, operation.row_key)
            refusal = _refusal(operation, before)
            if refusal is not None:
                raise OperationFailed(index, refusal)
            self.batch.expectations.append(Expectation(key, stored[:LSN_BYTES]))
            if operation.kind is WriteKind.DELETE:
                self._delete(key, stored)
                continue
            properties = operation.properties
            if operation.kind in _MERGES:
                try:
                    properties = merge(before.properties, properties)
                except MergeRefused as refused:
                    raise OperationFailed(index, refused.reason) from None
            # A clock that was set back must not give an entity an older Timestamp.
            self._put(key, operation, properties, max(self._ticks, before.etag_time + 1), stored)

    def _put(self, key: bytes, operation: EntityWrite, properties: bytes, ticks: int, before: bytes | None) -> None:
        partition_key, row_key = operation.partition_key, operation.row_key
        record = pack_entity(partition_key, row_key, ticks, properties)
        self.batch.versioned_puts.append((key, record))
        self.after.append(StoredEntity(partition_key, row_key, ticks, properties))
        if before is None:
            self.cost += charge.write(len(record), 0)
            self.bytes_delta += len(record)
            self.items_delta += 1
        else:
            before_bytes = len(before) - LSN_BYTES
            self.cost += charge.replace(before_bytes, len(record), 0)
            self.bytes_delta += len(record) - before_bytes

    def _delete(self, key: bytes, before: bytes) -> None:
        before_bytes = len(before) - LSN_BYTES
        self.batch.deletes.append(key)
        self.after.append(None)
        self.cost += charge.delete(before_bytes, 0)
        self.bytes_delta -= before_bytes
        self.items_delta -= 1


_MAKE_NEW = frozenset({WriteKind.INSERT, WriteKind.INSERT_OR_REPLACE, WriteKind.INSERT_OR_MERGE})
_MERGES = frozenset({WriteKind.MERGE, WriteKind.INSERT_OR_MERGE})


def _refusal(operation: EntityWrite, before: StoredEntity) -> FailureReason | None:
    """Why an operation cannot be done on the entity that is there."""
    if operation.kind is _INSERT:
        return FailureReason.EXISTS
    wanted = operation.if_match
    return FailureReason.ETAG_MISMATCH if isinstance(wanted, int) and wanted != before.etag_time else None
