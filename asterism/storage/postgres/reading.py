"""Reads of a partition: reads that wait at the same time share a statement, and thus a snapshot and a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from asterism.storage.contract import EngineFailed, EpochFenced, PartitionUnknown, ScanPage, Span, StorageRefusal
from asterism.storage.postgres.connections import Pool
from asterism.storage.postgres.database_errors import translate
from asterism.storage.postgres.node import PostgresNode, copy_of
from asterism.storage.postgres.statements import statements
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

KEYS_PER_STATEMENT_MAX = 256
# With one the database would idle while its answer is processed; with many, fewer reads share a statement.
STATEMENTS_AT_ONCE = 2
# More bytes than any page has.
NO_BYTES_MAX = 1 << 62

ReadAnswer = tuple[Lsn, list[bytes | None]]


class _WaitingRead:
    __slots__ = ("epoch", "future", "keys", "since")

    def __init__(
        self, epoch: Epoch | None, keys: Sequence[bytes], future: asyncio.Future[ReadAnswer], since: float
    ) -> None:
        self.epoch = epoch
        self.keys = keys
        self.future = future
        # Start of waiting, as a time of the event loop.
        self.since = since


def check_fence(partition: PartitionNumber, epoch: Epoch | None, row: Any) -> None:
    """Check a row that begins with epoch and sealed; without an epoch everything passes."""
    if row is None:
        raise PartitionUnknown(partition)
    if epoch is not None and (row[1] or row[0] != epoch):
        raise EpochFenced(partition)


class PooledReader:
    """The reads of one partition through one pool, the primary's or the standbys'."""

    def __init__(self, node: PostgresNode, pool: Pool, partition: PartitionNumber) -> None:
        self._node = node
        self._pool = pool
        self._partition = partition
        self._statements = statements(partition)
        self._waiting: list[_WaitingRead] = []
        self._in_flight = 0
        self._is_about_to_send = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def read(self, epoch: Epoch | None, keys: Sequence[bytes]) -> ReadAnswer:
        if self._in_flight or self._waiting:
            return await self._read_with_others(epoch, keys)
        # A single read needs no task, which would take half as long as the read itself.
        self._in_flight += 1
        try:
            row, values = await self._ask(keys)
        finally:
            self._end_statement()
        check_fence(self._partition, epoch, row)
        return Lsn(row[2]), values

    def _read_with_others(self, epoch: Epoch | None, keys: Sequence[bytes]) -> asyncio.Future[ReadAnswer]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ReadAnswer] = loop.create_future()
        self._waiting.append(_WaitingRead(epoch, keys, future, loop.time()))
        if not self._is_about_to_send and self._in_flight < STATEMENTS_AT_ONCE:
            # Other reads of this iteration of the event loop share the statement.
            self._is_about_to_send = True
            loop.call_soon(self._send)
        return future

    def _send(self) -> None:
        self._is_about_to_send = False
        self._give_up_overdue()
        if not self._waiting:
            return
        taken: list[_WaitingRead] = []
        keys: list[bytes] = []
        for read in self._waiting:
            if taken and len(keys) + len(read.keys) > KEYS_PER_STATEMENT_MAX:
                break
            taken.append(read)
            keys += read.keys
        del self._waiting[: len(taken)]
        self._in_flight += 1
        task = asyncio.get_running_loop().create_task(self._read_together(taken, keys))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _give_up_overdue(self) -> None:
        """Fail reads that have waited too long for an unreachable node, so that they need not wait as long again."""
        if not self._pool.is_unreachable:
            return
        waiting, self._waiting = self._waiting, []
        for read in waiting:
            if not self._pool.is_overdue(read.since):
                self._waiting.append(read)
            elif not read.future.done():
                read.future.set_exception(EngineFailed("the node does not answer"))

    async def _read_together(self, taken: list[_WaitingRead], keys: list[bytes]) -> None:
        try:
            self._answer(taken, *await self._ask(keys))
        except Exception as error:
            for read in taken:
                if not read.future.done():
                    read.future.set_exception(copy_of(translate(error)))
        finally:
            self._end_statement()

    def _end_statement(self) -> None:
        self._in_flight -= 1
        if self._waiting and not self._is_about_to_send:
            self._send()

    async def _ask(self, keys: Sequence[bytes]) -> tuple[Any, list[bytes | None]]:
        """Return a row of epoch, sealed and LSN, None for an unknown partition; and the values."""
        ask, pool, seconds = self._node.ask, self._pool, self._pool.timeouts.read_seconds
        if len(keys) == 1:
            row = await ask(pool, seconds, self._statements.read_one, keys[0])
            return row, [] if row is None else [row[3]]
        row = await ask(pool, seconds, self._statements.read_many, keys)
        return row, [] if row is None else row[3]

    def _answer(self, taken: list[_WaitingRead], row: Any, values: list[bytes | None]) -> None:
        at = 0
        for read in taken:
            end = at + len(read.keys)
            if not read.future.done():
                try:
                    check_fence(self._partition, read.epoch, row)
                except StorageRefusal as refusal:
                    read.future.set_exception(refusal)
                else:
                    read.future.set_result((Lsn(row[2]), values[at:end]))
            at = end


def scan_arguments(
    partition: PartitionNumber, span: Span, *, reverse: bool, limit: int, bytes_max: int | None
) -> tuple[Any, ...]:
    """Return the statement of a scan and its arguments: it reads one entry more than the page may have."""
    statement = statements(partition).scans[reverse, span.end is not None]
    arguments = (statement, span.start, limit + 1, NO_BYTES_MAX if bytes_max is None else bytes_max)
    return arguments if span.end is None else (*arguments, span.end)


def page_of(row: Any) -> ScanPage:
    """Return the page of a row of epoch, sealed, LSN, keys, values and the number of entries read."""
    keys = row[3] or []
    lsn = None if row[2] is None else Lsn(row[2])
    return ScanPage(list(zip(keys, row[4] or [], strict=True)), row[5] > len(keys), lsn)
