"""The server does as `asterism simulate` says, on a small scale."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from asterism.advisor.simulation import SimulatedKey, Workload, simulate
from asterism.keyspaces.routing.statistics import logical_partitions
from asterism.limits import DEFAULT_LIMITS
from asterism.models.documents.container import Container
from asterism.partitioning.placement import NodeLoad
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import NodeNumber
from tests.support.world import World, open_world

THREE_NODES = ("", "", "")
NODES = [NodeLoad(NodeNumber(number)) for number in range(3)]
SMALL = DEFAULT_LIMITS.with_changes(physical_partition_bytes_max=24 * 1024)


def ranges_of(container: Container) -> list[tuple[str, str]]:
    return [partition.range.to_texts() for partition in container.keyspace.record.map.ranges]


async def keys_of(world: World, container: Container) -> list[SimulatedKey]:
    found: list[SimulatedKey] = []
    for partition in container.keyspace.record.map.ranges:
        logical = logical_partitions(world.router, container.keyspace, partition)
        found += [SimulatedKey(entry.effective_key, entry.size.bytes, 0.0) async for entry in logical]
    return found


async def test_a_new_container_has_the_partitions_and_the_nodes_that_were_simulated(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=THREE_NODES) as world:
        container = await world.container(throughput=Manual(42_000))
        simulation = simulate(Workload(1, 42_000, 1), NODES, DEFAULT_LIMITS)
        assert ranges_of(container) == [partition.range.to_texts() for partition in simulation.partitions]
        assert [partition.node for partition in container.keyspace.record.map.ranges] == [
            partition.node for partition in simulation.partitions
        ]
        assert (await world.mover.plan()).moves == ()


async def test_raised_throughput_splits_as_simulated(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container(throughput=Manual(12_000))
        offer = world.catalog.offer_for(container.record.rid)
        assert offer is not None
        offer = await world.store.replace_offer(offer, Manual(47_000))
        async with asyncio.timeout(180):
            while world.store.is_offer_pending(offer):
                await asyncio.sleep(0.01)
        simulation = simulate(Workload(1, 47_000, 1, created_with=12_000), NODES[:1], DEFAULT_LIMITS)
        assert ranges_of(container) == [partition.range.to_texts() for partition in simulation.partitions]


async def test_a_container_that_outgrows_its_partitions_is_divided_as_simulated(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=THREE_NODES) as world:
        container = await world.container()
        for number in range(90):
            key = f"k{number % 30}"
            await container.create_item({"id": str(number), "pk": key, "pad": "x" * (number * 37 % 1500)}, None)
        keys = await keys_of(world, container)
    async with open_world(tmp_path, limits=SMALL, node_labels=THREE_NODES) as world:
        container = world.store.container_for_items("test", "d", "c")
        simulation = simulate(Workload(1, 400, 1), NODES, SMALL, keys=keys)
        # The smallest of writes, here and there: each partition is looked at, until none is too large any more.
        async with asyncio.timeout(180):
            for number in (*range(30), *range(30), *range(30), *range(30)):
                item = f"probe-{number}"
                await container.create_item({"id": item, "pk": f"k{number}"}, None)
                await container.delete_item(item.encode(), (f"k{number}",))
                while world.reshaper.progress:
                    await asyncio.sleep(0.01)
        assert ranges_of(container) == [partition.range.to_texts() for partition in simulation.partitions]
        assert len(simulation.partitions) > 3
        await world.mover.rebalance()
        async with asyncio.timeout(180):
            while world.catalog.nodes.wanted or world.reshaper.progress:
                await asyncio.sleep(0.02)
        counts = Counter(partition.node for partition in container.keyspace.record.map.ranges)
        simulated = {node.node: node.partitions for node in simulation.nodes}
        assert max(abs(counts[node] - count) for node, count in simulated.items()) <= 1
