"""An ordered map of bytes whose past states can be kept for the price of what changes afterwards.

Entries lie in blocks of bounded length, each with its keys and its values side by side; the bounds of the blocks say
where a key belongs. A frozen state shares the blocks: a block is copied when it is first changed after that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from asterism.storage.contract import ScanPage, Span

# An insertion moves half a block of pointers, and a block that a frozen state shares is copied whole: a microsecond
# each at this size, and a partition of a million entries has some three thousand blocks.
BLOCK_ENTRIES_MAX = 512


class _Block:
    """A run of entries in key order. `generation` tells which freezing it was made or copied after."""

    __slots__ = ("generation", "keys", "values")

    def __init__(self, keys: list[bytes], values: list[bytes], generation: int) -> None:
        self.keys = keys
        self.values = values
        self.generation = generation


class FrozenMap:
    """One state of an ordered map; nothing that happens to the map later changes it."""

    __slots__ = ("_blocks", "_bounds")

    def __init__(self, bounds: list[bytes], blocks: list[_Block]) -> None:
        # A block holds the keys from its bound up to the next one; the first bound is the empty key.
        self._bounds = bounds
        self._blocks = blocks

    def get(self, key: bytes) -> bytes | None:
        block = self._blocks[bisect_right(self._bounds, key) - 1]
        keys = block.keys
        position = bisect_left(keys, key)
        return block.values[position] if position < len(keys) and keys[position] == key else None

    def scan(self, span: Span, *, reverse: bool, limit: int, bytes_max: int | None) -> ScanPage:
        """Return a page of the span as `contract.Engine.scan` describes it."""
        entries: list[tuple[bytes, bytes]] = []
        start, end = span.start, span.end
        if end is not None and end <= start:
            return ScanPage(entries, more=False)
        first = bisect_right(self._bounds, start) - 1
        last = len(self._bounds) - 1 if end is None else bisect_left(self._bounds, end) - 1
        bytes_taken = 0
        for index in range(last, first - 1, -1) if reverse else range(first, last + 1):
            keys, values = self._blocks[index].keys, self._blocks[index].values
            low = bisect_left(keys, start) if index == first else 0
            high = bisect_left(keys, end) if end is not None and index == last else len(keys)
            # One entry more than the page holds, to know whether there is one.
            wanted = min(limit + 1 - len(entries), high - low)
            if reverse:
                run = list(zip(keys[high - wanted : high], values[high - wanted : high], strict=True))
                run.reverse()
            else:
                run = list(zip(keys[low : low + wanted], values[low : low + wanted], strict=True))
            if bytes_max is not None:
                for position, (key, value) in enumerate(run):
                    if bytes_taken >= bytes_max:
                        return ScanPage(entries + run[:position], more=True)
                    bytes_taken += len(key) + len(value)
            entries += run
            if len(entries) > limit:
                del entries[limit:]
                return ScanPage(entries, more=True)
        return ScanPage(entries, more=False)


class OrderedMap(FrozenMap):
    """The state that changes."""

    __slots__ = ("_block_entries_max", "_generation", "_lists_are_shared", "bytes_used", "entry_count")

    def __init__(self, *, block_entries_max: int = BLOCK_ENTRIES_MAX) -> None:
        super().__init__([b""], [_Block([], [], 0)])
        self._block_entries_max = block_entries_max
        self._generation = 0
        self._lists_are_shared = False
        # Of all keys and values.
        self.bytes_used = 0
        self.entry_count = 0

    def freeze(self) -> FrozenMap:
        """Return the present state, which stays as it is whatever is written from here on."""
        self._generation += 1
        self._lists_are_shared = True
        return FrozenMap(self._bounds, self._blocks)

    def put(self, key: bytes, value: bytes) -> None:
        index = bisect_right(self._bounds, key) - 1
        block = self._blocks[index]
        if block.generation != self._generation:
            block = self._own(index)
        keys, values = block.keys, block.values
        position = bisect_left(keys, key)
        if position < len(keys) and keys[position] == key:
            self.bytes_used += len(value) - len(values[position])
            values[position] = value
            return
        keys.insert(position, key)
        values.insert(position, value)
        self.bytes_used += len(key) + len(value)
        self.entry_count += 1
        if len(keys) > self._block_entries_max:
            self._divide(index, block)

    def remove(self, key: bytes) -> None:
        """Remove a key, which may be absent."""
        index = bisect_right(self._bounds, key) - 1
        keys = self._blocks[index].keys
        position = bisect_left(keys, key)
        if position < len(keys) and keys[position] == key:
            self._cut(index, position, position + 1)
            self._join(index)

    def remove_span(self, span: Span, *, limit: int | None = None) -> int:
        """Remove the first keys of a span, at most `limit` of them; return how many there were."""
        removed = 0
        while limit is None or removed < limit:
            index = bisect_right(self._bounds, span.start) - 1
            keys = self._blocks[index].keys
            low = bisect_left(keys, span.start)
            while low == len(keys) and index + 1 < len(self._blocks):
                index, low = index + 1, 0
                keys = self._blocks[index].keys
            high = len(keys) if span.end is None else bisect_left(keys, span.end)
            if limit is not None:
                high = min(high, low + limit - removed)
            if high <= low:
                break
            self._cut(index, low, high)
            self._join(index)
            removed += high - low
        return removed

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _own(self, index: int) -> _Block:
        """Return a block that no frozen state shares, made of the one that was there."""
        if self._lists_are_shared:
            self._bounds, self._blocks = self._bounds[:], self._blocks[:]
            self._lists_are_shared = False
        block = self._blocks[index]
        if block.generation != self._generation:
            block = self._blocks[index] = _Block(block.keys[:], block.values[:], self._generation)
        return block

    def _divide(self, index: int, block: _Block) -> None:
        middle = len(block.keys) // 2
        upper = _Block(block.keys[middle:], block.values[middle:], self._generation)
        del block.keys[middle:], block.values[middle:]
        self._bounds.insert(index + 1, upper.keys[0])
        self._blocks.insert(index + 1, upper)

    def _cut(self, index: int, low: int, high: int) -> None:
        """Remove a run of entries from a block."""
        block = self._own(index)
        keys, values = block.keys[low:high], block.values[low:high]
        del block.keys[low:high], block.values[low:high]
        self.bytes_used -= sum(map(len, keys)) + sum(map(len, values))
        self.entry_count -= len(keys)

    def _join(self, index: int) -> None:
        """Join a block that became small with a neighbor, so that what is left does not lie in crumbs."""
        few = self._block_entries_max // 4
        blocks, count = self._blocks, len(self._blocks[index].keys)
        if count > few or len(blocks) == 1:
            return
        lower = index - 1 if index else index
        if not count or len(blocks[lower].keys) + len(blocks[lower + 1].keys) <= 2 * few:
            joined, upper = self._own(lower), self._blocks[lower + 1]
            joined.keys += upper.keys
            joined.values += upper.values
            del self._bounds[lower + 1], self._blocks[lower + 1]
