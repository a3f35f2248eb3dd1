"""MIN, MAX and COUNT of a path, answered by the path's index: its first entry, its last, how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from asterism.documents.index_paths import path_token
from asterism.documents.index_place import ARRAY_VALUE, VALUE_BYTES_MAX
from asterism.documents.index_reader import IndexEntry, IndexSpan, PartitionReader
from asterism.query.scope import PropertyPath
from asterism.query.work import Work
from asterism.values.json_text import loads_stored
from asterism.values.key_bytes import encode, is_truncated
from asterism.values.undefined import UNDEFINED

# An aggregate's name and the path of its argument.
Column = tuple[str, PropertyPath]

ANSWERED: Final = frozenset({"MIN", "MAX", "COUNT"})
_ANY_VALUE_END: Final = b"\xff"
# An item may change between the look at its entry and the look at it; more often than this in a row, it is scanned.
_ATTEMPTS_MAX = 5


async def column_states(reader: PartitionReader, columns: Sequence[Column], work: Work) -> list[object] | None:
    """What each aggregate knows after all items of a partition; None when only the items can tell."""
    states = []
    for name, path in columns:
        state = await (_count(reader, path) if name == "COUNT" else _extreme(reader, path, work, is_max=name == "MAX"))
        if state is None:
            return None
        states.append(state)
    return states


async def _count(reader: PartitionReader, path: PropertyPath) -> object:
    total = 0
    async for page in reader.entries(IndexSpan(path_token(path), b"", _ANY_VALUE_END)):
        total += len(page)
    return total


async def _extreme(reader: PartitionReader, path: PropertyPath, work: Work, *, is_max: bool) -> object | None:
    """The state of MIN or MAX: its value, and whether an array or object spoils it."""
    token = path_token(path)
    if await _first(reader, IndexSpan(token, ARRAY_VALUE, _ANY_VALUE_END)) is not None:
        return UNDEFINED, True
    for _ in range(_ATTEMPTS_MAX):
        entry = await _first(reader, IndexSpan(token, b"", ARRAY_VALUE), reverse=is_max)
        if entry is None:
            return UNDEFINED, False
        if is_truncated(entry.value, VALUE_BYTES_MAX):
            return None
        # The entry knows the value as a double; the item knows how it was written.
        for _, stored in await reader.load([entry.reference]):
            work.load(stored.body)
            value = _value_at(loads_stored(stored.body), path)
            if encode(value, bytes_max=VALUE_BYTES_MAX) == entry.value:
                return value, False
    return None


async def _first(reader: PartitionReader, span: IndexSpan, *, reverse: bool = False) -> IndexEntry | None:
    async for page in reader.entries(span, reverse=reverse):
        return page[0] if page else None
    return None


def _value_at(value: object, path: PropertyPath) -> object:
    for name in path:
        value = value.get(name, UNDEFINED) if isinstance(value, dict) else UNDEFINED
    return value
