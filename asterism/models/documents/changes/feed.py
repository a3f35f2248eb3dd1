"""The change feed: what changed since a position, in the order of the log, one page at a time.

The log is read partition by partition. Within one, entries come in the order of their LSNs, and those of one LSN (of
one batch) are never divided, because a position can only say that an LSN was seen. An item's entry moves when the item
changes again, always to the end; so a reader that continues from an LSN meets every item's latest change sooner or
later (D3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from asterism.errors import RequestRateTooLarge
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import CHANGE_LOG, ITEMS, VERSIONS, after_prefix, behind_lsn, lsn_in_log_key
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.slice_sizes import LOG_ENTRIES, LOG_ENTRIES_MIN
from asterism.limits import PAGE_BYTES_MAX
from asterism.models.documents.changes.item_version import changed_at_seconds, unpack_version
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import hidden_scopes, is_hidden
from asterism.models.documents.item_record import body_of
from asterism.models.documents.results import Scope
from asterism.partitioning.feed_position import FeedPosition
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.throughput import charge
from asterism.values.identifiers import Lsn

# Entries of the log are small; the items behind them may have megabytes, so those are read a few at a time.
_LOAD_ENTRIES = 32

Entry = tuple[bytes, bytes]
# A row of the answer in the codec's form, or None for an entry that has nothing to show.
Row = bytes | None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Changes, and the position behind them. A page without rows says that the reader has caught up, unless it was cut
    short: then it says only how far nothing was found."""

    rows: list[bytes]
    position: FeedPosition
    was_cut_short: bool
    charge: float
    # The last partition read, for the response's headers.
    range_id: int
    lsn: int


class FeedLog(Protocol):
    """One of the logs of a partition, and how its entries become rows."""

    @property
    def family(self) -> bytes: ...

    async def rows(
        self,
        router: PartitionRouter,
        container: Container,
        seen: KeyspaceRecord,
        partition: PartitionRange,
        entries: Sequence[Entry],
        since_wall_seconds: int | None,
    ) -> list[Row] | None:
        """Return a row for each entry, None for one of before a time; None when another map is in force by now."""
        ...


@dataclass(frozen=True, slots=True)
class LatestVersions:
    """The latest change of every item that exists, as the item itself with the LSN of the change."""

    family: bytes = CHANGE_LOG

    async def rows(
        self,
        router: PartitionRouter,
        container: Container,
        seen: KeyspaceRecord,
        partition: PartitionRange,
        entries: Sequence[Entry],
        since_wall_seconds: int | None,
    ) -> list[Row] | None:
        answer = await router.read_from(
            container.keyspace, seen, partition, [ITEMS + reference for _, reference in entries]
        )
        if answer is None:
            return None
        return [
            self._row(container, key, stored, since_wall_seconds)
            for (key, _), stored in zip(entries, answer[1], strict=True)
        ]

    def _row(self, container: Container, key: bytes, stored: bytes | None, since_wall_seconds: int | None) -> Row:
        # The item's header and the entry's key have LSN, number and place in different orders.
        if stored is None or stored[:8] != key[1:9] or stored[9:17] != key[11:] or stored[17:19] != key[9:11]:
            return None
        body = body_of(stored)
        if not container.planner.is_visible(body):
            return None
        codec = container.codec
        # Wherever the entry lies in the log: merges bring entries of two clocks together.
        if since_wall_seconds is not None and codec.changed_at_seconds(body) < since_wall_seconds:
            return None
        return codec.latest_row(body, lsn_in_log_key(key))


@dataclass(frozen=True, slots=True)
class AllVersions:
    """Every change within the retention, deletes among them. `as_stored` gives the entries themselves as rows, for
    readers within the program (`unpack_version`)."""

    as_stored: bool = False
    family: bytes = VERSIONS

    async def rows(
        self,
        router: PartitionRouter,  # noqa: ARG002
        container: Container,
        seen: KeyspaceRecord,  # noqa: ARG002
        partition: PartitionRange,  # noqa: ARG002
        entries: Sequence[Entry],
        since_wall_seconds: int | None,
    ) -> list[Row] | None:
        return [self._row(container, key, value, since_wall_seconds) for key, value in entries]

    def _row(self, container: Container, key: bytes, value: bytes, since_wall_seconds: int | None) -> Row:
        if since_wall_seconds is not None and changed_at_seconds(value) < since_wall_seconds:
            return None
        if self.as_stored:
            return value
        return container.codec.version_row(unpack_version(key, value), container.record.definition)


async def position_now(router: PartitionRouter, container: Container, scope: Scope) -> FeedPosition:
    """Return the position of a reader that wants only what will change from now on."""
    keyspace = container.keyspace
    while True:
        record = keyspace.record
        position = FeedPosition.at(Lsn(0))
        for partition in _partitions_of(record, scope):
            answer = await router.read_from(keyspace, record, partition, ())
            if answer is None:
                break
            position = position.advanced(partition.range.start, partition.range.end, answer[0])
        else:
            return position.within(scope.start, scope.end)


def _for_ever() -> bool:
    return False


async def read_feed_page(
    router: PartitionRouter,
    container: Container,
    scope: Scope,
    position: FeedPosition,
    log: FeedLog,
    *,
    items_max: int,
    is_time_up: Callable[[], bool] = _for_ever,
) -> FeedPage:
    """Return the next page. A scope that a split divided is continued in the children, whatever the client calls it.

    Millions of entries may lie between a reader and the first one that is for it; when time is up the page says how far
    it has come instead.
    """
    reader = _Reader(router, container, scope, log, items_max, position, is_time_up)
    while not await reader.read():
        # The map changed before anything was found.
        await asyncio.sleep(0)
    return FeedPage(
        reader.rows,
        reader.position.within(scope.start, scope.end),
        reader.was_cut_short,
        round(reader.charge, 2),
        *reader.last_partition,
    )


@dataclass(slots=True)
class _Reader:
    """A page under construction."""

    router: PartitionRouter
    container: Container
    scope: Scope
    log: FeedLog
    items_max: int
    position: FeedPosition
    is_time_up: Callable[[], bool]
    was_cut_short: bool = False
    rows: list[bytes] = field(default_factory=list)
    row_bytes: int = 0
    paid_rows: int = 0
    paid_bytes: int = 0
    charge: float = 0.0
    # Id and LSN of the partition read last.
    last_partition: tuple[int, int] = (0, 0)

    async def read(self) -> bool:
        """Read all partitions of the scope, each a fair share of the page; return False if it has to restart."""
        record = self.container.keyspace.record
        partitions = _partitions_of(record, self.scope)
        # Several partitions may share a page that is too small for all: the first changes as the reader moves on.
        first = sum(lsn for _, lsn in self.position.steps) % len(partitions)
        for index, partition in enumerate((*partitions[first:], *partitions[:first])):
            room = self.items_max - len(self.rows)
            if room <= 0 or self.row_bytes >= PAGE_BYTES_MAX or self.was_cut_short:
                break
            share = -(-room // (len(partitions) - index))
            was_current = await self._read_partition(record, partition, share)
            try:
                self._pay(partition)
            except RequestRateTooLarge:
                # A page that was paid for in part is finished with what it has.
                if not self.paid_rows:
                    raise
                break
            if not was_current:
                return bool(self.rows)
        return True

    async def _read_partition(self, record: KeyspaceRecord, partition: PartitionRange, share: int) -> bool:
        """Add at most `share` rows, and the rest of the last one's LSN; return False if another map is in force."""
        keyspace, family = self.container.keyspace, self.log.family
        start, end = max(self.scope.start, partition.range.start), min(self.scope.end, partition.range.end)
        answer = await self.router.read_from(keyspace, record, partition, ())
        if answer is None:
            return False
        # Later writes have a higher LSN, so a log read to its end is seen up to here.
        reached = answer[0]
        self.last_partition = (partition.id, reached)
        group = _Group(self, share)
        rest: Span | None = Span(behind_lsn(family, self.position.least(start, end)), after_prefix(family))
        limit = min(max(share + 1, LOG_ENTRIES_MIN), LOG_ENTRIES.entries)
        is_current = True
        while rest is not None and is_current and not group.is_full:
            page = await self.router.scan(keyspace, record, partition, rest, limit=limit, bytes_max=LOG_ENTRIES.bytes)
            if page is None:
                is_current = False
                break
            wanted = self._wanted(page.entries, start, end)
            is_current = await self._take(record, partition, wanted, group)
            rest = page.rest(rest)
            if rest is not None:
                if is_current and not group.is_full and self.is_time_up():
                    self.was_cut_short = True
                    group.cut(lsn_in_log_key(page.entries[-1][0]))
                    break
                await asyncio.sleep(0)
        if is_current and not group.is_full and not self.was_cut_short:
            group.close()
            group.complete_lsn = max(group.complete_lsn, reached)
        self.position = self.position.advanced(start, end, group.complete_lsn)
        return is_current

    def _wanted(self, entries: list[Entry], start: bytes, end: bytes) -> list[Entry]:
        """Return the entries that belong to the scope and that the reader has not seen."""
        inside = [entry for entry in entries if start <= entry[1] < end]
        hidden = hidden_scopes(self.container.keyspace.record)
        if hidden:
            inside = [entry for entry in inside if not is_hidden(hidden, entry[1])]
        if self.position.is_level(start, end):
            return inside
        lsn_at = self.position.lsn_at
        return [entry for entry in inside if lsn_in_log_key(entry[0]) > lsn_at(entry[1])]

    async def _take(
        self, record: KeyspaceRecord, partition: PartitionRange, entries: list[Entry], group: _Group
    ) -> bool:
        for first in range(0, len(entries), _LOAD_ENTRIES):
            some = entries[first : first + _LOAD_ENTRIES]
            rows = await self.log.rows(
                self.router, self.container, record, partition, some, self.position.since_wall_seconds
            )
            if rows is None:
                return False
            for (key, _), row in zip(some, rows, strict=True):
                if not group.add(lsn_in_log_key(key), row):
                    return True
        return True

    def _pay(self, partition: PartitionRange) -> None:
        """Take what was read since the last payment from the partition that it was read from."""
        due = charge.feed_page(items=len(self.rows) - self.paid_rows, page_bytes=self.row_bytes - self.paid_bytes)
        self.container.keyspace.spend(partition, due, self.scope.start)
        self.paid_rows, self.paid_bytes = len(self.rows), self.row_bytes
        self.charge += due


@dataclass(slots=True)
class _Group:
    """The rows of one LSN, which come on a page together or not at all."""

    reader: _Reader
    share: int
    rows: list[bytes] = field(default_factory=list)
    lsn: Lsn = Lsn(0)
    complete_lsn: Lsn = Lsn(0)
    taken: int = 0
    is_full: bool = False

    def add(self, lsn: Lsn, row: Row) -> bool:
        """Add a row; return False if the page was full before it."""
        if lsn != self.lsn:
            self.close()
            if self.taken >= self.share or self.reader.row_bytes >= PAGE_BYTES_MAX:
                self.is_full = True
                return False
            self.lsn = lsn
        if row is not None:
            self.rows.append(row)
        return True

    def cut(self, lsn: Lsn) -> None:
        """End the page at some entry of `lsn`, of which there may be more."""
        if self.lsn < lsn:
            self.close()
        self.complete_lsn = max(self.complete_lsn, Lsn(lsn - 1))

    def close(self) -> None:
        self.complete_lsn = self.lsn
        self.taken += len(self.rows)
        self.reader.rows += self.rows
        self.reader.row_bytes += sum(map(len, self.rows))
        self.rows = []


def _partitions_of(record: KeyspaceRecord, scope: Scope) -> tuple[PartitionRange, ...]:
    if scope.start >= scope.end:
        return (record.map.find(scope.start),)
    return record.map.overlapping(KeyRange(scope.start, scope.end))
