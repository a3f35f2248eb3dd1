"""The search for candidates: the items of one partition that an access plan names, as few as the index can tell."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Final, assert_never

from asterism.keyspaces.routing.families import ITEM_NUMBER_BYTES, number_bytes
from asterism.models.documents.indexes.reader import PartitionReader
from asterism.models.documents.item_position import Numbered, Piece
from asterism.reading.access_plan import Access, AllLookups, AnyLookup, Lookup, NoItems

# Up to this many are worth their lookup, however few items the partition has.
CANDIDATES_MIN: Final = 1_000
# They are in memory together, at about a hundred bytes each.
CANDIDATES_MAX: Final = 40_000
# If entries can also be streamed one by one, more candidates than this are not put together first.
CANDIDATES_BESIDE_STREAM_MAX: Final = 5_000
# Entries that may be read for a part of a physical partition, whose index has the entries of the other parts as well.
ENTRIES_MAX: Final = 50_000
# A second index is worth reading when the first leaves more items than this.
_INTERSECT_ABOVE: Final = 200
# Index entries that are read in the time that it takes to read an item and to evaluate the filter on it.
_ENTRIES_PER_ITEM: Final = 6


def candidates_worth_finding(items: int, wanted: int | None, *, are_shared: bool) -> int:
    """Return how many candidates an index may name before a scan of the partition's `items` costs no more.

    A scan that looks for `wanted` results among items of which c match reads wanted * items / c of them, at the price
    of several entries each; beyond the square root of that product, naming candidates costs more than the scan. If
    they are found once for all pages (`are_shared`), or all results are wanted, they save the whole scan.
    """
    enough = items // 2 if wanted is None else isqrt(_ENTRIES_PER_ITEM * wanted * items)
    if are_shared:
        enough = max(enough, items // 4)
    return max(CANDIDATES_MIN, min(enough, CANDIDATES_MAX))


@dataclass(slots=True)
class CandidateSearch:
    """A search for the items of a piece that may match; it may find some that do not."""

    reader: PartitionReader
    piece: Piece
    # The names of the indexes that were read.
    used: set[str]
    # The limits of the items that may be found, and of the entries that each lookup may read for them.
    candidates_max: int = CANDIDATES_MAX
    entries_max: int = ENTRIES_MAX

    async def find(self, access: Access) -> set[Numbered] | None:
        """Return the candidates; None if they are too many."""
        return await self._find(access, self.candidates_max)

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
        for span in lookup.index_spans():
            async for page in self.reader.index_pages(span):
                found.update(_numbered(page, self.piece))
                entries_read += len(page)
                if len(found) > most or entries_read > self.entries_max:
                    return None
        self.used.add(lookup.name)
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
