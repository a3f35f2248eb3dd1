"""Items without a value at an indexed path: an order by the path has them at one end, and its index does not have them.

Comparing counts, of the entries of the path and of the items, shows if there are any. They are found by subtracting the
numbers of the entries from the numbers of all items. The result is remembered with its LSN, and brought up to date from
the change log. If many items have no value, a scan finds some soon, and only the fact that they are many is remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from asterism.keyspaces.routing.families import (
    CREATION_ORDER,
    ITEM_NUMBER_BYTES,
    after_prefix,
    number_bytes,
)
from asterism.models.documents.codec import DocumentCodec
from asterism.models.documents.indexes.paths import path_token, value_at
from asterism.models.documents.indexes.reader import IndexSpan, PartitionReader
from asterism.models.documents.item_position import Numbered
from asterism.models.documents.item_record import body_of, is_indexed
from asterism.storage.contract import Span
from asterism.values.identifiers import Lsn, PartitionNumber
from asterism.values.undefined import UNDEFINED

_ANY_VALUE_END = b"\xff"
# Up to this many of them, or one item in `_FEW_SHARE`, are remembered; if they are more, a scan finds some soon.
_FEW_MISSING = 1_000
_FEW_SHARE = 10
# Changes since the last comparison that are applied one by one; after more, all is compared again.
_CHANGES_MAX = 2_000
# Items that are loaded at once, and paths of partitions that are remembered.
_LOAD_ITEMS = 64
_REMEMBERED_MAX = 256
_CHUNK_BITS = 10
_LEAST_NUMBER = bytes(ITEM_NUMBER_BYTES)
_HIGHEST_NUMBER = b"\xff" * ITEM_NUMBER_BYTES


@dataclass(slots=True)
class _MissingItems:
    lsn: Lsn
    # In the order of their numbers; None if they are many.
    missing: list[Numbered] | None


class MissingValues:
    """The items without values that were found, by path. One for each container in a process."""

    def __init__(self, codec: DocumentCodec) -> None:
        self._decode = codec.decode
        self._known: OrderedDict[tuple[PartitionNumber, bytes], _MissingItems] = OrderedDict()

    async def items(
        self,
        reader: PartitionReader,
        path: tuple[str, ...],
        *,
        first: int | None,
        reverse: bool,
        is_remembered: bool,
    ) -> AsyncIterator[Numbered]:
        """Yield the items of a partition that have no value at `path`, from the number `first` on, in the order of
        their numbers or against it. Some may have a value by the time they are read."""
        known = await self._find(reader, path, is_remembered=is_remembered)
        if known.missing is not None:
            bound = None if first is None else number_bytes(first)
            for numbered in reversed(known.missing) if reverse else known.missing:
                number = numbered[:ITEM_NUMBER_BYTES]
                if bound is None or (number <= bound if reverse else number >= bound):
                    yield numbered
            return
        low = _LEAST_NUMBER if first is None or reverse else number_bytes(first)
        high = _HIGHEST_NUMBER if first is None or not reverse else number_bytes(first)
        span = Span(CREATION_ORDER + low, CREATION_ORDER + high + b"\x00")
        async for page in reader.pages(span, limit=_LOAD_ITEMS, reverse=reverse):
            for numbered in await self._without_value(reader, [key[1:] + reference for key, reference in page], path):
                yield numbered

    async def few(
        self, reader: PartitionReader, path: tuple[str, ...], *, is_remembered: bool
    ) -> list[Numbered] | None:
        """Return the items of a partition that have no value at `path` in what the reader sees, in the order of their
        numbers; None if they are many. The reader must see a snapshot."""
        known = await self._find(reader, path, is_remembered=is_remembered)
        lsn, size = await reader.totals()
        if known.lsn > lsn:
            known = await self._compare(reader, path, lsn, items=size.items)
        return known.missing

    async def _find(self, reader: PartitionReader, path: tuple[str, ...], *, is_remembered: bool) -> _MissingItems:
        name = reader.partition.partition, path_token(path)
        known = self._known.get(name) if is_remembered else None
        lsn, size = await reader.totals()
        # A copy of the store may be behind what is known.
        if known is not None and known.lsn < lsn:
            known = await self._updated(reader, known, path, lsn)
        if known is None:
            known = await self._compare(reader, path, lsn, items=size.items)
        if is_remembered:
            self._known[name] = known
            self._known.move_to_end(name)
            if len(self._known) > _REMEMBERED_MAX:
                self._known.popitem(last=False)
        return known

    async def _compare(self, reader: PartitionReader, path: tuple[str, ...], lsn: Lsn, *, items: int) -> _MissingItems:
        """Compare the index of a path with the items. `lsn` and `items` were read before."""
        chunks: dict[int, int] = {}
        entries = 0
        async for page in reader.index_pages(IndexSpan(path_token(path), b"", _ANY_VALUE_END)):
            entries += len(page)
            for key, _ in page:
                chunk, bit = divmod(int.from_bytes(key[-ITEM_NUMBER_BYTES:], "big"), 1 << _CHUNK_BITS)
                chunks[chunk] = chunks.get(chunk, 0) | 1 << bit
        lsn_now, _ = await reader.totals()
        if entries == items and lsn_now == lsn:
            return _MissingItems(lsn, [])
        if items - entries > max(_FEW_MISSING, items // _FEW_SHARE):
            return _MissingItems(lsn, None)
        missing: list[Numbered] = []
        async for page in reader.pages(Span(CREATION_ORDER, after_prefix(CREATION_ORDER))):
            suspects = []
            for key, reference in page:
                chunk, bit = divmod(int.from_bytes(key[1:], "big"), 1 << _CHUNK_BITS)
                if not chunks.get(chunk, 0) >> bit & 1:
                    suspects.append(key[1:] + reference)
            missing += await self._without_value(reader, suspects, path)
            if len(missing) > max(_FEW_MISSING, items // _FEW_SHARE):
                return _MissingItems(lsn, None)
        return _MissingItems(lsn, missing)

    async def _updated(
        self, reader: PartitionReader, known: _MissingItems, path: tuple[str, ...], lsn: Lsn
    ) -> _MissingItems | None:
        """Return the missing items at `lsn` or later; None if too much has changed."""
        if lsn - known.lsn > _CHANGES_MAX:
            return None
        if known.missing is None:
            return known
        changed = await reader.changes_since(known.lsn, changes_max=_CHANGES_MAX)
        if changed is None:
            return None
        touched = set(changed)
        missing = [numbered for numbered in known.missing if numbered not in touched]
        missing += await self._without_value(reader, changed, path)
        if len(missing) > 2 * _FEW_MISSING:
            return None
        return _MissingItems(lsn, sorted(missing))

    async def _without_value(
        self, reader: PartitionReader, numbered: Sequence[Numbered], path: tuple[str, ...]
    ) -> list[Numbered]:
        """Return the items that exist, are indexed, and have no value at the path."""
        found: list[Numbered] = []
        for start in range(0, len(numbered), _LOAD_ITEMS):
            part = {item[ITEM_NUMBER_BYTES:]: item for item in numbered[start : start + _LOAD_ITEMS]}
            for reference, record in await reader.load_stored(list(part)):
                if is_indexed(record) and value_at(self._decode(body_of(record)), path) is UNDEFINED:
                    found.append(part[reference])
        return found
