"""The catalog: which databases, keyspaces and offers exist, in memory for reading and in partition 0 for keeping.

Every change is one batch whose expectations name what it was decided on, so that two processes over one store cannot
both create a name or both change a record. Memory follows only after the batch is durable.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from asterism.errors import ResourceExists, ResourceNotFound, StorageUnavailable
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import after_prefix
from asterism.keyspaces.principals import PERMISSIONS, USERS, PrincipalKind, PrincipalRecord, Principals
from asterism.keyspaces.records import DatabaseRecord, KeyspaceRecord, OfferRecord
from asterism.keyspaces.rekey_records import RekeyRecords
from asterism.keyspaces.scripts_catalog import ScriptsCatalog
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionMap, initial_map
from asterism.storage.contract import (
    LSN_BYTES,
    Batch,
    Engine,
    Expectation,
    ExpectationFailed,
    Fence,
    PartitionUnknown,
    Span,
)
from asterism.throughput.budgets import Throughput, effective_ru
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

CATALOG_PARTITION = PartitionNumber(0)
CATALOG_EPOCH = Epoch(1)
FIRST_EPOCH = Epoch(1)

_DATABASE = b"d"
_DATABASE_NAME = b"D"
_KEYSPACE = b"k"
_KEYSPACE_NAME = b"K"
_OFFER = b"o"
_GARBAGE = b"g"
_JOB = b"j"
_HISTORY = b"h"
_CATCHING_UP = b"x"
_TASK = b"b"
_NEXT_PARTITION = b"n/partition"
_NEXT_BOOT = b"n/boot"
_NEXT_TASK = b"n/task"
_LSN_FLOOR = b"n/lsn"

# More batches than can be on their way to a keyspace while it is being deleted.
_LSN_MARGIN = 100_000

_NUMBER = struct.Struct(">Q")


def _name_key(prefix: bytes, name: str) -> bytes:
    """A key that two things of one name share; a digest, because 255 characters may be 1,020 bytes."""
    return prefix + hashlib.blake2b(name.encode(), digest_size=32).digest()


class Catalog:
    """One node's catalog. Reading it is a dictionary look-up; changing it is one durable batch."""

    def __init__(self, engine: Engine, *, random_bytes: Callable[[int], bytes], monotonic: Callable[[], float]) -> None:
        self._engine = engine
        self._random_bytes = random_bytes
        self._monotonic = monotonic
        self._changing = asyncio.Lock()
        self.boot_number = 0
        self.databases: dict[bytes, DatabaseRecord] = {}
        self.keyspaces: dict[bytes, Keyspace] = {}
        self.offers: dict[bytes, OfferRecord] = {}
        self._database_rids: dict[tuple[str, str], bytes] = {}
        self._keyspace_rids: dict[tuple[bytes, str], bytes] = {}
        self._offer_rids: dict[bytes, bytes] = {}
        self.garbage: set[PartitionNumber] = set()
        # New partitions begin above every LSN that a deleted keyspace has reached: a client may still hold session
        # tokens of one that had the same name, and could not read its successor.
        self._lsn_floor = Lsn(0)
        self.users = self._principals(USERS, lambda rid: rid in self.databases)
        self.permissions = self._principals(PERMISSIONS, lambda rid: self.users.get(rid) is not None)
        self.rekeys = RekeyRecords(self._change, self.scan)
        self.scripts = ScriptsCatalog(lambda kind: self._principals(kind, lambda rid: rid in self.keyspaces))

    def _principals(self, kind: PrincipalKind, owner_exists: Callable[[bytes], bool]) -> Principals:
        return Principals(
            kind,
            change=self._change,
            changing=self._changing,
            random_bytes=self._random_bytes,
            new_etag=self._new_etag,
            owner_exists=owner_exists,
        )

    # --- opening ----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        try:
            await self._engine.read_fence(CATALOG_PARTITION)
        except PartitionUnknown:
            await self._engine.create_partition(CATALOG_PARTITION, Fence(CATALOG_EPOCH))
        for _, value in await self.scan(_DATABASE):
            self._remember_database(DatabaseRecord.from_bytes(value[LSN_BYTES:]))
        for _, value in await self.scan(_KEYSPACE):
            record = KeyspaceRecord.from_bytes(value[LSN_BYTES:])
            self._remember_keyspace(Keyspace(record, value[:LSN_BYTES], self._monotonic))
        for _, value in await self.scan(_OFFER):
            self._remember_offer(OfferRecord.from_bytes(value[LSN_BYTES:]))
        await self.users.open(self.scan)
        await self.permissions.open(self.scan)
        await self.scripts.open(self.scan)
        self.garbage = {PartitionNumber(_NUMBER.unpack(key[1:])[0]) for key, _ in await self.scan(_GARBAGE)}
        self.boot_number = await self._take_numbers(_NEXT_BOOT, 1)
        _, (floor,) = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [_LSN_FLOOR])
        self._lsn_floor = Lsn(0 if floor is None else _NUMBER.unpack(floor)[0])

    async def scan(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Every catalog entry under a prefix; the catalog is small enough to be read whole."""
        entries: list[tuple[bytes, bytes]] = []
        start, end, more = prefix, after_prefix(prefix), True
        while more:
            page = await self._engine.scan(CATALOG_PARTITION, CATALOG_EPOCH, Span(start, end))
            entries.extend(page.entries)
            more = page.more
            start = entries[-1][0] + b"\x00" if entries else prefix
        return entries

    def _remember_database(self, record: DatabaseRecord) -> None:
        self.databases[record.rid] = record
        self._database_rids[record.account, record.name] = record.rid

    def _remember_keyspace(self, keyspace: Keyspace) -> None:
        record = keyspace.record
        self.keyspaces[record.rid] = keyspace
        self._keyspace_rids[record.database_rid, record.name] = record.rid

    def _remember_offer(self, record: OfferRecord) -> None:
        self.offers[record.rid] = record
        self._offer_rids[record.resource_rid] = record.rid

    # --- looking up -------------------------------------------------------------------------------------------------

    def find_database(self, account: str, name: str) -> DatabaseRecord | None:
        rid = self._database_rids.get((account, name))
        return None if rid is None else self.databases[rid]

    def find_keyspace(self, database_rid: bytes, name: str) -> Keyspace | None:
        rid = self._keyspace_rids.get((database_rid, name))
        return None if rid is None else self.keyspaces[rid]

    def keyspaces_of(self, database_rid: bytes) -> list[Keyspace]:
        return [keyspace for rid, keyspace in self.keyspaces.items() if rid.startswith(database_rid)]

    def offer_for(self, resource_rid: bytes) -> OfferRecord | None:
        rid = self._offer_rids.get(resource_rid)
        return None if rid is None else self.offers[rid]

    def governing_offer(self, keyspace_rid: bytes) -> OfferRecord | None:
        """The keyspace's own throughput, or else the one it shares with its database."""
        return self.offer_for(keyspace_rid) or self.offer_for(keyspace_rid[:4])

    # --- databases --------------------------------------------------------------------------------------------------

    async def create_database(
        self, account: str, name: str, throughput: Throughput | None, *, now: int
    ) -> DatabaseRecord:
        async with self._changing:
            if self.find_database(account, name) is not None:
                raise ResourceExists(kind="database", name=name)
            record = DatabaseRecord(self._new_database_rid(), account, name, self._new_etag(), now)
            name_key = _name_key(_DATABASE_NAME, f"{account}/{name}")
            batch = Batch(
                expectations=[Expectation(name_key, None)],
                puts=[(name_key, record.rid)],
                versioned_puts=[(_DATABASE + record.rid, record.to_bytes())],
            )
            offer = self._new_offer(record.rid, throughput, now, batch)
            await self._change(batch, exists=ResourceExists(kind="database", name=name))
            self._remember_database(record)
            if offer is not None:
                self._remember_offer(offer)
            return record

    async def delete_database(self, record: DatabaseRecord) -> None:
        async with self._changing:
            if self.databases.get(record.rid) is not record:
                raise ResourceNotFound(kind="database", name=record.name)
            name_key = _name_key(_DATABASE_NAME, f"{record.account}/{record.name}")
            batch = Batch(deletes=[name_key, _DATABASE + record.rid])
            keyspaces = self.keyspaces_of(record.rid)
            for keyspace in keyspaces:
                self._plan_keyspace_removal(keyspace.record, batch)
            self._plan_offer_removal(record.rid, batch)
            self.users.plan_removal(record.rid, batch)
            self.permissions.plan_removal(record.rid, batch)
            await self._raise_lsn_floor(keyspaces, batch)
            await self._change(batch)
            for keyspace in keyspaces:
                self._forget_keyspace(keyspace)
            self._forget_offer(record.rid)
            self.permissions.forget_all(record.rid)
            self.users.forget_all(record.rid)
            del self.databases[record.rid]
            del self._database_rids[record.account, record.name]

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
        partition_count: int,
        throughput: Throughput | None,
        now: int,
        # What else is to be kept from the moment on that there is a keyspace of this resource id.
        with_puts: Callable[[bytes], Iterable[tuple[bytes, bytes]]] | None = None,
    ) -> Keyspace:
        async with self._changing:
            if database.rid not in self.databases:
                raise ResourceNotFound(kind="database", name=database.name)
            if self.find_keyspace(database.rid, name) is not None:
                raise ResourceExists(kind="container", name=name)
            numbers = await self.allocate_partitions(partition_count)
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
            name_key = _name_key(_KEYSPACE_NAME + database.rid, name)
            batch = Batch(
                expectations=[Expectation(name_key, None)],
                puts=[(name_key, record.rid), *(with_puts(record.rid) if with_puts else ())],
                versioned_puts=[(_KEYSPACE + record.rid, record.to_bytes())],
            )
            offer = self._new_offer(record.rid, throughput, now, batch)
            lsn = await self._change(batch, exists=ResourceExists(kind="container", name=name))
            keyspace = Keyspace(record, _NUMBER.pack(lsn), self._monotonic)
            self._remember_keyspace(keyspace)
            if offer is not None:
                self._remember_offer(offer)
            return keyspace

    async def _create_partitions(self, numbers: Iterable[PartitionNumber]) -> None:
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(self._engine.create_partition(number, Fence(FIRST_EPOCH), lsn=self._lsn_floor))

    async def replace_keyspace_settings(
        self,
        keyspace: Keyspace,
        settings: Mapping[str, Any],
        *,
        now: int,
        catching_up: Callable[[KeyspaceRecord], Mapping[str, Any]] | None = None,
        with_changes: Batch | None = None,
    ) -> None:
        """`catching_up` says, of the record as it was, what is due to its data; `with_changes` happens with it."""
        async with self._changing:
            before = keyspace.record
            due = before.catching_up if catching_up is None else catching_up(before)
            record = replace(before, settings=settings, etag=self._new_etag(), changed_at=now, catching_up=due)
            await self._put_keyspace(keyspace, record, with_changes or Batch())

    async def refuse_writes(self, keyspace: Keyspace, sentence: str) -> None:
        """From now on; `keyspace.earlier_work_done` tells when the writes before are over. "" lets them in again."""
        async with self._changing:
            # Other settings, though equal: who is at work under those of before can be told apart.
            record = replace(keyspace.record, settings=dict(keyspace.record.settings), writes_refused=sentence)
            await self._put_keyspace(keyspace, record, Batch())

    async def put_catching_up_position(self, keyspace: Keyspace, stored: bytes) -> None:
        """Remembers how far the data was brought in line with the settings."""
        async with self._changing:
            if not keyspace.deleted:
                await self._change(Batch(puts=[(_CATCHING_UP + keyspace.record.rid, stored)]))

    async def catching_up_position(self, keyspace: Keyspace) -> bytes | None:
        _, (stored,) = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [_CATCHING_UP + keyspace.record.rid])
        return stored

    async def end_catching_up(self, keyspace: Keyspace, done: Mapping[str, Any]) -> bool:
        """Nothing is to be done any more; False if by now something else is than what was `done`."""
        async with self._changing:
            record = keyspace.record
            if record.catching_up is not done:
                return False
            batch = Batch(deletes=[_CATCHING_UP + record.rid])
            await self._put_keyspace(keyspace, replace(record, catching_up={}), batch)
            return True

    async def publish_map(
        self, keyspace: Keyspace, change: Callable[[PartitionMap], PartitionMap], *, with_changes: Batch
    ) -> None:
        """Changes the map in force, together with whatever else must change in the same moment."""
        async with self._changing:
            record = keyspace.record
            await self._put_keyspace(keyspace, replace(record, map=change(record.map)), with_changes)

    async def _put_keyspace(self, keyspace: Keyspace, record: KeyspaceRecord, batch: Batch) -> None:
        if keyspace.deleted:
            raise ResourceNotFound(kind="container", name=record.name)
        key = _KEYSPACE + record.rid
        batch.expectations.append(Expectation(key, keyspace.version))
        batch.versioned_puts.append((key, record.to_bytes()))
        lsn = await self._change(batch)
        keyspace.replace_record(record, _NUMBER.pack(lsn))

    async def delete_keyspace(self, keyspace: Keyspace) -> None:
        async with self._changing:
            if keyspace.deleted:
                raise ResourceNotFound(kind="container", name=keyspace.record.name)
            batch = Batch()
            self._plan_keyspace_removal(keyspace.record, batch)
            await self._raise_lsn_floor([keyspace], batch)
            await self._change(batch)
            self._forget_keyspace(keyspace)

    async def _raise_lsn_floor(self, keyspaces: Iterable[Keyspace], batch: Batch) -> None:
        partitions = [one.partition for keyspace in keyspaces for one in keyspace.record.map.ranges]
        lsns = [(await self._engine.read_fence(number))[1] for number in partitions]
        self._lsn_floor = Lsn(max([self._lsn_floor, *(lsn + _LSN_MARGIN for lsn in lsns)]))
        batch.puts.append((_LSN_FLOOR, _NUMBER.pack(self._lsn_floor)))

    def _plan_keyspace_removal(self, record: KeyspaceRecord, batch: Batch) -> None:
        batch.deletes += [_KEYSPACE + record.rid, _name_key(_KEYSPACE_NAME + record.database_rid, record.name)]
        batch.deletes.append(_CATCHING_UP + record.rid)
        history = _HISTORY + record.rid
        batch.range_deletes.append(Span(history, after_prefix(history)))
        for partition in record.map.ranges:
            batch.puts.append((_GARBAGE + _NUMBER.pack(partition.partition), b""))
        self._plan_offer_removal(record.rid, batch)
        self.scripts.plan_removal(record.rid, batch)

    def _forget_keyspace(self, keyspace: Keyspace) -> None:
        record = keyspace.record
        self.garbage.update(partition.partition for partition in record.map.ranges)
        del self.keyspaces[record.rid]
        del self._keyspace_rids[record.database_rid, record.name]
        self._forget_offer(record.rid)
        self.scripts.forget_all(record.rid)
        keyspace.mark_deleted()

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
        batch.expectations.append(Expectation(_OFFER + rid, None))
        batch.versioned_puts.append((_OFFER + rid, record.to_bytes()))
        return record

    async def replace_offer(self, record: OfferRecord, throughput: Throughput, *, now: int) -> OfferRecord:
        async with self._changing:
            if record.rid not in self.offers:
                raise ResourceNotFound(kind="offer", name=record.rid.hex())
            changed = replace(
                record,
                throughput=throughput,
                highest_ever_ru=max(record.highest_ever_ru, effective_ru(throughput)),
                etag=self._new_etag(),
                changed_at=now,
            )
            await self._change(Batch(versioned_puts=[(_OFFER + record.rid, changed.to_bytes())]))
            self._remember_offer(changed)
            return changed

    def _plan_offer_removal(self, resource_rid: bytes, batch: Batch) -> None:
        offer = self.offer_for(resource_rid)
        if offer is not None:
            batch.deletes.append(_OFFER + offer.rid)

    def _forget_offer(self, resource_rid: bytes) -> None:
        rid = self._offer_rids.pop(resource_rid, None)
        if rid is not None:
            del self.offers[rid]

    # --- partitions, jobs, history ----------------------------------------------------------------------------------

    async def allocate_partitions(self, count: int) -> list[PartitionNumber]:
        """Numbers never used before and never used again."""
        first = await self._take_numbers(_NEXT_PARTITION, count)
        return [PartitionNumber(first + offset) for offset in range(count)]

    async def forget_garbage(self, number: PartitionNumber) -> None:
        await self._change(Batch(deletes=[_GARBAGE + _NUMBER.pack(number)]))
        self.garbage.discard(number)

    def plan_garbage(self, number: PartitionNumber, batch: Batch) -> None:
        batch.puts.append((_GARBAGE + _NUMBER.pack(number), b""))

    async def put_job(self, job_id: int, stored: bytes) -> None:
        await self._change(Batch(puts=[(_JOB + _NUMBER.pack(job_id), stored)]))

    async def give_up_job(self, job_id: int, targets: Iterable[PartitionNumber]) -> None:
        """The job is over without a result; what it had begun to fill is garbage."""
        batch = Batch(deletes=[_JOB + _NUMBER.pack(job_id)])
        for number in targets:
            self.plan_garbage(number, batch)
            self.garbage.add(number)
        await self._change(batch)

    def plan_job_end(self, job_id: int, keyspace_rid: bytes, history: bytes, batch: Batch) -> None:
        """In the batch that publishes a job's map: the job is over, and what it did is remembered."""
        batch.deletes.append(_JOB + _NUMBER.pack(job_id))
        batch.puts.append((_HISTORY + keyspace_rid + _NUMBER.pack(job_id), history))

    async def jobs(self) -> list[bytes]:
        return [value for _, value in await self.scan(_JOB)]

    # --- background work of the floors above ------------------------------------------------------------------------

    async def new_task_number(self) -> int:
        return await self._take_numbers(_NEXT_TASK, 1)

    def plan_task(self, number: int, stored: bytes, batch: Batch) -> None:
        """Remembers work that is to be taken up again after a crash, in the batch that calls for it."""
        batch.puts.append((_TASK + _NUMBER.pack(number), stored))

    async def put_task(self, number: int, stored: bytes) -> None:
        await self._change(Batch(puts=[(_TASK + _NUMBER.pack(number), stored)]))

    async def forget_task(self, number: int) -> None:
        await self._change(Batch(deletes=[_TASK + _NUMBER.pack(number)]))

    async def tasks(self) -> list[bytes]:
        return [value for _, value in await self.scan(_TASK)]

    async def history_of(self, keyspace_rid: bytes) -> list[bytes]:
        return [value for _, value in await self.scan(_HISTORY + keyspace_rid)]

    async def orphans(self, *, in_jobs: set[PartitionNumber]) -> set[PartitionNumber]:
        """Partitions a crash left between their creation and the catalog's word of them."""
        known = {partition.partition for space in self.keyspaces.values() for partition in space.record.map.ranges}
        return set(await self._engine.partitions()) - known - in_jobs - self.garbage - {CATALOG_PARTITION}

    # --- the batch itself -------------------------------------------------------------------------------------------

    async def _change(self, batch: Batch, *, exists: ResourceExists | None = None) -> Lsn:
        try:
            return await self._engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch)
        except ExpectationFailed:
            raise exists or StorageUnavailable(reason="the catalog was changed by another process") from None

    async def _take_numbers(self, counter_key: bytes, count: int) -> int:
        while True:
            _, (stored,) = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [counter_key])
            first = 1 if stored is None else _NUMBER.unpack(stored)[0]
            counted = (counter_key, _NUMBER.pack(first + count))
            batch = Batch(expectations=[Expectation(counter_key, stored)], puts=[counted])
            try:
                await self._engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch)
            except ExpectationFailed:
                continue
            return int(first)

    def _new_etag(self) -> str:
        text = self._random_bytes(16).hex()
        return f'"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"'

    def _new_database_rid(self) -> bytes:
        rid = self._random_bytes(4)
        while rid in self.databases:
            rid = self._random_bytes(4)
        return rid

    def _new_keyspace_rid(self, database_rid: bytes) -> bytes:
        while True:
            drawn = self._random_bytes(4)
            # The real layout marks collections, as against users, in the first bit of their part.
            rid = database_rid + bytes([drawn[0] | 0x80]) + drawn[1:]
            if rid not in self.keyspaces:
                return rid
