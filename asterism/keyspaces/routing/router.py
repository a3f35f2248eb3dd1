"""The router of calls to partitions: finds a partition on the map, calls it with its epoch, and retries on a newer map.

A call that meets a seal waits for the map that is about to be published and is repeated there; no client notices it. A
call that meets another epoch first takes over what other processes have changed in the catalog (K3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from asterism.errors import OwnerNotFound, StorageFull, StorageUnavailable, StoredDamage
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.fences import raise_fence
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.storage.contract import (
    Batch,
    Engine,
    EngineFailed,
    EpochFenced,
    ExpectationFailed,
    OutOfSpace,
    PartitionUnknown,
    RecordDamaged,
    ScanPage,
    Snapshot,
    Span,
)
from asterism.values.identifiers import Lsn, PartitionNumber

# The wait of a request for the map that a split, merge or move is about to publish. The seal lasts milliseconds; a
# process that takes over from one that crashed needs seconds to notice it. After this time no process is there to end
# the seal, and the client gets an error.
SEAL_WAIT_SECONDS_MAX = 15.0
# The wait for the catalog after a partition has refused: a client retries after a 503, perhaps at another process.
CATALOG_WAIT_SECONDS_MAX = 5.0
_NAP_SECONDS_MIN = 0.002
_NAP_SECONDS_MAX = 0.05


class PlanOutdated(ExpectationFailed):
    """The settings that a batch was planned under are no longer in force; nothing was written. Plan it again."""

    def __init__(self) -> None:
        super().__init__(b"")


class MapOutdated(PlanOutdated):
    """The map that a batch for several logical partitions was put together by is no longer in force; nothing was
    written. Find the partitions again."""


class Reads(Protocol):
    """Reads of the partitions of a keyspace, where the map in force places them."""

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        """Return the values of keys in the partition of `point`, all from one moment."""
        ...

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
        """Return a page of a partition found in the record `seen`; None if another map is in force by now, on which
        the caller must find the partition again."""
        ...


class PartitionRouter:
    """Reads and writes one partition of a keyspace at a time, that of a point of the line."""

    def __init__(
        self,
        engine: Engine,
        follow: Callable[[], Awaitable[bool]] | None = None,
        *,
        may_read_copies: bool = False,
    ) -> None:
        """`follow` takes over what other processes have changed in the catalog; None if there are no others.
        `may_read_copies`: the store has copies, which may answer `relaxed` reads."""
        self._engine = engine
        self._follow = follow
        self.may_read_copies = may_read_copies
        # The LSN that a read must include, by range id; None for the newest state.
        self._seen_lsns: Mapping[int, int] | None = None
        # The number of calls, by which background work sees whether it is alone.
        self.calls = 0

    def relaxed(self, seen_lsns: Mapping[int, int] | None) -> PartitionRouter:
        """Return a router for reads that need not see the newest state, only that of `seen_lsns` (range id -> LSN, of a
        partition or of one that it came from)."""
        if not self.may_read_copies:
            return self
        relaxed = PartitionRouter(self._engine, self._follow, may_read_copies=True)
        relaxed._seen_lsns = seen_lsns or {}
        return relaxed

    def _at_least(self, partition: PartitionRange) -> Lsn | None:
        seen = self._seen_lsns
        if seen is None:
            return None
        if not seen:
            return Lsn(0)
        return Lsn(max(seen.get(range_id, 0) for range_id in (partition.id, *partition.parents)))

    def follow_others(self, follow: Callable[[], Awaitable[bool]]) -> None:
        """Take other processes into account from now on, on a store that may have copies."""
        self._follow = follow
        self.may_read_copies = True

    @property
    def has_others(self) -> bool:
        """True if other processes write to the store."""
        return self._follow is not None

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after batches of other processes, where the engine reports them; return the end of the watch."""
        return self._engine.watch(partition, callback)

    async def follow(self) -> None:
        """Take over what other processes have changed in the catalog, if there are others."""
        if self._follow is not None:
            await self._follow()

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        self.calls += 1
        while True:
            record = keyspace.record
            partition = record.map.find(point)
            at_least = None if self._seen_lsns is None else self._at_least(partition)
            try:
                lsn, values = await self._engine.read(partition.partition, partition.epoch, keys, at_least=at_least)
            except (EpochFenced, PartitionUnknown):
                await self._settled(keyspace, record, partition)
            except EngineFailed as failure:
                raise StorageUnavailable(reason=str(failure)) from failure
            else:
                return partition, lsn, values

    async def read_from(
        self, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange, keys: Sequence[bytes]
    ) -> tuple[Lsn, list[bytes | None]] | None:
        """Return the values of any keys of a partition found in the record `seen`; None if another map is in force by
        now, as for `scan`."""
        self.calls += 1
        try:
            return await self._engine.read(
                partition.partition, partition.epoch, keys, at_least=self._at_least(partition)
            )
        except (EpochFenced, PartitionUnknown):
            await self._settled(keyspace, seen, partition)
            return None
        except EngineFailed as failure:
            raise StorageUnavailable(reason=str(failure)) from failure

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
        """Return a page of a partition found in the record `seen`; None if another map may be in force by now."""
        self.calls += 1
        try:
            return await self._engine.scan(
                partition.partition,
                partition.epoch,
                span,
                reverse=reverse,
                limit=limit,
                bytes_max=bytes_max,
                at_least=self._at_least(partition),
            )
        except (EpochFenced, PartitionUnknown):
            await self._settled(keyspace, seen, partition)
            return None
        except EngineFailed as failure:
            raise StorageUnavailable(reason=str(failure)) from failure

    async def snapshot(self, keyspace: Keyspace, point: bytes) -> Snapshot:
        """Open a snapshot of the partition of `point`, which outlives a split. Callers must close it."""
        self.calls += 1
        while True:
            record = keyspace.record
            partition = record.map.find(point)
            try:
                return await self._engine.snapshot(
                    partition.partition, partition.epoch, at_least=self._at_least(partition)
                )
            except (EpochFenced, PartitionUnknown):
                await self._settled(keyspace, record, partition)
            except EngineFailed as failure:
                raise StorageUnavailable(reason=str(failure)) from failure

    async def apply(
        self,
        keyspace: Keyspace,
        point: bytes,
        batch: Batch,
        *,
        planned_under: Mapping[str, Any] | None = None,
        on_map: PartitionMap | None = None,
        cost: float = 0.0,
        spent: Spent | None = None,
    ) -> tuple[PartitionRange, Lsn]:
        """Apply a batch to the partition of `point`. `planned_under` are the settings that the batch was planned by, if
        they matter to it: PlanOutdated when others are in force. `on_map` is the map by which logical partitions of one
        physical partition were put together in the batch: MapOutdated when another is in force.

        A `cost` is taken from the partition's budget once, before the first attempt, and counted in `spent`;
        RequestRateTooLarge when the budget does not have it. Raises the storage contract's ExpectationFailed and
        CeilingPassed, whose meaning the caller knows.
        """
        self.calls += 1
        while True:
            record = keyspace.record
            if planned_under is not None and record.settings is not planned_under:
                raise PlanOutdated
            if on_map is not None and record.map is not on_map:
                raise MapOutdated
            partition = record.map.find(point)
            if cost:
                keyspace.spend(partition, cost, point)
                if spent is not None:
                    spent.charge += cost
                cost = 0.0
            try:
                return partition, await self._engine.apply(partition.partition, partition.epoch, batch)
            except (EpochFenced, PartitionUnknown):
                await self._settled(keyspace, record, partition)
            except OutOfSpace:
                raise StorageFull from None
            except RecordDamaged as damaged:
                raise StoredDamage(what="counters", key=damaged.key.hex()) from None
            except EngineFailed as failure:
                raise StorageUnavailable(reason=str(failure)) from failure

    async def _settled(self, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange) -> None:
        """Wait, after a fence has refused, until another record is in force or the fence admits the epoch."""
        nap_seconds = _NAP_SECONDS_MIN
        try:
            async with asyncio.timeout(SEAL_WAIT_SECONDS_MAX):
                while not keyspace.deleted and keyspace.record is seen:
                    if await self._is_open(keyspace, seen, partition):
                        return
                    await keyspace.changed(seconds_max=nap_seconds)
                    nap_seconds = min(2 * nap_seconds, _NAP_SECONDS_MAX)
        except TimeoutError:
            raise StorageUnavailable(reason="a partition stayed sealed") from None
        if keyspace.deleted:
            raise OwnerNotFound(kind="container", name=seen.name)

    async def _is_open(self, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange) -> bool:
        if self._follow is not None:
            try:
                async with asyncio.timeout(CATALOG_WAIT_SECONDS_MAX):
                    await self._follow()
            except TimeoutError:
                raise StorageUnavailable(reason="the catalog cannot be asked where a partition is now") from None
            except EngineFailed as failure:
                raise StorageUnavailable(reason=str(failure)) from failure
        try:
            if keyspace.deleted or keyspace.record is not seen:
                return False
            # The process that changed the map may have crashed before it raised the fence.
            fence = await raise_fence(self._engine, partition)
        except EngineFailed as failure:
            raise StorageUnavailable(reason=str(failure)) from failure
        return fence is not None and fence.epoch == partition.epoch and not fence.sealed
