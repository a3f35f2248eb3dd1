"""Partitions that go to other nodes, on real engines, under writes that never stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from asterism.errors import ReshapeRefused, StorageUnavailable
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.placement import NodeState, Rules
from asterism.storage.contract import Batch, EpochFenced, PartitionUnknown
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import NodeNumber
from tests.support.world import World, open_world
from tests.unit.keyspaces.test_reshaping import all_items, run_during

ZERO, ONE, TWO = (NodeNumber(n) for n in range(3))
TWO_NODES = ("", "")
THREE_NODES = ("eu", "us ssd", "us")


def nodes_of(keyspace: Keyspace) -> list[int]:
    return [partition.node for partition in keyspace.record.map.ranges]


async def settled(world: World) -> None:
    """Wait until every move is done and its remains are dropped."""
    async with asyncio.timeout(180):
        while world.catalog.nodes.wanted or world.reshaper.progress or world.catalog.garbage:
            await asyncio.sleep(0.02)


async def test_a_move_under_load_loses_and_doubles_nothing_and_no_request_fails(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=TWO_NODES) as world:
        container = await world.container()
        for number in range(300):
            await container.create_item({"id": f"old-{number}", "pk": f"k{number % 40}"}, None)
        source = container.keyspace.record.map.ranges[0]
        target = ONE if source.node == ZERO else ZERO
        job = await world.reshaper.move(container.keyspace, 0, target)
        known = await run_during(container, asyncio.ensure_future(world.reshaper.finished(job)))
        moved = container.keyspace.record.map.get(0)
        assert moved is not None
        assert (moved.node, moved.epoch, moved.range) == (target, source.epoch + 1, source.range)
        found = await all_items(world, container)
        assert {name: item["n"] for name, item in found.items() if "n" in item} == known
        assert len(found) == 300 + len(known)
        await world.check_statistics(container)
        await settled(world)
        with pytest.raises(PartitionUnknown):
            await world.engine.read_fence(source.partition)


async def test_a_gateway_with_the_old_map_can_neither_read_nor_write_a_moved_partition(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=TWO_NODES) as world:
        container = await world.container()
        stale = container.keyspace.record.map.ranges[0]
        target = ONE if stale.node == ZERO else ZERO
        await world.reshaper.finished(await world.reshaper.move(container.keyspace, 0, target))
        for call in (
            world.engine.read(stale.partition, stale.epoch, [b"\x01"]),
            world.engine.apply(stale.partition, stale.epoch, Batch(puts=[(b"\x10x", b"")])),
        ):
            with pytest.raises((EpochFenced, PartitionUnknown)):
                await call


async def test_sessions_and_lsns_go_on_after_a_move(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=TWO_NODES) as world:
        container = await world.container()
        last = [await container.create_item({"id": str(n), "pk": "a"}, None) for n in range(5)][-1]
        target = ONE if nodes_of(container.keyspace) == [ZERO] else ZERO
        await world.reshaper.finished(await world.reshaper.move(container.keyspace, 0, target))
        assert (await container.read_item(b"3", ("a",), session={0: last.lsn})).lsn == last.lsn
        assert (await container.create_item({"id": "new", "pk": "a"}, None)).lsn == last.lsn + 1
        assert container.keyspace.record.map.ranges[0].parents == ()


async def test_the_partitions_of_a_new_container_are_spread_over_the_nodes(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=("", "", "")) as world:
        container = await world.container(throughput=Manual(36_000))
        assert Counter(nodes_of(container.keyspace)) == {ZERO: 2, ONE: 2, TWO: 2}


async def test_a_container_kept_in_a_region_is_created_and_split_there(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=THREE_NODES) as world:
        world.reshaper.placer.default_rules = lambda _database, name: Rules(frozenset({"us"}), spread=name == "c")
        container = await world.container(throughput=Manual(12_000))
        for number in range(40):
            await container.create_item({"id": str(number), "pk": str(number)}, None)
        assert sorted(nodes_of(container.keyspace)) == [ONE, TWO]
        await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
        await world.reshaper.finished(await world.reshaper.split(container.keyspace, 1))
        assert Counter(nodes_of(container.keyspace)) == {ONE: 2, TWO: 2}


async def test_rules_that_no_node_fulfils_refuse_the_container(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=THREE_NODES) as world:
        world.reshaper.placer.default_rules = lambda *_: Rules(frozenset({"mars"}))
        with pytest.raises(StorageUnavailable, match="no node"):
            await world.container()
        assert set(await world.engine.partitions()) == {0}


async def test_a_rebalance_follows_a_changed_rule_and_a_second_one_has_nothing_to_do(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=THREE_NODES) as world:
        container = await world.container(throughput=Manual(24_000))
        await world.catalog.replace_placement(container.keyspace, Rules(frozenset({"us"}), spread=True))
        plan = await world.mover.rebalance()
        assert plan.moves
        await settled(world)
        assert Counter(nodes_of(container.keyspace)) == {ONE: 2, TWO: 2}
        assert (await world.mover.plan()).moves == ()


async def test_a_single_move_obeys_the_rules_and_the_state_of_the_node(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=THREE_NODES) as world:
        container = await world.container()
        await world.catalog.replace_placement(container.keyspace, Rules(frozenset({"ssd"})))
        records = world.catalog.nodes.records
        with pytest.raises(ReshapeRefused, match="label 'ssd'"):
            await world.mover.move(container.keyspace, 0, records[TWO])
        await world.catalog.nodes.set_state(records[ONE], NodeState.DRAINING)
        with pytest.raises(ReshapeRefused, match="draining"):
            await world.mover.move(container.keyspace, 0, records[ONE])


async def test_a_drained_node_is_empty_and_takes_nothing_any_more(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=("", "", "")) as world:
        container = await world.container(throughput=Manual(36_000))
        for number in range(100):
            await container.create_item({"id": str(number), "pk": str(number)}, None)
        await world.mover.drain(world.catalog.nodes.records[TWO])
        async with asyncio.timeout(180):
            while world.catalog.nodes.records[TWO].state is not NodeState.REMOVED:
                await asyncio.sleep(0.02)
        assert Counter(nodes_of(container.keyspace)) == {ZERO: 3, ONE: 3}
        engine = world.nodes.nodes[TWO]
        assert engine is not None
        assert await engine.partitions() == {}
        assert len(await all_items(world, container)) == 100
        await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
        assert TWO not in nodes_of(container.keyspace)


async def test_a_drain_says_what_cannot_leave_and_can_be_taken_back(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=THREE_NODES) as world:
        world.reshaper.placer.default_rules = lambda *_: Rules(frozenset({"eu"}))
        await world.container()
        record = await world.mover.drain(world.catalog.nodes.records[ZERO])
        async with asyncio.timeout(180):
            while not world.mover.stuck:
                await asyncio.sleep(0.01)
        assert [(partition.name.range_id, partition.node) for partition in world.mover.stuck] == [(0, ZERO)]
        await world.mover.take_back(record)
        assert world.catalog.nodes.records[ZERO].state is NodeState.ONLINE


async def test_the_last_node_cannot_be_drained(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        with pytest.raises(ReshapeRefused, match="no other node"):
            await world.mover.drain(world.catalog.nodes.records[ZERO])
