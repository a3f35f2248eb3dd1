"""The change feed: what changed since a position, in the order of the log, one page at a time.

The log is read partition by partition. Within one, entries come in the order of their LSNs, and those of one LSN (of
one batch) are never parted, because a position can only say that an LSN was seen. An item's entry moves when the item
changes again, always to the end; so whoever reads on from an LSN meets every item's latest change sooner or later.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from asterism.documents.answers import Scope
from asterism.documents.container import Container
from asterism.documents.feed_position import FeedPosition
from asterism.documents.item_record import body_of
from asterism.documents.item_versions import changed_at_seconds, version_row
from asterism.errors import RequestRateTooLarge
from asterism.keyspaces.layout import CHANGE_LOG, ITEMS, VERSIONS, after_prefix, behind_lsn, lsn_in_log_key
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.records import KeyspaceRecord
from asterism.limits import PAGE_BYTES_MAX
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.throughput import charge
from asterism.values.identifiers import Lsn

# Entries of the log are small; the items behind them may have megabytes, so those are read a few at a time.
_SLICE_ENTRIES = 256
_SLICE_ENTRIES_MIN = 8
_SLICE_BYTES = 256 * 1024
_LOAD_ENTRIES = 32

_TIME_AT_END = re.compile(rb'"_ts":(\d+)\}\Z')

Entry = tuple[bytes, bytes]
# A row of the answer as JSON text, or None for an entry that has nothing to show.
Row = bytes | None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """What changed, and the position behind it. A page without rows says that the reader has caught up, unless it was
    cut short: then it says only how far nothing was found."""

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
        owner: Owner,
        container: Container,
        seen: KeyspaceRecord,
        partition: PartitionRange,
        entries: Sequence[Entry],
        since_wall_seconds: int | None,
    ) -> list[Row] | None:
        """A row for each entry, none for what changed before a time; None when another map is in force by now."""
        ...


@dataclass(frozen=True, slots=True)
class LatestVersions:
    """The latest change of every item that is there, as the item itself with the LSN of the change."""

    family: bytes = CHANGE_LOG

    async def rows(
        self,
        owner: Owner,
        container: Container,
        seen: KeyspaceRecord,
        partition: PartitionRange,
        entries: Sequence[Entry],
        since_wall_seconds: int | None,
    ) -> list[Row] | None:
        answer = await owner.read_from(
            container.keyspace, seen, partition, [ITEMS + reference for _, reference in entries]
        )
        if answer is None:
            return None
        return [
            self._row(container, key, stored, since_wall_seconds)
            for (key, _), stored in zip(entries, answer[1], strict=True)
        ]

    def _row(self, container: Container, key: bytes, stored: bytes | None, since_wall_seconds: int | None) -> Row:
        # The item's header and the entry's key tell LSN, number and place in different orders.
        if stored is None or stored[:8] != key[1:9] or stored[9:17] != key[11:] or stored[17:19] != key[9:11]:
            return None
        body = body_of(stored)
        if not container.planner.is_visible(body):
            return None
        # Wherever the entry lies in the log: merges bring entries of two clocks together.
        if since_wall_seconds is not None and _changed_at_seconds(body) < since_wall_seconds:
            return None
        return b'%b,"_lsn":%d}' % (body[:-1], lsn_in_log_key(key))


@dataclass(frozen=True, slots=True)
class AllVersions:
    """Every change within the retention, deletes among them."""

    definition: PartitionKeyDefinition
    family: bytes = VERSIONS

    async def rows(
        self,
        owner: Owner,  # noqa: ARG002
        container: Container,  # noqa: ARG002
        seen: KeyspaceRecord,  # noqa: ARG002
        partition: PartitionRange,  # noqa: ARG002
        entries: Sequence[Entry],
        since_wall_seconds: int | None,
    ) -> list[Row] | None:
        return [self._row(key, value, since_wall_seconds) for key, value in entries]

    def _row(self, key: bytes, value: bytes, since_wall_seconds: int | None) -> Row:
        if since_wall_seconds is not None and changed_at_seconds(value) < since_wall_seconds:
            return None
        return version_row(key, value, self.definition)


def _changed_at_seconds(body: bytes) -> int:
    found = _TIME_AT_END.search(body)
    return 0 if found is None else int(found[1])


async def position_now(owner: Owner, container: Container, scope: Scope) -> FeedPosition:
    """The position of a reader that wants only what will change from now on."""
    keyspace = container.keyspace
    while True:
        record = keyspace.record
        position = FeedPosition.at(Lsn(0))
        for partition in _partitions_of(record, scope):
            answer = await owner.read_from(keyspace, record, partition, ())
            if answer is None:
                break
            position = position.advanced(partition.range.start, partition.range.end, answer[0])
        else:
            return position.within(scope.start, scope.end)


def _for_ever() -> bool:
    return False


async def read_feed_page(
    owner: Owner,
    container: Container,
    scope: Scope,
    position: FeedPosition,
    log: FeedLog,
    *,
    items_max: int,
    is_time_up: Callable[[], bool] = _for_ever,
) -> FeedPage:
    """The next page. A scope that a split divided is read on in the children, whatever the client calls it.

    Millions of entries may lie between a reader and the first one that is for it; when time is up it is told how far
    it has come instead.
    """
    reader = _Reader(owner, container, scope, log, items_max, position, is_time_up)
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
    """A page in the making."""

    owner: Owner
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
        """Reads all partitions of the scope, each a fair share of the page; False if it has to be begun anew."""
        record = self.container.keyspace.record
        partitions = _partitions_of(record, self.scope)
        # Where several share a page that is too small for all, the one to begin with changes as the reader moves on.
        first = sum(lsn for _, lsn in self.position.steps) % len(partitions)
        for place, partition in enumerate((*partitions[first:], *partitions[:first])):
            room = self.items_max - len(self.rows)
            if room <= 0 or self.row_bytes >= PAGE_BYTES_MAX or self.was_cut_short:
                break
            share = -(-room // (len(partitions) - place))
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
        """Adds at most `share` rows, and the rest of the last one's LSN; False if another map is in force."""
        keyspace, family = self.container.keyspace, self.log.family
        start, end = max(self.scope.start, partition.range.start), min(self.scope.end, partition.range.end)
        answer = await self.owner.read_from(keyspace, record, partition, ())
        if answer is None:
            return False
        # Whatever is written after this moment has a higher LSN, so a log read to its end is seen up to here.
        reached = answer[0]
        self.last_partition = (partition.id, reached)
        group = _Group(self, share)
        at, log_end = behind_lsn(family, self.position.least(start, end)), after_prefix(family)
        limit = min(max(share + 1, _SLICE_ENTRIES_MIN), _SLICE_ENTRIES)
        more, is_current = True, True
        while more and is_current and not group.is_full:
            page = await self.owner.scan(
                keyspace, record, partition, Span(at, log_end), limit=limit, bytes_max=_SLICE_BYTES
            )
            if page is None:
                is_current = False
                break
            wanted = self._wanted(page.entries, start, end)
            is_current = await self._take(record, partition, wanted, group)
            more = page.more
            if more:
                last_key = page.entries[-1][0]
                at = last_key + b"\x00"
                if is_current and not group.is_full and self.is_time_up():
                    self.was_cut_short = True
                    group.cut(lsn_in_log_key(last_key))
                    break
                await asyncio.sleep(0)
        if is_current and not group.is_full and not self.was_cut_short:
            group.close()
            group.complete_lsn = max(group.complete_lsn, reached)
        self.position = self.position.advanced(start, end, group.complete_lsn)
        return is_current

    def _wanted(self, entries: list[Entry], start: bytes, end: bytes) -> list[Entry]:
        """The entries that belong to the scope and that the reader has not seen."""
        inside = [entry for entry in entries if start <= entry[1] < end]
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
                self.owner, self.container, record, partition, some, self.position.since_wall_seconds
            )
            if rows is None:
                return False
            for (key, _), row in zip(some, rows, strict=True):
                if not group.add(lsn_in_log_key(key), row):
                    return True
        return True

    def _pay(self, partition: PartitionRange) -> None:
        """Takes what was read since the last payment from the partition that it was read from."""
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
        """Takes a row; False if the page was full before it."""
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
        """The log was read up to some entry of `lsn`, of which there may be more."""
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
