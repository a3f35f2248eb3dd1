"""Several engines as one: what is promised beyond the contract of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asterism.storage.contract import Batch, Engine, EngineFailed, EpochFenced, Fence, PartitionUnknown, Span
from asterism.storage.handover import CATALOG_PARTITION, hand_over
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


async def test_a_partition_lies_on_the_node_its_number_tells(nodes: NodeEngines) -> None:
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


async def test_a_partition_of_a_node_nobody_knows_is_unknown(nodes: NodeEngines) -> None:
    with pytest.raises(PartitionUnknown):
        await nodes.read(partition_on(NodeNumber(9), 51), EPOCH, [b"k"])


async def test_a_node_can_be_attached_when_it_can_be_reached_at_last(nodes: NodeEngines, tmp_path: Path) -> None:
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


async def test_the_catalog_is_handed_over_while_calls_to_it_go_on(nodes: NodeEngines) -> None:
    await fill_catalog(nodes)
    heard = []
    nodes.watch(CATALOG_PARTITION, lambda: heard.append(1))
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
    heard.clear()
    await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"n", b"last")]))
    await asyncio.sleep(0.05)
    assert heard


async def test_a_hand_over_that_was_interrupted_is_done_again_and_one_that_is_done_is_left_alone(
    nodes: NodeEngines,
) -> None:
    await fill_catalog(nodes)
    source, target = engine_of(nodes, ZERO), engine_of(nodes, ONE)
    # As far as the seal and a part of the copy, of data that is not so any more.
    await target.create_partition(CATALOG_PARTITION, Fence(EPOCH, sealed=True))
    await target.write_copied(CATALOG_PARTITION, puts=[(b"stale", b"")])
    await source.set_fence(CATALOG_PARTITION, Fence(EPOCH, sealed=True))
    await hand_over(source, target)
    assert (await target.read(CATALOG_PARTITION, EPOCH, [b"stale", b"0000"]))[1] == [None, bytes(900)]
    await target.apply(CATALOG_PARTITION, EPOCH, Batch(puts=[(b"new", b"")]))
    await hand_over(source, target)
    assert (await target.read(CATALOG_PARTITION, EPOCH, [b"new"]))[1] == [b""]


async def test_a_catalog_that_went_away_comes_back_as_it_is_now(nodes: NodeEngines) -> None:
    await fill_catalog(nodes)
    await nodes.move_catalog(ONE)
    await nodes.apply(CATALOG_PARTITION, EPOCH, Batch(range_deletes=[Span(b"0001", b"2499")], puts=[(b"x", b"y")]))
    await nodes.move_catalog(ZERO)
    page = await engine_of(nodes, ZERO).scan(CATALOG_PARTITION, EPOCH, Span())
    assert [key for key, _ in page.entries] == [b"0000", b"2499", b"x"]


async def test_a_node_says_who_it_is_and_only_the_first_claim_counts(nodes: NodeEngines) -> None:
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
