"""Walks in the order of creation, while partitions are split and merged and items come and go."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from asterism.models.documents.container import Container
from asterism.models.documents.creation_order import SORTED_ITEMS_MAX, walk_items
from asterism.models.documents.item_position import Piece, Position, pieces_of
from asterism.models.documents.pages import read_items_page
from asterism.models.documents.results import Scope
from asterism.values.json.text import loads
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")


async def ids_of_pages(world: World, container: Container, scope: Scope, *, items_max: int) -> list[str]:
    found: list[str] = []
    position: Position | None = Position(b"")
    while position is not None:
        page = await read_items_page(world.router, container, scope, position=position, items_max=items_max)
        found += [loads(body)["id"] for body in page.bodies]  # type: ignore[index,call-overload,misc]
        position = None if page.position is None else Position.from_bytes(page.position.to_bytes())
    return found


@pytest.mark.parametrize("seed", range(6))
async def test_every_item_is_answered_once_while_partitions_change_and_items_come_and_go(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number in range(300):
            await container.create_item({"id": f"stays-{number}", "pk": number % 40}, None)
            await container.create_item({"id": f"goes-{number}", "pk": number % 40}, None)
        found: list[str] = []
        position: Position | None = Position(b"")
        pages = 0
        while position is not None:
            page = await read_items_page(world.router, container, EVERYTHING, position=position, items_max=37)
            found += [loads(body)["id"] for body in page.bodies]  # type: ignore[index,call-overload,misc]
            position, pages = page.position, pages + 1
            number = draw.randrange(300)
            gone = await container.upsert_item({"id": f"goes-{number}", "pk": number % 40}, None)
            assert gone.body
            await container.delete_item(f"goes-{number}".encode(), (number % 40,))
            ranges = container.keyspace.record.map.ranges
            if pages % 4 == 1 and len(ranges) < 4:
                job = await world.reshaper.split(container.keyspace, draw.choice(ranges).id)
                await world.reshaper.finished(job)
            elif pages % 4 == 3 and len(ranges) > 1:
                job = await world.reshaper.merge(container.keyspace, ranges[0].id, ranges[1].id)
                await world.reshaper.finished(job)
        staying = [name for name in found if name.startswith("stays")]
        assert sorted(staying) == sorted(f"stays-{number}" for number in range(300))
        await world.check_statistics(container)


async def test_an_item_that_is_created_again_during_a_walk_is_answered_once(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number in range(200):
            await container.create_item({"id": str(number), "pk": 0}, None)
        found: list[str] = []
        async for items in walk_items(world.router, container, EVERYTHING, position=None):
            if not found:
                # It is listed already, and not loaded yet.
                await container.delete_item(b"100", (0,))
                await container.create_item({"id": "100", "pk": 0}, None)
            found += [loads(body)["id"] for _, body in items.items]  # type: ignore[index,call-overload,misc]
    assert found == [str(number) for number in range(200) if number != 100] + ["100"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("items_max", [7, 1000])
async def test_a_logical_partition_is_in_the_order_of_creation(tmp_path: Path, version: int, items_max: int) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container(partitionKey={"paths": ["/pk"], "kind": "Hash", "version": version})
        for number in range(60):
            await container.create_item({"id": str(-number), "pk": f"k{number % 3}"}, None)
        scope = container.logical_scope(("k1",))
        found = await ids_of_pages(world, container, scope, items_max=items_max)
    assert found == [str(-number) for number in range(1, 60, 3)]


async def test_a_large_part_of_a_partition_is_answered_whole_and_its_end_in_the_order_of_creation(
    tmp_path: Path,
) -> None:
    count = SORTED_ITEMS_MAX + 200
    async with open_world(tmp_path) as world:
        key = {"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2}
        container = await world.container(partitionKey=key)
        for number in range(count + 1):
            item = {"id": str(number), "tenant": "other" if number == count else "t", "user": str(number % 9)}
            await container.create_item(item, None)
        found = await ids_of_pages(world, container, container.logical_scope(("t",)), items_max=100)
    numbers = list(map(int, found))
    assert sorted(numbers) == list(range(count))
    assert numbers[-500:] == sorted(numbers[-500:])


def test_a_position_is_what_is_left_of_any_scope() -> None:
    position = Position(b"\x20", ((b"\x30", 7), (b"\x40", 3)))
    assert pieces_of(EVERYTHING, position) == [
        Piece(b"\x20", b"\x30", 7),
        Piece(b"\x30", b"\x40", 3),
        Piece(b"\x40", b"\xff", 0),
    ]
    assert pieces_of(Scope(b"\x25", b"\x35"), position) == [Piece(b"\x25", b"\x30", 7), Piece(b"\x30", b"\x35", 3)]
    assert pieces_of(Scope(b"\x10", b"\x20"), position) == []
    assert pieces_of(Scope(b"\x50", b"\x60"), position) == [Piece(b"\x50", b"\x60", 0)]
