"""Commits through the write log: a group of changes is one record, durable with one sequential write.

    event loop   submit ─┐ carry out the waiting changes on paper ─┐          ┌─ lay them over the tree, resolve callers
    log writer           └─────────────────────────────────────────└─ append ─┘

The overlay holds what the tree does not have yet. When it has grown, or grown old, it is frozen and folded
into the tree behind requests, in one large transaction, while the next changes gather in a new one and in the other
file. Then a checkpoint says up to which record the log counts no more.

A log that cannot be written, and a store that is nearly full, do without: everything is folded, and changes are
committed to the tree directly, until there is room again. So a full disk is the tree's matter alone. Bulk data are also
committed directly while they come: the log would write them once more, and the tree takes a large value as fast.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import lmdb

from asterism.limits import KIB
from asterism.storage.contract import Batch, EngineFailed, StorageRefusal
from asterism.storage.lmdb import transactions
from asterism.storage.lmdb.environment import StoreEnvironment
from asterism.storage.lmdb.group_commit import GroupCommitter
from asterism.storage.lmdb.layout import Checkpoint, PartitionNames
from asterism.storage.lmdb.log_record import encode_record
from asterism.storage.lmdb.log_writer import LogWriter
from asterism.storage.lmdb.overlay import Layer, Overlaid, Overlay, layers_of_now
from asterism.storage.lmdb.pending import PendingChange
from asterism.storage.lmdb.recovery import Recovered, Stretch
from asterism.storage.lmdb.views import StoreView
from asterism.storage.lmdb.write_log import WriteLog
from asterism.storage.lmdb.write_views import LoggedWrites, TreeWrites, WriteView

# Time for the changes of one group; those still waiting then go into the next record.
GROUP_SECONDS_MAX = 0.002
GROUP_CHANGES_MAX = 256
# Time for which a record waits for further changes.
GATHER_SECONDS_MAX = 0.003

# All of a fold is one transaction, as long as its requests leave it this much time.
FOLD_SECONDS_MAX = 2.0
FOLD_PARTS_MAX = 4096
# While a fold lasts, the next overlay may grow to this multiple of its size; then changes wait.
FULL_MULTIPLE = 2
# After a fold that failed, or a log that did, and between two looks at whether the log can be used again.
RETRY_SECONDS = 1.0

# A log whose changes are larger than this in the mean is full of bulk data: items and index entries have a tenth of it.
BULK_CHANGE_BYTES = 32 * KIB

ChangeResult = TypeVar("ChangeResult")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoldPace:
    """When the overlay is folded: at so many changes, or bytes of its log, or after a time.

    These bound memory (some 300 bytes a change, twice), and the start after a crash.
    """

    changes: int = 64 * 1024
    log_bytes: int = 8 * 1024 * 1024
    seconds: float = 5.0


DEFAULT_FOLD_PACE = FoldPace()


class LogCommitter:
    """Carry out changes in the order of their submission. All methods run on the event loop's thread."""

    def __init__(
        self, store: StoreEnvironment, names: PartitionNames, log: WriteLog, recovered: Recovered, pace: FoldPace
    ) -> None:
        self._store = store
        self._names = names
        self._log = log
        self._pace = pace
        self._tree = self._new_tree()
        self._store_id = recovered.checkpoint.store_id
        # Of the last record that was begun.
        self._sequence = recovered.checkpoint.sequence
        # Changes that the tree does not have: what is being folded, and all that came later. Both, if they have any.
        self.layers: list[Layer] = []
        self._active = Overlay()
        self._frozen: Overlay | None = None
        # Views of open snapshots.
        self.open_views: set[StoreView] = set()
        self._frozen_sequence = self._sequence
        self._waiting: deque[PendingChange] = deque()
        self._group: list[PendingChange] = []
        self._group_changes: dict[bytes, Overlaid] = {}
        self._is_writing = False
        # Set while the next group waits for further changes, and how many it waits for.
        self._gathering: asyncio.Handle | None = None
        self._expected = 1
        # Number of waiting changes that get a record each, after one of them spoiled a shared one.
        self._alone_count = 0
        # A fold, or the way back to the log.
        self._background: asyncio.Task[None] | None = None
        self._fold_timer: asyncio.TimerHandle | None = None
        # The time of a fold that failed, if no other has succeeded since.
        self._fold_failed_at: float | None = None
        # Number of waiting changes, the first ones, whose record failed and may be whole on the disk all the same.
        self._undecided_count = 0
        # True while changes wait for everything to be folded, and while they go to the tree directly.
        self._is_draining = False
        self._is_direct = False
        self._direct_checked_at = 0.0
        # Bytes of values that went to the tree directly since then.
        self._direct_bytes = 0
        self._logged_commits = 0
        self._stopped_by: EngineFailed | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._became_idle: asyncio.Event | None = None
        self._resume(recovered.stretches)
        self._writer = LogWriter(log, on_written=self._on_written, on_died=self._on_writer_died)

    def _resume(self, stretches: Sequence[Stretch]) -> None:
        """Go on where another process ended: while it folded one file, if there are two."""
        for stretch in stretches:
            if self._active.groups:
                self._frozen, self._active = self._active, Overlay()
                self._frozen_sequence = self._sequence
            for group in stretch.groups():
                self._active.add(group)
            self._sequence = stretch.last_sequence
            self._log.resume(stretch.file_number, stretch.end)
        self._arrange()

    def _new_tree(self) -> GroupCommitter:
        return GroupCommitter(
            self._store, self._names, group_seconds_max=FOLD_SECONDS_MAX, group_changes_max=FOLD_PARTS_MAX
        )

    @property
    def commits(self) -> int:
        return self._logged_commits + self._tree.commits

    @property
    def log_bytes(self) -> int:
        """Return the size of the log's files."""
        return self._log.file_bytes()

    def submit(
        self, change: Callable[[WriteView], ChangeResult], batch: Batch | None = None
    ) -> asyncio.Future[ChangeResult]:
        """Queue a change, maybe one that applies a batch. The future is resolved when the change is durable, or
        refused."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._adopt(loop)
        if self._stopped_by is not None:
            raise EngineFailed(str(self._stopped_by))
        if self._is_direct and not self._returns_to_log(batch):
            return self._tree.submit(change)
        future: asyncio.Future[ChangeResult] = loop.create_future()
        self._waiting.append(PendingChange(change, future))
        if self._gathering is None:
            self._gather()
        elif len(self._waiting) >= self._expected:
            self._gathering.cancel()
            self._write_group()
        return future

    def _adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._background is not None and (self._background.done() or self._background.get_loop().is_closed()):
            # The loop that ended has canceled it, maybe before its first step, or has ended in the middle of it.
            self._background = None
        if self._is_writing or self._waiting or self._background is not None:
            raise EngineFailed("another event loop has writes in flight in this engine")
        if self._tree.is_busy and not self._is_direct:
            # With a fold of a loop that ended, which no caller knows of. All of it is still in the log.
            self._tree.abandon()
            self._logged_commits += self._tree.commits
            self._tree = self._new_tree()
        self._loop = loop
        self._gathering = self._fold_timer = None
        if self._frozen is not None:
            self._begin_fold()
        self._watch_age()

    async def close(self) -> None:
        """Wait for the submitted changes, fold the rest and end the threads. Later submissions are refused."""
        if self._stopped_by is None:
            self._stopped_by = EngineFailed("the engine is closed")
        # Writes of a closed event loop can never be completed.
        if self._loop is asyncio.get_running_loop():
            while self._is_writing or self._waiting or self._background is not None:
                self._became_idle = self._became_idle or asyncio.Event()
                await self._became_idle.wait()
        if self._fold_timer is not None:
            self._fold_timer.cancel()
        self._writer.stop()
        await self._tree.close()
        is_folded = await asyncio.to_thread(self._fold_rest)
        self._log.close(is_folded=is_folded)

    def _fold_rest(self) -> bool:
        """Write the overlay into the tree, in a transaction of this thread; False if that fails: the log is needed."""
        try:
            with self._store.env.begin(write=True) as txn:
                view = WriteView(TreeWrites(txn), self._names, has_room=True)
                for layer in reversed(self.layers):
                    for group in layer.overlay.groups:
                        transactions.fold(view, group)
                transactions.set_checkpoint(view, Checkpoint(self._store_id, self._sequence))
        except lmdb.Error as error:
            _log.warning("the log stays, because it could not be folded: %s", error)
            return False
        return True

    # --- groups -------------------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        """Write a group when about as many changes wait as the last one had, or after a moment."""
        if self._is_writing or not self._waiting or self._gathering is not None:
            return
        assert self._loop is not None
        if self._is_draining:
            if self._background is None:
                # It failed before.
                self._begin_fold()
            return
        if self._is_full() and self._background is None:
            self._make_room()
        if self._is_full() or self._is_draining:
            return
        if len(self._waiting) >= self._expected:
            self._gathering = self._loop.call_soon(self._write_group)
        else:
            self._gathering = self._loop.call_later(GATHER_SECONDS_MAX, self._write_group)

    def _write_group(self) -> None:
        self._gathering = None
        group: list[PendingChange] = []
        try:
            txn = self._begin_read()
            try:
                if not self._store.has_plenty(txn):
                    self._drain()
                    return
                writes = LoggedWrites(txn, self.layers)
                self._carry_out(WriteView(writes, self._names, has_room=True), group)
            finally:
                txn.abort()
            record = encode_record(self._store_id, self._sequence + 1, writes.changes) if writes.changes else None
        except Exception as error:
            self._on_spoiled(group, self._store.translate(error))
            return
        self._is_writing = True
        self._group, self._group_changes = group, writes.changes
        if record is None:
            # Every change was refused, or its caller is gone.
            self._on_written(None)
        else:
            self._sequence += 1
            self._writer.write(record)

    def _begin_read(self) -> lmdb.Transaction[bytes]:
        try:
            return self._store.begin_read()
        except lmdb.Error:
            self._store.reopen()
            return self._store.begin_read()

    def _carry_out(self, view: WriteView, group: list[PendingChange]) -> None:
        changes_max = 1 if self._alone_count else GROUP_CHANGES_MAX
        end_at = time.perf_counter() + GROUP_SECONDS_MAX
        while self._waiting and len(group) < changes_max:
            entry = self._waiting.popleft()
            self._alone_count = max(0, self._alone_count - 1)
            if not entry.future.done():
                group.append(entry)
                entry.carry_out(view)
                if time.perf_counter() > end_at:
                    break
        view.save_metas()

    def _on_spoiled(self, group: list[PendingChange], failure: StorageRefusal) -> None:
        """Nothing was written. Only a record each can identify the change that failed."""
        if len(group) > 1:
            self._waiting.extendleft(reversed(group))
            self._alone_count = len(group)
        else:
            for entry in group:
                entry.fail(failure)
            if not group:
                # It failed before any change was tried, and would fail forever.
                self._fail_waiting(failure)
        self._continue()

    def _on_written(self, failure: Exception | None) -> None:
        self._is_writing = False
        group, self._group = self._group, []
        # Three quarters, so that the number falls again when some of the writers have stopped.
        self._expected = max(1, min(len(group) + len(self._waiting), GROUP_CHANGES_MAX) * 3 // 4)
        if failure is not None:
            # The record may be whole on the disk. The checkpoint of the next fold includes it, which decides that it
            # never counts; until then nothing else is written.
            _log.warning("the log could not be written, the tree is used instead: %s", failure)
            self._waiting.extendleft(reversed(group))
            self._undecided_count = len(group)
            self._drain()
            return
        if self._group_changes:
            for view in self.open_views:
                view.keep(self._group_changes, added_to=self._active)
            self._active.add(self._group_changes)
            self._arrange()
            self._logged_commits += 1
        for entry in group:
            entry.resolve()
        if self._background is None and self._is_due():
            self._make_room()
        self._watch_age()
        self._continue()

    def _continue(self) -> None:
        self._gather()
        if self._became_idle is not None and not (self._is_writing or self._waiting or self._background is not None):
            self._became_idle.set()
            self._became_idle = None

    def _fail_waiting(self, refusal: StorageRefusal) -> None:
        while self._waiting:
            self._waiting.popleft().fail(refusal)

    # --- folding ------------------------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        if self._fold_failed_at is not None and time.monotonic() < self._fold_failed_at + RETRY_SECONDS:
            return False
        return self._is_grown(1)

    def _is_full(self) -> bool:
        return self._is_grown(FULL_MULTIPLE)

    def _is_grown(self, multiple: int) -> bool:
        pace = self._pace
        if self._log.bytes_written >= multiple * pace.log_bytes:
            return True
        return len(self._active.latest) >= multiple * pace.changes

    def _make_room(self) -> None:
        """Fold what the log has; then use the tree directly if these are bulk data, of which more will come."""
        if self._log.bytes_written >= max(self._pace.log_bytes, BULK_CHANGE_BYTES * len(self._active.latest)):
            self._drain()
        else:
            self._begin_fold()

    def _watch_age(self) -> None:
        if self.layers and self._fold_timer is None:
            assert self._loop is not None
            self._fold_timer = self._loop.call_later(self._pace.seconds, self._on_aged)

    def _on_aged(self) -> None:
        self._fold_timer = None
        if self.layers and not self._is_writing and self._background is None:
            self._begin_fold()
        else:
            self._watch_age()

    def _begin_fold(self) -> None:
        """Freeze the overlay and begin to fold it; no record may be under way."""
        assert self._loop is not None
        if self._frozen is None:
            self._frozen, self._active = self._active, Overlay()
            self._arrange()
            self._frozen_sequence = self._sequence
            self._log.switch()
        if self._fold_timer is not None:
            self._fold_timer.cancel()
            self._fold_timer = None
        self._background = self._loop.create_task(self._fold_frozen())

    async def _fold_frozen(self) -> None:
        failure: StorageRefusal | None = None
        try:
            await self._write_into_tree()
        except StorageRefusal as refusal:
            failure = refusal
        finally:
            self._background = None
        if failure is None:
            self._frozen = None
            self._arrange()
            self._fold_failed_at = None
        else:
            if self._fold_failed_at is None:
                _log.warning("the log cannot be folded into data.mdb; writes will be refused: %s", failure)
            self._fold_failed_at = time.monotonic()
            self._watch_age()
        self._after_fold(failure)

    async def _write_into_tree(self) -> None:
        assert self._frozen is not None
        # Earliest first: the last value of a key is the one that stays.
        writes = [self._tree.submit(partial(transactions.fold, changes=group)) for group in self._frozen.groups]
        for outcome in await asyncio.gather(*writes, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        # In a transaction of its own, because each part may have had to take one of its own.
        checkpoint = Checkpoint(self._store_id, self._frozen_sequence)
        await self._tree.submit(partial(transactions.set_checkpoint, checkpoint=checkpoint))

    def _arrange(self) -> None:
        overlays = (self._active,) if self._frozen is None else (self._active, self._frozen)
        self.layers = layers_of_now(overlay for overlay in overlays if overlay.groups)

    def _after_fold(self, failure: StorageRefusal | None) -> None:
        if self._is_draining:
            if failure is not None:
                # Nothing is written before it succeeds: a record after the one that failed would leave a gap, or count
                # in addition to it.
                undecided = EngineFailed(f"neither the log nor the tree could be written: {failure}")
                for _ in range(self._undecided_count):
                    self._waiting.popleft().fail(undecided)
                self._undecided_count = 0
                self._fail_waiting(failure)
            elif self.layers or self._frozen_sequence != self._sequence:
                self._begin_fold()
                return
            else:
                self._become_direct()
        elif failure is not None and self._is_full():
            self._fail_waiting(failure)
        self._continue()

    # --- without the log ----------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Fold everything, then use the tree directly."""
        self._is_draining = True
        if self._background is None:
            self._begin_fold()

    def _become_direct(self) -> None:
        self._is_draining = False
        self._undecided_count = 0
        self._is_direct = True
        self._direct_checked_at = time.monotonic()
        self._direct_bytes = 0
        while self._waiting:
            self._tree.enqueue(self._waiting.popleft())

    def _returns_to_log(self, batch: Batch | None) -> bool:
        """Begin the way back if there is plenty of room and few bulk data come; look only now and then."""
        if batch is not None:
            self._direct_bytes += sum([len(value) for _, value in batch.puts])
        if self._background is None and time.monotonic() >= self._direct_checked_at + RETRY_SECONDS:
            direct_bytes, self._direct_bytes = self._direct_bytes, 0
            self._direct_checked_at = time.monotonic()
            if direct_bytes < self._pace.log_bytes and self._has_plenty():
                assert self._loop is not None
                self._background = self._loop.create_task(self._return_to_log())
        return self._background is not None

    def _has_plenty(self) -> bool:
        try:
            txn = self._begin_read()
            try:
                return self._store.has_plenty(txn)
            finally:
                txn.abort()
        except (lmdb.Error, OSError, StorageRefusal):
            return False

    async def _return_to_log(self) -> None:
        """Wait for the tree's transactions; later changes wait meanwhile."""
        self._is_draining = True
        try:
            await self._tree.wait_until_idle()
            self._is_direct = False
        finally:
            self._is_draining = False
            self._background = None
        self._continue()

    # --- the end of the writer --------------------------------------------------------------------------------------

    def _on_writer_died(self, error: BaseException) -> None:
        self._stopped_by = EngineFailed(f"the log's writer has ended: {error!r}")
        self._is_writing = False
        for entry in self._group:
            entry.fail(self._stopped_by)
        self._fail_waiting(self._stopped_by)
        self._continue()
