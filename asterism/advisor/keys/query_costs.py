"""The request units of the pages of a query, as `asterism.reading` charges them.

A page pays its base once, a tenth of a unit for each read of an index, and for the items that it loads and returns. A
client asks every physical partition that it cannot rule out, each for a page of its own; the server answers a query
that fixes a few logical partitions with one page. The counts follow `reading.item_reads` and `reading.candidates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from asterism.advisor.keys.demand import QueryNeeds
from asterism.advisor.keys.sample_index import Matches
from asterism.models.documents.indexes.reader import PAGE_ENTRIES
from asterism.reading.candidates import (
    CANDIDATES_BESIDE_STREAM_MAX,
    CANDIDATES_MAX,
    ENTRIES_MAX,
    candidates_worth_finding,
)
from asterism.reading.execute import SORTED_CANDIDATES_MAX
from asterism.throughput import charge

# As in `reading.item_reads` and `reading.candidates`.
_ENTRIES_PER_ITEM = 4
_INTERSECT_ABOVE = 200
_FIRST_STREAMED_ENTRIES = 128


@dataclass(frozen=True, slots=True)
class Scope:
    """A logical partition, or all below the first levels of a hierarchical key: its items."""

    items: float
    is_whole_key: bool = True
    # Those of all scopes of the query in the same physical partition, which share its index.
    items_beside: float = 0.0


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of an index, and the items that are loaded."""

    lookups: float
    loaded: float


class QueryCosts:
    """Costs over a container of so many items and physical partitions."""

    def __init__(self, *, items: float, partitions: int) -> None:
        self._items = max(items, 1.0)
        self._partitions = partitions
        self._items_each = self._items / partitions
        # The needs are kept with their cost, so that their identity stays theirs.
        self._by_needs: dict[int, tuple[QueryNeeds, float]] = {}
        self._within: dict[tuple[int, tuple[float, ...]], tuple[QueryNeeds, float]] = {}

    def fan_out(self, needs: QueryNeeds) -> float:
        """Return the cost of the page of one physical partition, when all are asked."""
        known = self._by_needs.get(id(needs))
        if known is None:
            known = self._by_needs[id(needs)] = (needs, self._page_of_partition(needs))
        return known[1]

    def within(
        self, needs: QueryNeeds, scopes: Sequence[Scope], *, pinned: frozenset[str], implied: frozenset[str]
    ) -> float:
        """Return the cost of a page over logical partitions. Conditions on `pinned` paths are those of the key, which
        are not looked up; those on `implied` ones are, though all items of the partitions meet them."""
        key = (id(needs), tuple([scope.items for scope in scopes]))
        known = self._within.get(key)
        if known is None:
            known = self._within[key] = (needs, self._cost_within(needs, scopes, pinned, implied))
        return known[1]

    def _cost_within(
        self, needs: QueryNeeds, scopes: Sequence[Scope], pinned: frozenset[str], implied: frozenset[str]
    ) -> float:
        rest = [
            (matches, path in implied and matches.is_equal)
            for path, matches in needs.conditions
            if path not in pinned or not matches.is_equal
        ]
        total = sum(scope.items for scope in scopes)
        reads = [self._scope_reads(needs, scope, rest, share=scope.items / max(total, 1.0)) for scope in scopes]
        part = part_answered(needs)
        lookups, loaded = sum(each.lookups for each in reads), sum(each.loaded for each in reads)
        return _page(needs, lookups=lookups, loaded=max(loaded * part, needs.results * (not needs.is_aggregate)))

    # --- reads ------------------------------------------------------------------------------------------------------

    def _page_of_partition(self, needs: QueryNeeds) -> float:
        own = needs.matches / self._partitions
        conditions = [matches for _, matches in needs.conditions]
        if needs.is_aggregate:
            # The index alone counts what one condition leaves.
            loaded = 0.0 if len(conditions) <= 1 else own
            return _page(needs, lookups=max(1, len(conditions)), loaded=loaded, results=1)
        results = min(own, needs.page_items)
        if needs.is_ordered and own > SORTED_CANDIDATES_MAX:
            return _page(needs, lookups=1 + len(conditions), loaded=results, results=results)
        if not conditions and not needs.is_ordered:
            return _page(needs, lookups=0, loaded=results, results=results)
        reads = self._partition_reads(needs, conditions) if conditions else Reads(1, own)
        # An order is counted once, to choose the way, and then read.
        lookups = reads.lookups * (2 if needs.is_ordered else 1)
        part = 1.0 if needs.is_ordered else results / max(own, 1e-9)
        return _page(needs, lookups=lookups, loaded=max(results, reads.loaded * part), results=results)

    def _partition_reads(self, needs: QueryNeeds, conditions: Sequence[Matches]) -> Reads:
        """Return the reads of one whole physical partition."""
        own = [matches.count / self._partitions for matches in conditions]
        matches = needs.matches / self._partitions
        is_streamed = conditions[0].is_equal
        if len(own) == 1 and is_streamed:
            return Reads(_pages(min(own[0], needs.results), first=_FIRST_STREAMED_ENTRIES), own[0])
        most = min(self._worth(needs), CANDIDATES_BESIDE_STREAM_MAX if is_streamed else CANDIDATES_MAX)
        lookups, found = self._search(own, matches, most=most, entries_max=ENTRIES_MAX)
        if found is not None:
            return Reads(lookups, found)
        if is_streamed:
            return Reads(lookups + _pages(own[0]), own[0])
        return Reads(lookups, self._items_each)

    def _scope_reads(
        self, needs: QueryNeeds, scope: Scope, rest: Sequence[tuple[Matches, bool]], *, share: float
    ) -> Reads:
        """Return the reads of one scope for its conditions, each with True if all items of the scope meet it."""
        if not rest:
            return Reads(0, scope.items)
        matches = needs.matches * share
        # An index has the entries of the whole physical partition.
        own = [
            scope.items_beside if is_implied else max(condition.count / self._partitions, min(matches, condition.count))
            for condition, is_implied in rest
        ]
        entries_max = float(ENTRIES_MAX)
        if scope.is_whole_key:
            entries_max = max(PAGE_ENTRIES, min(ENTRIES_MAX, _ENTRIES_PER_ITEM * scope.items))
        within = [
            scope.items if is_implied else min(scope.items, max(matches, scope.items * condition.count / self._items))
            for condition, is_implied in rest
        ]
        lookups, found = self._search(own, matches, most=self._worth(needs), entries_max=entries_max, within=within)
        return Reads(lookups, scope.items if found is None else found)

    def _search(
        self,
        entries: Sequence[float],
        matches: float,
        *,
        most: float,
        entries_max: float,
        within: Sequence[float] | None = None,
    ) -> tuple[float, float | None]:
        """Return the reads of a search for candidates, and how many it finds; None if they are too many."""
        lookups, found = 0.0, None
        for number, own in enumerate(entries):
            if found is not None and found <= _INTERSECT_ABOVE:
                break
            named = own if within is None else within[number]
            if own > entries_max or named > most:
                lookups += min(own, entries_max, most) // PAGE_ENTRIES + 1
                continue
            lookups += _pages(own)
            if found is None:
                found = named
            else:
                is_last = number == len(entries) - 1
                found = min(found, matches if is_last else max(matches, found * own / self._items_each))
        return lookups, found

    def _worth(self, needs: QueryNeeds) -> float:
        wanted = None if needs.is_aggregate or needs.is_ordered else needs.page_items
        return candidates_worth_finding(round(self._items_each), wanted, are_shared=True)


def part_answered(needs: QueryNeeds) -> float:
    """Return the part of the matching items that are read before the page is full."""
    if needs.is_aggregate or needs.is_ordered or needs.matches <= needs.results:
        return 1.0
    return needs.results / needs.matches


def _pages(entries: float, *, first: int = PAGE_ENTRIES) -> float:
    return 1.0 if entries <= first else 1.0 + ceil((entries - first) / PAGE_ENTRIES)


def _page(needs: QueryNeeds, *, lookups: float, loaded: float, results: float | None = None) -> float:
    answered = needs.results if results is None else results
    cost = charge.query(
        index_lookups=round(lookups),
        items_loaded=round(loaded),
        bytes_loaded=round(loaded * needs.bytes_per_item),
        results=round(answered),
        bytes_returned=round(answered * needs.bytes_per_result),
    )
    return cost + needs.further_ru


def lookup_by_id(*, item_bytes: float, is_found: bool) -> float:
    """Return the cost of one partition's page of a query for an id."""
    found, size = int(is_found), round(item_bytes) * is_found
    return charge.query(index_lookups=1, items_loaded=found, bytes_loaded=size, results=found, bytes_returned=size)
