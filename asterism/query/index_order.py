"""Entries of an index in its order, over several partitions at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from asterism.documents.answers import Scope
from asterism.documents.container import Container
from asterism.documents.index_reader import IndexEntry, PartitionReader
from asterism.documents.item_record import StoredItem
from asterism.keyspaces.layout import ITEM_NUMBER_BYTES
from asterism.query.index_plan import IndexOrder
from asterism.values.key_bytes import ENCODED_UNDEFINED

FoundEntry = tuple[IndexEntry, StoredItem | None]


class OrderPosition(NamedTuple):
    """A place in an order of rows: the bytes of what they are ordered by, and the number of an item. Rows there may
    have been answered: all of them, or, if `rows` is not zero, only so many."""

    key: bytes
    number: int
    rows: int = 0


async def ordered_entries(
    readers: Sequence[PartitionReader],
    container: Container,
    order: IndexOrder,
    scopes: Sequence[Scope],
    *,
    after: OrderPosition | None,
    count: int,
    is_remembered: bool,
) -> tuple[list[FoundEntry], bool]:
    """The next `count` entries with their items, None for an item that is gone; and whether they are the last. Items
    without a value count as entries of undefined."""
    merged: list[tuple[IndexEntry, PartitionReader]] = []
    is_last = True
    for reader in readers:
        taken = 0
        async for entry in _entries(reader, container, order, after, is_remembered):
            if not any(scope.start <= entry.reference < scope.end for scope in scopes):
                continue
            if taken == count:
                is_last = False
                break
            merged.append((entry, reader))
            taken += 1
    merged.sort(key=lambda pair: (pair[0].value, pair[0].number), reverse=order.reverse)
    chosen = merged[:count]
    is_last = is_last and len(merged) <= count
    return await _with_items(chosen), is_last


async def _entries(
    reader: PartitionReader,
    container: Container,
    order: IndexOrder,
    after: OrderPosition | None,
    is_remembered: bool,
) -> AsyncIterator[IndexEntry]:
    """The entries of one partition. Undefined comes before every value."""
    is_behind_values = order.reverse and after is not None and after.key == ENCODED_UNDEFINED
    is_before_values = not order.reverse and (after is None or after.key == ENCODED_UNDEFINED)
    path = order.incomplete_path
    if path is not None and is_before_values:
        async for entry in _without_value(reader, container, path, order, after, is_remembered):
            yield entry
    if not is_behind_values:
        known = None if after is None else (after.key, after.number)
        is_inclusive = after is not None and after.rows > 0
        async for page in reader.entries(order.span, reverse=order.reverse, after=known, is_inclusive=is_inclusive):
            for entry in page:
                yield entry
    if path is not None and order.reverse:
        async for entry in _without_value(reader, container, path, order, after, is_remembered):
            yield entry


async def _without_value(
    reader: PartitionReader,
    container: Container,
    path: tuple[str, ...],
    order: IndexOrder,
    after: OrderPosition | None,
    is_remembered: bool,
) -> AsyncIterator[IndexEntry]:
    first = None
    if after is not None and after.key == ENCODED_UNDEFINED:
        step = -1 if order.reverse else 1
        first = after.number if after.rows else after.number + step
    found = container.missing_values.items(
        reader, path, first=first, reverse=order.reverse, is_remembered=is_remembered
    )
    async for numbered in found:
        number = int.from_bytes(numbered[:ITEM_NUMBER_BYTES], "big")
        yield IndexEntry(ENCODED_UNDEFINED, number, numbered[ITEM_NUMBER_BYTES:])


async def _with_items(chosen: Sequence[tuple[IndexEntry, PartitionReader]]) -> list[FoundEntry]:
    items: dict[bytes, StoredItem] = {}
    for reader in dict.fromkeys(reader for _, reader in chosen):
        references = [entry.reference for entry, its in chosen if its is reader]
        items.update(await reader.load(references))
    return [(entry, items.get(entry.reference)) for entry, _ in chosen]
