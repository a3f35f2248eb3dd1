"""The needs of each captured request, whatever the partition key: what it knows, and what the engine does for it.

Made once for a workload; the candidates are then compared on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from asterism.advisor.captured_request import CapturedRequest
from asterism.advisor.keys.candidate import BetweenValues, CandidateKey, KnownValues
from asterism.advisor.keys.item_profile import SampledItem
from asterism.advisor.keys.sample_index import Matches, SampleIndex
from asterism.limits import PAGE_ITEMS_DEFAULT
from asterism.partitioning.partition_key import Component
from asterism.throughput import charge
from asterism.values.undefined import Undefined

Access = Literal["read", "insert", "write", "query", "feed", "other"]

_AGGREGATE: Final = re.compile(r"\b(COUNT|SUM|AVG|MIN|MAX)\s*\(", re.IGNORECASE)
# Parts of a query whose work is charged beyond the items that it loads.
_COMPUTING: Final = re.compile(r"\bJOIN\b|\(\s*SELECT\b|\budf\.|\bST_|\bREGEXMATCH\b|\bVECTORDISTANCE\b", re.IGNORECASE)
_EMPTY_PAGE_RU: Final = charge.query(index_lookups=0, items_loaded=0, bytes_loaded=0, results=0, bytes_returned=0)
# Operations in a captured batch or script that are not described: about those of a small transaction.
_UNKNOWN_CHARGE: Final = 10.0


@dataclass(slots=True)
class QueryNeeds:
    """The items that a page of a query finds, estimated from the sample."""

    # By path; in the order in which the engine uses their indexes.
    conditions: tuple[tuple[str, Matches], ...]
    # Items that meet all conditions, in all partitions.
    matches: float
    results: float
    page_items: int
    bytes_per_result: float
    bytes_per_item: float
    is_aggregate: bool = False
    is_ordered: bool = False
    # Request units for computation, which no key changes.
    further_ru: float = 0.0


@dataclass(slots=True)
class Demand:
    """One request. `cost_ru` is that of the operation itself, where its key is known."""

    at: float
    kind: str
    access: Access
    known: KnownValues
    between: BetweenValues = field(default_factory=dict)
    cost_ru: float = 0.0
    # The values of the item, where they are known: they decide where a write goes that does not name its key.
    values: Mapping[str, Component] | None = None
    # Those that it had before a write, if they are known: a write that changes its key deletes it, and creates it anew.
    before: Mapping[str, Component] | None = None
    item_id: str | None = None
    query: QueryNeeds | None = None
    batch: str | None = None
    # A write that finds the item, if there is a search for it.
    is_new: bool = False


class DemandMaker:
    """Makes the demands of captured requests."""

    def __init__(self, index: SampleIndex, present: CandidateKey | None) -> None:
        self._index = index
        self._present = present
        self._mean_bytes = index.profile.mean_bytes
        self._mean_terms = index.profile.mean_terms
        self._needs: dict[object, QueryNeeds] = {}
        # The values of items as the requests so far have left them, by id.
        self._latest: dict[str, Mapping[str, Component]] = {}

    def make(self, request: CapturedRequest) -> Demand:
        match request.operation:
            case "read":
                cost = self._cost(request, charge.point_read(self._size(request)))
                return self._of_item(request, "read", cost)
            case "create" | "upsert" | "replace":
                return self._write(request)
            case "patch" | "delete":
                demand = self._of_item(request, "write", 0.0)
                size = self._size(request)
                price = (
                    charge.delete(size, round(self._mean_terms))
                    if request.operation == "delete"
                    else charge.replace(before_bytes=size, after_bytes=size, indexed_paths=round(self._mean_terms))
                )
                demand.cost_ru = self._cost(request, price)
                return demand
            case "query":
                return self._query(request)
            case "feed":
                return self._feed(request)
            case _:
                known = self._known_of(request)
                cost = _UNKNOWN_CHARGE if request.charge is None else request.charge
                return Demand(request.at, request.operation, "other", known, cost_ru=cost, batch=request.batch)

    # --- items ------------------------------------------------------------------------------------------------------

    def _of_item(self, request: CapturedRequest, access: Access, cost_ru: float) -> Demand:
        known = self._known_of(request)
        stored = self._stored(request)
        values: Mapping[str, Component] | None = None if stored is None else stored.values
        return Demand(
            request.at,
            request.operation,
            access,
            known,
            cost_ru=cost_ru,
            values=values,
            item_id=request.item_id,
            batch=request.batch,
        )

    def _write(self, request: CapturedRequest) -> Demand:
        values: dict[str, Component] = dict(request.values)
        stored = self._stored(request) if request.operation != "create" else None
        if stored is not None:
            # A capture may lack values that the item has.
            values = {**stored.values, **values}
        for path, given in self._known_of(request).items():
            values.setdefault(path, given[0])
        size = request.size_bytes or (stored.size_bytes if stored is not None else round(self._mean_bytes))
        terms = len(values) + 1 if request.values else round(self._mean_terms)
        is_new = request.operation == "create" or (
            request.operation == "upsert" and (request.status == 201 or (request.status is None and stored is None))
        )
        price = (
            charge.write(size, terms)
            if is_new
            else charge.replace(before_bytes=size, after_bytes=size, indexed_paths=terms)
        )
        return Demand(
            request.at,
            request.operation,
            "insert" if request.operation == "create" else "write",
            {path: (value,) for path, value in values.items()},
            cost_ru=self._cost(request, price),
            values=values,
            before=None if is_new else self._replaced(request, values, stored),
            item_id=request.item_id,
            batch=request.batch,
            is_new=is_new,
        )

    def _replaced(
        self, request: CapturedRequest, values: Mapping[str, Component], stored: SampledItem | None
    ) -> Mapping[str, Component] | None:
        """Return the values that a write replaces, and remember those that it leaves."""
        if request.item_id is None:
            return None
        before = self._latest.get(request.item_id, None if stored is None else stored.values)
        self._latest[request.item_id] = values
        return before

    def _known_of(self, request: CapturedRequest) -> dict[str, tuple[Component, ...]]:
        """Return what a request for an item knows: its id, and the present key."""
        known: dict[str, tuple[Component, ...]] = {}
        if request.key is not None and self._present is not None:
            sources = self._present.sources
            paths = sources if len(request.key) == len(sources) > 1 else self._present.parsed.paths
            known = {path: (value,) for path, value in zip(paths, request.key, strict=False)}
        if request.item_id is not None:
            known["/id"] = (request.item_id,)
        return known

    def _stored(self, request: CapturedRequest) -> SampledItem | None:
        row = None if request.item_id is None else self._index.row_of_id(request.item_id)
        return None if row is None else self._index.items[row]

    def _size(self, request: CapturedRequest) -> int:
        if request.size_bytes:
            return request.size_bytes
        stored = self._stored(request)
        return round(self._mean_bytes) if stored is None else stored.size_bytes

    def _cost(self, request: CapturedRequest, price: float) -> float:
        """Return the charge that was measured, or the price where none was."""
        if request.status is not None and request.status >= 400:
            return charge.MISS
        return price if request.charge is None else request.charge

    # --- queries and feeds ------------------------------------------------------------------------------------------

    def _query(self, request: CapturedRequest) -> Demand:
        known: dict[str, tuple[Component, ...]] = {path: tuple(values) for path, values in request.equal.items()}
        if request.key is not None:
            # The client named the key beside the filter.
            named = self._known_of(request)
            named.pop("/id", None)
            # Behind the filter, whose order decides which index the engine looks into first.
            known |= {path: values for path, values in named.items() if path not in known}
        return Demand(
            request.at,
            "query",
            "query",
            known,
            between=request.between,
            query=self._query_needs(request, known),
        )

    def _query_needs(self, request: CapturedRequest, known: Mapping[str, Sequence[Component]]) -> QueryNeeds:
        results, size, cost = request.results, request.size_bytes, request.charge
        identity = (tuple(known.items()), tuple(request.between.items()), request.shape, request.order)
        key = (identity, results, size, cost, request.loaded)
        needs = self._needs.get(key)
        if needs is None:
            needs = self._needs[key] = self._estimate(request, known)
        return needs

    def _estimate(self, request: CapturedRequest, known: Mapping[str, Sequence[Component]]) -> QueryNeeds:
        index, shape = self._index, request.shape or ""
        conditions = [
            (path, index.equal(path, [value for value in values if not isinstance(value, Undefined)]))
            for path, values in known.items()
        ]
        conditions += [(path, index.between(path, *bounds)) for path, bounds in request.between.items()]
        # As `access_plan` ranks lookups: one value, several values, then ranges.
        conditions.sort(key=lambda condition: (not condition[1].is_equal, len(known.get(condition[0], ()))))
        matches, rows = self._matching([found for _, found in conditions])
        page_items = request.results or PAGE_ITEMS_DEFAULT
        is_aggregate = bool(_AGGREGATE.search(shape))
        results = float(request.results) if request.results is not None else min(matches, float(page_items))
        if is_aggregate:
            results = 1.0
        sizes = [index.items[row].size_bytes for row in list(rows)[:100]]
        bytes_per_item = sum(sizes) / len(sizes) if sizes else self._mean_bytes
        measured = request.size_bytes
        needs = QueryNeeds(
            # The rows have served; kept with each of many queries they would fill the memory.
            conditions=tuple((path, replace(found, rows=frozenset())) for path, found in conditions),
            matches=max(matches, 0.0 if is_aggregate else results),
            results=results,
            page_items=page_items,
            bytes_per_result=measured / results if measured and results else bytes_per_item,
            bytes_per_item=bytes_per_item,
            is_aggregate=is_aggregate,
            is_ordered=bool(request.order),
        )
        if is_aggregate and not measured:
            needs.bytes_per_result = 16.0
        needs.further_ru = self._further_ru(request, needs)
        return needs

    def _matching(self, found: Sequence[Matches]) -> tuple[float, frozenset[int]]:
        if not found:
            return float(self._index.profile.items), frozenset()
        rows = frozenset.intersection(*(each.rows for each in found))
        most = min(each.count for each in found)
        if self._index.is_whole or len(found) > 1:
            return min(most, len(rows) * self._index.scale), rows
        return most, rows

    def _further_ru(self, request: CapturedRequest, needs: QueryNeeds) -> float:
        """Return what a measured charge has beyond lookups, loads and results: the computation of the query. Of another
        query a rest is reads of the index, which another key may save."""
        if request.charge is None or request.loaded is None or not _COMPUTING.search(request.shape or ""):
            return 0.0
        pages = request.partitions or 1
        explained = _EMPTY_PAGE_RU * (pages - 1) + charge.query(
            index_lookups=len(needs.conditions) * pages,
            items_loaded=request.loaded,
            bytes_loaded=round(request.loaded * needs.bytes_per_item),
            results=round(needs.results),
            bytes_returned=round(needs.results * needs.bytes_per_result),
        )
        further = request.charge - explained
        # Small differences are those of the estimate of sizes. Each page computes with its own items.
        return further / pages if further > 0.1 * request.charge else 0.0

    def _feed(self, request: CapturedRequest) -> Demand:
        items = PAGE_ITEMS_DEFAULT if request.results is None else request.results
        size = request.size_bytes or round(items * self._mean_bytes)
        price = charge.feed_page(items=items, page_bytes=size)
        return Demand(request.at, "feed", "feed", self._known_of(request), cost_ru=self._cost(request, price))


def demands_of(requests: Iterable[CapturedRequest], index: SampleIndex, present: CandidateKey | None) -> list[Demand]:
    """Return the demands in the order of time."""
    maker = DemandMaker(index, present)
    return sorted(map(maker.make, requests), key=lambda demand: demand.at)
