"""The catalog: which databases, keyspaces and offers exist, in memory for reading and in partition 0 for keeping.

Every change is one batch whose expectations name what it was decided on, so that two processes over one store cannot
both create a name or both change a record; whoever comes second reads what the first one did, and decides again.
Memory follows only after the batch is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from asterism.errors import AsterismError, ResourceExists, ResourceNotFound
from asterism.keyspaces.catalog_following import FollowingCatalog
from asterism.keyspaces.catalog_memory import CatalogChanges
from asterism.keyspaces.catalog_store import (
    CATALOG_PARTITION,
    CATCHING_UP,
    DATABASE,
    DATABASE_NAME,
    FIRST_DATA_PARTITION,
    GARBAGE,
    HISTORY,
    KEYSPACE,
    KEYSPACE_NAME,
    LSN_FLOOR,
    NEXT_PARTITION,
    NUMBER,
    OFFER,
    name_key,
    numbered,
)
from asterism.keyspaces.fences import raise_fences, seal_for_good
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import after_prefix
from asterism.keyspaces.principals import PrincipalRecord
from asterism.keyspaces.records import LAYOUT, DatabaseRecord, KeyspaceRecord, OfferRecord
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap, initial_map
from asterism.partitioning.placement import Rules
from asterism.storage.contract import Batch, Expectation, Fence, PartitionUnknown, Span
from asterism.throughput.budgets import Throughput, effective_ru
from asterism.values.identifiers import Epoch, Lsn, NodeNumber, PartitionNumber, partition_on
from asterism.values.resource_ids import OWNED_NUMBER_LIMIT, collection_rid

__all__ = ["CATALOG_PARTITION", "Catalog", "CatalogChanges"]

FIRST_EPOCH = Epoch(1)

# More batches than can be on their way to a keyspace while it is being deleted.
_LSN_MARGIN = 100_000
_PRESENT = b""


class Catalog(FollowingCatalog):
    """The catalog as one process knows it. Reading it is a dictionary look-up; changing it is one durable batch."""

    # --- databases --------------------------------------------------------------------------------------------------

    async def create_database(
        self, account: str, name: str, throughput: Throughput | None, *, now: int
    ) -> DatabaseRecord:
        async def attempt() -> DatabaseRecord:
            if self.find_database(account, name) is not None:
                raise ResourceExists(kind="database", name=name)
            record = DatabaseRecord(self._new_database_rid(), account, name, self._new_etag(), now)
            key, named = DATABASE + record.rid, name_key(DATABASE_NAME, f"{account}/{name}")
            batch = Batch(
                expectations=[Expectation(named, None), Expectation(key, None)],
                puts=[(named, record.rid)],
                versioned_puts=[(key, record.to_bytes())],
            )
            offer = self._new_offer(record.rid, throughput, now, batch)
            version = NUMBER.pack(await self.store.change(batch))
            self._remember_database(record, version)
            if offer is not None:
                self._remember_offer(offer, version)
            return record

        return await self._decide(attempt)

    async def delete_database(self, record: DatabaseRecord) -> None:
        async def attempt() -> list[Keyspace]:
            if record.rid not in self.databases:
                raise ResourceNotFound(kind="database", name=record.name)
            key = DATABASE + record.rid
            batch = Batch(
                expectations=[Expectation(key, self._versions[key])],
                deletes=[name_key(DATABASE_NAME, f"{record.account}/{record.name}"), key],
            )
            keyspaces = self.keyspaces_of(record.rid)
            for keyspace in keyspaces:
                self._plan_keyspace_removal(keyspace, batch)
            self._plan_offer_removal(record.rid, batch)
            self.users.plan_removal(record.rid, batch)
            self.permissions.plan_removal(record.rid, batch)
            floor = await self._plan_lsn_floor(keyspaces, batch)
            await self.store.change(batch)
            self._lsn_floor = floor
            self._forget_database(record.rid)
            return keyspaces

        await self._close(await self._decide(attempt))

    async def delete_user(self, user: PrincipalRecord) -> None:
        """The user's permissions go with the user."""
        batch = Batch()
        self.permissions.plan_removal(user.rid, batch)
        await self.users.delete(user, with_changes=batch)
        self.permissions.forget_all(user.rid)

    # --- keyspaces --------------------------------------------------------------------------------------------------

    async def create_keyspace(
        self,
        database: DatabaseRecord,
        name: str,
        definition: PartitionKeyDefinition,
        settings: Mapping[str, Any],
        *,
        nodes: Sequence[NodeNumber],
        throughput: Throughput | None,
        now: int,
        # What else is to be kept from the moment on that there is a keyspace of this resource id.
        with_puts: Callable[[bytes], Iterable[tuple[bytes, bytes]]] | None = None,
    ) -> Keyspace:
        """One partition on each of the nodes, which may be named more than once."""
        numbers: list[PartitionNumber] = []

        async def attempt() -> Keyspace:
            if database.rid not in self.databases:
                raise ResourceNotFound(kind="database", name=database.name)
            if self.find_keyspace(database.rid, name) is not None:
                raise ResourceExists(kind="container", name=name)
            if not numbers or not self.garbage.isdisjoint(numbers):
                numbers[:] = await self.allocate_partitions(nodes)
                await self._create_partitions(numbers)
            record = KeyspaceRecord(
                rid=self._new_keyspace_rid(database.rid),
                name=name,
                settings=settings,
                definition=definition,
                map=initial_map(definition, numbers, epoch=FIRST_EPOCH),
                etag=self._new_etag(),
                changed_at=now,
            )
            key, named = KEYSPACE + record.rid, name_key(KEYSPACE_NAME + database.rid, name)
            batch = Batch(
                expectations=[Expectation(named, None), Expectation(key, None)],
                puts=[(named, record.rid), *(with_puts(record.rid) if with_puts else ())],
                versioned_puts=[(key, record.to_bytes())],
            )
            self._expect_database(database, numbers, batch)
            offer = self._new_offer(record.rid, throughput, now, batch)
            version = NUMBER.pack(await self.store.change(batch))
            keyspace = Keyspace(record, version, self._monotonic)
            if self.store.is_shared:
                self._versions[DATABASE + database.rid] = version
            self._remember_keyspace(keyspace)
            if offer is not None:
                self._remember_offer(offer, version)
            return keyspace

        try:
            return await self._decide(attempt)
        except AsterismError:
            await self.work.put_garbage(numbers)
            raise

    def _expect_database(self, database: DatabaseRecord, numbers: Iterable[PartitionNumber], batch: Batch) -> None:
        """The database is still there, and gets another version, so that who deletes it must know of the keyspace; and
        nobody took the new partitions for ones that a crash has left."""
        key = DATABASE + database.rid
        batch.expectations.append(Expectation(key, _PRESENT))
        batch.expectations += [Expectation(numbered(GARBAGE, number), None) for number in numbers]
        if self.store.is_shared:
            batch.versioned_puts.append((key, database.to_bytes()))

    async def _create_partitions(self, numbers: Iterable[PartitionNumber]) -> None:
        lsn = self._lsn_floor_now()
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(self._engine.create_partition(number, Fence(FIRST_EPOCH), lsn=lsn))

    async def replace_keyspace_settings(
        self,
        keyspace: Keyspace,
        settings: Mapping[str, Any],
        *,
        now: int,
        catching_up: Callable[[KeyspaceRecord], Mapping[str, Any]] | None = None,
        with_changes: Batch | None = None,
    ) -> None:
        """`catching_up` says, of the record as it was, what is to be done to its data from now on; `with_changes` is
        whatever else must change in the same moment.

        Other processes may still write by the old settings: on return no partition takes what they write."""

        def change(before: KeyspaceRecord) -> KeyspaceRecord:
            due = before.catching_up if catching_up is None else catching_up(before)
            ranges = self._fencing(before.map)
            return replace(
                before, settings=settings, etag=self._new_etag(), changed_at=now, catching_up=due, map=ranges
            )

        await self._change_keyspace(keyspace, change, with_changes or Batch())
        await self.fence_off_others(keyspace)

    async def fence_off_others(self, keyspace: Keyspace) -> None:
        """On return nobody can use the keyspace who goes by an older record than this process."""
        if self.store.is_shared:
            await raise_fences(self._engine, keyspace.record)

    async def replace_placement(self, keyspace: Keyspace, rules: Rules | None) -> None:
        await self._change_keyspace(keyspace, lambda before: replace(before, placement=rules), Batch())

    async def refuse_writes(self, keyspace: Keyspace, sentence: str) -> None:
        """From now on; `keyspace.earlier_work_done` tells when the writes before are over. "" lets them in again."""

        def change(before: KeyspaceRecord) -> KeyspaceRecord:
            # Other settings, though equal: who is at work under those of before can be told apart.
            settings = dict(before.settings)
            return replace(before, settings=settings, writes_refused=sentence, map=self._fencing(before.map))

        await self._change_keyspace(keyspace, change, Batch())
        await self.fence_off_others(keyspace)

    def _fencing(self, current: PartitionMap) -> PartitionMap:
        """The map that goes with a change that other processes must not outlive."""
        return current.with_next_epochs() if self.store.is_shared else current

    async def put_catching_up_position(self, keyspace: Keyspace, stored: bytes) -> None:
        """Remembers how far the data was brought in line with the settings."""
        if not keyspace.deleted:
            await self.store.change(Batch(puts=[(CATCHING_UP + keyspace.record.rid, stored)]), as_leader=True)

    async def catching_up_position(self, keyspace: Keyspace) -> bytes | None:
        (stored,) = await self.store.read([CATCHING_UP + keyspace.record.rid])
        return stored

    async def end_catching_up(self, keyspace: Keyspace, done: Mapping[str, Any]) -> bool:
        """Nothing is to be done any more; False if by now something else is than what was `done`."""

        def change(before: KeyspaceRecord) -> KeyspaceRecord | None:
            return replace(before, catching_up={}) if before.catching_up is done else None

        return await self._change_keyspace(keyspace, change, Batch(deletes=[CATCHING_UP + keyspace.record.rid]))

    async def end_conversion(self, keyspace: Keyspace) -> None:
        """The data of a keyspace is kept in the present layout, and is as its settings want it."""

        def change(before: KeyspaceRecord) -> KeyspaceRecord:
            return replace(before, layout=LAYOUT, catching_up={})

        await self._change_keyspace(keyspace, change, Batch(deletes=[CATCHING_UP + keyspace.record.rid]))

    async def publish_map(
        self,
        keyspace: Keyspace,
        change: Callable[[PartitionMap], PartitionMap],
        *,
        with_changes: Batch,
        as_leader: bool = False,
    ) -> None:
        """Changes the map in force, together with whatever else must change in the same moment."""

        def change_record(before: KeyspaceRecord) -> KeyspaceRecord:
            return replace(before, map=change(before.map))

        await self._change_keyspace(keyspace, change_record, with_changes, as_leader=as_leader)

    async def _change_keyspace(
        self,
        keyspace: Keyspace,
        change: Callable[[KeyspaceRecord], KeyspaceRecord | None],
        with_changes: Batch,
        *,
        as_leader: bool = False,
    ) -> bool:
        """`change` gives the new record, of the one in force; None leaves it as it is."""

        async def attempt() -> bool:
            if keyspace.deleted:
                raise ResourceNotFound(kind="container", name=keyspace.record.name)
            record = change(keyspace.record)
            if record is None:
                return False
            key = KEYSPACE + record.rid
            batch = Batch(
                expectations=[Expectation(key, keyspace.version)],
                versioned_puts=[(key, record.to_bytes())],
            )
            batch.extend(with_changes)
            lsn = await self.store.change(batch, as_leader=as_leader)
            keyspace.replace_record(record, NUMBER.pack(lsn))
            return True

        return await self._decide(attempt)

    async def delete_keyspace(self, keyspace: Keyspace) -> None:
        async def attempt() -> None:
            if keyspace.deleted:
                raise ResourceNotFound(kind="container", name=keyspace.record.name)
            batch = Batch()
            self._plan_keyspace_removal(keyspace, batch)
            floor = await self._plan_lsn_floor([keyspace], batch)
            await self.store.change(batch)
            self._lsn_floor = floor
            self._forget_keyspace(keyspace)

        await self._decide(attempt)
        await self._close([keyspace])

    async def _close(self, keyspaces: list[Keyspace]) -> None:
        """What was deleted is garbage, and nobody whose memory is older may use it any more."""
        self.garbage.update(one.partition for keyspace in keyspaces for one in keyspace.record.map.ranges)
        if self.store.is_shared:
            await asyncio.gather(*(seal_for_good(self._engine, keyspace.record) for keyspace in keyspaces))

    async def _plan_lsn_floor(self, keyspaces: Iterable[Keyspace], batch: Batch) -> bytes:
        floor = self._lsn_floor_now()
        for partition in (one.partition for keyspace in keyspaces for one in keyspace.record.map.ranges):
            try:
                floor = Lsn(max(floor, (await self._engine.read_fence(partition))[1] + _LSN_MARGIN))
            except PartitionUnknown:
                # Somebody has deleted it already, and the expectations will say so.
                continue
        batch.expectations.append(Expectation(LSN_FLOOR, self._lsn_floor))
        batch.puts.append((LSN_FLOOR, NUMBER.pack(floor)))
        return NUMBER.pack(floor)

    def _lsn_floor_now(self) -> Lsn:
        return Lsn(0 if self._lsn_floor is None else NUMBER.unpack(self._lsn_floor)[0])

    def _plan_keyspace_removal(self, keyspace: Keyspace, batch: Batch) -> None:
        record = keyspace.record
        batch.expectations.append(Expectation(KEYSPACE + record.rid, keyspace.version))
        batch.deletes += [KEYSPACE + record.rid, name_key(KEYSPACE_NAME + record.database_rid, record.name)]
        batch.deletes.append(CATCHING_UP + record.rid)
        history = HISTORY + record.rid
        batch.range_deletes.append(Span(history, after_prefix(history)))
        for partition in record.map.ranges:
            self.work.plan_garbage(partition.partition, batch)
        self._plan_offer_removal(record.rid, batch)
        self.scripts.plan_removal(record.rid, batch)

    # --- offers -----------------------------------------------------------------------------------------------------

    def _new_offer(
        self, resource_rid: bytes, throughput: Throughput | None, now: int, batch: Batch
    ) -> OfferRecord | None:
        if throughput is None:
            return None
        rid = self._random_bytes(3)
        while rid in self.offers:
            rid = self._random_bytes(3)
        record = OfferRecord(rid, resource_rid, throughput, effective_ru(throughput), self._new_etag(), now)
        batch.expectations.append(Expectation(OFFER + rid, None))
        batch.versioned_puts.append((OFFER + rid, record.to_bytes()))
        return record

    async def replace_offer(self, record: OfferRecord, throughput: Throughput, *, now: int) -> OfferRecord:
        async def attempt() -> OfferRecord:
            current = self.offers.get(record.rid)
            if current is None:
                raise ResourceNotFound(kind="offer", name=record.rid.hex())
            changed = replace(
                current,
                throughput=throughput,
                highest_ever_ru=max(current.highest_ever_ru, effective_ru(throughput)),
                etag=self._new_etag(),
                changed_at=now,
            )
            key = OFFER + record.rid
            batch = Batch(
                expectations=[Expectation(key, self._versions[key])], versioned_puts=[(key, changed.to_bytes())]
            )
            self._remember_offer(changed, NUMBER.pack(await self.store.change(batch)))
            return changed

        return await self._decide(attempt)

    def _plan_offer_removal(self, resource_rid: bytes, batch: Batch) -> None:
        offer = self.offer_for(resource_rid)
        if offer is not None:
            batch.deletes.append(OFFER + offer.rid)

    # --- partitions -------------------------------------------------------------------------------------------------

    async def allocate_partitions(self, nodes: Sequence[NodeNumber]) -> list[PartitionNumber]:
        """A number for a partition on each of the nodes, never used before and never used again."""
        first = 0
        # A store older than the rule goes on counting from where it is.
        while first < FIRST_DATA_PARTITION:
            first = await self.store.take_numbers(NEXT_PARTITION, len(nodes), first=FIRST_DATA_PARTITION)
        return [partition_on(node, first + offset) for offset, node in enumerate(nodes)]

    async def orphans(self, *, in_jobs: set[PartitionNumber]) -> set[PartitionNumber]:
        """Partitions a crash left between their creation and the catalog's word of them."""
        known = {partition.partition for space in self.keyspaces.values() for partition in space.record.map.ranges}
        own = {CATALOG_PARTITION}
        if self.store.is_shared:
            own.add(await self.store.coordination_partition())
        return set(await self._engine.partitions()) - known - in_jobs - self.garbage - own

    # --- names for what is new --------------------------------------------------------------------------------------

    def _new_database_rid(self) -> bytes:
        rid = self._random_bytes(4)
        while rid in self.databases:
            rid = self._random_bytes(4)
        return rid

    def _new_keyspace_rid(self, database_rid: bytes) -> bytes:
        while True:
            number = int.from_bytes(self._random_bytes(4), "big") % OWNED_NUMBER_LIMIT
            rid = collection_rid(database_rid, number)
            if rid not in self.keyspaces:
                return rid
