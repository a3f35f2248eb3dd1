"""From an index plan to the items it names: items of one partition, as few as the index can tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import assert_never

from asterism.documents.creation_order import Listed
from asterism.documents.index_reader import PartitionReader
from asterism.documents.item_position import Numbered, Piece
from asterism.keyspaces.layout import INDEX, ITEM_NUMBER_BYTES, number_bytes
from asterism.query.index_plan import Access, AllLookups, AnyLookup, Lookup, NoItems
from asterism.storage.contract import Span

# Beyond this many, reading all items in their own order is as good, and needs no memory.
CANDIDATES_MAX = 5_000
# Of a part of a physical partition, whose index has the entries of the others as well, so many entries may be read.
ENTRIES_MAX = 50_000
# So many are worth their lookup however few items there are besides.
_CANDIDATES_MIN = 1_000
# A second index is worth reading when the first leaves more items than this.
_INTERSECT_ABOVE = 200
# Every page looks up all candidates again, at about a microsecond each, and answers a hundred of them; a scan reads
# every item once, at some six microseconds each. The lookups of all pages cost as much as the scan where the square of
# the candidates is this many times the number of items.
_SCAN_FACTOR = 600


@dataclass(slots=True)
class CandidateSearch:
    """Finds the items of a piece that may match, and some more."""

    reader: PartitionReader
    piece: Piece
    # The paths of the indexes that were read.
    used: set[str]
    # How many items may be found, and how many entries each lookup may read for them.
    most: int = CANDIDATES_MAX
    entries_max: int = ENTRIES_MAX

    async def find(self, access: Access) -> set[Numbered] | None:
        """Return None when there are too many."""
        candidates = await self._find(access, self.most)
        if candidates is not None and len(candidates) > _CANDIDATES_MIN:
            _, size = await self.reader.totals()
            if len(candidates) ** 2 > _SCAN_FACTOR * size.items:
                return None
        return candidates

    async def _find(self, access: Access, most: int) -> set[Numbered] | None:
        match access:
            case NoItems():
                return set()
            case Lookup():
                return await self._look_up(access, most)
            case AnyLookup(lookups):
                found: set[Numbered] = set()
                for lookup in lookups:
                    part = await self._find(lookup, most - len(found))
                    if part is None:
                        return None
                    found |= part
                return found
            case AllLookups(lookups):
                return await self._intersect(lookups, most)
            case _:
                assert_never(access)

    async def _look_up(self, lookup: Lookup, most: int) -> set[Numbered] | None:
        found: set[Numbered] = set()
        entries_read = 0
        for span in lookup.spans:
            async for page in self.reader.index_pages(span):
                found.update(_numbered(page, self.piece))
                entries_read += len(page)
                if len(found) > most or entries_read > self.entries_max:
                    return None
        self.used.add(lookup.path)
        return found

    async def _intersect(self, lookups: tuple[Access, ...], most: int) -> set[Numbered] | None:
        found: set[Numbered] | None = None
        for lookup in lookups:
            if found is not None and len(found) <= _INTERSECT_ABOVE:
                break
            part = await self._find(lookup, most)
            if part is not None:
                found = part if found is None else found & part
        return found


def _numbered(page: list[tuple[bytes, bytes]], piece: Piece) -> list[Numbered]:
    start, end, least = piece.start, piece.end, number_bytes(piece.least)
    return [
        key[-ITEM_NUMBER_BYTES:] + reference
        for key, reference in page
        if start <= reference < end and key[-ITEM_NUMBER_BYTES:] >= least
    ]


def streamed_lookup(access: Access | None) -> Lookup | None:
    """Return the lookup whose entries can be followed page by page, because they are in the order of creation; to
    read it alone finds all items that may match."""
    for lookup in access.lookups if isinstance(access, AllLookups) else (access,):
        if isinstance(lookup, Lookup) and lookup.is_of_one_value:
            return lookup
    return None


async def stream_lookup(
    reader: PartitionReader, lookup: Lookup, piece: Piece, *, used: set[str]
) -> AsyncIterator[Listed]:
    """Yield the items of a piece that a lookup of one value names, in the order of creation."""
    (span,) = lookup.spans
    used.add(lookup.path)
    head = INDEX + span.token
    # All entries have the value that the span begins with.
    low = head + span.low + number_bytes(piece.least)
    async for page in reader.pages(Span(low, max(low, head + span.high))):
        reader.index_lookups += 1
        own = [entry for entry in page if piece.start <= entry[1] < piece.end]
        if own:
            yield Listed(*zip(*own, strict=True))
