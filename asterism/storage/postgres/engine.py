"""The PostgreSQL engine: a table per partition, and the fence and the LSN in the database itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self

from asterism.storage.contract import (
    Batch,
    EngineFailed,
    EngineStatus,
    EpochFenced,
    Fence,
    FenceChanged,
    JournalEntry,
    PartitionUnknown,
    ScanPage,
    Span,
    StandbyStatus,
)
from asterism.storage.postgres.addresses import split_hosts
from asterism.storage.postgres.connections import Pool, Timeouts
from asterism.storage.postgres.journal_record import decode_journal
from asterism.storage.postgres.layout import (
    DONE,
    EXISTS,
    FENCED,
    NOT_THERE,
    OTHER_FENCE,
    PARTITION_NUMBER_MAX,
    UNKNOWN_PARTITION,
    partition_ddl,
)
from asterism.storage.postgres.node import PostgresNode
from asterism.storage.postgres.opening import DatabaseIdentity, claim_identity, prepare_database, read_identity
from asterism.storage.postgres.reading import PooledReader, check_fence, page_of, scan_arguments
from asterism.storage.postgres.snapshots import PostgresSnapshot, open_snapshot
from asterism.storage.postgres.standbys import StandbyReads
from asterism.storage.postgres.statements import (
    CREATE_PARTITION,
    DROP_PARTITION,
    LIST_PARTITIONS,
    READ_FENCE,
    READ_JOURNAL,
    REMOVE_JOURNAL,
)
from asterism.storage.postgres.watching import NotificationListener
from asterism.storage.postgres.writing import PartitionWriter
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# A partition with more entries is dropped by the second call, so that the first, which closes it, is fast.
DROP_ENTRIES_AT_ONCE = 10_000
JOURNAL_RECORDS_PER_STATEMENT = 5_000

# The state of a standby is visible to the role only if it was granted pg_monitor.
READ_STATUS = """
SELECT current_setting('server_version'), NOT pg_is_in_recovery(),
    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
        WHERE c.relnamespace = 'asterism'::regnamespace AND c.relkind = 'r'),
    ARRAY(SELECT application_name FROM pg_stat_replication ORDER BY pid),
    ARRAY(SELECT coalesce(sync_state, 'hidden') FROM pg_stat_replication ORDER BY pid),
    ARRAY(SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint FROM pg_stat_replication ORDER BY pid)
"""


class PostgresEngine:
    """An engine on PostgreSQL; see `asterism.storage.contract.Engine`. Engines of any number of processes share a
    database."""

    def __init__(self, addresses: Sequence[str], timeouts: Timeouts, **sizes: int) -> None:
        self._node = PostgresNode(addresses, timeouts, **sizes)
        self._listener = NotificationListener(self._node.listeners)
        self._writers: dict[PartitionNumber, PartitionWriter] = {}
        self._readers: dict[PartitionNumber, PooledReader] = {}
        self._standby_reads = StandbyReads(self._node)
        self._is_closed = False
        self._became_idle: asyncio.Event | None = None

    @classmethod
    async def open(
        cls,
        connection_string: str,
        *,
        timeouts: Timeouts | None = None,
        writers: int = 8,
        readers: int = 8,
        snapshots: int = 16,
    ) -> Self:
        """Connect, and create the tables and functions if they are missing. The connection string may name several
        hosts: any one of them is the primary, and the others are its standbys. The numbers are the maximums of open
        connections."""
        addresses = split_hosts(connection_string)
        engine = cls(addresses, timeouts or Timeouts(), writers=writers, readers=readers, snapshots=snapshots)
        try:
            await prepare_database(engine._node)
        except BaseException:
            await engine.close()
            raise
        return engine

    # --- reading --------------------------------------------------------------------------------------------------

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        if at_least is not None:
            answer = await self._standby_reads.read(partition, epoch, keys, at_least)
            if answer is not None:
                return answer
        return await self._reader(partition).read(epoch, keys)

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
        check_number(partition)
        arguments = scan_arguments(partition, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        row = None
        if at_least is not None:
            row = await self._standby_reads.ask(partition, epoch, at_least, *arguments)
        if row is None:
            row = await self._ask(*arguments)
        check_fence(partition, epoch, row)
        return page_of(row)

    async def snapshot(
        self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None
    ) -> PostgresSnapshot:
        check_number(partition)
        if at_least is not None:
            snapshot = await self._standby_reads.snapshot(partition, epoch, at_least)
            if snapshot is not None:
                return snapshot
        return await open_snapshot(self._node, self._node.snapshots, partition, epoch)

    def _reader(self, partition: PartitionNumber) -> PooledReader:
        reader = self._readers.get(partition)
        if reader is None:
            check_number(partition)
            reader = self._readers[partition] = PooledReader(self._node, self._node.readers, partition)
        return reader

    async def _ask(self, statement: str, *arguments: Any, pool: Pool | None = None) -> Any:
        return await self._node.ask(pool or self._node.readers, self._node.timeouts.read_seconds, statement, *arguments)

    # --- writing --------------------------------------------------------------------------------------------------

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        return await self._writer(partition).apply(epoch, batch)

    def _writer(self, partition: PartitionNumber) -> PartitionWriter:
        if self._is_closed:
            raise EngineFailed("the engine is closed")
        writer = self._writers.get(partition)
        if writer is None:
            check_number(partition)
            writer = self._writers[partition] = PartitionWriter(self._node, partition, self._on_writer_idle)
        return writer

    def _on_writer_idle(self) -> None:
        if self._became_idle is not None and all(writer.is_idle for writer in self._writers.values()):
            self._became_idle.set()

    # --- partitions -----------------------------------------------------------------------------------------------

    async def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> None:
        if not 0 <= partition <= PARTITION_NUMBER_MAX:
            raise EngineFailed(f"a partition cannot have the number {partition}")
        node = self._node
        arguments = (fence.epoch, fence.sealed, fence.journaling, announced, lsn, partition_ddl(partition))
        # If the call has to be repeated, the token shows that this call created the partition.
        (answer,) = await node.ask(
            node.writers,
            node.timeouts.commit_seconds,
            CREATE_PARTITION,
            partition,
            node.gateway,
            node.next_token(),
            *arguments,
        )
        node.commits += 1
        if answer == EXISTS:
            raise EngineFailed(f"partition {partition} exists already")

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        return self._listener.add(partition, callback)

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        if not 0 <= partition <= PARTITION_NUMBER_MAX:
            return True
        node = self._node
        (is_gone,) = await node.ask(
            node.writers, node.timeouts.commit_seconds, DROP_PARTITION, partition, DROP_ENTRIES_AT_ONCE
        )
        node.commits += 1
        return bool(is_gone)

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        (numbers, epochs, sealed, journaling, lsns) = await self._ask(LIST_PARTITIONS)
        return {
            PartitionNumber(number): (Fence(Epoch(epoch), sealed=is_sealed, journaling=is_journaling), Lsn(lsn))
            for number, epoch, is_sealed, is_journaling, lsn in zip(
                numbers or (), epochs or (), sealed or (), journaling or (), lsns or (), strict=True
            )
        }

    async def read_fence(self, partition: PartitionNumber) -> tuple[Fence, Lsn]:
        check_number(partition)
        row = await self._ask(READ_FENCE, partition)
        if row is None:
            raise PartitionUnknown(partition)
        return Fence(Epoch(row[0]), sealed=row[1], journaling=row[2]), Lsn(row[3])

    async def set_fence(
        self,
        partition: PartitionNumber,
        fence: Fence,
        *,
        lsn: Lsn | None = None,
        expected: Fence | None = None,
    ) -> Lsn:
        wanted = (None, None, None) if expected is None else _columns(expected)
        answer: int = await self._writer(partition).set_fence((*_columns(fence), lsn, *wanted))
        if answer == NOT_THERE:
            raise PartitionUnknown(partition)
        if answer == OTHER_FENCE:
            raise FenceChanged(partition)
        if answer < 0:
            raise EngineFailed(f"the database refused the fence with status {answer}")
        if not fence.journaling:
            await self._remove_journal(partition)
        return Lsn(answer)

    async def _remove_journal(self, partition: PartitionNumber) -> None:
        """Remove the discarded journal, in pieces, so that other writes can run in between."""
        removed = JOURNAL_RECORDS_PER_STATEMENT
        while removed >= JOURNAL_RECORDS_PER_STATEMENT:
            (removed,) = await self._ask(
                REMOVE_JOURNAL, partition, JOURNAL_RECORDS_PER_STATEMENT, pool=self._node.writers
            )

    # --- copying --------------------------------------------------------------------------------------------------

    async def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> list[bytes | None]:
        return (await self._reader(partition).read(None, keys))[1]

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        check_number(partition)
        row = await self._ask(*scan_arguments(partition, span, reverse=False, limit=limit, bytes_max=bytes_max))
        check_fence(partition, None, row)
        return page_of(row)

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        check_number(partition)
        row = await self._ask(READ_JOURNAL, partition, after, limit)
        if row is None:
            raise PartitionUnknown(partition)
        if not row[0]:
            return []
        return [decode_journal(Lsn(lsn), record) for lsn, record in zip(row[1], row[2], strict=True)]

    async def write_copied(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[Span] = (),
    ) -> None:
        last_puts = dict(puts)
        arguments = (
            epoch,
            [span.start for span in range_deletes],
            [span.end for span in range_deletes],
            list(deletes),
            list(last_puts),
            list(last_puts.values()),
        )
        answer = await self._writer(partition).copy(arguments)
        status = DONE if isinstance(answer, int) else answer[0]
        if status == UNKNOWN_PARTITION:
            raise PartitionUnknown(partition)
        if status == FENCED:
            raise EpochFenced(partition)
        if status != DONE:
            raise EngineFailed(f"the database refused the copy with status {status}")

    # --- the engine itself ----------------------------------------------------------------------------------------

    async def identity(self) -> DatabaseIdentity | None:
        """Return the fleet and node of the database; None if it has not been claimed."""
        return await read_identity(self._node)

    async def claim(self, identity: DatabaseIdentity) -> None:
        """Record the fleet and node of the database; `EngineFailed` if it already has others."""
        await claim_identity(self._node, identity)

    @property
    def statements_sent(self) -> int:
        """Number of round trips to the node since the engine was opened."""
        return sum(pool.statements for pool in self._node.pools)

    @property
    def commits(self) -> int:
        return self._node.commits

    async def status(self) -> EngineStatus:
        version, is_writable, bytes_used, names, states, lags = await self._ask(READ_STATUS)
        return EngineStatus(
            bytes_used,
            is_writable=is_writable,
            server_version=f"PostgreSQL {version}",
            standbys=tuple(map(StandbyStatus, names, states, lags)),
        )

    async def close(self) -> None:
        self._is_closed = True
        if not all(writer.is_idle for writer in self._writers.values()):
            self._became_idle = asyncio.Event()
            await self._became_idle.wait()
        await self._listener.close()
        await self._node.close()


def check_number(partition: PartitionNumber) -> None:
    if not 0 <= partition <= PARTITION_NUMBER_MAX:
        raise PartitionUnknown(partition)


def _columns(fence: Fence) -> tuple[int, bool, bool]:
    return fence.epoch, fence.sealed, fence.journaling
