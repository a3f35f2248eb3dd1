"""A logical partition as a unit of work sees it, against a model; and the way back to a mark."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from asterism.apis.nosql.partition_view import PartitionView
from asterism.documents.item_position import Position
from asterism.documents.transaction import Transaction
from asterism.documents.unit_reads import UnitReads
from asterism.errors import UniqueKeyViolation
from asterism.values.json_text import loads
from tests.support.world import open_world

KEY = ("p",)
# More than two slices of a scan.
STORED = 300


async def seen(view: PartitionView, start: Position | None = None) -> dict[str, int]:
    items = [loads(body) async for _, body in view.scan(start)]
    return {item["id"]: item["n"] for item in items}  # type: ignore[index,misc,call-overload]


async def change_at_random(work: Transaction, model: dict[str, int], draw: random.Random, count: int) -> None:
    for number in range(count):
        item_id = f"{draw.randrange(STORED + 50):04d}"
        await work.upsert({"id": item_id, "pk": "p", "n": number})
        model[item_id] = number
        victim = draw.choice(sorted(model))
        await work.delete(victim)
        del model[victim]


@pytest.mark.parametrize("seed", range(3))
async def test_a_view_is_the_snapshot_with_the_staged_changes(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with open_world(tmp_path) as world:
        container = await world.container()
        model = {f"{number:04d}": -1 for number in range(STORED)}
        for item_id in model:
            await container.create_item({"id": item_id, "pk": "p", "n": -1}, KEY)
        await container.create_item({"id": "elsewhere", "pk": "q", "n": 0}, ("q",))
        async with container.snapshot_transaction(KEY) as (work, snapshot):
            view = PartitionView(container, work, snapshot, UnitReads(work, snapshot))
            await change_at_random(work, model, draw, 80)
            found = await seen(view)
            # An item that was changed keeps its place; one that was deleted and created again comes last.
            assert list(found.items()) == list(model.items())
            positions = [position async for position, _ in view.scan()]
            assert list(await seen(view, positions[100])) == list(model)[100:]
            for item_id in ("0000", sorted(model)[7], "none"):
                assert (await view.find(item_id) is not None) == (item_id in model)


async def test_a_unit_returns_to_its_mark_with_its_unique_keys(tmp_path: Path) -> None:
    unique = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/name"]}]}}
    async with open_world(tmp_path) as world:
        container = await world.container(**unique)
        await container.create_item({"id": "a", "pk": "p", "name": "x"}, KEY)
        async with container.snapshot_transaction(KEY) as (work, _):
            await work.create({"id": "b", "pk": "p", "name": "y"})
            mark = work.mark()
            await work.delete("a")
            await work.create({"id": "c", "pk": "p", "name": "x"})
            work.return_to(mark)
            with pytest.raises(UniqueKeyViolation):
                await work.create({"id": "d", "pk": "p", "name": "x"})
            with pytest.raises(UniqueKeyViolation):
                await work.create({"id": "d", "pk": "p", "name": "y"})
            await work.create({"id": "d", "pk": "p", "name": "z"})
            await container.commit(work)
        names = {name: (await container.read_item(name, KEY)).body for name in ("a", "b", "d")}
        assert len(names) == 3
        await world.check_statistics(container)
