"""A table: entities on a keyspace. Writes of one call are one batch, planned on the records that were read.

A batch expects the records that it was planned on; if another writer was faster, it is planned again on fresh data, in
the queue of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from asterism.clock import Clock
from asterism.errors import TooMuchContention
from asterism.keyspaces.reshaping.load_watch import LoadWatch
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.contention import WriterQueues
from asterism.keyspaces.routing.families import ITEMS
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.keyspaces.routing.ordered_items import Bound, ItemsPage, OrderedKeys, OrderedScan
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.slice_sizes import ENTITIES
from asterism.limits import PAGE_BYTES_MAX, Limits
from asterism.models.tables.entities import (
    EntityPage,
    EntityWrite,
    FailureReason,
    OperationFailed,
    StoredEntity,
    TableKind,
    WriteKind,
)
from asterism.models.tables.planner import PlannedChange, plan_change
from asterism.models.tables.record import order_of, unpack_entity, unpack_known
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import ExpectationFailed
from asterism.throughput import charge
from asterism.values.ordered_text import last_part

# (PartitionKey, RowKey); without a RowKey, the start of the partition as a lower bound and its end as an upper bound.
EntityKey = tuple[str, str | None]

_INSERT = WriteKind.INSERT


@dataclass(frozen=True, slots=True)
class TableServices:
    """The parts of the program that tables need."""

    router: PartitionRouter
    reshaper: Reshaper
    load: LoadWatch
    limits: Limits
    clock: Clock
    next_ticks: Callable[[], int]
    writer_queues: WriterQueues = field(default_factory=WriterQueues)


class Table:
    """The entities of a table. Held for the length of a request.

    Every call raises OwnerNotFound if the table was deleted meanwhile, and RequestRateTooLarge if the request units of
    a `cosmos` table are spent; the cost of a call is added to `spent`.
    """

    __slots__ = ("_committer", "_keys", "_services", "account", "keyspace", "kind", "name")

    def __init__(self, account: str, name: str, kind: TableKind, keyspace: Keyspace, services: TableServices) -> None:
        self.account = account
        self.name = name
        self.kind = kind
        self.keyspace = keyspace
        self._services = services
        self._keys = OrderedKeys(keyspace.record.definition)
        # A partition of a storage table has no largest size: it is split when it is large, while writes go on.
        is_limited = kind == "cosmos"
        self._committer = Committer(
            keyspace,
            services.router,
            services.reshaper,
            logical_bytes_max=services.limits.logical_partition_bytes_max if is_limited else None,
            physical_bytes_max=services.limits.physical_partition_bytes_max if is_limited else None,
        )

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, partition_key: str, row_key: str, spent: Spent | None = None) -> StoredEntity | None:
        point = self._keys.point(partition_key)
        keyspace, services = self.keyspace, self._services
        key = ITEMS + point + last_part(row_key)
        partition, _, (stored,) = await services.router.read(keyspace, point, (key,))
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
        """Return entities from `lower` on and before `upper`, in the order of their keys (of the hashes of their
        PartitionKeys for a `cosmos` table).

        With `accept`, only those that it accepts; `next_key` is then the next that it accepts, or the first entity that
        was not examined.
        """
        bounds = self._bounds(lower, upper)
        scan = OrderedScan(self._services.router, self.keyspace, self._keys, *bounds, order_of)
        # One more than is examined: the key to resume at.
        wanted = (limit if accept is None else entries_examined_max) + 1
        pages = scan.pages(ENTITIES._replace(entries=min(wanted, ENTITIES.entries)))
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
            # The hash of the next PartitionKey is elsewhere; the caller means the rest of this PartitionKey.
            upper = (lower[0], None)
        start = Bound(FULL.start) if lower is None else keys.lower(*lower)
        end = Bound(FULL.end) if upper is None else keys.upper(*upper)
        return start, end

    def _pay_page(self, page: ItemsPage, *, is_first: bool, spent: Spent | None) -> None:
        cost = charge.feed_page(items=len(page.entries), page_bytes=sum([len(stored) for _, stored in page.entries]))
        first_entity = unpack_entity(page.entries[0][1])
        point = self._keys.point(first_entity.partition_key)
        if is_first:
            self._spend(page.partition, cost, point)
        else:
            # A scan that was admitted is completed; the next request waits for its cost.
            self.keyspace.owe(page.partition, cost, point)
        if spent is not None:
            spent.charge += cost

    # --- writing ----------------------------------------------------------------------------------------------------

    async def apply(self, writes: Sequence[EntityWrite], spent: Spent | None = None) -> list[StoredEntity | None]:
        """Apply all writes or none, in one durable batch: they name entities of one PartitionKey, each only once.

        Return the entity after each write, None after a delete. OperationFailed names the first write that is not
        possible.
        """
        point = self._keys.point(writes[0].partition_key)
        head = ITEMS + point
        keys = [head + last_part(write.row_key) for write in writes]
        if all(write.kind is _INSERT for write in writes):
            return await self._insert(writes, point, keys, spent)

        key = keys[0] if len(keys) == 1 else None
        async for attempt in self._services.writer_queues.attempts(self.keyspace, point, key):
            with attempt:
                partition, _, stored = await self._services.router.read(self.keyspace, point, keys)
                try:
                    change = plan_change(writes, keys, stored, self._services.next_ticks())
                except OperationFailed:
                    self._spend(partition, charge.MISS, point)
                    if spent is not None:
                        spent.charge += charge.MISS
                    raise
                await self._commit(point, change, spent)
                return change.after
        raise TooMuchContention

    async def _insert(
        self, writes: Sequence[EntityWrite], point: bytes, keys: list[bytes], spent: Spent | None
    ) -> list[StoredEntity | None]:
        """Insert without reading: the batch expects the keys to be absent."""
        change = plan_change(writes, keys, (None,) * len(keys), self._services.next_ticks())
        try:
            with self.keyspace.in_flight:
                await self._commit(point, change, spent)
        except ExpectationFailed as failed:
            raise OperationFailed(keys.index(failed.key), FailureReason.EXISTS) from None
        return change.after

    async def _commit(self, point: bytes, change: PlannedChange, spent: Spent | None) -> None:
        self._wake_load_watch()
        await self._committer.commit(
            point,
            change.batch,
            bytes_delta=change.bytes_delta,
            items_delta=change.items_delta,
            cost=change.cost,
            spent=spent,
        )

    def _spend(self, partition: PartitionRange, cost: float, point: bytes) -> None:
        self.keyspace.spend(partition, cost, point)
        self._wake_load_watch()

    def _wake_load_watch(self) -> None:
        load = self._services.load
        if load.is_asleep and self._keys.is_range:
            load.wake()
