"""The choice of a node for each new partition, by the rules of `partitioning.placement` and the fleet as it is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asterism.clock import Clock
from asterism.errors import AsterismError, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import Size, partition_size
from asterism.limits import Limits
from asterism.partitioning.partition_map import PartitionRange
from asterism.partitioning.placement import (
    NO_RULES,
    NodeLoad,
    PlacedPartition,
    Plan,
    RangeName,
    Rules,
    place,
    place_split,
    plan_rebalance,
    weight_of,
)
from asterism.values.identifiers import NodeNumber, PartitionNumber

# Sizes change slowly compared with the rate at which containers are created.
_SIZES_SECONDS = 10.0
_READS_AT_ONCE = 32
# A node that takes longer to answer is away: a report on the fleet shows that instead of waiting for it.
_SIZE_SECONDS_MAX = 3.0

# The fleet's own rules for a container, by the names of its database and its own.
DefaultRules = Callable[[str, str], Rules]


def _no_rules(_database: str, _container: str) -> Rules:
    return NO_RULES


def _no_node_error() -> StorageUnavailable:
    return StorageUnavailable(reason="no node of the fleet may take the container's partitions")


@dataclass(frozen=True, slots=True)
class LocatedPartition:
    """A partition of the fleet, with its size and its provisioned throughput."""

    keyspace: Keyspace
    range: PartitionRange
    size: Size
    ru_per_second: float

    @property
    def name(self) -> RangeName:
        return RangeName(self.keyspace.record.rid, self.range.id)


class Placer:
    """The chooser of nodes. With one node that takes partitions nothing is weighed, and nothing is read."""

    def __init__(
        self,
        catalog: Catalog,
        router: PartitionRouter,
        admission: Admission,
        limits: Limits,
        clock: Clock,
        *,
        default_rules: DefaultRules = _no_rules,
    ) -> None:
        self._catalog = catalog
        self._router = router
        self._admission = admission
        self._limits = limits
        self._clock = clock
        self.default_rules = default_rules
        self._sizes: dict[PartitionNumber, Size] = {}
        self._sizes_at = float("-inf")
        # The nodes that gave no size when they were last asked.
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
        counts = Counter(partition.node for partition in keyspace.record.map.ranges)
        try:
            return place_split(source.node, await self._takers(rules), rules, already_there=counts)
        except ValueError:
            raise _no_node_error() from None

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
        already_there = Counter(partition.node for partition in own if partition not in leaving)
        weight = weight_of(size_bytes=0, ru_per_second=0, limits=self._limits)
        try:
            return place([weight] * count, await self._takers(rules), rules, already_there=already_there)
        except ValueError:
            raise _no_node_error() from None

    def _only_taker(self, rules: Rules) -> NodeNumber | None:
        takers = self._catalog.nodes.online()
        return takers[0].number if len(takers) == 1 and rules.labels <= takers[0].labels else None

    async def _takers(self, rules: Rules) -> list[NodeLoad]:
        """Return the nodes, without those that are away if there is another that may take a partition."""
        loads = await self.loads()
        present = [load for load in loads if load.node not in self._away]
        return present if any(load.may_take(rules) for load in present) else loads

    # --- the fleet as it is -------------------------------------------------------------------------------------------

    async def located(self) -> list[LocatedPartition]:
        """Return every partition of every keyspace. Sizes may be some seconds old."""
        ranges = [
            (space, partition) for space in self._catalog.keyspaces.values() for partition in space.record.map.ranges
        ]
        if self._clock.monotonic_seconds() - self._sizes_at >= _SIZES_SECONDS:
            await self._read_sizes(ranges)
        elif new := [(space, partition) for space, partition in ranges if partition.partition not in self._sizes]:
            # Moved, split or made since then.
            self._sizes.update(await self._sizes_of(new, set(self._away)))
        found: list[LocatedPartition] = []
        for keyspace in self._catalog.keyspaces.values():
            share = self._admission.share_of(keyspace) or 0.0
            found += [
                LocatedPartition(keyspace, partition, self._sizes.get(partition.partition, Size()), share)
                for partition in keyspace.record.map.ranges
            ]
        return found

    async def _read_sizes(self, ranges: list[tuple[Keyspace, PartitionRange]]) -> None:
        away: set[NodeNumber] = set()
        sizes = await self._sizes_of(ranges, away)
        self._sizes, self._away, self._sizes_at = sizes, away, self._clock.monotonic_seconds()

    async def _sizes_of(
        self, ranges: list[tuple[Keyspace, PartitionRange]], away: set[NodeNumber]
    ) -> dict[PartitionNumber, Size]:
        """Return the sizes; for nodes that do not answer, which are added to `away`, the known ones."""
        sizes: dict[PartitionNumber, Size] = {}
        places = asyncio.Semaphore(_READS_AT_ONCE)

        async def read(keyspace: Keyspace, partition: PartitionRange) -> None:
            async with places:
                sizes[partition.partition] = self._sizes.get(partition.partition, Size())
                if partition.node in away:
                    return
                try:
                    async with asyncio.timeout(_SIZE_SECONDS_MAX):
                        sizes[partition.partition] = await partition_size(self._router, keyspace, partition)
                except (StorageUnavailable, TimeoutError):
                    away.add(partition.node)
                except AsterismError:
                    # The container is gone.
                    pass

        await asyncio.gather(*(read(space, partition) for space, partition in ranges))
        return sizes

    def placed(self, located: Iterable[LocatedPartition]) -> list[PlacedPartition]:
        return [
            PlacedPartition(
                partition.name,
                partition.range.node,
                weight_of(size_bytes=partition.size.bytes, ru_per_second=partition.ru_per_second, limits=self._limits),
            )
            for partition in located
        ]

    async def loads(self) -> list[NodeLoad]:
        weights: Counter[NodeNumber] = Counter()
        for partition in self.placed(await self.located()):
            weights[partition.node] += partition.weight
        records = self._catalog.nodes.records.values()
        return [NodeLoad(record.number, record.labels, record.state, weights[record.number]) for record in records]

    async def plan(self, planner: Callable[..., Plan] = plan_rebalance) -> Plan:
        """Return the moves that `planner` finds for the fleet as it is now."""
        located = await self.located()
        rules = {partition.keyspace.record.rid: self.rules_of(partition.keyspace) for partition in located}
        return planner(await self.loads(), self.placed(located), rules)
