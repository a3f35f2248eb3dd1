"""Counts of the items that meet conditions, from index entries alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from asterism.keyspaces.routing.families import ITEM_NUMBER_BYTES
from asterism.models.documents.indexes.reader import PartitionReader
from asterism.reading.access_plan import Access, AllLookups, AnyLookup, Lookup, NoItems

# To combine lookups, the item numbers of all of them are in memory together, at about a hundred bytes each.
NUMBERS_MAX: Final = 100_000


def counts_one_value(access: Access) -> bool:
    """Return True if an item can be counted at one place of the index only, so that no write moves it to another."""
    return isinstance(access, NoItems) or (
        isinstance(access, Lookup) and access.is_of_values and len(access.spans) == 1
    )


async def count_items(reader: PartitionReader, access: Access, *, check: Callable[[], None]) -> int | None:
    """Return how many items of a partition an exact access plan names; None if they are too many to combine in memory.
    `check` is called between two reads."""
    if isinstance(access, Lookup) and (access.has_one_entry_per_item or len(access.spans) == 1):
        total = 0
        for span in access.index_spans():
            async for page in reader.index_pages(span):
                check()
                total += len(page)
        return total
    numbers = await _numbers(reader, access, check)
    return None if numbers is None else len(numbers)


async def _numbers(reader: PartitionReader, access: Access, check: Callable[[], None]) -> set[bytes] | None:
    match access:
        case NoItems():
            return set()
        case Lookup():
            return await _numbers_of(reader, access, check)
        case AnyLookup(lookups) | AllLookups(lookups):
            parts: list[set[bytes]] = []
            for lookup in lookups:
                part = await _numbers(reader, lookup, check)
                if part is None:
                    return None
                parts.append(part)
            return set.union(*parts) if isinstance(access, AnyLookup) else set.intersection(*parts)
        case _:
            assert_never(access)


async def _numbers_of(reader: PartitionReader, lookup: Lookup, check: Callable[[], None]) -> set[bytes] | None:
    found: set[bytes] = set()
    for span in lookup.index_spans():
        async for page in reader.index_pages(span):
            check()
            found.update(key[-ITEM_NUMBER_BYTES:] for key, _ in page)
            if len(found) > NUMBERS_MAX:
                return None
    return found
