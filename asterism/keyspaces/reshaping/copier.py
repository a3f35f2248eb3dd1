"""Copy and catch up: entries of source partitions are brought to target partitions while writes go on.

The copy reads each page at a different moment; changes meanwhile are in the sources' journals, and the replay brings
every key in a journal to its present state. After the sources are sealed, the last replay leaves the targets exactly
equal to them. Every part is idempotent, which makes a job resumable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from asterism.keyspaces.reshaping.job import Cursor, Target
from asterism.keyspaces.routing.families import (
    COUNTERS,
    LOGICAL_SIZES,
    TOTALS_KEY,
    after_prefix,
    is_routed,
    is_routed_by_value,
    route_of,
    spans_to_copy,
)
from asterism.keyspaces.routing.scan import scan_span
from asterism.keyspaces.routing.slice_sizes import COPIED_ENTRIES
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Engine, Span
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# The copy rests between two pages as long as it has worked, and this much longer; work beyond the maximum was not
# work, but waiting for a node.
REST_SECONDS = 0.001
WORK_SECONDS_MAX = 0.005
_JOURNAL_PAGE_ENTRIES = 128

Entries = list[tuple[bytes, bytes]]


@dataclass(slots=True)
class Copier:
    """The copy of one job into its targets, with its state on the way: journal positions and the targets' totals."""

    engine: Engine
    sources: Sequence[PartitionRange]
    targets: Sequence[Target]
    # The epoch that the targets are sealed with.
    epoch: Epoch
    monotonic: Callable[[], float]
    _replayed: dict[PartitionNumber, Lsn] = field(default_factory=dict)
    _totals: dict[PartitionNumber, list[int]] = field(default_factory=dict)

    async def copy(self, cursor: Cursor) -> AsyncIterator[tuple[Cursor, int]]:
        """Copy everything behind the cursor; yield the new cursor and the number of entries after each page."""
        for source_place in range(cursor.source, len(self.sources)):
            source = self.sources[source_place]
            spans = spans_to_copy(source.range.start, source.range.end)
            first_span = cursor.span if source_place == cursor.source else 0
            for span_place in range(first_span, len(spans)):
                span = spans[span_place]
                # A cursor of an earlier version may name a key of another span: then all of this one is read.
                if (source_place, span_place) == (cursor.source, cursor.span) and span.contains(cursor.key):
                    span = Span(cursor.key + b"\x00", span.end)
                async for last_key, count in self._copy_span(source.partition, span):
                    yield Cursor(source_place, span_place, last_key), count

    async def _copy_span(self, source: PartitionNumber, span: Span) -> AsyncIterator[tuple[bytes, int]]:
        rest: Span | None = span
        while rest is not None:
            began = self.monotonic()
            page = await self.engine.scan_unfenced(
                source, rest, limit=COPIED_ENTRIES.entries, bytes_max=COPIED_ENTRIES.bytes
            )
            shares = self._divide(page.entries)
            worked_seconds = self.monotonic() - began
            await self._write(shares)
            if not page.entries:
                # Most families are empty, and a seek alone needs no rest.
                await asyncio.sleep(0)
                return
            yield page.entries[-1][0], len(page.entries)
            rest = page.rest(rest)
            # Requests come first: the copy rests longer than it has worked.
            await asyncio.sleep(min(worked_seconds, WORK_SECONDS_MAX) + REST_SECONDS)

    def _divide(self, entries: Entries) -> list[Entries]:
        """Return each target's share of the entries; the targets of a job lie side by side, in order."""
        if len(self.targets) == 1:
            return [entries]
        border = self.targets[1].interval.start
        low: Entries = []
        high: Entries = []
        for entry in entries:
            (low if route_of(*entry) < border else high).append(entry)
        return [low, high]

    async def _write(self, shares: list[Entries]) -> None:
        await self._together(
            self.engine.write_copied(target.number, self.epoch, puts=share)
            for target, share in zip(self.targets, shares, strict=True)
            if share
        )

    # --- catching up ------------------------------------------------------------------------------------------------

    async def count_totals(self) -> None:
        """Add up the contents of the targets, once, from their logical partitions. The replay keeps the sums true."""
        for target in self.targets:
            totals = [0, 0]
            span = Span(LOGICAL_SIZES, after_prefix(LOGICAL_SIZES))
            async for entries in scan_span(partial(self.engine.scan_unfenced, target.number), span):
                for _, stored in entries:
                    stored_bytes, items = COUNTERS.unpack(stored)
                    totals[0] += stored_bytes
                    totals[1] += items
            self._totals[target.number] = totals

    async def replay(self) -> int:
        """Bring the targets up to the sources' journals as they are now; return the number of batches."""
        return sum([await self._replay_source(source.partition) for source in self.sources])

    async def _replay_source(self, source: PartitionNumber) -> int:
        replayed, page_is_full = 0, True
        # A page that is not full is the end: under steady writes there would always be one batch more.
        while page_is_full:
            after = self._replayed.get(source, Lsn(0))
            journal = await self.engine.read_journal(source, after=after, limit=_JOURNAL_PAGE_ENTRIES)
            keys = {key for entry in journal for key in entry.keys if is_routed(key)}
            for span in (span for entry in journal for span in entry.spans):
                keys.update(await self._keys_in(span, source))
            await self._bring_up_to_date(source, sorted(keys))
            replayed += len(journal)
            page_is_full = len(journal) == _JOURNAL_PAGE_ENTRIES
            if journal:
                self._replayed[source] = journal[-1].lsn
        return replayed

    async def _keys_in(self, span: Span, source: PartitionNumber) -> set[bytes]:
        """Return every key that a range delete may have removed from the targets, or that was put again since."""
        found: set[bytes] = set()
        for number in (source, *(target.number for target in self.targets)):
            async for entries in scan_span(partial(self.engine.scan_unfenced, number), span):
                found.update(key for key, _ in entries if is_routed(key))
        return found

    async def _bring_up_to_date(self, source: PartitionNumber, keys: list[bytes]) -> None:
        values = await self.engine.read_unfenced(source, keys)
        present = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
        absent = [key for key, value in zip(keys, values, strict=True) if value is None]
        shares = self._divide(present)
        await self._together(
            self._bring_target(target, share, self._absent_in(place, absent))
            for place, (target, share) in enumerate(zip(self.targets, shares, strict=True))
        )

    def _absent_in(self, target_place: int, absent: list[bytes]) -> list[bytes]:
        """Return the removed keys that a target may hold: those routed by key by their place, the others anyway."""
        if len(self.targets) == 1:
            return absent
        border = self.targets[1].interval.start
        return [key for key in absent if is_routed_by_value(key) or (key[1:] >= border) == bool(target_place)]

    async def _bring_target(self, target: Target, puts: Entries, deletes: list[bytes]) -> None:
        sizes = [key for key, _ in puts if key.startswith(LOGICAL_SIZES)]
        sizes += [key for key in deletes if key.startswith(LOGICAL_SIZES)]
        if sizes:
            new = {key: value for key, value in puts if key.startswith(LOGICAL_SIZES)}
            old = await self.engine.read_unfenced(target.number, sizes)
            totals = self._totals[target.number]
            for key, before in zip(sizes, old, strict=True):
                for stored, sign in ((new.get(key), 1), (before, -1)):
                    if stored is not None:
                        stored_bytes, items = COUNTERS.unpack(stored)
                        totals[0] += sign * stored_bytes
                        totals[1] += sign * items
        if puts or deletes:
            await self.engine.write_copied(target.number, self.epoch, puts=puts, deletes=deletes)

    async def write_totals(self) -> None:
        await self._together(self._write_total(number, totals) for number, totals in self._totals.items())

    async def _write_total(self, number: PartitionNumber, totals: list[int]) -> None:
        if any(totals):
            await self.engine.write_copied(number, self.epoch, puts=[(TOTALS_KEY, COUNTERS.pack(*totals))])
        else:
            await self.engine.write_copied(number, self.epoch, deletes=[TOTALS_KEY])

    @staticmethod
    async def _together(calls: Iterable[Awaitable[None]]) -> None:
        """Make calls at the same time, so that they share one commit."""
        await asyncio.gather(*calls)
