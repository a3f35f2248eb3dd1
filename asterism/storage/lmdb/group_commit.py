"""Group commit: changes that arrive while another group is being synced share the next transaction and its fsync.

Two threads alternate, and never work on a transaction at the same time:

    event loop   submit ─┐        ┌─ apply the waiting changes ─┐              ┌─ resolve their callers
    writer               └─ begin ┘                             └─ commit ─────┘

LMDB's writer lock belongs to a thread, so the writer begins and commits. The event loop itself does the puts in
between: each releases and takes the interpreter's lock, and doing that against a busy loop from another thread costs
more than the put.
"""

from __future__ import annotations

import asyncio
import enum
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

import lmdb

from asterism.storage.contract import Batch, EngineFailed, OutOfSpace, StorageRefusal
from asterism.storage.lmdb import transactions
from asterism.storage.lmdb.environment import StoreEnvironment
from asterism.storage.lmdb.layout import PartitionNames
from asterism.storage.lmdb.overlay import Layer
from asterism.storage.lmdb.pending import PendingChange
from asterism.storage.lmdb.views import StoreView
from asterism.storage.lmdb.write_views import TreeWrites, WriteView

# Time for which a group holds the event loop before it yields to other tasks.
SLICE_SECONDS_MAX = 0.0005
# Time for the changes of one group; the changes still waiting then go into the next transaction.
GROUP_SECONDS_MAX = 0.006
# Time for which a transaction waits for further changes. With 32 writers on one core, 3 ms gave a tenth more writes a
# second than 1 ms, at a lower median latency, because fewer commits are made; 6 ms gave no further gain.
GATHER_SECONDS_MAX = 0.003
# Bounds the retries, one by one, after a change spoils its group's transaction.
GROUP_CHANGES_MAX = 256

ChangeResult = TypeVar("ChangeResult")


class _Order(enum.Enum):
    """Order of the event loop to the writer."""

    BEGIN = enum.auto()
    COMMIT = enum.auto()
    ABORT = enum.auto()
    STOP = enum.auto()


class GroupCommitter:
    """Carry out changes in the order of their submission. All methods run on the event loop's thread, except those
    whose name begins with `_writer`."""

    def __init__(
        self,
        store: StoreEnvironment,
        names: PartitionNames,
        *,
        group_seconds_max: float = GROUP_SECONDS_MAX,
        group_changes_max: int = GROUP_CHANGES_MAX,
    ) -> None:
        self._store = store
        self._names = names
        self._group_seconds_max = group_seconds_max
        self._group_changes_max = group_changes_max
        self._waiting: deque[PendingChange] = deque()
        self._group: list[PendingChange] = []
        # Reason for which the group's transaction must not be committed.
        self._spoiled_by: StorageRefusal | None = None
        # Number of waiting changes that get a transaction each, after one of them spoiled a shared one.
        self._alone_count = 0
        self._begins_failed = 0
        self.is_busy = False
        # Set while the next transaction waits for further changes.
        self._gathering: asyncio.Handle | None = None
        # Number of changes that the next transaction waits for.
        self._expected = 1
        self._stopped_by: EngineFailed | None = None
        # Transactions with a change that were committed.
        self.commits = 0
        # Nothing is ever laid over the tree: a change is in it when its caller hears of it.
        self.layers: list[Layer] = []
        self.open_views: set[StoreView] = set()
        self.log_bytes = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._became_idle: asyncio.Event | None = None
        self._orders: SimpleQueue[_Order] = SimpleQueue()
        self._writer = threading.Thread(target=self._writer_main, name="asterism-lmdb-writer", daemon=True)
        self._writer.start()

    def submit(
        self,
        change: Callable[[WriteView], ChangeResult],
        batch: Batch | None = None,  # noqa: ARG002
    ) -> asyncio.Future[ChangeResult]:
        """Queue a change, maybe one that applies a batch. The future is resolved when the change is durable, or
        refused."""
        future: asyncio.Future[ChangeResult] = asyncio.get_running_loop().create_future()
        self.enqueue(PendingChange(change, future))
        return future

    def enqueue(self, entry: PendingChange) -> None:
        """Queue a change whose caller waits already."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._adopt(loop)
        if self._stopped_by is not None:
            raise EngineFailed(str(self._stopped_by))
        self._waiting.append(entry)
        if not self.is_busy:
            self.is_busy = True
            self._gather()
        elif self._gathering is not None and len(self._waiting) >= self._expected:
            self._begin()

    def _adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.is_busy:
            raise EngineFailed("another event loop has writes in flight in this engine")
        self._loop = loop

    async def close(self) -> None:
        """Wait for the submitted changes, then end the writer. Later submissions are refused."""
        if self._stopped_by is None:
            self._stopped_by = EngineFailed("the engine is closed")
        # Writes of a closed event loop can never be completed.
        if self._loop is asyncio.get_running_loop():
            await self.wait_until_idle()
        self._orders.put(_Order.STOP)
        self._writer.join()

    def abandon(self) -> None:
        """End the writer although the event loop of its changes has ended; undo a transaction that is open."""
        self._orders.put(_Order.STOP)
        self._writer.join()

    async def wait_until_idle(self) -> None:
        while self.is_busy:
            self._became_idle = self._became_idle or asyncio.Event()
            await self._became_idle.wait()

    # --- on the event loop ----------------------------------------------------------------------------------------

    def _on_begun(self, txn: lmdb.Transaction[bytes]) -> None:
        self._begins_failed = 0
        self._group = []
        changes_max = 1 if self._alone_count else self._group_changes_max
        with self._transaction_at_stake():
            view = WriteView(TreeWrites(txn), self._names, has_room=self._store.has_room(txn))
            self._fill(view, changes_max, self._group_seconds_max)

    def _continue_filling(self, view: WriteView, changes_max: int, seconds_left: float) -> None:
        with self._transaction_at_stake():
            self._fill(view, changes_max, seconds_left)

    @contextmanager
    def _transaction_at_stake(self) -> Iterator[None]:
        """Make the writer abort the transaction if the block fails: it then contains part of a change."""
        # Stays set if the block is interrupted by something that is not an Exception.
        self._spoiled_by = EngineFailed("the transaction was interrupted")
        is_whole = False
        try:
            yield
            self._spoiled_by = None
            is_whole = True
        except Exception as error:
            self._spoiled_by = self._store.translate(error)
        finally:
            if not is_whole:
                self._orders.put(_Order.ABORT)

    def _fill(self, view: WriteView, changes_max: int, seconds_left: float) -> None:
        """Carry out waiting changes; commit if the group is large enough, and otherwise continue in a moment."""
        assert self._loop is not None
        group = self._group
        began_at = time.perf_counter()
        pause_at = began_at + min(SLICE_SECONDS_MAX, seconds_left)
        while self._waiting and len(group) < changes_max and time.perf_counter() < pause_at:
            entry = self._waiting.popleft()
            self._alone_count = max(0, self._alone_count - 1)
            if not entry.future.done():
                group.append(entry)
                entry.carry_out(view)
        seconds_left -= time.perf_counter() - began_at
        if self._waiting and len(group) < changes_max and seconds_left > 0:
            self._loop.call_soon(self._continue_filling, view, changes_max, seconds_left)
            return
        view.save_metas()
        self._orders.put(_Order.COMMIT)

    def _on_ended(self, commit_failure: StorageRefusal | None) -> None:
        group, self._group = self._group, []
        # Three quarters, so that the number falls again when some of the writers have stopped.
        self._expected = max(1, min(len(group) + len(self._waiting), self._group_changes_max) * 3 // 4)
        failure = self._spoiled_by or commit_failure
        if failure is None:
            self.commits += 1 if group else 0
            for entry in group:
                entry.resolve()
        elif len(group) > 1 and (self._spoiled_by is not None or isinstance(failure, OutOfSpace)):
            # Nothing was written. Only a transaction each can identify the change that failed.
            self._waiting.extendleft(reversed(group))
            self._alone_count = len(group)
        elif len(group) == 1 and isinstance(failure, OutOfSpace) and not group[0].has_freed_pages:
            self._try_with_freed_pages(group[0])
        else:
            for entry in group:
                entry.fail(failure)
            if not group:
                # It failed before any change was tried, and would fail forever.
                self._fail_waiting(failure)
        self._begin_next()

    def _try_with_freed_pages(self, entry: PendingChange) -> None:
        """Try a change again behind a commit of nothing new: LMDB uses pages again from the second commit on after the
        one that freed them, and on a full store there may be no other that succeeds."""
        assert self._loop is not None
        nothing = PendingChange(transactions.rewrite_format, self._loop.create_future())
        # It may fail as well, and has no caller.
        nothing.future.add_done_callback(asyncio.Future.exception)
        nothing.has_freed_pages = entry.has_freed_pages = True
        self._waiting.extendleft([entry, nothing])
        self._alone_count += 2

    def _gather(self) -> None:
        """Begin a transaction when about as many changes wait as the last one carried, or after a moment.

        Concurrent writers return at about the same time; a transaction that began with the first of them would make all
        the others wait for its fsync. A single writer does not have to wait.
        """
        assert self._loop is not None
        if len(self._waiting) >= self._expected:
            self._gathering = self._loop.call_soon(self._begin)
        else:
            self._gathering = self._loop.call_later(GATHER_SECONDS_MAX, self._begin)

    def _begin(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
            self._orders.put(_Order.BEGIN)

    def _begin_next(self) -> None:
        if self._waiting:
            self._gather()
            return
        self.is_busy = False
        if self._became_idle is not None:
            self._became_idle.set()
            self._became_idle = None

    def _on_begin_failed(self, error: Exception) -> None:
        """Reopen the environment; if that does not help, fail the waiting changes and let the next call retry."""
        self._begins_failed += 1
        try:
            self._store.reopen()
        except StorageRefusal as refusal:
            self._fail_waiting(refusal)
        if self._begins_failed > 1:
            self._fail_waiting(self._store.translate(error))
        self._begin_next()

    def _fail_waiting(self, refusal: StorageRefusal) -> None:
        while self._waiting:
            self._waiting.popleft().fail(refusal)

    def _on_writer_died(self, error: BaseException) -> None:
        self._stopped_by = EngineFailed(f"the writer has ended: {error!r}")
        for entry in self._group:
            entry.fail(self._stopped_by)
        self._fail_waiting(self._stopped_by)
        self._begin_next()

    # --- on the writer's thread -----------------------------------------------------------------------------------

    def _writer_main(self) -> None:
        try:
            while self._orders.get() is not _Order.STOP:
                self._writer_runs_transaction()
        except BaseException as error:
            self._stopped_by = EngineFailed(f"the writer has ended: {error!r}")
            self._writer_posts(self._on_writer_died, error)

    def _writer_runs_transaction(self) -> None:
        """Run one transaction from beginning to end."""
        try:
            txn = self._store.env.begin(write=True)
        except lmdb.Error as error:
            self._writer_posts(self._on_begin_failed, error)
            return
        if not self._writer_posts(self._on_begun, txn):
            txn.abort()
            return
        order = self._orders.get()
        failure = None
        if order is _Order.COMMIT:
            try:
                txn.commit()
            except lmdb.Error as error:
                failure = self._store.translate_commit(error)
        else:
            txn.abort()
        if order is _Order.STOP:
            self._orders.put(order)
        else:
            self._writer_posts(self._on_ended, failure)

    def _writer_posts(self, callback: Callable[..., None], *arguments: Any) -> bool:
        """Make the event loop call back; False if it is closed, and no caller is waiting any more."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return False
        return True
