"""From an index plan to the items it names: references of one partition, as few as the index can tell."""

from __future__ import annotations

from typing import assert_never

from asterism.documents.answers import Scope
from asterism.documents.index_reader import PartitionReader
from asterism.query.index_plan import Access, AllLookups, AnyLookup, Lookup, NoItems

# Beyond this many, reading the items in their own order is as good, and needs no memory.
CANDIDATES_MAX = 5_000
# A second index is worth reading when the first leaves more items than this.
_INTERSECT_ABOVE = 200


async def find_candidates(
    reader: PartitionReader, access: Access, scope: Scope, *, used: set[str], most: int = CANDIDATES_MAX
) -> set[bytes] | None:
    """References within the scope of all items that may match, and some more; None when there are too many."""
    match access:
        case NoItems():
            return set()
        case Lookup():
            return await _look_up(reader, access, scope, used, most)
        case AnyLookup(lookups):
            found: set[bytes] = set()
            for one in lookups:
                part = await find_candidates(reader, one, scope, used=used, most=most - len(found))
                if part is None:
                    return None
                found |= part
            return found
        case AllLookups(lookups):
            return await _intersect(reader, lookups, scope, used, most)
        case _:
            assert_never(access)


async def _look_up(
    reader: PartitionReader, lookup: Lookup, scope: Scope, used: set[str], most: int
) -> set[bytes] | None:
    found: set[bytes] = set()
    for span in lookup.spans:
        async for page in reader.entries(span):
            found.update(entry.reference for entry in page if scope.start <= entry.reference < scope.end)
            if len(found) > most:
                return None
    used.add(lookup.path)
    return found


async def _intersect(
    reader: PartitionReader, lookups: tuple[Access, ...], scope: Scope, used: set[str], most: int
) -> set[bytes] | None:
    found: set[bytes] | None = None
    for one in lookups:
        if found is not None and len(found) <= _INTERSECT_ABOVE:
            break
        part = await find_candidates(reader, one, scope, used=used, most=most)
        if part is not None:
            found = part if found is None else found & part
    return found
