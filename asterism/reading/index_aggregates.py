"""MIN, MAX and COUNT of a path, answered by the path's index: its first entry, its last, the number of entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asterism.models.documents.codec import Document
from asterism.models.documents.indexes.paths import path_token, value_at
from asterism.models.documents.indexes.reader import IndexEntry, IndexSpan, PartitionReader
from asterism.models.documents.indexes.terms import VALUE_BYTES_MAX
from asterism.models.documents.item_record import StoredItem
from asterism.reading.conditions import PropertyPath
from asterism.reading.index_use import Column
from asterism.reading.value_spans import ANY_VALUE_END
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import ValueOrder, is_truncated


async def column_states(
    reader: PartitionReader,
    columns: Sequence[Column],
    order: ValueOrder,
    *,
    load: Callable[[StoredItem], Document],
    check: Callable[[], None],
) -> list[object] | None:
    """Return the states of aggregates over all items of a partition; None if the index is not enough. The reader must
    see a snapshot. `load` returns the document of an item that is read; `check` is called between two reads."""
    states = []
    for name, path in columns:
        is_count, is_max = name == "COUNT", name == "MAX"
        state = await (_count(reader, path, check) if is_count else _extreme(reader, path, order, load, is_max=is_max))
        if state is None:
            return None
        states.append(state)
    return states


async def _count(reader: PartitionReader, path: PropertyPath, check: Callable[[], None]) -> object:
    total = 0
    async for page in reader.index_pages(_whole(path)):
        check()
        total += len(page)
    return total


async def _extreme(
    reader: PartitionReader,
    path: PropertyPath,
    order: ValueOrder,
    load: Callable[[StoredItem], Document],
    *,
    is_max: bool,
) -> object | None:
    """Return the state of MIN or MAX: its value, and True if an array or object makes the result undefined."""
    if await _first(reader, IndexSpan(path_token(path), *order.nested_span)) is not None:
        return UNDEFINED, True
    entry = await _first(reader, _whole(path), reverse=is_max)
    if entry is None:
        return UNDEFINED, False
    if is_truncated(entry.value, VALUE_BYTES_MAX):
        return None
    # The entry has an equal value; only the item has it as it was written.
    ((_, stored),) = await reader.load([entry.reference])
    return value_at(load(stored), path), False


def _whole(path: PropertyPath) -> IndexSpan:
    return IndexSpan(path_token(path), b"", ANY_VALUE_END)


async def _first(reader: PartitionReader, span: IndexSpan, *, reverse: bool = False) -> IndexEntry | None:
    async for page in reader.entries(span, reverse=reverse, first_limit=1):
        return page[0] if page else None
    return None
