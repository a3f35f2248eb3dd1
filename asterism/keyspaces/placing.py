"""Which node each new partition goes to, by the rules of `partitioning.placement` and the fleet as it is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asterism.clock import Clock
from asterism.errors import AsterismError, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.statistics import Size, partition_size
from asterism.limits import Limits
from asterism.partitioning.partition_map import PartitionRange
from asterism.partitioning.placement import (
    NO_RULES,
    NodeLoad,
    Placed,
    Plan,
    RangeName,
    Rules,
    place,
    place_split,
    plan_rebalance,
    weight_of,
)
from asterism.values.identifiers import NodeNumber, PartitionNumber

# Sizes change slowly compared with how often a container is created.
_SIZES_SECONDS = 10.0
_READS_AT_ONCE = 32
# A node that takes longer to tell a size is away: who looks at the fleet wants to see that, not to wait for it.
_SIZE_SECONDS_MAX = 3.0

# The fleet's own rules for a container, by the names of its database and its own.
DefaultRules = Callable[[str, str], Rules]


def _no_rules(_database: str, _container: str) -> Rules:
    return NO_RULES


def _nowhere() -> StorageUnavailable:
    return StorageUnavailable(reason="no node of the fleet may take the container's partitions")


@dataclass(frozen=True, slots=True)
class Located:
    """A partition of the fleet, with what it holds and is provisioned for."""

    keyspace: Keyspace
    range: PartitionRange
    size: Size
    ru_per_second: float

    @property
    def name(self) -> RangeName:
        return RangeName(self.keyspace.record.rid, self.range.id)


class Placing:
    """Answers where to. With one node that takes partitions there is nothing to weigh, and nothing is read."""

    def __init__(
        self,
        catalog: Catalog,
        owner: Owner,
        admission: Admission,
        limits: Limits,
        clock: Clock,
        *,
        default_rules: DefaultRules = _no_rules,
    ) -> None:
        self._catalog = catalog
        self._owner = owner
        self._admission = admission
        self._limits = limits
        self._clock = clock
        self.default_rules = default_rules
        self._sizes: dict[PartitionNumber, Size] = {}
        self._sizes_at = float("-inf")
        # The nodes that told no size when they were last asked.
        self._away: set[NodeNumber] = set()

    # --- rules ------------------------------------------------------------------------------------------------------

    def rules_of(self, keyspace: Keyspace) -> Rules:
        record = keyspace.record
        if record.placement is not None:
            return record.placement
        database = self._catalog.databases.get(record.database_rid)
        return NO_RULES if database is None else self.default_rules(database.name, record.name)

    # --- new partitions -----------------------------------------------------------------------------------------------

    async def for_new_keyspace(self, database: str, name: str, *, count: int) -> tuple[NodeNumber, ...]:
        return await self._place(count, self.default_rules(database, name), own=(), leaving=())

    async def for_split(self, keyspace: Keyspace, source: PartitionRange) -> tuple[NodeNumber, NodeNumber]:
        rules = self.rules_of(keyspace)
        if (only := self._only_taker(rules)) is not None:
            return only, only
        counts = Counter(one.node for one in keyspace.record.map.ranges)
        try:
            return place_split(source.node, await self._takers(rules), rules, already_there=counts)
        except ValueError:
            raise _nowhere() from None

    async def for_merge(self, keyspace: Keyspace, left: PartitionRange, right: PartitionRange) -> NodeNumber:
        rules = self.rules_of(keyspace)
        if left.node == right.node and self._may_stay(left.node, rules):
            return left.node
        return (await self._place(1, rules, own=keyspace.record.map.ranges, leaving=(left, right)))[0]

    def _may_stay(self, node: NodeNumber, rules: Rules) -> bool:
        record = self._catalog.nodes.records.get(node)
        return record is not None and NodeLoad(node, record.labels, record.state).may_take(rules)

    async def _place(
        self, count: int, rules: Rules, *, own: Iterable[PartitionRange], leaving: tuple[PartitionRange, ...]
    ) -> tuple[NodeNumber, ...]:
        if (only := self._only_taker(rules)) is not None:
            return (only,) * count
        already_there = Counter(one.node for one in own if one not in leaving)
        weight = weight_of(size_bytes=0, ru_per_second=0, limits=self._limits)
        try:
            return place([weight] * count, await self._takers(rules), rules, already_there=already_there)
        except ValueError:
            raise _nowhere() from None

    def _only_taker(self, rules: Rules) -> NodeNumber | None:
        takers = self._catalog.nodes.online()
        return takers[0].number if len(takers) == 1 and rules.labels <= takers[0].labels else None

    async def _takers(self, rules: Rules) -> list[NodeLoad]:
        """The nodes, without those that are away if there is another that may take a partition."""
        loads = await self.loads()
        there = [one for one in loads if one.node not in self._away]
        return there if any(one.may_take(rules) for one in there) else loads

    # --- the fleet as it is -------------------------------------------------------------------------------------------

    async def located(self) -> list[Located]:
        """Every partition of every keyspace. Sizes may be some seconds old."""
        ranges = [(space, one) for space in self._catalog.keyspaces.values() for one in space.record.map.ranges]
        if self._clock.monotonic_seconds() - self._sizes_at >= _SIZES_SECONDS:
            await self._read_sizes(ranges)
        elif new := [(space, one) for space, one in ranges if one.partition not in self._sizes]:
            # Moved, split or made since then.
            self._sizes.update(await self._sizes_of(new, set(self._away)))
        found: list[Located] = []
        for keyspace in self._catalog.keyspaces.values():
            share = self._admission.share_of(keyspace) or 0.0
            found += [
                Located(keyspace, one, self._sizes.get(one.partition, Size()), share)
                for one in keyspace.record.map.ranges
            ]
        return found

    async def _read_sizes(self, ranges: list[tuple[Keyspace, PartitionRange]]) -> None:
        away: set[NodeNumber] = set()
        sizes = await self._sizes_of(ranges, away)
        self._sizes, self._away, self._sizes_at = sizes, away, self._clock.monotonic_seconds()

    async def _sizes_of(
        self, ranges: list[tuple[Keyspace, PartitionRange]], away: set[NodeNumber]
    ) -> dict[PartitionNumber, Size]:
        """Adds to `away` the nodes that do not answer; each is waited for once. What was known is good enough then."""
        sizes: dict[PartitionNumber, Size] = {}
        places = asyncio.Semaphore(_READS_AT_ONCE)

        async def read(keyspace: Keyspace, one: PartitionRange) -> None:
            async with places:
                sizes[one.partition] = self._sizes.get(one.partition, Size())
                if one.node in away:
                    return
                try:
                    async with asyncio.timeout(_SIZE_SECONDS_MAX):
                        sizes[one.partition] = await partition_size(self._owner, keyspace, one)
                except (StorageUnavailable, TimeoutError):
                    away.add(one.node)
                except AsterismError:
                    # The container is gone.
                    pass

        await asyncio.gather(*(read(space, one) for space, one in ranges))
        return sizes

    def placed(self, located: Iterable[Located]) -> list[Placed]:
        return [
            Placed(
                one.name,
                one.range.node,
                weight_of(size_bytes=one.size.bytes, ru_per_second=one.ru_per_second, limits=self._limits),
            )
            for one in located
        ]

    async def loads(self) -> list[NodeLoad]:
        weights: Counter[NodeNumber] = Counter()
        for one in self.placed(await self.located()):
            weights[one.node] += one.weight
        records = self._catalog.nodes.records.values()
        return [NodeLoad(one.number, one.labels, one.state, weights[one.number]) for one in records]

    async def plan(self, planner: Callable[..., Plan] = plan_rebalance) -> Plan:
        """What `planner` would move, as the fleet is now."""
        located = await self.located()
        rules = {one.keyspace.record.rid: self.rules_of(one.keyspace) for one in located}
        return planner(await self.loads(), self.placed(located), rules)
