"""Tailable cursors: documents of a capped collection, and those that come later.

Documents lie in the order of their ids, not in the order of their inserts, so a tail remembers which it has seen. That
is bounded by the size of a capped collection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from asterism.apis.mongo.cursors import Patience
from asterism.apis.mongo.data.selection import Hit, Selection
from asterism.models.collections.layout import DocumentKey

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# Makes the result of a document.
Shape = Callable[[Hit], bytes]


class Tail:
    """The documents that one tailable cursor has still to give."""

    __slots__ = ("_left", "_patience", "_seen", "_selection", "_skip")

    def __init__(self, selection: Selection, *, skip: int, limit: int, patience: Patience) -> None:
        self._selection = selection
        self._skip = skip
        self._left = limit or -1
        self._patience = patience
        self._seen: set[DocumentKey] = set()

    async def slices(self, call: Call, shape: Shape | None) -> AsyncGenerator[list[bytes], None]:
        """Yield new documents; an empty slice when there are none within the time that the cursor waits."""
        clock = call.context.monotonic_seconds
        signal = call.store.services.signal
        while True:
            hits = await self._new_hits(call)
            if hits:
                yield [hit.body if shape is None else shape(hit) for hit in hits]
                continue
            end = clock() + self._patience.seconds
            while not hits and self._left and (left := end - clock()) > 0:
                await signal.wait(seconds_max=left)
                hits = await self._new_hits(call)
            yield [hit.body if shape is None else shape(hit) for hit in hits]

    async def _new_hits(self, call: Call) -> list[Hit]:
        """Return documents that were not seen before, within the limit of the command."""
        if not self._left:
            return []
        found = [hit async for hits in self._selection.hits(call) for hit in hits if hit.key not in self._seen]
        self._seen.update(hit.key for hit in found)
        if self._skip:
            skipped = min(self._skip, len(found))
            self._skip -= skipped
            found = found[skipped:]
        if self._left > 0:
            found = found[: self._left]
            self._left -= len(found)
        return found
