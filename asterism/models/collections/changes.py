"""Readers of changes: what was written to collections since a position, in order.

The log of a partition is in the order of its batches; those of several partitions are merged by the time of the change.
The time of a batch counts as no lower than that of the batch before, so that the order of a partition, and with it that
of every document, is kept whatever the clocks of the writers say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from asterism.errors import OwnerNotFound
from asterism.keyspaces.routing.families import behind_lsn
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.collections.change_position import ChangePosition, SeenInBatch
from asterism.models.collections.layout import (
    CHANGE_LOG,
    VERSIONS,
    body_of,
    document_key,
    image_body,
    image_key,
    log_place,
    unpack_document,
)
from asterism.models.collections.log_entries import DOCUMENT_OPERATIONS, OPERATIONS
from asterism.partitioning.feed_position import FeedPosition
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.throughput import charge
from asterism.values.bson.codec import decode_record
from asterism.values.bson.types import Document
from asterism.values.identifiers import Lsn

__all__ = ["ChangeLog", "ChangePage", "ChangePosition", "ChangeSource", "LoggedChange"]

_ENTRIES_MAX = 128
_BYTES_MAX = 512 * 1024
_CLOCKS_DIFFER_SECONDS = 60
_NOWHERE = FeedPosition.at(Lsn(0))


class ChangeSource(NamedTuple):
    """A keyspace to be read, and the name of its database ("" for the log of the account's databases)."""

    keyspace: Keyspace
    database: str


@dataclass(slots=True)
class LoggedChange:
    """One change. Bodies of documents are looked up by `ChangeLog.body` and its neighbors."""

    keyspace: Keyspace
    database: str
    operation: str
    name: str
    uuid: bytes
    # Hybrid time.
    time: int
    wall_milliseconds: int
    lsn: int
    place: int
    number: int
    point: bytes
    # Shard key and `_id`; empty for a change of the catalog.
    key: Document
    before: bytes | None
    description: Document | None
    transaction: Document | None
    keeps_images: bool
    is_view: bool
    # Of a reader that has seen this change.
    position: ChangePosition

    @property
    def is_of_document(self) -> bool:
        return self.operation in DOCUMENT_OPERATIONS

    @property
    def item_key(self) -> bytes:
        return document_key(self.point, self.key["_id"]).stored


class _Page(NamedTuple):
    """The entries of a partition behind a position: whole batches, up to `reached`."""

    source: ChangeSource
    partition: PartitionRange
    changes: list[LoggedChange]
    # The time of each change, as no lower than those before.
    times: list[int]
    reached: Lsn
    is_cut: bool
    bytes_read: int


class ChangePage(NamedTuple):
    """Changes, the position behind them and all others that were read, and whether there is more to read at once."""

    changes: list[LoggedChange]
    position: ChangePosition
    has_more: bool


class _MapChanged(Exception):
    """The partition is no longer there; its range is read again on the new map."""


class ChangeLog:
    """Reads the logs of keyspaces. Stateless: a position goes in, changes with their positions come out."""

    def __init__(self, router: PartitionRouter) -> None:
        self._router = router

    async def position_now(self, sources: Sequence[ChangeSource]) -> ChangePosition:
        """Return the position of a reader that wants only what will change from now on."""
        found: dict[bytes, FeedPosition] = {}
        for source in sources:
            try:
                found[source.keyspace.record.rid] = await self.end_of(source.keyspace)
            except OwnerNotFound:
                continue
        return ChangePosition(found)

    async def end_of(self, keyspace: Keyspace) -> FeedPosition:
        """Return the position behind everything that a keyspace has."""
        while True:
            record = keyspace.record
            position = FeedPosition.at(Lsn(0))
            for partition in record.map.ranges:
                answer = await self._router.read_from(keyspace, record, partition, ())
                if answer is None:
                    break
                position = position.advanced(partition.range.start, partition.range.end, answer[0])
            else:
                return position

    async def position_at(self, sources: Sequence[ChangeSource], time: int) -> ChangePosition:
        """Return the position of a reader that wants what has changed since a hybrid time."""
        # Clocks of processes may differ: what lies shortly before is read, too, and left out by its time.
        earlier = time - (_CLOCKS_DIFFER_SECONDS << 32)
        found: dict[bytes, FeedPosition] = {}
        for source in sources:
            record, own = source.keyspace.record, _NOWHERE
            for partition in record.map.ranges:
                try:
                    lsn = await self._last_before(source.keyspace, partition, earlier)
                except (_MapChanged, OwnerNotFound):
                    # Read from the beginning.
                    continue
                own = own.advanced(partition.range.start, partition.range.end, lsn)
            found[record.rid] = own
        return ChangePosition(found, since=time)

    async def _last_before(self, keyspace: Keyspace, partition: PartitionRange, time: int) -> Lsn:
        """Return an LSN of a partition up to which everything is older than a time."""
        record = keyspace.record
        answer = await self._router.read_from(keyspace, record, partition, ())
        if answer is None:
            raise _MapChanged
        low, high = 0, int(answer[0])
        point_bytes = 16 * len(record.definition.paths)
        while high - low > 1:
            middle = (low + high) // 2
            span = Span(behind_lsn(CHANGE_LOG, Lsn(middle)), behind_lsn(CHANGE_LOG, Lsn(high)))
            page = await self._router.scan(keyspace, record, partition, span, limit=1, bytes_max=None)
            if page is None:
                raise _MapChanged
            if not page.entries or int(decode_record(page.entries[0][1][point_bytes:])["t"]) >= time:
                high = middle
            else:
                low = log_place(page.entries[0][0])[0]
        return Lsn(low)

    async def read(
        self,
        sources: Sequence[ChangeSource],
        position: ChangePosition,
        accepts: Callable[[LoggedChange], bool] = lambda _: True,
        *,
        is_admitted: bool = False,
    ) -> ChangePage:
        """Return the next changes that are accepted. RequestRateTooLarge when the budget of a partition does not have
        the cost of its page; then nothing was read. Work that `is_admitted` is paid for later."""
        pages: list[_Page] = []
        has_changed = False
        for source in sources:
            try:
                record = source.keyspace.record
                for partition in record.map.ranges:
                    page = await self._read_partition(source, partition, position)
                    if page is not None:
                        pages.append(page)
            except _MapChanged:
                has_changed = True
            except OwnerNotFound:
                # Dropped meanwhile; the log that says so tells what was not read.
                continue
        for page in pages:
            if page.changes:
                cost = charge.feed_page(items=len(page.changes), page_bytes=page.bytes_read)
                pay = page.source.keyspace.owe if is_admitted else page.source.keyspace.spend
                pay(page.partition, cost, page.partition.range.start)
        found, reached, is_whole = _merge(pages, position, accepts)
        return ChangePage(found, reached, has_changed or not is_whole or any(page.is_cut for page in pages))

    async def _read_partition(
        self, source: ChangeSource, partition: PartitionRange, position: ChangePosition
    ) -> _Page | None:
        keyspace = source.keyspace
        record, rid = keyspace.record, keyspace.record.rid
        own = position.keyspaces.get(rid, _NOWHERE)
        answer = await self._router.read_from(keyspace, record, partition, ())
        if answer is None:
            raise _MapChanged
        reached = answer[0]
        least = own.least(partition.range.start, partition.range.end)
        if least >= reached:
            return None
        span = Span(behind_lsn(CHANGE_LOG, least), behind_lsn(CHANGE_LOG, reached))
        entries: list[tuple[bytes, bytes]] = []
        is_cut = False
        while True:
            page = await self._router.scan(keyspace, record, partition, span, limit=_ENTRIES_MAX, bytes_max=_BYTES_MAX)
            if page is None:
                raise _MapChanged
            entries += page.entries
            rest = page.rest(span)
            if rest is None:
                break
            # The changes of one batch are not divided.
            last_lsn = log_place(entries[-1][0])[0]
            if log_place(entries[0][0])[0] != last_lsn:
                entries = [entry for entry in entries if log_place(entry[0])[0] != last_lsn]
                reached, is_cut = Lsn(last_lsn - 1), True
                break
            span = rest
        changes = _unpack(source, record.rid, entries, own, position, 16 * len(record.definition.paths))
        bytes_read = sum(len(value) for _, value in entries)
        return _Page(source, partition, changes, _rising_times(changes), reached, is_cut, bytes_read)

    async def has_lost(self, sources: Sequence[ChangeSource], position: ChangePosition) -> bool:
        """Return whether entries behind an old position may have been removed: the next one that is there is not the
        next one that was written."""
        for source in sources:
            own = position.keyspaces.get(source.keyspace.record.rid)
            if own is None:
                continue
            record = source.keyspace.record
            for partition in record.map.ranges:
                answer = await self._router.read_from(source.keyspace, record, partition, ())
                least = own.least(partition.range.start, partition.range.end)
                if answer is None or least >= answer[0]:
                    continue
                span = Span(behind_lsn(CHANGE_LOG, least), behind_lsn(CHANGE_LOG, answer[0]))
                page = await self._router.scan(source.keyspace, record, partition, span, limit=1, bytes_max=None)
                if page is not None and (not page.entries or log_place(page.entries[0][0])[0] > least + 1):
                    return True
        return False

    # --- bodies -----------------------------------------------------------------------------------------------------

    async def body(self, change: LoggedChange) -> bytes | None:
        """Return the document as this change left it; None if it is no longer kept."""
        item_key = change.item_key
        version = change.lsn.to_bytes(8, "big")
        image = image_key(version, place=change.place, number=change.number)
        stored, displaced = await self._read(change, (item_key, image))
        if stored is not None:
            document = unpack_document(stored, item_key)
            if (document.version, document.place, document.number) == (version, change.place, change.number):
                return document.body
        return None if displaced is None else image_body(displaced, len(change.point))

    async def body_before(self, change: LoggedChange) -> bytes | None:
        if change.before is None:
            return None
        (stored,) = await self._read(change, (VERSIONS + change.before,))
        return None if stored is None else image_body(stored, len(change.point))

    async def current_body(self, change: LoggedChange) -> bytes | None:
        """Return the document as it is now; None if it was deleted."""
        (stored,) = await self._read(change, (change.item_key,))
        return None if stored is None else body_of(stored)

    async def _read(self, change: LoggedChange, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            return (await self._router.read(change.keyspace, change.point, keys))[2]
        except OwnerNotFound:
            return [None] * len(keys)


def _unpack(
    source: ChangeSource,
    rid: bytes,
    entries: Sequence[tuple[bytes, bytes]],
    own: FeedPosition,
    position: ChangePosition,
    point_bytes: int,
) -> list[LoggedChange]:
    partly = position.partly
    changes: list[LoggedChange] = []
    for key, value in entries:
        place = log_place(key)
        point = value[:point_bytes]
        if place[0] <= own.lsn_at(point) or any(seen.covers(rid, point, place) for seen in partly):
            continue
        entry = decode_record(value[point_bytes:])
        changes.append(
            LoggedChange(
                source.keyspace,
                entry.get("b", source.database),
                OPERATIONS[entry["o"]],
                entry["n"],
                bytes(entry["u"]),
                int(entry["t"]),
                int(entry["w"]),
                *place,
                point,
                entry.get("k", {}),
                None if entry.get("p") is None else bytes(entry["p"]),
                entry.get("d"),
                entry.get("x"),
                "e" in entry,
                "v" in entry,
                position,
            )
        )
    return changes


def _rising_times(changes: Sequence[LoggedChange]) -> list[int]:
    """Return a time for each change, which is the same in a batch and never falls."""
    latest: dict[int, int] = {}
    for change in changes:
        latest[change.lsn] = max(latest.get(change.lsn, 0), change.time)
    highest = 0
    for lsn, time in latest.items():
        highest = latest[lsn] = max(highest, time)
    return [latest[change.lsn] for change in changes]


def _merge(
    pages: Sequence[_Page], position: ChangePosition, accepts: Callable[[LoggedChange], bool]
) -> tuple[list[LoggedChange], ChangePosition, bool]:
    """Put pages together by time, up to the time that all of them have reached; the last value is False if changes were
    left for the next time."""
    horizon = min((page.times[-1] for page in pages if page.is_cut and page.times), default=None)
    order = [
        (time, at, index)
        for at, page in enumerate(pages)
        for index, time in enumerate(page.times)
        if horizon is None or time <= horizon
    ]
    order.sort()
    positions = dict(position.keyspaces)
    taken = [0] * len(pages)
    found: list[LoggedChange] = []
    for _, at, index in order:
        page = pages[at]
        change = page.changes[index]
        taken[at] += 1
        if change.time < position.since or not accepts(change):
            continue
        is_last = index + 1 == len(page.changes) or page.changes[index + 1].lsn != change.lsn
        rid, part = page.source.keyspace.record.rid, page.partition.range
        seen = Lsn(change.lsn if is_last else change.lsn - 1)
        positions[rid] = positions.get(rid, _NOWHERE).advanced(part.start, part.end, seen)
        partly = _unfinished(position, positions)
        if not is_last:
            own = SeenInBatch(rid, part.start, part.end, change.lsn, change.place, change.number)
            partly = (*(other for other in partly if other[:4] != own[:4]), own)
        change.position = replace(position, keyspaces=dict(positions), partly=partly)
        found.append(change)
    for page, count in zip(pages, taken, strict=True):
        rid, part = page.source.keyspace.record.rid, page.partition.range
        is_whole = count == len(page.changes)
        reached = page.reached if is_whole else Lsn(page.changes[count].lsn - 1)
        positions[rid] = positions.get(rid, _NOWHERE).advanced(part.start, part.end, reached)
    behind = replace(position, keyspaces=positions, partly=_unfinished(position, positions))
    return found, behind, len(order) == sum(len(page.changes) for page in pages)


def _unfinished(position: ChangePosition, positions: Mapping[bytes, FeedPosition]) -> tuple[SeenInBatch, ...]:
    """Return the batches of which the rest has still not been read everywhere."""
    return tuple(
        seen
        for seen in position.partly
        if positions.get(seen.keyspace, _NOWHERE).least(seen.start, seen.end) < seen.lsn
    )
