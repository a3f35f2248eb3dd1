"""A container: items on a keyspace. Every change of an item is one batch, decided on what was read.

Items, their sizes, their index entries and their change-log entry are written together or not at all; when another
writer changed an item meanwhile the decision is taken again on fresh data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from asterism.clock import Clock
from asterism.errors import (
    AsterismError,
    Forbidden,
    ItemExists,
    ItemNotFound,
    LsnNotReached,
    PartitionKeyMismatch,
    TooMuchContention,
)
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.contention import WriterQueues
from asterism.keyspaces.routing.families import ITEMS, after_prefix, id_key
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter, PlanOutdated
from asterism.limits import Limits
from asterism.models.documents.batch import BatchAnswer, Operation, OperationKind, carry_out
from asterism.models.documents.codec import Document, DocumentCodec
from asterism.models.documents.forwarding import check_read, check_write
from asterism.models.documents.incoming.entries import EntryChanges
from asterism.models.documents.incoming.writes import EntryWriter
from asterism.models.documents.indexes.missing_values import MissingValues
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import body_of, tag_and_body
from asterism.models.documents.planner import ChangePlanner, earliest_expiry
from asterism.models.documents.point_reads import PointReads
from asterism.models.documents.results import ItemAnswer, Scope
from asterism.models.documents.settings import DocumentProfile
from asterism.models.documents.transaction import (
    UNCONDITIONAL,
    Conditions,
    DocumentEdit,
    Outcome,
    Overtaken,
    PlannedUnit,
    Transaction,
)
from asterism.models.documents.unit_reads import UnitReads
from asterism.models.documents.upkeep.expiry_schedule import ExpirySchedule
from asterism.partitioning.computed_key import ComputedKey
from asterism.partitioning.effective_key import HASH_BYTES, storage_point
from asterism.partitioning.partition_key import PartitionKey, extract, header_agrees_with_item, parse_header
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.storage.contract import Batch, Expectation, ExpectationFailed
from asterism.throughput import charge


@dataclass(frozen=True, slots=True)
class DocumentServices:
    """The parts of the program that the documents floor needs."""

    router: PartitionRouter
    reshaper: Reshaper
    limits: Limits
    clock: Clock
    random_bytes: Callable[[int], bytes]
    next_item_number: Callable[[], int]
    profile: DocumentProfile
    expiry: ExpirySchedule = field(default_factory=ExpirySchedule)
    writer_queues: WriterQueues = field(default_factory=WriterQueues)


class Container:
    """Items of one keyspace. `record` is that of the time at which the object was made; `planner` always goes by the
    settings in force."""

    __slots__ = (
        "_committer",
        "_entry_writer",
        "_planner",
        "_services",
        "codec",
        "keyspace",
        "missing_values",
        "record",
    )

    def __init__(self, keyspace: Keyspace, services: DocumentServices) -> None:
        self.keyspace = keyspace
        self.record: KeyspaceRecord = keyspace.record
        self._services = services
        self.codec: DocumentCodec = services.profile.codec(self.record)
        self.missing_values = MissingValues(self.codec)
        self._planner = self._compile(self.record)
        limits, is_fixed = services.limits, self.record.definition.system_key
        self._committer = Committer(
            keyspace,
            services.router,
            services.reshaper,
            logical_bytes_max=limits.fixed_container_bytes_max if is_fixed else limits.logical_partition_bytes_max,
            physical_bytes_max=limits.physical_partition_bytes_max,
        )
        self._entry_writer = EntryWriter(keyspace, services.router)

    @property
    def is_current(self) -> bool:
        """True if the keyspace exists, with the settings that this container was made for."""
        keyspace = self.keyspace
        return not keyspace.deleted and keyspace.record.settings is self.record.settings

    @property
    def planner(self) -> ChangePlanner:
        """The planner of the settings in force, compiled once for each version of them. Its batches are applied only as
        long as they are in force (`PlanOutdated`)."""
        planner, record = self._planner, self.keyspace.record
        # `is_for` without its call: every request comes here.
        if record.settings is not planner.planned_under or record.catching_up is not planner.catching_up:
            planner = self._planner = self._compile(record)
        return planner

    def _compile(self, record: KeyspaceRecord) -> ChangePlanner:
        services = self._services
        return ChangePlanner(
            record,
            services.profile.compile(record, self.codec),
            self.codec,
            limits=services.limits,
            clock=services.clock,
            random_bytes=services.random_bytes,
        )

    @property
    def rules(self) -> IndexingRules:
        return self.planner.rules

    @property
    def computed_key(self) -> ComputedKey | None:
        """The rules of a partition key that is made of other properties (`computed_container`); None for any other."""
        return self.planner.computed_key

    @property
    def keeps_versions(self) -> bool:
        """True if the change feed has all versions and deletes."""
        return self.planner.keeps_versions

    @property
    def has_all_incoming_edges(self) -> bool:
        """True if every edge has its entry at its sink, so that readers may rely on the entries (`incoming/reads`)."""
        return self.planner.settings.has_all_incoming_edges

    # --- keys of requests -------------------------------------------------------------------------------------------

    def key_named(self, text: str) -> PartitionKey:
        """Return the key that the text of a request names, as the methods below take it."""
        return parse_header(text, self.record.definition)

    def keys_named(self, key: PartitionKey) -> Sequence[PartitionKey]:
        """Return the keys that a named one stands for: itself, unless the container's key is computed."""
        return (key,)

    async def key_of_unit(self, key: PartitionKey | None, operations: Sequence[Operation] = ()) -> PartitionKey:
        """Return the key of a unit of work: the one that its request names, or that of its first document."""
        return self.key_in(operations[0].document) if key is None else key

    def key_in(self, document: Document) -> PartitionKey:
        """Return the key that a document of a request names by itself."""
        return extract(self.record.definition, document)

    def with_own_key(self, document: Document) -> tuple[Document, PartitionKey]:
        """Return a document with its partition key, which is the same one each time, and that key."""
        return document, self.key_in(document)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def read_item(
        self,
        item_id: bytes,
        key: PartitionKey,
        *,
        session: Mapping[int, int] | None = None,
        router: PartitionRouter | None = None,
    ) -> ItemAnswer:
        """`router` is the way to take where the newest is not asked for (`PartitionRouter.relaxed`)."""
        planner, keyspace = self.planner, self.keyspace
        point = planner.point(key)
        stored_key = ITEMS + point + id_key(item_id)
        partition, lsn, (stored,) = await (router or self._services.router).read(keyspace, point, (stored_key,))
        if keyspace.record.forwarding is not None:
            check_read(keyspace.record, point)
        if session is not None:
            check_session(session, partition, lsn)
        if stored is not None:
            tag, body = tag_and_body(stored, stored_key)
            if planner.time_to_live is None or planner.is_visible(body):
                cost = charge.point_read(len(body))
                keyspace.spend(partition, cost, point)
                return ItemAnswer(body, self.codec.etag(tag), partition.id, lsn, cost)
        keyspace.spend(partition, charge.MISS, point)
        raise ItemNotFound(item_id=self.codec.id_text(item_id))

    # --- writing ----------------------------------------------------------------------------------------------------

    async def create_item(
        self, document: Document, key: PartitionKey | None, *, indexes: bool | None = None
    ) -> ItemAnswer:
        """`indexes`, here and below, overrules the policy's choice of whether an item is indexed that comes without a
        word on it."""
        item_id = self.codec.id_of(document)
        own_key = self._own_key(document, key)
        item_key = ItemKey.at(self.planner.point(own_key), item_id)
        answer = await self._create_unread(item_key, document, indexes)
        if answer is not None:
            return answer
        async for attempt in self._services.writer_queues.attempts(self.keyspace, item_key.point, item_key.key):
            with attempt:
                work = self._transaction(own_key, item_key.point, indexes)
                return await self._settle(work, await work.create(item_key, document))
        raise TooMuchContention

    async def _create_unread(self, item_key: ItemKey, document: Document, indexes: bool | None) -> ItemAnswer | None:
        """Create an item without a read: that its key is free is expected, not looked up. Most writes are this one.
        None where only a read can decide: a unique key, or an expired item under the key; and for an edge whose entry
        at its sink would be written before that."""
        keyspace = self.keyspace
        while True:
            with keyspace.in_flight:
                planner = self.planner
                if keyspace.record.forwarding is not None:
                    check_write(keyspace.record, item_key.point)
                if planner.unique_keys is not None:
                    return None
                if planner.sink_rule is not None and planner.sink_rule(document) is not None:
                    return None
                new = planner.complete(document, self._services.next_item_number(), indexes)
                batch = Batch(expectations=[Expectation(item_key.key, None)])
                planner.plan_change(batch, item_key, None, new, place_in_batch=0)
                size = len(new.body)
                cost = charge.write(size, len(new.terms))
                try:
                    partition, lsn = await self._committer.commit(
                        item_key.point,
                        batch,
                        bytes_delta=size,
                        items_delta=1,
                        cost=cost,
                        planned_under=planner.planned_under,
                    )
                except PlanOutdated:
                    continue
                except ExpectationFailed:
                    if planner.time_to_live is None:
                        raise ItemExists(item_id=self.codec.id_text(item_key.item_id)) from None
                    return None
            if planner.time_to_live is not None:
                self._services.expiry.notice(self.record.rid, earliest_expiry(batch))
            return ItemAnswer(new.body, new.etag, partition.id, lsn, cost, created=True)

    async def upsert_item(
        self,
        document: Document,
        key: PartitionKey | None,
        *,
        conditions: Conditions = UNCONDITIONAL,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        own_key = self._own_key(document, key)
        item_key = ItemKey.at(self.planner.point(own_key), self.codec.id_of(document))
        async for attempt in self._services.writer_queues.attempts(self.keyspace, item_key.point, item_key.key):
            with attempt:
                work = self._transaction(own_key, item_key.point, indexes)
                return await self._settle(work, await work.upsert(item_key, document, conditions))
        raise TooMuchContention

    async def replace_item(
        self,
        item_id: bytes,
        document: Document,
        key: PartitionKey | None,
        *,
        conditions: Conditions = UNCONDITIONAL,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        """The document's own id may differ from `item_id`: the service then renames the item, which is a delete and a
        create in one batch."""
        own_key = self._own_key(document, key)
        item_key = ItemKey.at(self.planner.point(own_key), item_id)
        target = ItemKey.at(item_key.point, self.codec.id_of(document))
        async for attempt in self._services.writer_queues.attempts(self.keyspace, item_key.point, item_key.key):
            with attempt:
                work = self._transaction(own_key, item_key.point, indexes)
                return await self._settle(work, await work.replace(item_key, target, document, conditions))
        raise TooMuchContention

    async def patch_item(
        self,
        item_id: bytes,
        edit: DocumentEdit,
        key: PartitionKey,
        *,
        conditions: Conditions = UNCONDITIONAL,
        indexes: bool | None = None,
    ) -> ItemAnswer:
        item_key = ItemKey.at(self.planner.point(key), item_id)
        async for attempt in self._services.writer_queues.attempts(self.keyspace, item_key.point, item_key.key):
            with attempt:
                work = self._transaction(key, item_key.point, indexes)
                return await self._settle(work, await work.patch(item_key, edit, conditions))
        raise TooMuchContention

    async def delete_item(
        self, item_id: bytes, key: PartitionKey, *, conditions: Conditions = UNCONDITIONAL
    ) -> ItemAnswer:
        item_key = ItemKey.at(self.planner.point(key), item_id)
        async for attempt in self._services.writer_queues.attempts(self.keyspace, item_key.point, item_key.key):
            with attempt:
                work = self._transaction(key, item_key.point)
                return await self._settle(work, await work.delete(item_key, conditions))
        raise TooMuchContention

    # --- several operations at once ---------------------------------------------------------------------------------

    async def run_batch(self, key: PartitionKey, operations: Sequence[Operation]) -> BatchAnswer:
        """Carry out all of the operations, with one LSN, or none of them; each sees what those before it did."""
        point = self.planner.point(key)
        only_creates = all(operation.kind is OperationKind.CREATE for operation in operations)
        documents = [operation.document for operation in operations] if only_creates else []
        is_first = True
        async for attempt in self._services.writer_queues.attempts(self.keyspace, point):
            with attempt:
                work = self._transaction(key, point)
                looks = not is_first or work.planner.sink_rule is not None
                created = await work.create_many(documents, looks=looks)
                is_first = False
                if created is not None:
                    partition, lsn = await self.commit(work)
                    return BatchAnswer(created, partition.id, lsn, round(work.cost, 2))
                return await self._run_in_order(self._transaction(key, point), operations)
        raise TooMuchContention

    async def _run_in_order(self, work: Transaction, operations: Sequence[Operation]) -> BatchAnswer:
        results: list[Outcome | AsterismError | None] = []
        await work.load(work.item_key(operation.item_id) for operation in operations)
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

    @asynccontextmanager
    async def snapshot_transaction(self, key: PartitionKey) -> AsyncIterator[tuple[Transaction, UnitReads]]:
        """Open a unit of work whose reads all see one moment, for stored procedures; `commit` it before the end.

        Queries and feeds of the unit read through the second value, which includes the unit's own changes. Raises
        Overtaken at the end if another writer changed data that the unit has read.
        """
        with self.keyspace.in_flight:
            planner = self.planner
            point = planner.point(key)
            snapshot = await self._services.router.snapshot(self.keyspace, point)
            try:
                check_write(self.keyspace.record, point)
                next_number = self._services.next_item_number
                work = Transaction(planner, key, point, reads=snapshot, next_item_number=next_number)
                yield work, UnitReads(work, snapshot)
            except ExpectationFailed:
                raise Overtaken from None
            finally:
                await snapshot.close()

    def begin(self, key: PartitionKey) -> Transaction:
        """Begin a unit of work in a logical partition, each read of which is of the newest moment; `commit` it. The
        caller holds `keyspace.in_flight` from here on."""
        return self._transaction(key, self.planner.point(key))

    async def commit(self, work: Transaction) -> tuple[PartitionRange, int]:
        """Write what was staged. Raises the storage contract's ExpectationFailed when the unit was overtaken. The
        caller holds `keyspace.in_flight` since the unit began."""
        unit = work.plan()
        if unit is None:
            return await self._pay(work)
        planner, batch = work.planner, unit.batch
        if planner.sink_rule is not None and (entries := planner.entry_changes(unit.changes)):
            partition, lsn = await self._commit_with_entries(work, unit, entries)
        else:
            partition, lsn = await self._commit_unit(work, unit, cost=work.cost)
        if planner.time_to_live is not None:
            self._services.expiry.notice(self.record.rid, earliest_expiry(batch))
        return partition, lsn

    async def _commit_unit(
        self, work: Transaction, unit: PlannedUnit, *, cost: float, on_map: PartitionMap | None = None
    ) -> tuple[PartitionRange, int]:
        return await self._committer.commit(
            work.point,
            unit.batch,
            bytes_delta=unit.bytes_delta,
            items_delta=unit.items_delta,
            cost=cost,
            planned_under=work.planner.planned_under,
            on_map=on_map,
        )

    async def _commit_with_entries(
        self, work: Transaction, unit: PlannedUnit, entries: EntryChanges
    ) -> tuple[PartitionRange, int]:
        """Write a unit that changes edges, and their entries at the sinks."""
        keyspace = self.keyspace
        # Before the entries, so that a refused unit leaves none behind.
        if keyspace.record.writes_refused:
            raise Forbidden(reason=keyspace.record.writes_refused)
        keyspace.spend(keyspace.record.map.find(work.point), work.cost, work.point)
        return await self._entry_writer.write(
            work.point,
            unit.batch,
            entries,
            lambda on_map: self._commit_unit(work, unit, cost=0.0, on_map=on_map),
            planned_under=work.planner.planned_under,
        )

    async def _pay(self, work: Transaction) -> tuple[PartitionRange, int]:
        """Take the cost of a unit that writes nothing."""
        keyspace = self.keyspace
        partition, lsn, _ = await self._services.router.read(keyspace, work.point, ())
        # A failure in a batch may have been that another container has its items by now.
        if keyspace.record.forwarding is not None:
            check_write(keyspace.record, work.point)
        keyspace.spend(partition, work.cost, work.point)
        return partition, lsn

    async def _settle(self, work: Transaction, done: Outcome) -> ItemAnswer:
        """Write a unit of one operation, and answer it."""
        partition, lsn = await self.commit(work)
        return ItemAnswer(done.body, done.etag, partition.id, lsn, done.charge, done.created)

    def entry_count(self, stored: bytes) -> int:
        """Count the entries of a stored item: itself, its change, two places in the order of creation, its index."""
        return 4 + self.rules.count(self.codec.decode(body_of(stored)))

    # --- scopes -----------------------------------------------------------------------------------------------------

    def logical_scope(self, key: PartitionKey) -> Scope:
        """Return the interval of one logical partition, or of all that share the prefix of a hierarchical key."""
        prefix = storage_point(self.record.definition, key)
        return Scope(prefix, after_prefix(prefix) or b"\xff")

    def is_one_key(self, scope: Scope) -> bool:
        """Return whether a scope is one logical partition. Of version 1, whose points differ in length, it may also be
        part of a range that looks like one."""
        definition = self.record.definition
        is_of_one_length = definition.version == 1 or len(scope.start) == HASH_BYTES * len(definition.paths)
        return is_of_one_length and scope.end == after_prefix(scope.start)

    # --- parts of a write -------------------------------------------------------------------------------------------

    def _own_key(self, document: Document, key: PartitionKey | None) -> PartitionKey:
        """Return the partition key of a document, which must be the one that the request names."""
        own_key = extract(self.record.definition, document)
        if key is not None and not header_agrees_with_item(key, own_key):
            raise PartitionKeyMismatch
        return own_key

    def _transaction(self, key: PartitionKey, point: bytes, indexes: bool | None = None) -> Transaction:
        services, keyspace = self._services, self.keyspace
        if keyspace.record.forwarding is not None:
            check_write(keyspace.record, point)
        return Transaction(
            self.planner,
            key,
            point,
            reads=PointReads(services.router, keyspace, point),
            next_item_number=services.next_item_number,
            indexes=indexes,
        )


def check_session(session: Mapping[int, int], partition: PartitionRange, lsn: int) -> None:
    """Refuse a read that would not see what its session has seen, on this partition or on one it came from."""
    for range_id in (partition.id, *partition.parents):
        if session.get(range_id, 0) > lsn:
            raise LsnNotReached
