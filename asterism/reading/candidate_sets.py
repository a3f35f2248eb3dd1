"""Candidates of a query that is answered in pages: found once, and kept for the pages that follow.

An index has the entries of a range by value, and answers are in the order of creation: the candidates of a partition
must be sorted before the first of them can be answered. They are kept with the query's other results, brought up to
date from the change log, and found again if they are lost, unless a scan of the rest costs no more by then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from asterism.keyspaces.routing.families import ITEM_NUMBER_BYTES, number_bytes
from asterism.models.documents.indexes.reader import PartitionReader
from asterism.models.documents.item_position import Numbered, Piece
from asterism.reading.access_plan import Access
from asterism.reading.candidates import CandidateSearch, candidates_worth_finding
from asterism.values.identifiers import Lsn, PartitionNumber

# Changes since the previous page that are applied one by one; after more, candidates are found again.
_CHANGES_MAX = 2_000
# Memory that a candidate takes besides its bytes.
_CANDIDATE_BYTES = 41


@dataclass(slots=True)
class CandidateSet:
    """All items of an interval of one partition that may have matched at `lsn`, in the order of creation."""

    partition: PartitionNumber
    start: bytes
    end: bytes
    lsn: Lsn
    numbered: list[Numbered]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.numbered)) + _CANDIDATE_BYTES * len(self.numbered)

    def is_of(self, reader: PartitionReader, piece: Piece) -> bool:
        return (self.partition, self.start, self.end) == (reader.partition.partition, piece.start, piece.end)

    def from_number(self, least: int) -> Sequence[Numbered]:
        return self.numbered[bisect_left(self.numbered, number_bytes(least)) :] if least else self.numbered

    async def catch_up(self, reader: PartitionReader) -> bool:
        """Add the items that have changed since `lsn`; return False if they are too many."""
        lsn, _ = await reader.totals()
        # A copy of the store may be behind.
        if lsn <= self.lsn:
            return True
        changed = await reader.changes_since(self.lsn, changes_max=_CHANGES_MAX)
        if changed is None:
            return False
        own = [numbered for numbered in changed if self.start <= numbered[ITEM_NUMBER_BYTES:] < self.end]
        self.numbered = sorted({*self.numbered, *own})
        self.lsn = lsn
        return True


@dataclass(slots=True)
class CandidateSets:
    """The candidates of one page's pieces; the next page may resume with `latest`."""

    # The number of results that the query still wants; None if it wants all, and needs them before its first result.
    wanted: int | None
    # True if candidates are kept for the pages that follow.
    are_kept: bool = False
    # The candidates of the piece in which the previous page ended, and True if that page scanned the piece instead.
    known: CandidateSet | None = None
    was_scanned: bool = False
    latest: CandidateSet | None = None
    is_scanned: bool = False

    def enter_piece(self) -> None:
        """Forget the candidates of the previous piece: the page does not end in it."""
        self.latest, self.is_scanned = None, False

    async def of_piece(
        self,
        reader: PartitionReader,
        piece: Piece,
        access: Access,
        *,
        used: set[str],
        entries_max: int,
        candidates_max: int,
    ) -> Sequence[Numbered] | None:
        """Return the candidates of a piece in the order of creation; None if they are too many."""
        # Earlier pages know only the piece in which they ended.
        is_begun = piece.least > 0
        if is_begun and self.was_scanned:
            self.is_scanned = True
            return None
        known = self.known if is_begun and self.known is not None and self.known.is_of(reader, piece) else None
        if known is not None and await known.catch_up(reader):
            self.latest = known
            return known.from_number(piece.least)
        lsn, size = await reader.totals()
        worth = candidates_worth_finding(size.items, self.wanted, are_shared=self.are_kept and not is_begun)
        search = CandidateSearch(reader, piece, used, min(worth, candidates_max), entries_max)
        found = await search.find(access)
        if found is None:
            self.is_scanned = True
            return None
        self.latest = CandidateSet(reader.partition.partition, piece.start, piece.end, lsn, sorted(found))
        return self.latest.numbered
