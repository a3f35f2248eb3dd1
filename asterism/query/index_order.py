"""Entries of an index in its order, over several partitions at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from asterism.documents.answers import Scope
from asterism.documents.index_reader import IndexEntry, PartitionReader
from asterism.documents.item_record import StoredItem
from asterism.query.index_plan import IndexOrder

FoundEntry = tuple[IndexEntry, StoredItem | None]


async def ordered_entries(
    readers: Sequence[PartitionReader],
    order: IndexOrder,
    scopes: Sequence[Scope],
    *,
    after: tuple[bytes, int] | None,
    count: int,
) -> tuple[list[FoundEntry], bool]:
    """The next `count` entries with their items, None for an item that is gone; and whether they are the last."""
    merged: list[tuple[IndexEntry, PartitionReader]] = []
    is_last = True
    for reader in readers:
        taken = 0
        async for entry in _within(reader, order, scopes, after):
            if taken == count:
                is_last = False
                break
            merged.append((entry, reader))
            taken += 1
    merged.sort(key=lambda pair: (pair[0].value, pair[0].number), reverse=order.reverse)
    chosen = merged[:count]
    is_last = is_last and len(merged) <= count
    return await _with_items(chosen), is_last


async def _within(
    reader: PartitionReader, order: IndexOrder, scopes: Sequence[Scope], after: tuple[bytes, int] | None
) -> AsyncIterator[IndexEntry]:
    async for page in reader.entries(order.span, reverse=order.reverse, after=after):
        for entry in page:
            if any(scope.start <= entry.reference < scope.end for scope in scopes):
                yield entry


async def _with_items(chosen: Sequence[tuple[IndexEntry, PartitionReader]]) -> list[FoundEntry]:
    items: dict[bytes, StoredItem] = {}
    for reader in dict.fromkeys(reader for _, reader in chosen):
        references = [entry.reference for entry, its in chosen if its is reader]
        items.update(await reader.load(references))
    return [(entry, items.get(entry.reference)) for entry, _ in chosen]
