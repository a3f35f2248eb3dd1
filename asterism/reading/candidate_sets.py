"""Candidates of a query that is answered in pages: found once, and kept for the pages that follow.

An index has the entries of a range by value, and answers are in the order of creation: the candidates of a partition
must be sorted before the first of them can be answered. They are kept with the query's other results, brought up to
date from the change log, and found again when they are lost, unless a scan of the rest is as good by then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from asterism.keyspaces.routing.families import number_bytes
from asterism.models.documents.indexes.reader import PartitionReader
from asterism.models.documents.item_position import Numbered, Piece
from asterism.reading.access_plan import Access
from asterism.reading.candidates import CandidateSearch, candidates_worth_finding
from asterism.values.identifiers import Lsn, PartitionNumber

# Changes since a page that are looked at one by one; after more, candidates are found again.
_CHANGES_MAX = 2_000
# What a candidate takes in memory besides its bytes.
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
        """Add the items that have changed since; False when they are too many."""
        lsn, _ = await reader.totals()
        # A copy of the store may be behind.
        if lsn <= self.lsn:
            return True
        changed = await reader.changes_since(self.lsn, changes_max=_CHANGES_MAX)
        if changed is None:
            return False
        own = [numbered for numbered in changed if self.start <= numbered[8:] < self.end]
        self.numbered = sorted({*self.numbered, *own})
        self.lsn = lsn
        return True


@dataclass(slots=True)
class CandidateSets:
    """Finds the candidates of one page's pieces; `latest` is what the next page may go on with."""

    # How many results the query still wants; None if it wants all, and needs them before its first result.
    wanted: int | None
    # Whether what is found is kept for the pages that follow.
    are_kept: bool = False
    # What the page before has found in the piece that it ended in; and whether it found that a scan is as good.
    known: CandidateSet | None = None
    was_scanned: bool = False
    latest: CandidateSet | None = None
    is_scanned: bool = False

    def enter_piece(self) -> None:
        """Forget what was found of the piece before: the page does not end in it."""
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
        """Return the candidates of a piece in the order of creation; None when they are too many."""
        # Of a piece that was begun: of others the pages before have not seen anything.
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
