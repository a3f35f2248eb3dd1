"""Removal of many items in the background, some at a time, of any logical partitions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from asterism.keyspaces.routing.families import ITEMS, LOGICAL_SIZES, TOTALS_KEY
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.incoming.entries import EntryChanges, entry_of
from asterism.models.documents.incoming.writes import EntryWriter
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem
from asterism.models.documents.upkeep.pace import Pace
from asterism.partitioning.partition_key import extract
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.storage.contract import Add, Batch, Expectation, ExpectationFailed
from asterism.values.identifiers import Lsn

# Bytes that are read at once, however few items that are.
SHARE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Share:
    """The number of items that are read at once and removed with one commit, and the number in each of its batches,
    which hold the event loop one by one."""

    items: int
    batch_items: int


# A batch of four holds the event loop for a fraction of a millisecond, so that a read that comes meanwhile waits hardly
# longer than it takes.
GENTLE_SHARE = Share(items=16, batch_items=4)
# Expired items lie side by side in most indexes, so that many of them in one commit touch few pages.
LARGE_SHARE = Share(items=192, batch_items=8)


def share_of(pace: Pace) -> Share:
    return GENTLE_SHARE if pace.is_gentle else LARGE_SHARE


@dataclass(slots=True)
class _Part:
    """One batch of a share. `point` is that of its first item, by which it is routed."""

    point: bytes
    batch: Batch = field(default_factory=Batch)
    sizes: dict[bytes, list[int]] = field(default_factory=dict)
    count: int = 0
    # The entries that the items leave behind at the sinks of edges.
    entries: EntryChanges = field(default_factory=EntryChanges)

    def freed_bytes(self) -> int:
        return -sum(size[0] for size in self.sizes.values())


class Removal:
    """The removal of one share: items of one physical partition, each expected to be as it was found."""

    def __init__(self, container: Container, services: DocumentServices, share: Share, *, at: bytes) -> None:
        """`at` is a point of the partition, for changes without an item."""
        self._container = container
        self._services = services
        self._at = at
        self._batch_items = share.batch_items
        self._planner = container.planner
        self._parts: list[_Part] = []

    async def add(self, reference: bytes, found: StoredItem) -> None:
        planner = self._planner
        document = planner.codec.decode(found.body, key=ITEMS + reference)
        point = planner.point(extract(planner.definition, document))
        item_key = ItemKey.of_reference(point, reference)
        part = self._part(point)
        batch = part.batch
        batch.expectations.append(Expectation(item_key.key, found.version))
        planner.plan_change(batch, item_key, found, None, place_in_batch=part.count)
        if planner.unique_keys is not None:
            # The item's own as long as it is as it was found, which is expected.
            batch.deletes += planner.unique_keys.entries(point, document)
        if planner.sink_rule is not None:
            entry = entry_of(planner.sink_rule(document), item_key, found.number)
            part.entries.add(entry, None, is_complete=False)
        size = part.sizes.setdefault(point, [0, 0])
        size[0] -= len(found.body)
        size[1] -= 1
        part.count += 1
        if part.count == self._batch_items:
            # Planning takes time too: let requests run.
            await asyncio.sleep(0)

    def drop_entry(self, key: bytes) -> None:
        """Remove an entry that no item needs."""
        self._part(self._at).batch.deletes.append(key)

    def put_entry(self, key: bytes, value: bytes) -> None:
        self._part(self._at).batch.puts.append((key, value))

    async def carry_out(self) -> tuple[int, bool]:
        """Apply the share; return how many items were removed, and whether that was all of it. Items that others
        changed meanwhile were left, and are to be read again."""
        counts = await asyncio.gather(*(self._apply(part) for part in self._parts))
        return sum(count or 0 for count in counts), None not in counts

    def _part(self, point: bytes) -> _Part:
        if not self._parts or self._parts[-1].count >= self._batch_items:
            self._parts.append(_Part(point))
        last = self._parts[-1]
        if not last.count:
            last.point = point
        return last

    async def _apply(self, part: _Part) -> int | None:
        batch, keyspace = part.batch, self._container.keyspace
        batch.adds += [Add(LOGICAL_SIZES + point, (size[0], size[1])) for point, size in part.sizes.items()]
        if part.count:
            batch.adds.append(Add(TOTALS_KEY, (-part.freed_bytes(), -part.count)))
        settings = self._planner.planned_under

        async def apply(on_map: PartitionMap | None) -> tuple[PartitionRange, Lsn]:
            return await self._services.router.apply(keyspace, part.point, batch, planned_under=settings, on_map=on_map)

        try:
            if part.entries:
                writer = EntryWriter(keyspace, self._services.router)
                partition, _ = await writer.write(part.point, batch, part.entries, apply, planned_under=settings)
            else:
                partition, _ = await apply(None)
        except ExpectationFailed:
            return None
        self._services.reshaper.notice_growth(keyspace, partition, -part.freed_bytes())
        return part.count
