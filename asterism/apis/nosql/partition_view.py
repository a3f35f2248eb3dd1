"""The items of a logical partition as a unit of work sees them, in the order of creation, and one of them by its id."""

from __future__ import annotations

from collections.abc import AsyncIterator

from asterism.documents.container import Container
from asterism.documents.creation_order import walk_items
from asterism.documents.item_position import Position
from asterism.documents.item_record import StoredItem, unpack_item
from asterism.documents.planning import NewItem, place_at
from asterism.documents.transaction import Transaction
from asterism.documents.unit_reads import UnitReads
from asterism.storage.contract import Snapshot


class PartitionView:
    """Made for one unit of work, and good while its snapshot is open."""

    __slots__ = ("_container", "_reads", "_snapshot", "_work")

    def __init__(self, container: Container, work: Transaction, snapshot: Snapshot, reads: UnitReads) -> None:
        self._container = container
        self._work = work
        self._snapshot = snapshot
        self._reads = reads

    async def scan(self, start: Position | None = None) -> AsyncIterator[tuple[Position, bytes]]:
        """Yield position and body of every item from `start` on. Others have their turn between slices."""
        scope = self._container.logical_scope(self._work.key)
        async for items in walk_items(self._reads, self._container, scope, position=start):
            for index, (_, body) in enumerate(items.items):
                yield items.before(index), body

    async def find(self, item_id: str) -> bytes | None:
        """The body of the item of this id, if it is there and, like every item that queries find by a property, not
        left out of the index."""
        key = place_at(self._work.point, item_id).key
        staged = self._work.staged.get(key)
        found: NewItem | StoredItem | None
        if staged is not None:
            found = staged[1]
        else:
            (stored,) = await self._snapshot.read((key,))
            found = None if stored is None else unpack_item(stored)
        if found is None or not self._container.planner.is_visible(found.body):
            return None
        return found.body if found.is_indexed or not self._container.rules.enabled else None
