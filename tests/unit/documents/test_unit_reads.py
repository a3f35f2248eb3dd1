"""The reads of a unit of work, against a model; and its return to a savepoint."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from asterism.errors import UniqueKeyViolation
from asterism.models.documents.container import Container
from asterism.models.documents.creation_order import walk_bodies
from asterism.models.documents.item_position import Position
from asterism.models.documents.transaction import Overtaken, Transaction
from asterism.models.documents.unit_reads import UnitReads
from asterism.values.json.text import loads
from tests.support import units
from tests.support.world import open_world

KEY = ("p",)
# More than two slices of a scan.
STORED = 300


async def seen(container: Container, reads: UnitReads, start: Position | None = None) -> dict[str, int]:
    items = [loads(body) async for _, body in walk_bodies(reads, container, container.logical_scope(KEY), start)]
    return {item["id"]: item["n"] for item in items}  # type: ignore[index,misc,call-overload]


async def change_at_random(work: Transaction, model: dict[str, int], draw: random.Random, count: int) -> None:
    for number in range(count):
        item_id = f"{draw.randrange(STORED + 50):04d}"
        await units.upsert(work, {"id": item_id, "pk": "p", "n": number})
        model[item_id] = number
        victim = draw.choice(sorted(model))
        await units.delete(work, victim)
        del model[victim]


@pytest.mark.parametrize("seed", range(3))
async def test_reads_are_the_snapshot_with_the_staged_changes(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with open_world(tmp_path) as world:
        container = await world.container()
        model = {f"{number:04d}": -1 for number in range(STORED)}
        for item_id in model:
            await container.create_item({"id": item_id, "pk": "p", "n": -1}, KEY)
        await container.create_item({"id": "elsewhere", "pk": "q", "n": 0}, ("q",))
        async with container.snapshot_transaction(KEY) as (work, reads):
            await change_at_random(work, model, draw, 80)
            found = await seen(container, reads)
            # An item that was changed keeps its place; one that was deleted and created again comes last.
            assert list(found.items()) == list(model.items())
            scope = container.logical_scope(KEY)
            positions = [position async for position, _ in walk_bodies(reads, container, scope, None)]
            assert list(await seen(container, reads, positions[100])) == list(model)[100:]
            for item_id in ("0000", sorted(model)[7], "none"):
                assert (await reads.find_body(item_id.encode()) is not None) == (item_id in model)


async def test_a_unit_returns_to_its_mark_with_its_unique_keys(tmp_path: Path) -> None:
    unique = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/name"]}]}}
    async with open_world(tmp_path) as world:
        container = await world.container(**unique)
        await container.create_item({"id": "a", "pk": "p", "name": "x"}, KEY)
        async with container.snapshot_transaction(KEY) as (work, _):
            await units.create(work, {"id": "b", "pk": "p", "name": "y"})
            mark = work.savepoint()
            await units.delete(work, "a")
            await units.create(work, {"id": "c", "pk": "p", "name": "x"})
            work.return_to(mark)
            with pytest.raises(UniqueKeyViolation):
                await units.create(work, {"id": "d", "pk": "p", "name": "x"})
            with pytest.raises(UniqueKeyViolation):
                await units.create(work, {"id": "d", "pk": "p", "name": "y"})
            await units.create(work, {"id": "d", "pk": "p", "name": "z"})
            await container.commit(work)
        names = {name: (await container.read_item(name.encode(), KEY)).body for name in ("a", "b", "d")}
        assert len(names) == 3
        await world.check_statistics(container)


async def test_a_unit_that_was_overtaken_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        await container.create_item({"id": "a", "pk": "p", "n": 1}, KEY)

        async def run_unit() -> None:
            async with container.snapshot_transaction(KEY) as (work, _):
                await container.upsert_item({"id": "a", "pk": "p", "n": 2}, KEY)
                await units.upsert(work, {"id": "a", "pk": "p", "n": 3})
                await container.commit(work)

        with pytest.raises(Overtaken):
            await run_unit()
        assert loads((await container.read_item(b"a", KEY)).body)["n"] == 2  # type: ignore[index]  # a JSON object
