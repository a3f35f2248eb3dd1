"""A container: items on a keyspace. Every change of an item is one batch, decided on what was read.

Items, their sizes, their index entries and their change-log entry are written together or not at all; when somebody
else changed an item meanwhile the decision is taken again on fresh data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from asterism.clock import Clock
from asterism.documents.answers import ItemAnswer, Scope
from asterism.documents.batch import BatchAnswer, Operation, OperationKind, carry_out
from asterism.documents.expiry_schedule import ExpirySchedule
from asterism.documents.indexes import IndexingRules
from asterism.documents.item_record import unpack_item
from asterism.documents.missing_values import MissingValues
from asterism.documents.patch import Patch
from asterism.documents.planning import ChangePlanner, earliest_expiry, place_at
from asterism.documents.transaction import Conditions, Outcome, Transaction
from asterism.errors import (
    AsterismError,
    Forbidden,
    ItemExists,
    ItemNotFound,
    LogicalPartitionFull,
    PartitionKeyMismatch,
    PhysicalPartitionFull,
    SessionNotAvailable,
    TooMuchContention,
)
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import TOTALS_KEY, after_prefix
from asterism.keyspaces.owner import Owner, PlanOutdated
from asterism.keyspaces.records import KeyspaceRecord
from asterism.keyspaces.reshaping import Reshaping
from asterism.keyspaces.write_turns import WriteTurns
from asterism.limits import Limits
from asterism.partitioning.effective_key import HASH_BYTES, storage_point
from asterism.partitioning.partition_key import PartitionKey, extract, header_agrees_with_item
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, CeilingPassed, Expectation, ExpectationFailed, Snapshot
from asterism.throughput import charge
from asterism.values.item import Item, validate_item_id

_Answer = TypeVar("_Answer")

# How often a write that finds its partition full has room made, which others may fill before it.
ROOM_ATTEMPTS_MAX = 100


@dataclass(frozen=True, slots=True)
class Tools:
    """What the documents floor needs from the rest of the program."""

    owner: Owner
    reshaping: Reshaping
    limits: Limits
    clock: Clock
    random_bytes: Callable[[int], bytes]
    next_item_number: Callable[[], int]
    expiry: ExpirySchedule = field(default_factory=ExpirySchedule)
    write_turns: WriteTurns = field(default_factory=WriteTurns)


class Container:
    """Items of one keyspace, at one version of its settings."""

    __slots__ = ("_tools", "keyspace", "missing_values", "planner", "record")

    def __init__(self, keyspace: Keyspace, tools: Tools) -> None:
        self.keyspace = keyspace
        self.record: KeyspaceRecord = keyspace.record
        self._tools = tools
        self.missing_values = MissingValues()
        self.planner = ChangePlanner(
            lambda: keyspace.record, limits=tools.limits, clock=tools.clock, random_bytes=tools.random_bytes
        )

    @property
    def rules(self) -> IndexingRules:
        return self.planner.rules

    @property
    def keeps_versions(self) -> bool:
        """Whether the change feed can tell of all versions and deletes."""
        return self.planner.keeps_versions

    # --- reading ----------------------------------------------------------------------------------------------------

    async def read_item(
        self, item_id: str, key: PartitionKey, *, session: Mapping[int, int] | None = None, owner: Owner | None = None
    ) -> ItemAnswer:
        """`owner` is the way to take, where the newest is not asked for (`Owner.relaxed`)."""
        place = place_at(self.planner.point(key), item_id)
        keyspace = self.keyspace
        partition, lsn, (stored,) = await (owner or self._tools.owner).read(keyspace, place.point, (place.key,))
        if session is not None:
            check_session(session, partition, lsn)
        found = None if stored is None else unpack_item(stored, place.key)
        if found is None or not self.planner.is_visible(found.body):
            keyspace.spend(partition, charge.MISS, place.point)
            raise ItemNotFound(item_id=item_id)
        cost = charge.point_read(len(found.body))
        keyspace.spend(partition, cost, place.point)
        return ItemAnswer(found.body, found.etag, partition.id, lsn, cost)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def create_item(self, item: Item, key: PartitionKey | None, *, indexes: bool | None = None) -> ItemAnswer:
        """`indexes`, here and below, overrules whether the policy has items indexed that nobody says it of."""
        item_id = validate_item_id(item.get("id"))
        own_key = self._key_of(item, key)
        planner = self.planner
        if planner.unique_keys is not None:
            return await self._alone(own_key, item_id, lambda work: work.create(item), indexes)
        while True:
            try:
                return await self._create_unseen(item, item_id, own_key, indexes)
            except PlanOutdated:
                continue

    async def _create_unseen(self, item: Item, item_id: str, own_key: PartitionKey, indexes: bool | None) -> ItemAnswer:
        """Most writes are this one, and it need not read: that nothing is there yet is expected, not looked up."""
        planner = self.planner
        settings = planner.settings
        place = place_at(planner.point(own_key), item_id)
        new = planner.complete(item, self._tools.next_item_number(), indexes)
        batch = Batch(expectations=[Expectation(place.key, None)])
        planner.plan_change(batch, place, None, new, place_in_batch=0)
        planner.plan_sizes(batch, place.point, bytes_delta=len(new.body), items_delta=1)
        cost = charge.write(len(new.body), len(new.terms))
        try:
            partition, lsn = await self.apply(place.point, batch, cost, settings)
        except PlanOutdated:
            raise
        except ExpectationFailed:
            if planner.time_to_live is None:
                raise ItemExists(item_id=item_id) from None
            # What is there may be an item whose time is over.
            return await self._alone(own_key, item_id, lambda work: work.create(item), indexes)
        return ItemAnswer(new.body, new.etag, partition.id, lsn, cost, created=True)

    async def upsert_item(
        self, item: Item, key: PartitionKey | None, *, if_match: str | None = None, indexes: bool | None = None
    ) -> ItemAnswer:
        conditions, own_key = Conditions(if_match), self._key_of(item, key)
        return await self._alone(own_key, str(item.get("id")), lambda work: work.upsert(item, conditions), indexes)

    async def replace_item(
        self,
        item_id: str,
        item: Item,
        key: PartitionKey | None,
        *,
        if_match: str | None = None,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        """The item's own id may differ from the one in the address: the service then renames the item, which is a
        delete and a create in one batch."""
        conditions, own_key = Conditions(if_match), self._key_of(item, key)
        return await self._alone(own_key, item_id, lambda work: work.replace(item_id, item, conditions), indexes)

    async def patch_item(
        self,
        item_id: str,
        patch: Patch,
        key: PartitionKey,
        *,
        if_match: str | None = None,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        conditions = Conditions(if_match)
        return await self._alone(key, item_id, lambda work: work.patch(item_id, patch, conditions), indexes)

    async def delete_item(self, item_id: str, key: PartitionKey, *, if_match: str | None = None) -> ItemAnswer:
        conditions = Conditions(if_match)
        return await self._alone(key, item_id, lambda work: work.delete(item_id, conditions))

    # --- several operations at once ---------------------------------------------------------------------------------

    async def run_batch(self, key: PartitionKey, operations: Sequence[Operation]) -> BatchAnswer:
        """All of the operations, with one LSN, or none of them; each sees what those before it did."""

        only_creates = all(operation.kind is OperationKind.CREATE for operation in operations)
        is_first = True

        async def attempt() -> BatchAnswer:
            nonlocal is_first
            looks, is_first = not is_first, False
            work = self._transaction(key)
            created = await work.create_many([one.item for one in operations], looks=looks) if only_creates else None
            if created is not None:
                partition, lsn = await self.commit(work)
                return BatchAnswer(created, partition.id, lsn, round(work.cost, 2))
            return await self._one_by_one(self._transaction(key), operations)

        return await self._until_settled(key, None, attempt)

    async def _one_by_one(self, work: Transaction, operations: Sequence[Operation]) -> BatchAnswer:
        results: list[Outcome | AsterismError | None] = []
        await work.load(operation.item_id for operation in operations)
        for operation in operations:
            try:
                results.append(await carry_out(work, operation))
            except AsterismError as error:
                rest = len(operations) - len(results) - 1
                results = [*[None] * len(results), error, *[None] * rest]
                partition, lsn = await self._pay(work)
                break
        else:
            partition, lsn = await self.commit(work)
        return BatchAnswer(results, partition.id, lsn, round(work.cost, 2))

    async def run_operation(self, key: PartitionKey, operation: Operation) -> ItemAnswer:
        """One operation of a bulk request, for itself."""
        if operation.kind is OperationKind.CREATE:
            return await self.create_item(operation.item, key)
        return await self._alone(key, operation.item_id, lambda work: carry_out(work, operation))

    @asynccontextmanager
    async def snapshot_transaction(self, key: PartitionKey) -> AsyncIterator[tuple[Transaction, Snapshot]]:
        """A unit of work whose reads all see one moment, for stored procedures; `commit` it before the end.

        What the unit reads beyond single items (queries, feeds) it reads in the snapshot, and looks for what it has
        itself changed in `Transaction.staged`.
        """
        with self.keyspace.at_work:
            snapshot = await self._tools.owner.snapshot(self.keyspace, self.planner.point(key))
            try:
                next_number = self._tools.next_item_number
                yield Transaction(self.planner, key, read_keys=snapshot.read, next_item_number=next_number), snapshot
            finally:
                await snapshot.close()

    async def commit(self, work: Transaction) -> tuple[PartitionRange, int]:
        """Writes what was staged. Raises the storage contract's ExpectationFailed when the unit was overtaken."""
        batch = work.batch()
        if batch is None:
            return await self._pay(work)
        return await self.apply(work.point, batch, work.cost, work.planned_under)

    # --- scopes -----------------------------------------------------------------------------------------------------

    def logical_scope(self, key: PartitionKey) -> Scope:
        """The interval of one logical partition, or of all that share the prefix of a hierarchical key."""
        prefix = storage_point(self.record.definition, key)
        return Scope(prefix, after_prefix(prefix) or b"\xff")

    def is_one_key(self, scope: Scope) -> bool:
        """Whether a scope is one logical partition. Of version 1, whose points differ in length, it may also be part
        of a range that looks like one."""
        definition = self.record.definition
        is_of_one_length = definition.version == 1 or len(scope.start) == HASH_BYTES * len(definition.paths)
        return is_of_one_length and scope.end == after_prefix(scope.start)

    # --- how a change is made -----------------------------------------------------------------------------------------

    def _key_of(self, item: Item, told: PartitionKey | None) -> PartitionKey:
        """The item's partition key value, which must be the one the request names."""
        own = extract(self.record.definition, item)
        if told is not None and not header_agrees_with_item(told, own):
            raise PartitionKeyMismatch
        return own

    def _transaction(self, key: PartitionKey) -> Transaction:
        tools, keyspace, point = self._tools, self.keyspace, self.planner.point(key)

        # It knows the point and not the transaction: a cycle of the two would keep all that was staged until the
        # garbage collector finds it.
        async def read_keys(keys: Sequence[bytes]) -> Sequence[bytes | None]:
            return (await tools.owner.read(keyspace, point, keys))[2]

        return Transaction(self.planner, key, read_keys=read_keys, next_item_number=tools.next_item_number)

    async def _alone(
        self,
        key: PartitionKey,
        item_id: str,
        act: Callable[[Transaction], Awaitable[Outcome]],
        indexes: bool | None = None,
    ) -> ItemAnswer:
        """One operation as a unit of its own."""

        async def attempt() -> ItemAnswer:
            work = self._transaction(key)
            work.indexes = indexes
            done = await act(work)
            partition, lsn = await self.commit(work)
            return ItemAnswer(done.body, done.etag, partition.id, lsn, done.charge, created=done.created)

        return await self._until_settled(key, item_id, attempt)

    async def _pay(self, work: Transaction) -> tuple[PartitionRange, int]:
        """Takes the cost of a unit that writes nothing."""
        partition, lsn, _ = await self._tools.owner.read(self.keyspace, work.point, ())
        self.keyspace.spend(partition, work.cost, work.point)
        return partition, lsn

    async def apply(
        self, point: bytes, batch: Batch, cost: float, planned_under: Mapping[str, Any]
    ) -> tuple[PartitionRange, int]:
        """Applies a batch that ends with the sizes of its logical partition and of the physical one."""
        keyspace, tools = self.keyspace, self._tools

        def take_cost(partition: PartitionRange) -> None:
            keyspace.spend(partition, cost, point)

        admit: Callable[[PartitionRange], None] | None = take_cost
        # The index entries in the batch are those of the settings in force now, until it is applied.
        with keyspace.at_work:
            if keyspace.record.writes_refused:
                raise Forbidden(reason=keyspace.record.writes_refused)
            for _ in range(ROOM_ATTEMPTS_MAX):
                try:
                    partition, lsn = await tools.owner.apply(keyspace, point, batch, admit, planned_under=planned_under)
                except CeilingPassed as passed:
                    if passed.key != TOTALS_KEY:
                        raise LogicalPartitionFull(bytes_max=batch.adds[0].first_max or 0) from None
                    await self._make_room(point)
                    admit = None
                else:
                    tools.reshaping.notice_growth(keyspace, partition, batch.adds[1].deltas[0])
                    if self.planner.time_to_live is not None:
                        tools.expiry.notice(self.record.rid, earliest_expiry(batch))
                    return partition, lsn
        raise TooMuchContention

    async def _make_room(self, point: bytes) -> None:
        if not await self._tools.reshaping.make_room(self.keyspace, point):
            raise PhysicalPartitionFull(bytes_max=self._tools.limits.physical_partition_bytes_max)

    def gate_of(self, key: PartitionKey) -> Hashable:
        """What the gate of a logical partition is known by (`Tools.write_turns`)."""
        return self.record.rid, key

    async def _until_settled(
        self, key: PartitionKey, item_id: str | None, attempt: Callable[[], Awaitable[_Answer]]
    ) -> _Answer:
        """Those who are overtaken at the same item, or at several (None), take turns."""
        turns, gate = self._tools.write_turns, self.gate_of(key)

        async def attempt_inside() -> _Answer:
            if turns.has_gates:
                await turns.enter(gate)
            # From the first look at the item to the batch, all goes by one version of the settings.
            with self.keyspace.at_work:
                return await attempt()

        return await turns.until_settled((gate, item_id), attempt_inside)


def check_session(session: Mapping[int, int], partition: PartitionRange, lsn: int) -> None:
    """Refuses a read that would not see what its session has seen, on this partition or on one it came from."""
    for range_id in (partition.id, *partition.parents):
        if session.get(range_id, 0) > lsn:
            raise SessionNotAvailable
