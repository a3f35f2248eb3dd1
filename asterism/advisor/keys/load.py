"""The load of a workload on the physical partitions of a container with a candidate key: every payment, in time."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from asterism.advisor.keys.candidate import CandidateKey, Draw
from asterism.advisor.keys.demand import Demand
from asterism.advisor.keys.key_table import KeyTable
from asterism.advisor.keys.query_costs import QueryCosts, Scope, lookup_by_id, part_answered
from asterism.partitioning.hash_space import even_boundaries
from asterism.partitioning.partition_key import PartitionKey
from asterism.throughput import charge
from asterism.values.undefined import UNDEFINED

# The index entry of the property that a synthetic key adds.
_SYNTHETIC_TERM_RU: Final = 0.05


# (time, partition, request units, number of the request): a plain tuple, because there are millions. Several payments
# may belong to one request.
Payment = tuple[float, int, float, int]


@dataclass(slots=True)
class Routes:
    """How many requests reach what, in counts."""

    point: int = 0
    single: int = 0
    several: int = 0
    fan_out: int = 0

    @property
    def total(self) -> int:
        return self.point + self.single + self.several + self.fan_out


@dataclass(slots=True)
class Load:
    """Payments in the order of their requests, and sums of them. `ru_by_key` is by request of one logical partition."""

    partitions: int
    payments: list[Payment] = field(default_factory=list)
    ru_by_kind: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    requests_by_kind: Counter[str] = field(default_factory=Counter)
    routes: Routes = field(default_factory=Routes)
    # (time, key, request units) of requests for one logical partition.
    of_keys: list[tuple[float, PartitionKey, float]] = field(default_factory=list)
    absent_writes: int = 0
    batches: int = 0
    broken_batches: int = 0

    @property
    def total_ru(self) -> float:
        return sum(self.ru_by_kind.values())

    def ru_by_partition(self) -> list[float]:
        sums = [0.0] * self.partitions
        for _, partition, cost_ru, _ in self.payments:
            sums[partition] += cost_ru
        return sums


class Placement:
    """The physical partition of each key, of a container whose line is divided evenly."""

    def __init__(self, candidate: CandidateKey, partitions: int) -> None:
        self.partitions = partitions
        self._candidate = candidate
        self._boundaries = even_boundaries(candidate.parsed, partitions)
        self._known: dict[PartitionKey, int] = {}

    def partition_of(self, key: PartitionKey) -> int:
        known = self._known.get(key)
        if known is None:
            known = bisect_right(self._boundaries, self._candidate.point(key))
            self._known[key] = known
        return known


class LoadMaker:
    """Plays demands against a candidate."""

    def __init__(self, candidate: CandidateKey, table: KeyTable, *, partitions: int, draw: Draw) -> None:
        self._candidate = candidate
        self._table = table
        self._draw = draw
        self._levels = len(candidate.parsed.paths)
        self._placement = Placement(candidate, partitions)
        self._queries = QueryCosts(items=table.profile.items, partitions=partitions)
        self._pinned = frozenset(candidate.parsed.paths)
        rule = candidate.rule
        self._implied = frozenset(() if rule is None else [part.path for part in rule.parts])
        size = table.profile.mean_bytes
        # Of the partition that does not have the item, and of the one that has.
        self._lookup_costs = (
            lookup_by_id(item_bytes=size, is_found=False),
            lookup_by_id(item_bytes=size, is_found=True),
        )
        self._only_path = candidate.sources[0] if candidate.kind == "plain" else None
        self._batches: dict[str, set[PartitionKey | None]] = defaultdict(set)
        self._load = Load(partitions)
        self._number = 0
        self._spent = 0.0
        # Keys of a synthetic rule are one more property, with its entry in the index.
        self._write_extra_ru = _SYNTHETIC_TERM_RU if candidate.kind == "synthetic" else 0.0

    def make(self, demands: Sequence[Demand]) -> Load:
        handlers = {
            "read": self._read,
            "insert": self._insert,
            "write": self._write,
            "query": self._query,
            "feed": self._feed,
            "other": self._other,
        }
        load = self._load
        for number, demand in enumerate(demands):
            self._number, self._spent = number, 0.0
            handlers[demand.access](demand)
            load.ru_by_kind[demand.kind] += self._spent
            load.requests_by_kind[demand.kind] += 1
        load.batches = len(self._batches)
        load.broken_batches = sum(len(keys) > 1 or None in keys for keys in self._batches.values())
        return load

    # --- payments ---------------------------------------------------------------------------------------------------

    def _pay(self, demand: Demand, key: PartitionKey, cost_ru: float) -> None:
        """Pay for a request of one logical partition."""
        self._pay_at(demand, self._placement.partition_of(key), cost_ru)
        self._load.of_keys.append((demand.at, key, cost_ru))

    def _pay_at(self, demand: Demand, partition: int, cost_ru: float) -> None:
        self._spent += cost_ru
        self._load.payments.append((demand.at, partition, cost_ru, self._number))

    def _pay_everywhere(self, demand: Demand, cost_ru: float) -> None:
        at, number, partitions = demand.at, self._number, self._placement.partitions
        self._spent += cost_ru * partitions
        self._load.payments.extend([(at, partition, cost_ru, number) for partition in range(partitions)])

    def _search(self, demand: Demand, routes: Sequence[PartitionKey]) -> None:
        """Pay for look-ups of an item under keys that do not have it."""
        misses: Counter[int] = Counter(map(self._placement.partition_of, routes))
        for partition, count in misses.items():
            self._pay_at(demand, partition, charge.MISS * count)

    # --- requests for items -----------------------------------------------------------------------------------------

    def _routes(self, demand: Demand) -> list[PartitionKey] | None:
        if self._only_path is not None:
            # Most candidates, and all that a request needs of them.
            values = demand.known.get(self._only_path)
            if values is None or len(values) == 1:
                return None if values is None else [(values[0],)]
        return self._candidate.routes_of(demand.known, demand.between)

    def _read(self, demand: Demand) -> None:
        routes = self._routes(demand)
        if routes is None or len(routes[0]) < self._levels:
            self._lookup(demand, routes)
        elif len(routes) == 1:
            self._pay(demand, routes[0], demand.cost_ru)
            self._load.routes.point += 1
            self._join_batch(demand, routes[0])
        else:
            own = routes.pop(self._draw(len(routes)))
            self._search(demand, routes)
            self._pay(demand, own, demand.cost_ru)
            self._load.routes.several += 1
            self._join_batch(demand, None)

    def _lookup(self, demand: Demand, routes: list[PartitionKey] | None) -> None:
        """Pay for a query by id: over all partitions, or over those below the known levels of the key."""
        self._join_batch(demand, None)
        miss, found = self._lookup_costs
        if routes is not None and len(routes) == 1:
            self._pay_at(demand, self._placement.partition_of(routes[0]), found)
            self._load.routes.single += 1
            return
        own = self._placement.partition_of(self._key_of_item(demand))
        for partition in range(self._placement.partitions):
            self._pay_at(demand, partition, found if partition == own else miss)
        self._load.routes.fan_out += 1

    def _insert(self, demand: Demand) -> None:
        key = self._candidate.key_of_values(demand.values or {}, draw=self._draw)
        self._load.absent_writes += UNDEFINED in key
        self._pay(demand, key, demand.cost_ru + self._write_extra_ru)
        self._load.routes.point += 1
        self._join_batch(demand, None if self._candidate.is_random else key)

    def _write(self, demand: Demand) -> None:
        """Pay for a write that may find the item: where its key is known at once, else after a search for it."""
        if demand.kind in ("upsert", "replace") and not self._candidate.is_random:
            self._replace(demand)
            return
        routes = self._routes(demand)
        if routes is None or len(routes[0]) < self._levels:
            self._lookup(demand, routes)
            self._pay(demand, self._key_of_item(demand), demand.cost_ru + self._write_extra_ru)
            return
        own = routes[self._draw(len(routes))]
        if len(routes) > 1:
            self._search(demand, routes)
            self._load.routes.several += 1
        else:
            self._load.routes.point += 1
        self._pay(demand, own, demand.cost_ru + self._write_extra_ru)
        self._join_batch(demand, own if len(routes) == 1 else None)

    def _replace(self, demand: Demand) -> None:
        """Pay for a write of a whole item: where it is, or half where it was and half where it goes."""
        key = self._candidate.key_of_values(demand.values or {})
        before = key if demand.before is None else self._candidate.key_of_values(demand.before)
        if before == key:
            self._insert(demand)
            return
        half = demand.cost_ru / 2 + self._write_extra_ru
        self._pay(demand, before, half)
        self._pay(demand, key, half)
        self._load.routes.several += 1
        self._join_batch(demand, None)

    def _key_of_item(self, demand: Demand) -> PartitionKey:
        """Return the key of an item that the request does not name: its own, if it is known, or that of any item."""
        if demand.values is not None:
            return self._candidate.key_of_values(demand.values, draw=self._draw)
        rows = self._table.key_of_row
        return rows[self._draw(len(rows))] if rows else (UNDEFINED,) * self._levels

    # --- others -----------------------------------------------------------------------------------------------------

    def _query(self, demand: Demand) -> None:
        needs = demand.query
        assert needs is not None, "a query has its needs"
        routes = self._routes(demand)
        load = self._load
        if routes is None:
            load.routes.fan_out += 1
            self._pay_everywhere(demand, self._queries.fan_out(needs))
            return
        is_whole = len(routes[0]) == self._levels
        items = [self._table.items_below(key) for key in routes]
        homes = [self._placement.partition_of(key) for key in routes]
        beside: dict[int, float] = defaultdict(float)
        for home, count in zip(homes, items, strict=True):
            beside[home] += count
        scopes = [Scope(count, is_whole, beside[home]) for home, count in zip(homes, items, strict=True)]
        cost = self._queries.within(needs, scopes, pinned=self._pinned, implied=self._implied)
        if len(routes) == 1:
            load.routes.single += 1
            self._pay(demand, routes[0], cost)
        else:
            load.routes.several += 1
            self._pay_at(demand, _last_read(homes, items, part_answered(needs)), cost)

    def _feed(self, demand: Demand) -> None:
        routes = self._routes(demand)
        if routes is not None and len(routes) == 1:
            self._load.routes.single += 1
            self._pay(demand, routes[0], demand.cost_ru)
        else:
            self._load.routes.fan_out += 1
            # Each partition answers a part of the page, and each has its base.
            further = charge.feed_page(items=0, page_bytes=0) * (self._placement.partitions - 1)
            self._pay_everywhere(demand, (demand.cost_ru + further) / self._placement.partitions)

    def _other(self, demand: Demand) -> None:
        routes = self._routes(demand)
        if routes is not None and len(routes) == 1:
            self._load.routes.single += 1
            self._pay(demand, routes[0], demand.cost_ru)
        else:
            self._load.routes.fan_out += 1
            self._pay_at(demand, self._draw(self._placement.partitions), demand.cost_ru)
        self._join_batch(demand, routes[0] if routes is not None and len(routes) == 1 else None)

    def _join_batch(self, demand: Demand, key: PartitionKey | None) -> None:
        if demand.batch is not None:
            self._batches[demand.batch].add(key)
        elif demand.access == "other":
            self._batches[f"{demand.kind} {self._number}"].add(key)


def _last_read(homes: Sequence[int], items: Sequence[float], part: float) -> int:
    """Return the partition at which a page ends, and which pays for it: where the answered part of the items is read,
    in the order of the partitions."""
    left = part * sum(items)
    by_home: Counter[int] = Counter()
    for home, count in zip(homes, items, strict=True):
        by_home[home] += round(count) or 1
    for home in sorted(by_home):
        left -= by_home[home]
        if left <= 0 and part < 1:
            return home
    # A partition whose keys have no items is not read to the end of the page.
    return max((home for home, count in zip(homes, items, strict=True) if count), default=max(homes))
