"""The engines of all nodes as one: promises beyond the contract of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asterism.storage import handover
from asterism.storage.contract import Batch, Engine, EngineFailed, EpochFenced, Fence, PartitionUnknown, Span
from asterism.storage.handover import CATALOG_PARTITION, hand_over, is_open
from asterism.storage.lmdb import LmdbEngine
from asterism.storage.node_identity import NodeIdentity, claim, read_identity, read_note, write_note
from asterism.storage.nodes import NodeEngines
from asterism.values.identifiers import Epoch, Lsn, NodeNumber, PartitionNumber, partition_on

EPOCH = Epoch(1)
ZERO, ONE, TWO, DEAD = (NodeNumber(n) for n in range(4))
COORDINATION = PartitionNumber(1)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[NodeEngines]:
    stores: dict[NodeNumber, Engine | None] = {
        node: LmdbEngine.open(tmp_path / str(node), durable=False) for node in (ZERO, ONE, TWO)
    }
    fleet = NodeEngines({**stores, DEAD: None}, catalog_node=ZERO)
    yield fleet
    await fleet.close()


def engine_of(nodes: NodeEngines, node: NodeNumber) -> Engine:
    engine = nodes.nodes[node]
    assert engine is not None
    return engine


async def test_a_partition_is_on_the_node_in_its_number(nodes: NodeEngines) -> None:
    number = partition_on(TWO, 77)
    await nodes.create_partition(number, Fence(EPOCH))
    await nodes.apply(number, EPOCH, Batch(puts=[(b"k", b"v")]))
    assert (await engine_of(nodes, TWO).read(number, EPOCH, [b"k"])) == (1, [b"v"])
    assert await engine_of(nodes, ONE).partitions() == {}
    assert await nodes.partitions() == {number: (Fence(EPOCH), 1)}


async def test_a_node_that_cannot_be_reached_stops_only_its_own_partitions(nodes: NodeEngines) -> None:
    number = partition_on(ONE, 50)
    await nodes.create_partition(number, Fence(EPOCH))
    with pytest.raises(EngineFailed, match="node 3 cannot be reached"):
        await nodes.read(partition_on(DEAD, 51), EPOCH, [b"k"])
    assert list(await nodes.partitions()) == [number]
    statuses = await nodes.node_statuses()
    assert [node for node, status in statuses.items() if status is None] == [DEAD]
    assert not (await nodes.status()).is_writable


async def test_a_partition_of_an_unknown_node_is_unknown(nodes: NodeEngines) -> None:
    with pytest.raises(PartitionUnknown):
        await nodes.read(partition_on(NodeNumber(9), 51), EPOCH, [b"k"])


async def test_a_node_can_be_attached_when_it_becomes_reachable(nodes: NodeEngines, tmp_path: Path) -> None:
    nodes.attach(DEAD, LmdbEngine.open(tmp_path / "late", durable=False))
    await nodes.create_partition(partition_on(DEAD, 60), Fence(EPOCH))
    with pytest.raises(ValueError, match="attached already"):
        nodes.attach(DEAD, None)
    await nodes.detach(DEAD)
    with pytest.raises(PartitionUnknown):
        await nodes.read_fence(partition_on(DEAD, 60))


async def fill_catalog(nodes: NodeEngines) -> None:
    await nodes.create_partition(CATALOG_PARTITION, Fence(EPOCH))
    await nodes.create_partition(COORDINATION, Fence(EPOCH))
    puts = [(b"%04d" % number, bytes(900)) for number in range(2500)]
    await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(puts=puts))
    await nodes.apply(COORDINATION, EPOCH, Batch(puts=[(b"leader", b"me")]))


async def test_the_catalog_is_handed_over_during_calls_to_it(nodes: NodeEngines) -> None:
    await fill_catalog(nodes)
    notified = []
    nodes.watch(CATALOG_PARTITION, lambda: notified.append(1))
    lsns: list[Lsn] = []

    async def write_on() -> None:
        while len(lsns) < 300:
            lsns.append(await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"%d" % len(lsns))])))

    async with asyncio.TaskGroup() as group:
        group.create_task(write_on())
        await asyncio.sleep(0.01)
        await nodes.move_catalog(TWO)
    assert nodes.catalog_node == TWO
    assert lsns == list(range(2, 302))
    target = engine_of(nodes, TWO)
    assert await target.read(CATALOG_PARTITION, EPOCH, [b"n", b"2499"]) == (301, [b"299", bytes(900)])
    assert await target.read(COORDINATION, EPOCH, [b"leader"]) == (1, [b"me"])
    with pytest.raises(EpochFenced):
        await engine_of(nodes, ZERO).read(CATALOG_PARTITION, EPOCH, [b"n"])
    notified.clear()
    await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"last")]))
    await asyncio.sleep(0.05)
    assert notified


async def test_an_interrupted_hand_over_is_repeated_and_a_completed_one_is_left_alone(
    nodes: NodeEngines,
) -> None:
    await fill_catalog(nodes)
    source, target = engine_of(nodes, ZERO), engine_of(nodes, ONE)
    # Interrupted after the seal and a part of the copy, with data that is outdated now.
    await target.create_partition(CATALOG_PARTITION, Fence(EPOCH, sealed=True))
    await target.write_copied(CATALOG_PARTITION, EPOCH, puts=[(b"stale", b"")])
    await source.set_fence(CATALOG_PARTITION, Fence(EPOCH, sealed=True))
    await hand_over(source, target)
    assert (await target.read(CATALOG_PARTITION, EPOCH, [b"stale", b"0000"]))[1] == [None, bytes(900)]
    await target.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"new", b"")]))
    await hand_over(source, target)
    assert (await target.read(CATALOG_PARTITION, EPOCH, [b"new"]))[1] == [b""]


async def test_a_catalog_that_moved_away_moves_back_with_its_current_data(nodes: NodeEngines) -> None:
    await fill_catalog(nodes)
    await nodes.move_catalog(ONE)
    await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(range_deletes=[Span(b"0001", b"2499")], puts=[(b"x", b"y")]))
    await nodes.move_catalog(ZERO)
    page = await engine_of(nodes, ZERO).scan(CATALOG_PARTITION, EPOCH, Span())
    assert [key for key, _ in page.entries] == [b"0000", b"2499", b"x"]


def another_process(nodes: NodeEngines) -> NodeEngines:
    """Open the same stores, without knowledge of the first process."""
    engines = {node: engine_of(nodes, node) for node in (ZERO, ONE, TWO)}
    return NodeEngines(engines, catalog_node=nodes.catalog_node)


async def test_another_process_follows_the_catalog(nodes: NodeEngines) -> None:
    await fill_catalog(nodes)
    other, notified = another_process(nodes), asyncio.Event()
    other.watch(CATALOG_PARTITION, notified.set)
    await nodes.move_catalog(ONE)
    assert await other.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"1")])) == 2
    assert other.catalog_node == ONE
    # Over two nodes at once, and back to the last known node.
    for path in ((TWO, ZERO), (ONE, ZERO), (TWO,)):
        for step in path:
            await nodes.move_catalog(step)
            await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"2")]))
        calls = [other.read(CATALOG_PARTITION, EPOCH, [b"n"]) for _ in range(5)]
        assert {tuple(values) for _, values in await asyncio.gather(*calls)} == {(b"2",)}
        assert other.catalog_node == path[-1]
    notified.clear()
    await other.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"3")]))
    await asyncio.wait_for(notified.wait(), 60)


async def test_an_abandoned_hand_over_is_completed_by_another_process(
    nodes: NodeEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asterism.storage.nodes.HAND_OVER_SECONDS_MAX", 0.1)
    monkeypatch.setattr("asterism.storage.nodes.FOLLOW_SECONDS_MAX", 60.0)
    await fill_catalog(nodes)
    others = [another_process(nodes) for _ in range(3)]
    await nodes.move_catalog(ONE)
    await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"1")]))

    async def die(*_: object) -> None:
        raise EngineFailed("dead")

    for dying_in in ("_copy", "_prepare", "_open"):
        with monkeypatch.context() as patch:
            patch.setattr(handover, dying_in, die)
            with pytest.raises(EngineFailed, match="dead"):
                await nodes.move_catalog(ZERO if nodes.catalog_node == ONE else ONE)
        processes = (*others, nodes)
        calls = [process.read(CATALOG_PARTITION, EPOCH, [b"n", b"2499"]) for process in processes for _ in range(3)]
        assert {tuple(values) for _, values in await asyncio.gather(*calls)} == {(b"1", bytes(900))}
        assert len({process.catalog_node for process in processes}) == 1
        await others[0].apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"1")]))


async def test_two_processes_cannot_both_send_the_catalog_to_different_nodes(nodes: NodeEngines) -> None:
    await fill_catalog(nodes)
    other = another_process(nodes)
    outcomes = await asyncio.gather(nodes.move_catalog(ONE), other.move_catalog(TWO), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [EngineFailed]
    for process in (nodes, other):
        await process.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"")]))
    assert nodes.catalog_node == other.catalog_node
    assert sum([await is_open(engine_of(nodes, node), CATALOG_PARTITION) for node in (ZERO, ONE, TWO)]) == 1


async def test_a_hand_over_that_was_overtaken_by_later_ones_changes_nothing(nodes: NodeEngines) -> None:
    await fill_catalog(nodes)
    source, target = engine_of(nodes, ZERO), engine_of(nodes, ONE)
    stale_lsn = await source.set_fence(CATALOG_PARTITION, Fence(EPOCH))
    for step in (ONE, TWO):
        await nodes.move_catalog(step)
        for partition in (CATALOG_PARTITION, COORDINATION):
            await nodes.apply(partition, EPOCH, Batch(puts=[(b"n", b"new")]))
    with pytest.raises(EngineFailed, match="another hand-over"):
        await handover._copy(source, target, CATALOG_PARTITION, EPOCH, stale_lsn)
    with pytest.raises(EngineFailed):
        await hand_over(source, target, ONE)
    assert not await is_open(target, CATALOG_PARTITION)
    assert (await nodes.read(CATALOG_PARTITION, EPOCH, [b"n"]))[1] == [b"new"]


async def test_a_node_stores_its_identity_and_only_the_first_claim_counts(nodes: NodeEngines) -> None:
    engine = engine_of(nodes, ONE)
    assert await read_identity(engine) is None
    first = NodeIdentity("fleet-a", ONE, "one")
    assert await claim(engine, first) == first
    assert await claim(engine, NodeIdentity("fleet-b", TWO, "two")) == first
    assert await read_identity(engine) == first
    assert await nodes.partitions() == {}


async def test_a_note_is_kept_with_the_node(nodes: NodeEngines) -> None:
    engine = engine_of(nodes, ZERO)
    assert await read_note(engine, "moved") is None
    await write_note(engine, "moved", "elsewhere")
    assert await read_note(engine, "moved") == "elsewhere"
    await write_note(engine, "moved", None)
    assert await read_note(engine, "moved") is None
