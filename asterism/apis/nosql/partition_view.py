"""The items of a logical partition as a unit of work sees them: a snapshot with what the unit has staged laid over.

Items alone: for what needs index entries too there is `documents.unit_reads`, which has more to lay over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from asterism.documents.container import Container
from asterism.documents.item_record import StoredItem, body_of, unpack_item
from asterism.documents.planning import NewItem, place_at
from asterism.documents.transaction import Transaction
from asterism.keyspaces.layout import ITEMS
from asterism.storage.contract import Snapshot, Span

# One slice of a scan: small enough that the event loop is held for about a millisecond.
_SLICE_ENTRIES = 128
_SLICE_BYTES = 256 * 1024


class PartitionView:
    """Made for one unit of work, and good while its snapshot is open."""

    __slots__ = ("_container", "_end", "_snapshot", "_start", "_work")

    def __init__(self, container: Container, work: Transaction, snapshot: Snapshot) -> None:
        scope = container.logical_scope(work.key)
        self._container = container
        self._work = work
        self._snapshot = snapshot
        self._start, self._end = ITEMS + scope.start, ITEMS + scope.end

    async def scan(self, start: bytes | None = None) -> AsyncIterator[tuple[bytes, bytes]]:
        """(key, body) of every item from the key `start` on, in key order. Others have their turn between slices."""
        is_visible = self._container.planner.is_visible
        at: bytes | None = self._start if start is None else max(start, self._start)
        while at is not None:
            page = await self._snapshot.scan(Span(at, self._end), limit=_SLICE_ENTRIES, bytes_max=_SLICE_BYTES)
            behind = page.entries[-1][0] + b"\x00" if page.more else None
            slice_end = self._end if behind is None else behind
            bodies = {key: body_of(stored) for key, stored in page.entries}
            for key, (_, after) in self._work.staged.items():
                if at <= key < slice_end:
                    bodies.pop(key, None)
                    if after is not None:
                        bodies[key] = after.body
            for key in sorted(bodies):
                if is_visible(bodies[key]):
                    yield key, bodies[key]
            at = behind
            await asyncio.sleep(0)

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
