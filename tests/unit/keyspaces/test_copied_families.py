"""Splits, merges and moves copy entries by the number of their family, also of families that no module names yet."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from asterism.keyspaces.reshaping.copier import Copier
from asterism.keyspaces.reshaping.job import Cursor, Target
from asterism.keyspaces.routing.families import after_prefix, spans_to_copy
from asterism.models.documents.container import Container
from asterism.storage.contract import Add, Batch, Expectation, Fence, Span
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import Epoch, NodeNumber, PartitionNumber
from tests.support.world import World, open_world

BY_KEY, BY_VALUE = b"\x1a", b"\x9a"
# The first and the last family of either kind.
BOUNDS_BY_KEY, BOUNDS_BY_VALUE = (b"\x10", b"\x7f"), (b"\x80", b"\xff")
OF_THE_PARTITION = b"\x02"
POINTS = [bytes([first]) + bytes(15) for first in range(0, 256, 16)]


def unknown_entries(point: bytes) -> list[tuple[bytes, bytes]]:
    return [(BY_KEY + point + b"tail", b"some value"), (BY_VALUE + b"anything" + point[:1], point + b"some value")]


async def write_unknown_entries(world: World, container: Container) -> None:
    for point in POINTS:
        await world.router.apply(container.keyspace, point, Batch(puts=unknown_entries(point)))


async def check_unknown_entries(world: World, container: Container) -> None:
    """Each partition holds the entries of its own range and no other."""
    for partition in container.keyspace.record.map.ranges:
        found = [
            entry for family in (BY_KEY, BY_VALUE) for entry in await world.everything(partition.partition, family)
        ]
        expected = [entry for point in POINTS if partition.range.contains(point) for entry in unknown_entries(point)]
        assert sorted(found) == sorted(expected)


# K5 of asterism/keyspaces/DESIGN.md.
async def test_a_split_copies_families_it_does_not_know(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number in range(20):
            await container.create_item({"id": str(number), "pk": str(number)}, None)
        await write_unknown_entries(world, container)
        await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
        assert len(container.keyspace.record.map.ranges) == 2
        await check_unknown_entries(world, container)


async def test_a_merge_copies_families_it_does_not_know(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container(throughput=Manual(12_000))
        keyspace = container.keyspace
        await write_unknown_entries(world, container)
        offer = world.catalog.offer_for(keyspace.record.rid)
        assert offer is not None
        await world.store.replace_offer(offer, Manual(400))
        await world.reshaper.finished(await world.reshaper.merge(keyspace, 0, 1))
        assert len(keyspace.record.map.ranges) == 1
        await check_unknown_entries(world, container)


async def test_a_move_copies_families_it_does_not_know(tmp_path: Path) -> None:
    async with open_world(tmp_path, node_labels=("", "")) as world:
        container = await world.container()
        await write_unknown_entries(world, container)
        source = container.keyspace.record.map.ranges[0]
        target = NodeNumber(1 - source.node)
        await world.reshaper.finished(await world.reshaper.move(container.keyspace, 0, target))
        assert container.keyspace.record.map.ranges[0].node == target
        await check_unknown_entries(world, container)


def test_every_routed_family_is_in_the_spans_to_copy_and_no_other() -> None:
    spans = spans_to_copy(b"\x20", b"\x40")
    for family in BOUNDS_BY_KEY:
        assert sum(span.contains(family + b"\x30") for span in spans) == 1
        assert not any(span.contains(family + b"\x50") for span in spans)
    for family in BOUNDS_BY_VALUE:
        assert sum(span.contains(family + b"\x50") for span in spans) == 1
    assert not any(span.contains(OF_THE_PARTITION + b"\x30") for span in spans)


async def test_a_cursor_of_an_earlier_version_resumes_without_a_gap(tmp_path: Path) -> None:
    """Recorded as the fourth span, which was the change log then and is a family routed by key now."""
    async with open_world(tmp_path) as world:
        container = await world.container()
        await write_unknown_entries(world, container)
        (source,) = container.keyspace.record.map.ranges
        number, epoch = PartitionNumber(900), Epoch(7)
        await world.engine.create_partition(number, Fence(epoch, sealed=True))
        copier = Copier(world.engine, [source], [Target(number, source.range)], epoch, lambda: 0.0)
        async for _ in copier.copy(Cursor(0, 3, b"\x90" + bytes(18))):
            pass
        behind = [entry for entry in await world.everything(source.partition) if entry[0] >= BY_KEY]
        assert await world.everything(number) == behind
        assert len(behind) >= 2 * len(POINTS)


def test_a_batch_extended_by_another_has_all_of_its_lists() -> None:
    other = Batch(
        expectations=[Expectation(b"e", None)],
        range_deletes=[Span(b"a", after_prefix(b"a"))],
        deletes=[b"d"],
        puts=[(b"p", b"")],
        versioned_puts=[(b"v", b"")],
        stamped_puts=[(b"s", b"", b"")],
        adds=[Add(b"c", (1,))],
        may_use_reserve=True,
    )
    assert all(getattr(other, each.name) for each in fields(Batch)), "a list that this test does not fill"
    batch = Batch(puts=[(b"own", b"")])
    batch.extend(other)
    assert batch.puts == [(b"own", b""), (b"p", b"")]
    other.puts.insert(0, (b"own", b""))
    assert batch == other
