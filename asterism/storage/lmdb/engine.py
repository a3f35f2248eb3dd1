"""The LMDB engine: one environment per node, a key prefix per partition. Reads never suspend; writes are grouped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
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
from asterism.storage.lmdb.log_commit import DEFAULT_FOLD_PACE, FoldPace, LogCommitter
from asterism.storage.lmdb.overlay import Lookup, read_keys
from asterism.storage.lmdb.recovery import Recovered, read_log, replay
from asterism.storage.lmdb.resident_pages import BULK_VALUE_BYTES_MIN, ResidentPages
from asterism.storage.lmdb.store_lock import StoreLock
from asterism.storage.lmdb.views import LmdbSnapshot, StoreView, journal_entries, scan_page
from asterism.storage.lmdb.watching import Watchers
from asterism.storage.lmdb.write_log import WriteLog, remove_log
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# Changes of `transactions.REMOVE_ENTRIES_PER_CHANGE` entries in one call of `drop_partition`.
DROP_CHANGES_PER_CALL = 10

_unpack_meta = META.unpack

_logger = logging.getLogger(__name__)


class LmdbEngine:
    """An engine on LMDB; see `asterism.storage.contract.Engine`. Several processes may open one directory, each once.

    The fence is read inside every transaction and never cached: another process may have changed it.
    """

    def __init__(
        self,
        store: StoreEnvironment,
        lock: StoreLock,
        *,
        recovered: Recovered | None,
        fold_pace: FoldPace,
        claim: DirectoryClaim | None = None,
    ) -> None:
        """Take over an open environment and its lock. One that was `recovered` is open in no other process, and writes
        go through a log."""
        self._store = store
        self._lock = lock
        self._claim = claim
        self._is_closed = False
        self._names = PartitionNames()
        self._resident = ResidentPages(store.data_file)
        self._committer = _new_committer(store, self._names, recovered, fold_pace)
        self._watchers = Watchers(self._lsn_now, file=store.data_file if recovered is None else None)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        map_bytes: int | None = None,
        durable: bool = True,
        shared: bool = False,
        server: str | None = None,
        fold_pace: FoldPace = DEFAULT_FOLD_PACE,
    ) -> Self:
        """Open the directory, and create it if it is missing. Without `map_bytes` the map is as large as allowed, up to
        1 TiB. An engine that is not `durable` leaves the time of writes to the operating system: for tests. `shared`:
        other processes write to the store, and `watch` reports their batches; without it, no other process can open the
        store, and writes go through a log. With `server`, only processes that name the same server can have the
        directory open at a time; others are refused."""
        with ExitStack() as undo:
            claim = None if server is None else DirectoryClaim(Path(path), server=server)
            if claim is not None:
                undo.callback(claim.release)
            store = StoreEnvironment(Path(path), map_bytes=map_bytes, durable=durable)
            undo.callback(store.close)
            lock = StoreLock(store.directory, shared=shared)
            undo.callback(lock.release)
            recovered = read_log(store) if lock.is_alone else None
            if shared:
                if recovered is not None:
                    replay(store, recovered)
                    remove_log(store.directory)
                lock.share()
                recovered = None
            engine = cls(store, lock, recovered=recovered, fold_pace=fold_pace, claim=claim)
            undo.pop_all()
        return engine

    # --- reading --------------------------------------------------------------------------------------------------

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        # The hottest path of the database: written out, and ended with abort() because `with` costs half as much again.
        meta_key, prefix = self._names[partition]
        try:
            txn = self._store.begin_read()
            get = txn.get
            layers = self._committer.layers
            record = get(meta_key) if not layers else read_keys(layers, get, (meta_key,))[0]
            if record is not None:
                flags, stored_epoch, lsn, _ = _unpack_meta(record)
                if stored_epoch == epoch and not flags & FLAGS_CLOSED:
                    # Loops inside the interpreter: with many keys, these save a tenth of the time.
                    stored_keys = map(prefix.__add__, keys)
                    values = list(map(get, stored_keys)) if not layers else read_keys(layers, get, list(stored_keys))
                    txn.abort()
                    if len(values) == 1 and values[0] is not None and len(values[0]) >= BULK_VALUE_BYTES_MIN:
                        self._resident.count(len(values[0]))
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
                view = StoreView(txn, self._committer.layers)
                lsn = self._check_fence(view.get, partition, epoch).lsn
                prefix = self._names[partition][1]
                return scan_page(view, prefix, span, reverse=reverse, limit=limit, bytes_max=bytes_max, lsn=lsn)
        except lmdb.Error as error:
            raise self._store.translate(error) from error

    async def snapshot(self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None) -> LmdbSnapshot:
        try:
            txn = self._store.begin_read()
            view = StoreView(txn, self._committer.layers)
            try:
                meta = self._check_fence(view.get, partition, epoch)
            except BaseException:
                txn.abort()
                raise
        except lmdb.Error as error:
            raise self._store.translate(error) from error
        return LmdbSnapshot(view, self._names[partition][1], meta.lsn, self._committer.open_views)

    def _meta(self, get: Lookup, partition: PartitionNumber) -> PartitionMeta:
        record = get(self._names[partition][0])
        if record is None or (meta := decode_meta(record)).dropping:
            raise PartitionUnknown(partition)
        return meta

    def _check_fence(self, get: Lookup, partition: PartitionNumber, epoch: Epoch) -> PartitionMeta:
        meta = self._meta(get, partition)
        if meta.sealed or meta.epoch != epoch:
            raise EpochFenced(partition)
        return meta

    # --- writing --------------------------------------------------------------------------------------------------

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        lsn = await self._committer.submit(partial(transactions.apply_batch, partition, epoch, batch), batch)
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
                record = StoreView(txn, self._committer.layers).get(self._names[partition][0])
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
                take = StoreView(txn, self._committer.layers).entries(META_PREFIX, META_END)
                while (entry := next(iter(take(1)), None)) is not None and entry[0] < META_END:
                    key, record = entry
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
                meta = self._meta(StoreView(txn, self._committer.layers).get, partition)
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
                view = StoreView(txn, self._committer.layers)
                self._meta(view.get, partition)
                prefix = self._names[partition][1]
                return view.read([prefix + key for key in keys])
        except lmdb.Error as error:
            raise self._store.translate(error) from error

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        try:
            with self._store.begin_read() as txn:
                view = StoreView(txn, self._committer.layers)
                self._meta(view.get, partition)
                prefix = self._names[partition][1]
                return scan_page(view, prefix, span, reverse=False, limit=limit, bytes_max=bytes_max)
        except lmdb.Error as error:
            raise self._store.translate(error) from error

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        try:
            with self._store.begin_read() as txn:
                view = StoreView(txn, self._committer.layers)
                meta = self._meta(view.get, partition)
                if not meta.journaling:
                    return []
                first = max(after, meta.journal_after)
                return journal_entries(view, self._names[partition][1], after=first, limit=limit)
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
            return self._store.stats(log_bytes=self._committer.log_bytes)
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
        # A fleet closes the store of a node that has left it, and once more all that it has opened.
        if self._is_closed:
            return
        self._is_closed = True
        self._watchers.close()
        await self._committer.close()
        self._store.close()
        self._lock.release()
        if self._claim is not None:
            self._claim.release()


def _new_committer(
    store: StoreEnvironment, names: PartitionNames, recovered: Recovered | None, fold_pace: FoldPace
) -> LogCommitter | GroupCommitter:
    """Return the committer that goes through a log, if the store was recovered, and if the log's files can be made."""
    if recovered is not None:
        try:
            log = WriteLog(store.directory, durable=store.is_durable)
        except OSError as error:
            if recovered.stretches:
                raise EngineFailed(f"the log of {store.directory} cannot be opened: {error}") from error
            _logger.warning("%s is used without a log, because its files cannot be made: %s", store.directory, error)
        else:
            return LogCommitter(store, names, log, recovered, fold_pace)
    return GroupCommitter(store, names)
