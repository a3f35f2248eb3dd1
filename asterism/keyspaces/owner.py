"""The way to a partition: finds it on the map, carries its epoch, and goes to its child when it was split meanwhile.

A request that meets a seal waits for the map that is about to be published and tries again there; no client sees it.
One that meets another epoch than it knew looks for what another process has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from asterism.errors import OwnerNotFound, StorageFull, StorageUnavailable, StoredDamage
from asterism.keyspaces.fences import raise_fence
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.records import KeyspaceRecord
from asterism.partitioning.partition_map import PartitionRange
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
from asterism.values.identifiers import Lsn

# How long a request waits for the map that a split, merge or move is about to publish. The seal lasts milliseconds;
# whoever takes over from a process that died needs seconds to see it. Waiting longer than this means that nobody is
# there to end it, and the client should hear of it.
SEAL_WAIT_SECONDS_MAX = 15.0
# For the catalog's word on a partition that has refused: a client that is told 503 asks again, perhaps somebody else.
CATALOG_WAIT_SECONDS_MAX = 5.0
_NAP_SECONDS_MIN = 0.002
_NAP_SECONDS_MAX = 0.05


class PlanOutdated(ExpectationFailed):
    """The settings that a batch was planned by are not in force any more; nothing was written. Plan it again."""

    def __init__(self) -> None:
        super().__init__(b"")


class Reads(Protocol):
    """Reading the partitions of a keyspace as the map in force places them."""

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        """The values of keys that live where `point` does, all from one moment."""
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
        """A page of a partition found in the record `seen`; None when another map is in force by now and the caller
        must look for its place there."""
        ...


class Owner:
    """Reads and writes one partition of a keyspace at a time, chosen by a point of the hash line."""

    def __init__(
        self,
        engine: Engine,
        follow: Callable[[], Awaitable[bool]] | None = None,
        *,
        may_read_copies: bool = False,
    ) -> None:
        """`follow` takes over what other processes have changed in the catalog; None when there are none.
        `may_read_copies` says that the store has copies, which `relaxed` reads may be answered by."""
        self._engine = engine
        self._follow = follow
        self._may_read_copies = may_read_copies
        # What a read must have seen, by range id; None asks for the newest there is.
        self._seen_lsns: Mapping[int, int] | None = None
        # How often anybody came here, so that work in the background can see whether it is alone.
        self.calls = 0

    def relaxed(self, seen_lsns: Mapping[int, int] | None) -> Owner:
        """The same way to the partitions for reads that need not see the newest, only what `seen_lsns` (range id ->
        LSN, of a partition or of one it came from) says was seen before."""
        if not self._may_read_copies:
            return self
        relaxed = Owner(self._engine, self._follow, may_read_copies=True)
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
        """There are other processes from now on, over a store that may have copies."""
        self._follow = follow
        self._may_read_copies = True

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        self.calls += 1
        while True:
            record = keyspace.record
            partition = record.map.find(point)
            try:
                lsn, values = await self._engine.read(
                    partition.partition, partition.epoch, keys, at_least=self._at_least(partition)
                )
            except (EpochFenced, PartitionUnknown):
                await self._settled(keyspace, record, partition)
            except EngineFailed as failure:
                raise StorageUnavailable(reason=str(failure)) from failure
            else:
                return partition, lsn, values

    async def read_from(
        self, keyspace: Keyspace, seen: KeyspaceRecord, partition: PartitionRange, keys: Sequence[bytes]
    ) -> tuple[Lsn, list[bytes | None]] | None:
        """Keys of a partition found in the record `seen`, which need not be near each other on the line; None when
        another map is in force by now, as for `scan`."""
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
        """A page of a partition found in the record `seen`; None when another map may be in force by now and the caller
        must look for its place there."""
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
        """One moment of the partition where `point` lives; it stays readable when that is split. Must be closed."""
        self.calls += 1
        while True:
            record = keyspace.record
            partition = record.map.find(point)
            try:
                return await self._engine.snapshot(partition.partition, partition.epoch)
            except (EpochFenced, PartitionUnknown):
                await self._settled(keyspace, record, partition)
            except EngineFailed as failure:
                raise StorageUnavailable(reason=str(failure)) from failure

    async def apply(
        self,
        keyspace: Keyspace,
        point: bytes,
        batch: Batch,
        admit: Callable[[PartitionRange], None] | None = None,
        *,
        planned_under: Mapping[str, Any] | None = None,
    ) -> tuple[PartitionRange, Lsn]:
        """Applies a batch where `point` lives. `admit` is asked once, before the first attempt. `planned_under` are the
        settings that the batch was planned by, if they matter to it: PlanOutdated when others are in force.

        Raises the storage contract's ExpectationFailed and CeilingPassed: what they mean is the caller's to say.
        """
        self.calls += 1
        while True:
            record = keyspace.record
            if planned_under is not None and record.settings is not planned_under:
                raise PlanOutdated
            partition = record.map.find(point)
            if admit is not None:
                admit(partition)
                admit = None
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
        """After a fence has refused: returns when another record is in force, or the fence lets one in by now."""
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
            # Whoever has changed the map may have died before the fence followed it.
            fence = await raise_fence(self._engine, partition)
        except EngineFailed as failure:
            raise StorageUnavailable(reason=str(failure)) from failure
        return fence is not None and fence.epoch == partition.epoch and not fence.sealed
