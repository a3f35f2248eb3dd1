"""Readers of changes: what was written to a collection, a database or an account since a position, in order.

The log of a partition is in the order of its batches; those of several partitions are merged by the time of the change.
A position is, for each keyspace, an LSN for every point of the line, so it stays true through splits, merges and moves;
within a batch it also names the last change that was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from asterism.errors import MalformedRequest
from asterism.keyspaces.routing.families import behind_lsn
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.collections.layout import (
    CHANGE_LOG,
    ITEMS,
    VERSIONS,
    body_of,
    image_body,
    image_key,
    log_place,
    unpack_document,
)
from asterism.models.collections.planner import OPERATIONS
from asterism.partitioning.feed_position import FeedPosition
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Span
from asterism.values.bson.codec import InvalidBson, decode, decode_record, encode
from asterism.values.bson.types import Document, Int64
from asterism.values.identifiers import Lsn

_ENTRIES_MAX = 128
_BYTES_MAX = 512 * 1024


class SeenInBatch(NamedTuple):
    """The last change of a batch that a reader has seen, while others of the batch are left."""

    keyspace: str
    lsn: int
    place: int


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """How far a reader has come, by keyspace."""

    keyspaces: dict[str, FeedPosition] = field(default_factory=dict)
    partly: SeenInBatch | None = None
    # Changes before this hybrid time are left out.
    since: int = 0

    def to_token(self) -> str:
        record: Document = {"k": {rid: position.to_text() for rid, position in self.keyspaces.items()}}
        if self.partly is not None:
            record["p"] = [self.partly.keyspace, Int64(self.partly.lsn), self.partly.place]
        if self.since:
            record["s"] = Int64(self.since)
        return encode(record).hex().upper()

    @classmethod
    def from_token(cls, token: str) -> ChangePosition:
        """Return the position that a token spells; MalformedRequest if it spells none."""
        try:
            record = decode(bytes.fromhex(token))
            partly = record.get("p")
            return cls(
                {str(rid): FeedPosition.from_text(text) for rid, text in record["k"].items()},
                None if partly is None else SeenInBatch(str(partly[0]), int(partly[1]), int(partly[2])),
                int(record.get("s", 0)),
            )
        except (InvalidBson, ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise MalformedRequest(reason="The resume token was not issued by this server.") from None


@dataclass(slots=True)
class LoggedChange:
    """One change of a document. Bodies are looked up by `ChangeLog.body` and `ChangeLog.body_before`."""

    keyspace: Keyspace
    operation: str
    collection: int
    time: int
    wall_milliseconds: int
    lsn: int
    place: int
    number: int
    point: bytes
    id_key: bytes
    before: bytes | None
    description: Document | None
    transaction: Document | None
    # Of a reader that has seen this change.
    position: ChangePosition


class ChangeLog:
    """Reads the logs of keyspaces. Stateless: a position goes in, changes with their positions come out."""

    def __init__(self, router: PartitionRouter) -> None:
        self._router = router

    async def position_now(self, keyspaces: Sequence[Keyspace]) -> ChangePosition:
        """Return the position of a reader that wants only what will change from now on."""
        found: dict[str, FeedPosition] = {}
        for keyspace in keyspaces:
            found[keyspace.record.rid.hex()] = await self._keyspace_now(keyspace)
        return ChangePosition(found)

    async def _keyspace_now(self, keyspace: Keyspace) -> FeedPosition:
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

    async def read(
        self, keyspaces: Sequence[Keyspace], position: ChangePosition, accepts: Callable[[int], bool]
    ) -> tuple[list[LoggedChange], ChangePosition]:
        """Return the next changes of collections that are accepted, by their numbers, and the position behind them.

        A keyspace that the position does not name is read from its beginning: it is newer than the position.
        """
        positions = dict(position.keyspaces)
        found: list[tuple[LoggedChange, PartitionRange]] = []
        ends: list[tuple[str, PartitionRange, Lsn]] = []
        for keyspace in keyspaces:
            rid = keyspace.record.rid.hex()
            own = positions.setdefault(rid, FeedPosition.at(Lsn(0)))
            record = keyspace.record
            for partition in record.map.ranges:
                await self._read_partition(keyspace, partition, own, position, accepts, found, ends)
        found.sort(key=lambda entry: (entry[0].time, entry[0].lsn, entry[0].place))
        last_of: dict[tuple[str, int], int] = {}
        for index, (change, _) in enumerate(found):
            last_of[change.keyspace.record.rid.hex(), change.lsn] = index
        partly = position.partly
        for index, (change, partition) in enumerate(found):
            rid = change.keyspace.record.rid.hex()
            is_last = last_of[rid, change.lsn] == index
            seen = Lsn(change.lsn if is_last else change.lsn - 1)
            positions[rid] = positions[rid].advanced(partition.range.start, partition.range.end, seen)
            partly = None if is_last else SeenInBatch(rid, change.lsn, change.place)
            change.position = replace(position, keyspaces=dict(positions), partly=partly)
        for rid, partition, reached in ends:
            positions[rid] = positions[rid].advanced(partition.range.start, partition.range.end, reached)
        return [change for change, _ in found], replace(position, keyspaces=positions, partly=None)

    async def _read_partition(
        self,
        keyspace: Keyspace,
        partition: PartitionRange,
        own: FeedPosition,
        position: ChangePosition,
        accepts: Callable[[int], bool],
        found: list[tuple[LoggedChange, PartitionRange]],
        ends: list[tuple[str, PartitionRange, Lsn]],
    ) -> None:
        record, rid = keyspace.record, keyspace.record.rid.hex()
        start, end = partition.range.start, partition.range.end
        answer = await self._router.read_from(keyspace, record, partition, ())
        if answer is None:
            return
        reached = answer[0]
        least = own.least(start, end)
        if least >= reached:
            return
        span = Span(behind_lsn(CHANGE_LOG, least), behind_lsn(CHANGE_LOG, reached))
        entries: list[tuple[bytes, bytes]] = []
        while True:
            page = await self._router.scan(keyspace, record, partition, span, limit=_ENTRIES_MAX, bytes_max=_BYTES_MAX)
            if page is None:
                return
            entries += page.entries
            rest = page.rest(span)
            if rest is None:
                break
            # The changes of one batch are not divided: a position can only say that a batch was seen.
            last_lsn = log_place(entries[-1][0])[0]
            if log_place(entries[0][0])[0] != last_lsn:
                entries = [entry for entry in entries if log_place(entry[0])[0] != last_lsn]
                reached = Lsn(last_lsn - 1)
                break
            span = rest
        point_bytes = 16 * len(record.definition.paths)
        partly = position.partly
        for key, value in entries:
            lsn, place, number = log_place(key)
            point = value[:point_bytes]
            if lsn <= own.lsn_at(point):
                continue
            if partly is not None and partly.keyspace == rid and partly.lsn == lsn and place <= partly.place:
                continue
            entry = decode_record(value[point_bytes:])
            if entry["t"] < position.since or not accepts(entry["c"]):
                continue
            change = LoggedChange(
                keyspace,
                OPERATIONS[entry["o"]],
                entry["c"],
                int(entry["t"]),
                int(entry["w"]),
                lsn,
                place,
                number,
                point,
                bytes(entry["i"]),
                None if entry.get("p") is None else bytes(entry["p"]),
                entry.get("d"),
                entry.get("x"),
                position,
            )
            found.append((change, partition))
        ends.append((rid, partition, reached))

    async def body(self, change: LoggedChange) -> bytes | None:
        """Return the document as this change left it; None if it is no longer kept."""
        item_key = ITEMS + change.point + change.id_key
        version = change.lsn.to_bytes(8, "big")
        image = image_key(version, place=change.place, number=change.number)
        _, _, (stored, displaced) = await self._router.read(change.keyspace, change.point, (item_key, image))
        if stored is not None:
            document = unpack_document(stored, item_key)
            if (document.version, document.place, document.number) == (version, change.place, change.number):
                return document.body
        return None if displaced is None else image_body(displaced, len(change.point))

    async def body_before(self, change: LoggedChange) -> bytes | None:
        if change.before is None:
            return None
        _, _, (stored,) = await self._router.read(change.keyspace, change.point, (VERSIONS + change.before,))
        return None if stored is None else image_body(stored, len(change.point))

    async def current_body(self, change: LoggedChange) -> bytes | None:
        """Return the document as it is now; None if it was deleted."""
        item_key = ITEMS + change.point + change.id_key
        _, _, (stored,) = await self._router.read(change.keyspace, change.point, (item_key,))
        return None if stored is None else body_of(stored)
