"""The LMDB engine: one environment per node, a key prefix per partition. Reads never suspend; writes are grouped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import lmdb

from asterism.storage.contract import (
    Batch,
    EngineFailed,
    EngineStatus,
    EpochFenced,
    Fence,
    JournalEntry,
    PartitionUnknown,
    ScanPage,
    Span,
)
from asterism.storage.lmdb import transactions
from asterism.storage.lmdb.claim import DirectoryClaim
from asterism.storage.lmdb.environment import EngineStats, StoreEnvironment
from asterism.storage.lmdb.group_commit import GroupCommitter
from asterism.storage.lmdb.layout import (
    FLAG_DROPPING,
    FLAGS_CLOSED,
    META,
    META_END,
    META_PREFIX,
    PartitionMeta,
    PartitionNames,
    decode_meta,
)
from asterism.storage.lmdb.views import LmdbSnapshot, journal_entries, scan_page
from asterism.storage.lmdb.watching import Watchers
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# Changes of `transactions.REMOVE_ENTRIES_PER_CHANGE` entries in one call of `drop_partition`.
DROP_CHANGES_PER_CALL = 10

_unpack_meta = META.unpack


class LmdbEngine:
    """An engine on LMDB; see `asterism.storage.contract.Engine`. Several processes may open one directory, each once.

    The fence is read inside every transaction and never cached: another process may have changed it.
    """

    def __init__(self, store: StoreEnvironment, *, shared: bool = False, claim: DirectoryClaim | None = None) -> None:
        self._store = store
        self._claim = claim
        self._names = PartitionNames()
        self._committer = GroupCommitter(store, self._names)
        self._watchers = Watchers(self._lsn_now, file=store.data_file if shared else None)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        map_bytes: int | None = None,
        durable: bool = True,
        shared: bool = False,
        server: str | None = None,
    ) -> Self:
        """Open the directory, and create it if it is missing. Without `map_bytes` the map is as large as allowed, up to
        1 TiB. An engine that is not `durable` leaves the time of writes to the operating system: for tests. `shared`:
        other processes write to the store, and `watch` reports their batches. With `server`, only processes that name
        the same server can have the directory open at a time; others are refused."""
        claim = None if server is None else DirectoryClaim(Path(path), server=server)
        try:
            store = StoreEnvironment(Path(path), map_bytes=map_bytes, durable=durable)
        except BaseException:
            if claim is not None:
                claim.release()
            raise
        return cls(store, shared=shared, claim=claim)

    # --- reading --------------------------------------------------------------------------------------------------

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        # The hottest path of the database: written out, and ended with abort() because `with` costs half as much again.
        meta_key, prefix = self._names[partition]
        try:
            txn = self._store.begin_read()
            get = txn.get
            record = get(meta_key)
            if record is not None:
                flags, stored_epoch, lsn, _ = _unpack_meta(record)
                if stored_epoch == epoch and not flags & FLAGS_CLOSED:
                    # Loops inside the interpreter: with many keys, these save a tenth of the time.
                    values = list(map(get, map(prefix.__add__, keys)))
                    txn.abort()
                    return lsn, values
            txn.abort()
        except lmdb.Error as error:
            raise self._store.translate(error) from error
        if record is None or flags & FLAG_DROPPING:
            raise PartitionUnknown(partition)
        raise EpochFenced(partition)

    async def scan(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        span: Span,
        *,
        reverse: bool = False,
        limit: int = 1000,
        bytes_max: int | None = None,
        at_least: Lsn | None = None,
    ) -> ScanPage:
        try:
            with self._store.begin_read() as txn:
                self._check_fence(txn, partition, epoch)
                prefix = self._names[partition][1]
                return scan_page(txn, prefix, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        except lmdb.Error as error:
            raise self._store.translate(error) from error

    async def snapshot(self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None) -> LmdbSnapshot:
        try:
            txn = self._store.begin_read()
            try:
                meta = self._check_fence(txn, partition, epoch)
            except BaseException:
                txn.abort()
                raise
        except lmdb.Error as error:
            raise self._store.translate(error) from error
        return LmdbSnapshot(txn, self._names[partition][1], meta.lsn)

    def _meta(self, txn: lmdb.Transaction[bytes], partition: PartitionNumber) -> PartitionMeta:
        record = txn.get(self._names[partition][0])
        if record is None or (meta := decode_meta(record)).dropping:
            raise PartitionUnknown(partition)
        return meta

    def _check_fence(self, txn: lmdb.Transaction[bytes], partition: PartitionNumber, epoch: Epoch) -> PartitionMeta:
        meta = self._meta(txn, partition)
        if meta.sealed or meta.epoch != epoch:
            raise EpochFenced(partition)
        return meta

    # --- writing --------------------------------------------------------------------------------------------------

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        lsn = await self._committer.submit(partial(transactions.apply_batch, partition, epoch, batch))
        if partition in self._watchers.callbacks:
            self._watchers.notify(partition, lsn)
        return lsn

    # --- partitions -----------------------------------------------------------------------------------------------

    async def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> None:
        # Every partition can be watched here, so an announced one needs no record.
        await self._committer.submit(partial(transactions.create_partition, partition=partition, fence=fence, lsn=lsn))

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.add(partition, callback)

    def _lsn_now(self, partition: PartitionNumber) -> Lsn | None:
        """Return the LSN; None for a partition that does not exist, or while the store cannot be read."""
        try:
            with self._store.begin_read() as txn:
                record = txn.get(self._names[partition][0])
        except lmdb.Error:
            return None
        return None if record is None else decode_meta(record).lsn

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        for _ in range(DROP_CHANGES_PER_CALL):
            if await self._committer.submit(partial(transactions.drop_some, partition=partition)):
                return True
        return False

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        """Return the partitions by their numbers on node 0: the store does not know its node."""
        found: dict[PartitionNumber, tuple[Fence, Lsn]] = {}
        try:
            with self._store.begin_read() as txn:
                cursor = txn.cursor()
                # A cursor that found nothing would start at the store's first entry.
                for key, record in cursor.iternext() if cursor.set_range(META_PREFIX) else ():
                    if key >= META_END:
                        break
                    meta = decode_meta(record)
                    if not meta.dropping:
                        number = PartitionNumber(int.from_bytes(key[len(META_PREFIX) :], "big"))
                        found[number] = (meta.fence(), meta.lsn)
        except lmdb.Error as error:
            raise self._store.translate(error) from error
        return found

    async def read_fence(self, partition: PartitionNumber) -> tuple[Fence, Lsn]:
        try:
            with self._store.begin_read() as txn:
                meta = self._meta(txn, partition)
        except lmdb.Error as error:
            raise self._store.translate(error) from error
        return meta.fence(), meta.lsn

    async def set_fence(
        self,
        partition: PartitionNumber,
        fence: Fence,
        *,
        lsn: Lsn | None = None,
        expected: Fence | None = None,
    ) -> Lsn:
        set_fence = partial(transactions.set_fence, partition=partition, fence=fence, lsn=lsn, expected=expected)
        lsn_now, has_more = await self._committer.submit(set_fence)
        # The journal is discarded already; its records are removed in pieces, so that other changes can run in between.
        while has_more:
            remove = partial(transactions.remove_forgotten_journal, partition=partition)
            has_more = await self._committer.submit(remove)
        return lsn_now

    # --- copying --------------------------------------------------------------------------------------------------

    async def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            with self._store.begin_read() as txn:
                self._meta(txn, partition)
                prefix = self._names[partition][1]
                return [txn.get(prefix + key) for key in keys]
        except lmdb.Error as error:
            raise self._store.translate(error) from error

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        try:
            with self._store.begin_read() as txn:
                self._meta(txn, partition)
                prefix = self._names[partition][1]
                return scan_page(txn, prefix, span, reverse=False, limit=limit, bytes_max=bytes_max)
        except lmdb.Error as error:
            raise self._store.translate(error) from error

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        try:
            with self._store.begin_read() as txn:
                meta = self._meta(txn, partition)
                if not meta.journaling:
                    return []
                first = max(after, meta.journal_after)
                return journal_entries(txn, self._names[partition][1], after=first, limit=limit)
        except lmdb.Error as error:
            raise self._store.translate(error) from error

    async def write_copied(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[Span] = (),
    ) -> None:
        change = partial(
            transactions.write_copied,
            partition=partition,
            epoch=epoch,
            puts=puts,
            deletes=deletes,
            range_deletes=range_deletes,
        )
        await self._committer.submit(change)

    # --- the engine itself ----------------------------------------------------------------------------------------

    def stats(self) -> EngineStats:
        try:
            return self._store.stats()
        except lmdb.Error as error:
            raise EngineFailed(str(error)) from error

    @property
    def commits(self) -> int:
        return self._committer.commits

    async def status(self) -> EngineStatus:
        try:
            with self._store.begin_read() as txn:
                is_writable = self._store.room_bytes(txn) > 0
        except (lmdb.Error, OSError) as error:
            raise EngineFailed(str(error)) from error
        version = ".".join(map(str, lmdb.version()))
        return EngineStatus(self.stats().bytes_used, is_writable=is_writable, server_version=f"LMDB {version}")

    async def close(self) -> None:
        self._watchers.close()
        await self._committer.close()
        self._store.close()
        if self._claim is not None:
            self._claim.release()
            self._claim = None
