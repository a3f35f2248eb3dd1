"""The catalog: databases, keyspaces and offers, in memory for reading and in partition 0 for keeping.

Every change is one batch that expects the records it was decided on, so that two processes over one store cannot both
create a name or both change a record; the second reads the change of the first, and decides again.
Memory follows only after the batch is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from asterism.errors import AsterismError, ResourceExists, ResourceNotFound
from asterism.keyspaces.catalog.accounts import account_of
from asterism.keyspaces.catalog.capture_order import CaptureOrder
from asterism.keyspaces.catalog.following import CatalogFollower
from asterism.keyspaces.catalog.memory import CatalogChanges
from asterism.keyspaces.catalog.owned_records import OwnedRecord
from asterism.keyspaces.catalog.records import LAYOUT, DatabaseRecord, KeyspaceRecord, OfferRecord, ScratchTerms
from asterism.keyspaces.catalog.small_documents import plan_document_removal
from asterism.keyspaces.catalog.store import (
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
from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.fences import raise_fences, seal_for_good
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap, initial_map
from asterism.partitioning.placement import Rules
from asterism.storage.contract import Batch, Expectation, Fence, PartitionUnknown, Span
from asterism.throughput.budgets import Throughput, effective_ru
from asterism.values.identifiers import Epoch, Lsn, NodeNumber, PartitionNumber, partition_on

__all__ = ["CATALOG_PARTITION", "Catalog", "CatalogChanges"]

FIRST_EPOCH = Epoch(1)

# Raises if a change must not be made, and returns what else it was decided on: called again for each attempt.
Decision = Callable[[], Sequence[Expectation]]

# More batches than can be on their way to a keyspace while it is being deleted.
_LSN_MARGIN = 100_000
_PRESENT = b""


class Catalog(CatalogFollower):
    """The catalog as one process knows it. Reading it is a dictionary look-up; changing it is one durable batch."""

    # --- databases --------------------------------------------------------------------------------------------------

    async def create_database(
        self,
        account: str,
        name: str,
        throughput: Throughput | None,
        *,
        now: int,
        scratch: ScratchTerms | None = None,
    ) -> DatabaseRecord:
        async def attempt() -> DatabaseRecord:
            if self.find_database(account, name) is not None:
                raise ResourceExists(kind="database", name=name)
            record = DatabaseRecord(self._new_database_rid(), account, name, self._new_etag(), now, scratch)
            key, named = DATABASE + record.rid, name_key(DATABASE_NAME, f"{account}/{name}")
            batch = Batch(
                expectations=[Expectation(named, None), Expectation(key, None)],
                puts=[(named, record.rid)],
                versioned_puts=[(key, record.to_bytes())],
            )
            offer = self._new_offer(record.rid, throughput, now, batch)
            admitted = self._admit(account, batch, databases=1, throughput=throughput)
            lsn = await self.store.change(batch)
            admitted(lsn)
            version = NUMBER.pack(lsn)
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
            plan_document_removal(record.rid, batch)
            floor = await self._plan_lsn_floor(keyspaces, batch)
            await self.store.change(batch)
            self._lsn_floor = floor
            self._forget_database(record.rid)
            return keyspaces

        await self._close(await self._decide(attempt))

    async def delete_user(self, user: OwnedRecord) -> None:
        """Delete a user together with the user's permissions."""
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
        # Entries to store together with the keyspace, by its resource id.
        with_puts: Callable[[bytes], Iterable[tuple[bytes, bytes]]] | None = None,
        decided_on: Decision | None = None,
    ) -> Keyspace:
        """Create a keyspace with a partition on each of the nodes, which may be named more than once."""
        numbers: list[PartitionNumber] = []

        async def attempt() -> Keyspace:
            if database.rid not in self.databases:
                raise ResourceNotFound(kind="database", name=database.name)
            if self.find_keyspace(database.rid, name) is not None:
                raise ResourceExists(kind="container", name=name)
            decided = [] if decided_on is None else decided_on()
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
                expectations=[Expectation(named, None), Expectation(key, None), *decided],
                puts=[(named, record.rid), *(with_puts(record.rid) if with_puts else ())],
                versioned_puts=[(key, record.to_bytes())],
            )
            self._expect_database(database, numbers, batch)
            offer = self._new_offer(record.rid, throughput, now, batch)
            admitted = self._admit(database.account, batch, containers=1, throughput=throughput)
            lsn = await self.store.change(batch)
            admitted(lsn)
            version = NUMBER.pack(lsn)
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
        """Expect that the database exists, and that the new partitions were not taken for orphans of a crash.

        The database gets another version, so that a process that deletes it must know of the keyspace.
        """
        key = DATABASE + database.rid
        batch.expectations.append(Expectation(key, _PRESENT))
        batch.expectations += [Expectation(numbered(GARBAGE, number), None) for number in numbers]
        if self.store.is_shared:
            batch.versioned_puts.append((key, database.to_bytes()))

    async def _create_partitions(self, numbers: Iterable[PartitionNumber]) -> None:
        lsn = self._lsn_floor_now()
        try:
            async with asyncio.TaskGroup() as group:
                for number in numbers:
                    group.create_task(self._engine.create_partition(number, Fence(FIRST_EPOCH), lsn=lsn))
        except ExceptionGroup as failures:
            # Callers handle a refusal of the store, not a group of them.
            raise failures.exceptions[0] from None

    async def replace_keyspace_settings(
        self,
        keyspace: Keyspace,
        settings: Mapping[str, Any],
        *,
        now: int,
        catching_up: Callable[[KeyspaceRecord], Mapping[str, Any]] | None = None,
        with_changes: Batch | None = None,
    ) -> None:
        """Replace the settings. `catching_up` returns the work due on the data of the record as it was; `with_changes`
        are further changes of the same batch. Otherwise as `change_terms`."""

        def change(before: KeyspaceRecord) -> KeyspaceRecord:
            due = before.catching_up if catching_up is None else catching_up(before)
            return replace(before, settings=settings, etag=self._new_etag(), changed_at=now, catching_up=due)

        await self.change_terms(keyspace, change, with_changes=with_changes)

    async def change_keyspace_settings(
        self,
        keyspace: Keyspace,
        change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        *,
        now: int,
        decided_on: Decision | None = None,
    ) -> None:
        """Change the settings as `change` says, which gets those in force, again if others have changed them meanwhile.
        Otherwise as `change_terms`."""
        await self.change_terms(
            keyspace,
            lambda before: replace(before, settings=change(before.settings), etag=self._new_etag(), changed_at=now),
            decided_on=decided_on,
        )

    async def change_terms(
        self,
        keyspace: Keyspace,
        change: Callable[[KeyspaceRecord], KeyspaceRecord],
        *,
        with_changes: Batch | None = None,
        as_leader: bool = False,
        decided_on: Decision | None = None,
    ) -> None:
        """Change the terms on which requests are served. On return no other process serves them by the earlier ones;
        `keyspace.earlier_work_done` awaits the requests that this process had begun."""

        def changed(before: KeyspaceRecord) -> KeyspaceRecord:
            after = change(before)
            # Another object, though equal: requests at work under the terms of before can be distinguished.
            settings = dict(before.settings) if after.settings is before.settings else after.settings
            return replace(after, settings=settings, map=self._fenced_map(before.map))

        batch = with_changes or Batch()
        await self._change_keyspace(keyspace, changed, batch, as_leader=as_leader, decided_on=decided_on)
        await self.fence_off_others(keyspace)

    async def fence_off_others(self, keyspace: Keyspace) -> None:
        """Shut out, by return, every process that has an older record of the keyspace than this one."""
        if self.store.is_shared:
            await raise_fences(self._engine, keyspace.record)

    async def replace_placement(self, keyspace: Keyspace, rules: Rules | None) -> None:
        await self._change_keyspace(keyspace, lambda before: replace(before, placement=rules), Batch())

    async def replace_capture(
        self, keyspace: Keyspace, change: Callable[[CaptureOrder | None], CaptureOrder | None]
    ) -> None:
        await self._change_keyspace(keyspace, lambda before: replace(before, capture=change(before.capture)), Batch())

    async def refuse_writes(self, keyspace: Keyspace, sentence: str) -> None:
        """Refuse writes with this message; "" admits them again."""
        await self.change_terms(keyspace, lambda before: replace(before, writes_refused=sentence))

    def _fenced_map(self, current: PartitionMap) -> PartitionMap:
        """Return the map of a change after which requests of other processes must reload the record."""
        return current.with_next_epochs() if self.store.is_shared else current

    async def put_catching_up_position(self, keyspace: Keyspace, stored: bytes) -> None:
        """Store how far the data was brought in line with the settings."""
        if not keyspace.deleted:
            await self.store.change(Batch(puts=[(CATCHING_UP + keyspace.record.rid, stored)]), as_leader=True)

    async def catching_up_position(self, keyspace: Keyspace) -> bytes | None:
        (stored,) = await self.store.read([CATCHING_UP + keyspace.record.rid])
        return stored

    async def end_catching_up(self, keyspace: Keyspace, done: Mapping[str, Any]) -> bool:
        """Record that no work is due; False if other work than `done` is due by now."""

        def change(before: KeyspaceRecord) -> KeyspaceRecord | None:
            return replace(before, catching_up={}) if before.catching_up is done else None

        return await self._change_keyspace(keyspace, change, Batch(deletes=[CATCHING_UP + keyspace.record.rid]))

    async def end_conversion(self, keyspace: Keyspace) -> None:
        """Record that the data of a keyspace has the present layout and fits its settings."""

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
        """Change the map in force, together with further changes in the same batch."""

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
        decided_on: Decision | None = None,
    ) -> bool:
        """Change a record: `change` returns the new one, given the present; None leaves it as it is."""

        async def attempt() -> bool:
            if keyspace.deleted:
                raise ResourceNotFound(kind="container", name=keyspace.record.name)
            record = change(keyspace.record)
            if record is None:
                return False
            key = KEYSPACE + record.rid
            batch = Batch(
                expectations=[Expectation(key, keyspace.version), *(decided_on() if decided_on else ())],
                versioned_puts=[(key, record.to_bytes())],
            )
            batch.extend(with_changes)
            lsn = await self.store.change(batch, as_leader=as_leader)
            keyspace.replace_record(record, NUMBER.pack(lsn))
            return True

        return await self._decide(attempt)

    async def delete_keyspace(
        self, keyspace: Keyspace, check: Callable[[Mapping[str, Any]], None] | None = None
    ) -> None:
        """Delete a keyspace. `check` raises if the settings in force do not permit it; nothing comes between."""

        async def attempt() -> None:
            if keyspace.deleted:
                raise ResourceNotFound(kind="container", name=keyspace.record.name)
            if check is not None:
                check(keyspace.record.settings)
            batch = Batch()
            self._plan_keyspace_removal(keyspace, batch)
            floor = await self._plan_lsn_floor([keyspace], batch)
            await self.store.change(batch)
            self._lsn_floor = floor
            self._forget_keyspace(keyspace)

        await self._decide(attempt)
        await self._close([keyspace])

    async def _close(self, keyspaces: list[Keyspace]) -> None:
        """List deleted partitions as garbage, and seal them against processes that do not know it yet."""
        self.garbage.update(partition.partition for keyspace in keyspaces for partition in keyspace.record.map.ranges)
        if self.store.is_shared:
            await asyncio.gather(*(seal_for_good(self._engine, keyspace.record) for keyspace in keyspaces))

    async def _plan_lsn_floor(self, keyspaces: Iterable[Keyspace], batch: Batch) -> bytes:
        floor = self._lsn_floor_now()
        for number in (partition.partition for keyspace in keyspaces for partition in keyspace.record.map.ranges):
            try:
                floor = Lsn(max(floor, (await self._engine.read_fence(number))[1] + _LSN_MARGIN))
            except PartitionUnknown:
                # Another process has deleted it already; the expectations will fail.
                continue
        batch.expectations.append(Expectation(LSN_FLOOR, self._lsn_floor))
        batch.puts.append((LSN_FLOOR, NUMBER.pack(floor)))
        return NUMBER.pack(floor)

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
        plan_document_removal(record.rid, batch)

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
            account = self.databases[record.resource_rid[:4]].account
            admitted = self._admit(account, batch, throughput=throughput, replaced=current.throughput)
            lsn = await self.store.change(batch)
            admitted(lsn)
            self._remember_offer(changed, NUMBER.pack(lsn))
            return changed

        return await self._decide(attempt)

    def _plan_offer_removal(self, resource_rid: bytes, batch: Batch) -> None:
        offer = self.offer_for(resource_rid)
        if offer is not None:
            batch.deletes.append(OFFER + offer.rid)

    def _admit(
        self,
        account: str,
        batch: Batch,
        *,
        databases: int = 0,
        containers: int = 0,
        throughput: Throughput | None = None,
        replaced: Throughput | None = None,
    ) -> Callable[[Lsn], None]:
        """Refuse a change that adds so much to an account whose quotas do not allow it (see `Accounts.admit`)."""
        account = account_of(account)
        if self.accounts.find(account) is None:
            return self.accounts.admit(account, batch)
        owned = {record.rid for record in self.databases_of(account)}
        totals = {}
        if databases:
            totals["databases_max"] = len(owned) + databases
        if containers:
            there = sum(keyspace.record.database_rid in owned for keyspace in self.keyspaces.values())
            totals["containers_max"] = there + containers
        if throughput is not None:
            offered = sum(
                effective_ru(offer.throughput) for offer in self.offers.values() if offer.resource_rid[:4] in owned
            )
            before = 0 if replaced is None else effective_ru(replaced)
            totals["ru_per_second_max"] = offered - before + effective_ru(throughput)
        return self.accounts.admit(account, batch, **totals)

    # --- partitions -------------------------------------------------------------------------------------------------

    async def allocate_partitions(self, nodes: Sequence[NodeNumber]) -> list[PartitionNumber]:
        """Return a number for a partition on each of the nodes, never used before and never used again."""
        first = 0
        # A store older than the rule continues its own count.
        while first < FIRST_DATA_PARTITION:
            first = await self.store.take_numbers(NEXT_PARTITION, len(nodes), first=FIRST_DATA_PARTITION)
        return [partition_on(node, first + offset) for offset, node in enumerate(nodes)]

    async def orphans(self, *, in_jobs: set[PartitionNumber]) -> set[PartitionNumber]:
        """Return the partitions that a crash left between their creation and their record in the catalog."""
        known = {partition.partition for space in self.keyspaces.values() for partition in space.record.map.ranges}
        own = {CATALOG_PARTITION}
        if self.store.is_shared:
            own.add(await self.store.coordination_partition())
        return set(await self._engine.partitions()) - known - in_jobs - self.garbage - own
