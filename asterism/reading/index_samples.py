"""Samples of a covering index: one item for all that have the same values, and how many they are.

If only the values count, the index is read by a skip scan, which seeks the next value after the first entry of one. If
their number counts too, every entry is read, and no item but the samples.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from asterism.keyspaces.routing.families import ITEM_NUMBER_BYTES
from asterism.models.documents.indexes.reader import PAGE_ENTRIES, VALUE_AT, IndexSpan, PartitionReader
from asterism.reading.covering_index import CoveringIndex, ExtremeKind
from asterism.values.value_order import behind

# A page of a skip scan has this many entries at first, and more if it finds several values in them.
_SKIP_ENTRIES: Final = 32
_GROWTH: Final = 4

_Entry = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Sample:
    """An item that stands for `times` items with the same values."""

    number: bytes
    reference: bytes
    # The values as the index has them; None if only the item itself has them.
    value: bytes | None
    times: int = 1


async def skipped_samples(
    reader: PartitionReader, covering: CoveringIndex, *, are_last: bool, check: Callable[[], None]
) -> AsyncIterator[list[Sample]]:
    """Yield the oldest item of each value, or the newest if `are_last`. Items whose values are not whole in the index
    are yielded one by one. `check` is called between two reads."""
    token = covering.index.token
    for span in covering.spans:
        low, limit, more = span.low, _SKIP_ENTRIES, True
        while more:
            check()
            page, more = await reader.index_page(IndexSpan(token, low, span.high), limit=limit)
            samples = _first_of_each(page, covering)
            if more:
                value = samples[-1].value
                low = page[-1][0][VALUE_AT:] + b"\x00" if value is None else behind(value)
                limit = min(_GROWTH * limit, PAGE_ENTRIES) if len(samples) > 1 else _SKIP_ENTRIES
            if are_last:
                samples = [await _last_of(reader, sample, token) for sample in samples]
            yield samples


def _first_of_each(page: Sequence[_Entry], covering: CoveringIndex) -> list[Sample]:
    samples: list[Sample] = []
    for value, entries in groupby(page, _value):
        if covering.keys_length(value) is None:
            samples += [_sample(entry, None) for entry in entries]
        else:
            samples.append(_sample(next(entries), value))
    return samples


async def _last_of(reader: PartitionReader, sample: Sample, token: bytes) -> Sample:
    if sample.value is None:
        return sample
    span = IndexSpan(token, sample.value, behind(sample.value))
    (entry,), _ = await reader.index_page(span, limit=1, reverse=True)
    return _sample(entry, sample.value)


async def counted_samples(
    reader: PartitionReader, covering: CoveringIndex, *, check: Callable[[], None]
) -> AsyncIterator[list[Sample]]:
    """Yield samples that together stand for all items."""
    group: _Group | None = None
    for span in covering.spans:
        async for page in reader.index_pages(IndexSpan(covering.index.token, span.low, span.high)):
            check()
            done: list[Sample] = []
            for value, entries in groupby(page, _value):
                found = list(entries)
                if group is None or not value.startswith(group.keys):
                    length = covering.keys_length(value)
                    if length is None:
                        done += [_sample(entry, None) for entry in found]
                        continue
                    done += [] if group is None else group.samples()
                    group = _Group(covering, value[:length], _sample(found[0], value))
                group.add(value, found)
            yield done
    if group is not None:
        yield group.samples()


class _Group:
    """The entries that have the same keys, which follow one another: no encoding is the beginning of another."""

    def __init__(self, covering: CoveringIndex, keys: bytes, sample: Sample) -> None:
        self.keys = keys
        self._covering = covering
        self._oldest = sample
        self._count = 0
        # The first and the last entry of each kind of extreme, and the number of entries.
        self._ends: dict[ExtremeKind, tuple[Sample, Sample, int]] = {}

    def add(self, value: bytes, entries: Sequence[_Entry]) -> None:
        """Add entries of one value, which are in the order of item numbers."""
        sample = _sample(entries[0], value)
        if sample.number < self._oldest.number:
            self._oldest = sample
        self._count += len(entries)
        if self._covering.has_extreme:
            kind = self._covering.extreme_kind(value, len(self.keys))
            first, _, count = self._ends.get(kind, (sample, sample, 0))
            self._ends[kind] = first, sample, count + len(entries)

    def samples(self) -> list[Sample]:
        """Return samples that stand for all entries. A result has the keys of the oldest item."""
        if not self._covering.has_extreme:
            return [replace(self._oldest, times=self._count)]
        found: list[Sample] = []
        for first, last, count in self._ends.values():
            if first.value == last.value:
                found.append(replace(first, times=count))
            else:
                found += [replace(first, times=count - 1), last]
        is_among = any(sample.number == self._oldest.number for sample in found)
        return found if is_among else [replace(self._oldest, times=0), *found]


def _value(entry: _Entry) -> bytes:
    return entry[0][VALUE_AT:-ITEM_NUMBER_BYTES]


def _sample(entry: _Entry, value: bytes | None) -> Sample:
    return Sample(entry[0][-ITEM_NUMBER_BYTES:], entry[1], value)
