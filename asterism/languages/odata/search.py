"""A page of the entities that match a filter, from the spans of the table in which it can match.

A page ends at its limit of entities or bytes, or after a second with what it has found; other requests run between the
slices of its scan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from asterism.keyspaces.routing.keyspace import Spent
from asterism.languages.odata.match import comparison_count
from asterism.languages.odata.spans import WHOLE_TABLE, Key, KeySpan, order
from asterism.languages.odata.tree import Condition
from asterism.limits import PAGE_BYTES_MAX
from asterism.models.tables.entities import StoredEntity
from asterism.models.tables.table import Table

# Entities examined without a pause for other requests, a few milliseconds: fewer, the more comparisons each takes
# (about a dozen take as long as reading an entity).
SLICE_ENTITIES: Final = 1000
SLICE_ENTITIES_MIN: Final = 20
COMPARISONS_PER_ENTITY: Final = 12
SLICE_SECONDS: Final = 0.003
# A page ends after this time with what it has; the service permits itself five seconds.
PAGE_SECONDS_MAX: Final = 1.0


class FoundPage(NamedTuple):
    """Entities in the order of the table; `next_key` is None only if the search is complete."""

    entities: list[StoredEntity]
    next_key: Key | None


def slice_entities(condition: Condition | None) -> int:
    """Return the number of entities to examine in a slice."""
    comparisons = 0 if condition is None else comparison_count(condition)
    return max(SLICE_ENTITIES_MIN, SLICE_ENTITIES * COMPARISONS_PER_ENTITY // (COMPARISONS_PER_ENTITY + comparisons))


class EntitySearch:
    """The search for a single page."""

    __slots__ = (
        "_accept",
        "_break_at",
        "_bytes",
        "_ends_at",
        "_found",
        "_has_scanned",
        "_limit",
        "_monotonic_seconds",
        "_next_key",
        "_slice_entities",
        "_spent",
        "_table",
    )

    def __init__(
        self,
        table: Table,
        *,
        accept: Callable[[StoredEntity], bool] | None,
        limit: int,
        slice_entities: int,
        monotonic_seconds: Callable[[], float],
        spent: Spent,
    ) -> None:
        self._table = table
        self._accept = accept
        self._limit = limit
        self._slice_entities = slice_entities
        self._monotonic_seconds = monotonic_seconds
        self._spent = spent
        self._ends_at = monotonic_seconds() + PAGE_SECONDS_MAX
        self._break_at = monotonic_seconds() + SLICE_SECONDS
        self._bytes = 0
        self._found: list[StoredEntity] = []
        # A page that ended before its first scan would make its client ask for the same page forever.
        self._has_scanned = False
        self._next_key: Key | None = None

    async def run(self, spans: list[KeySpan], start: Key | None) -> FoundPage:
        """Search `spans`, from the key `start` on if an earlier page ended there."""
        is_hashed = self._table.kind == "cosmos"
        if is_hashed and not all(span.partition_key is not None for span in spans):
            # A table in the order of hashes has no ranges of PartitionKeys: it is scanned key by key, or completely.
            spans = [WHOLE_TABLE]
        is_whole_by_hash = is_hashed and spans == [WHOLE_TABLE]
        for span in spans:
            lower: Key | None = None if span == WHOLE_TABLE else span.lower
            if start is not None:
                if not is_whole_by_hash and span.upper is not None and order(start) >= order(span.upper):
                    continue
                lower = start if is_whole_by_hash or lower is None else max(lower, start, key=order)
            if self._has_scanned and self._is_full():
                self._next_key = lower or span.lower
                break
            await self._scan(lower, span.upper)
            if self._next_key is not None:
                break
            await self._yield_to_others()
        return FoundPage(self._found, self._next_key)

    async def _scan(self, lower: Key | None, upper: Key | None) -> None:
        while True:
            page = await self._table.scan(
                lower,
                upper,
                limit=self._limit - len(self._found),
                entries_examined_max=self._slice_entities,
                accept=self._accept,
                spent=self._spent,
            )
            self._has_scanned = True
            self._found += page.entities
            self._bytes += sum([len(entity.properties) for entity in page.entities])
            if page.next_key is None:
                return
            if self._is_full():
                self._next_key = page.next_key
                return
            lower = page.next_key
            await self._yield_to_others()

    async def _yield_to_others(self) -> None:
        if self._monotonic_seconds() >= self._break_at:
            await asyncio.sleep(0)
            self._break_at = self._monotonic_seconds() + SLICE_SECONDS

    def _is_full(self) -> bool:
        return (
            len(self._found) >= self._limit
            or self._bytes >= PAGE_BYTES_MAX
            or self._monotonic_seconds() >= self._ends_at
        )
