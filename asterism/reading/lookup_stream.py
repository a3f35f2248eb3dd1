"""A stream of the items that a lookup of given values names, in the order of creation, without all of them in memory.

Entries of one value are in the order of item numbers. A page begins with the smallest number that is still wanted, so
that all pages together read each entry about once; entries of several values are merged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from asterism.keyspaces.routing.families import INDEX, ITEM_NUMBER_BYTES, number_bytes
from asterism.models.documents.creation_order import Listed
from asterism.models.documents.indexes.reader import PartitionReader
from asterism.models.documents.item_position import Piece
from asterism.reading.access_plan import Access, AllLookups, Lookup
from asterism.storage.contract import Span

# Each page looks up every value again, so many values are better looked up once, and their entries sorted.
VALUES_MAX: Final = 16
# About as many as a page has results; a page that finds little in them reads on with more.
_FIRST_ENTRIES: Final = 128
_FIRST_ENTRIES_OF_ONE: Final = 16

_Entry = tuple[bytes, bytes]


def streamed_lookup(access: Access | None) -> Lookup | None:
    """Return a lookup whose entries can be read page by page; it alone finds all items that may match."""
    for lookup in access.lookups if isinstance(access, AllLookups) else (access,):
        if isinstance(lookup, Lookup) and lookup.is_of_values and len(lookup.spans) <= VALUES_MAX:
            return lookup
    return None


async def stream_lookup(
    reader: PartitionReader, lookup: Lookup, piece: Piece, *, used: set[str]
) -> AsyncIterator[Listed]:
    """Yield the items of a piece that a lookup of values names, in the order of creation."""
    used.add(lookup.name)
    first_limit = max(_FIRST_ENTRIES // len(lookup.spans), _FIRST_ENTRIES_OF_ONE)
    sources = [
        _Source(_entries(reader, lookup.token + span.low, lookup.token + span.high, piece, first_limit))
        for span in lookup.spans
    ]
    async for entries in _merged(sources):
        own = [entry for entry in entries if piece.start <= entry[1] < piece.end]
        if own:
            yield Listed(*zip(*own, strict=True))


async def _entries(
    reader: PartitionReader, low: bytes, high: bytes, piece: Piece, first_limit: int
) -> AsyncIterator[list[_Entry]]:
    # All entries have the value that the span begins with.
    start = INDEX + low + number_bytes(piece.least)
    span = Span(start, max(start, INDEX + high))
    async for page in reader.pages(span, first_limit=first_limit):
        reader.index_lookups += 1
        yield page


class _Source:
    """The entries of one value that were read and not yet handed on, and the pages of further ones."""

    __slots__ = ("entries", "is_at_end", "pages")

    def __init__(self, pages: AsyncIterator[list[_Entry]]) -> None:
        self.pages = pages
        self.entries: list[_Entry] = []
        self.is_at_end = False

    async def fill(self) -> None:
        while not self.entries and not self.is_at_end:
            page = await anext(self.pages, None)
            if page is None:
                self.is_at_end = True
            else:
                self.entries = page


async def _merged(sources: list[_Source]) -> AsyncIterator[list[_Entry]]:
    """Yield the entries of all sources by their item numbers, each number once."""
    if len(sources) == 1:
        async for page in sources[0].pages:
            yield page
        return
    while True:
        for source in sources:
            await source.fill()
        if not any(source.entries for source in sources):
            return
        # Up to here no source can have an entry that was not read.
        bound = min(_number(source.entries[-1]) for source in sources if source.entries)
        taken: dict[bytes, _Entry] = {}
        for source in sources:
            own = source.entries
            count = next((index for index, entry in enumerate(own) if _number(entry) > bound), len(own))
            taken.update((_number(entry), entry) for entry in own[:count])
            source.entries = own[count:]
        yield [taken[number] for number in sorted(taken)]


def _number(entry: _Entry) -> bytes:
    return entry[0][-ITEM_NUMBER_BYTES:]
