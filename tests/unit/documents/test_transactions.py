"""Units of work: what they see, what they leave, and that the store is always as if each had happened alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from asterism.errors import AsterismError, ItemExists, PreconditionFailed, UniqueKeyViolation
from asterism.keyspaces.routing.families import CHANGE_LOG, INDEX, ITEMS, UNIQUE_KEYS
from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.container import Container
from asterism.models.documents.cosmos.patch import Patch, parse_operations
from asterism.models.documents.transaction import Conditions, Outcome
from asterism.storage.contract import ExpectationFailed, Span
from asterism.values.json.text import loads
from tests.support import units
from tests.support.world import World, open_world

KEY = ("p",)
NAME_IS_UNIQUE = {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/name"]}]}}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


def create(item_id: str, **more: Any) -> Operation:
    return Operation(OperationKind.CREATE, item_id.encode(), {"id": item_id, "pk": "p", **more})


def upsert(item_id: str, **more: Any) -> Operation:
    return Operation(OperationKind.UPSERT, item_id.encode(), {"id": item_id, "pk": "p", **more})


def replace(item_id: str, *, new_id: str | None = None, if_match: str | None = None, **more: Any) -> Operation:
    item = {"id": new_id or item_id, "pk": "p", **more}
    return Operation(OperationKind.REPLACE, item_id.encode(), item, conditions=Conditions(if_match))


def read(item_id: str) -> Operation:
    return Operation(OperationKind.READ, item_id.encode(), {})


def delete(item_id: str) -> Operation:
    return Operation(OperationKind.DELETE, item_id.encode(), {})


def patch(item_id: str, *operations: dict[str, Any]) -> Operation:
    parsed = Patch(parse_operations(list(operations), key_paths=(("pk",),)))
    return Operation(OperationKind.PATCH, item_id.encode(), {}, parsed)


async def stored(world: World, container: Container) -> dict[str, dict[str, Any]]:
    """Every item, straight from the store; and every index, log and unique entry belongs to one of them."""
    (partition,) = container.keyspace.record.map.ranges
    entries = await world.everything(partition.partition, ITEMS)
    items = [cast("dict[str, Any]", loads(value[35:])) for _, value in entries]
    numbers = {value[9:17] for _, value in entries}
    references = {key[1:] for key, _ in entries}
    for family in (INDEX, CHANGE_LOG):
        for key, reference in await world.everything(partition.partition, family):
            assert key[-8:] in numbers
            assert reference in references
    log = await world.everything(partition.partition, CHANGE_LOG)
    assert len(log) == len(entries)
    held = await world.everything(partition.partition, UNIQUE_KEYS)
    keys = container.planner.unique_keys
    assert len(held) == len(entries) * (0 if keys is None else len(keys.keys))
    index = await world.everything(partition.partition, INDEX)
    assert len(index) == sum(len(container.rules.terms(item)) for item in items)
    await world.check_statistics(container)
    return {item["id"]: item for item in items}


def seen(result: Outcome | AsterismError | None) -> dict[str, Any]:
    assert isinstance(result, Outcome)
    return cast("dict[str, Any]", loads(result.body))


async def test_a_batch_is_one_lsn_and_each_operation_sees_those_before_it(world: World) -> None:
    container = await world.container()
    first = await container.create_item({"id": "old", "pk": "p", "n": 1}, KEY)
    answer = await container.run_batch(
        KEY,
        [
            create("a", n=1),
            read("a"),
            patch("a", {"op": "incr", "path": "/n", "value": 4}),
            replace("old", n=2),
            upsert("b"),
            delete("b"),
            read("old"),
        ],
    )
    assert not answer.failed
    assert answer.lsn == first.lsn + 1
    assert [seen(answer.results[place])["id"] for place in (0, 1, 6)] == ["a", "a", "old"]
    assert seen(answer.results[6])["n"] == 2
    items = await stored(world, container)
    assert {name: item["n"] for name, item in items.items()} == {"a": 5, "old": 2}
    assert items["a"]["_etag"] == seen(answer.results[2])["_etag"]


async def test_a_failure_leaves_nothing_and_tells_which_it_was(world: World) -> None:
    container = await world.container()
    await container.create_item({"id": "old", "pk": "p"}, KEY)
    answer = await container.run_batch(KEY, [create("a"), delete("old"), create("a"), read("nothing")])
    assert answer.failed
    assert [type(result) for result in answer.results] == [type(None), type(None), ItemExists, type(None)]
    assert (await stored(world, container)).keys() == {"old"}


async def test_a_batch_of_reads_writes_nothing(world: World) -> None:
    container = await world.container()
    made = await container.create_item({"id": "a", "pk": "p"}, KEY)
    answer = await container.run_batch(KEY, [read("a"), read("a")])
    assert (answer.lsn, answer.failed) == (made.lsn, False)


async def test_an_item_deleted_and_made_again_in_one_batch_is_another_item(world: World) -> None:
    container = await world.container()
    before = loads((await container.create_item({"id": "a", "pk": "p", "x": 1}, KEY)).body)
    await container.run_batch(KEY, [delete("a"), create("a", y=2)])
    after = (await stored(world, container))["a"]
    assert cast("dict[str, Any]", before)["_rid"] != after["_rid"]
    assert "x" not in after


async def test_an_etag_of_the_same_batch_counts(world: World) -> None:
    container = await world.container()
    made = await container.create_item({"id": "a", "pk": "p"}, KEY)
    answer = await container.run_batch(KEY, [replace("a", if_match=made.etag), replace("a", if_match=made.etag)])
    assert isinstance(answer.results[1], PreconditionFailed)


async def test_a_rename_in_a_batch_is_a_delete_and_a_create(world: World) -> None:
    container = await world.container()
    await container.run_batch(KEY, [create("a"), replace("a", new_id="b", n=1), read("b")])
    assert (await stored(world, container)).keys() == {"b"}


async def test_batches_that_cross_each_other_all_happen(world: World) -> None:
    container = await world.container()
    await container.create_item({"id": "n", "pk": "p", "n": 0}, KEY)
    add = [patch("n", {"op": "incr", "path": "/n", "value": 1})]
    answers = await asyncio.gather(*(container.run_batch(KEY, [*add, create(f"i{number}")]) for number in range(20)))
    assert not any(answer.failed for answer in answers)
    items = await stored(world, container)
    assert items["n"]["n"] == 20
    assert len(items) == 21


async def test_a_unique_key_holds_in_every_way_of_writing(world: World) -> None:
    container = await world.container(**NAME_IS_UNIQUE)
    await container.create_item({"id": "a", "pk": "p", "name": "x"}, KEY)
    await container.create_item({"id": "other", "pk": "q", "name": "x"}, ("q",))
    await container.create_item({"id": "b", "pk": "p", "name": "y"}, KEY)
    rename = Patch(parse_operations([{"op": "set", "path": "/name", "value": "x"}], key_paths=()))
    for attempt in (
        container.create_item({"id": "c", "pk": "p", "name": "x"}, KEY),
        container.upsert_item({"id": "c", "pk": "p", "name": "x"}, KEY),
        container.replace_item(b"b", {"id": "b", "pk": "p", "name": "x"}, KEY),
        container.replace_item(b"b", {"id": "bb", "pk": "p", "name": "x"}, KEY),
        container.patch_item(b"b", rename, KEY),
    ):
        with pytest.raises(UniqueKeyViolation):
            await attempt
    with pytest.raises(ItemExists):
        await container.create_item({"id": "a", "pk": "p", "name": "z"}, KEY)
    assert {name: item["name"] for name, item in (await stored(world, container)).items()} == {
        "a": "x",
        "b": "y",
        "other": "x",
    }


async def test_a_unique_key_is_free_again_when_its_item_changes_or_goes(world: World) -> None:
    container = await world.container(**NAME_IS_UNIQUE)
    await container.create_item({"id": "a", "pk": "p", "name": "x"}, KEY)
    await container.replace_item(b"a", {"id": "renamed", "pk": "p", "name": "x"}, KEY)
    await container.upsert_item({"id": "renamed", "pk": "p", "name": "y"}, KEY)
    await container.create_item({"id": "b", "pk": "p", "name": "x"}, KEY)
    await container.delete_item(b"b", KEY)
    await container.create_item({"id": "c", "pk": "p", "name": "x"}, KEY)
    assert (await stored(world, container)).keys() == {"renamed", "c"}


async def test_two_items_swap_a_unique_key_in_one_batch_only_in_an_order_that_is_right_at_each_step(
    world: World,
) -> None:
    container = await world.container(**NAME_IS_UNIQUE)
    await container.run_batch(KEY, [create("a", name="x"), create("b", name="y")])
    wrong = await container.run_batch(KEY, [replace("a", name="y"), replace("b", name="x")])
    right = await container.run_batch(KEY, [replace("a", name="z"), replace("b", name="x"), replace("a", name="y")])
    assert isinstance(wrong.results[0], UniqueKeyViolation)
    assert not right.failed
    assert {name: item["name"] for name, item in (await stored(world, container)).items()} == {"a": "y", "b": "x"}


async def test_a_missing_value_and_null_are_one_unique_value(world: World) -> None:
    container = await world.container(**NAME_IS_UNIQUE)
    await container.create_item({"id": "a", "pk": "p"}, KEY)
    with pytest.raises(UniqueKeyViolation):
        await container.create_item({"id": "b", "pk": "p", "name": None}, KEY)


async def test_of_many_that_want_one_unique_value_one_gets_it(world: World) -> None:
    container = await world.container(**NAME_IS_UNIQUE)
    outcomes = await asyncio.gather(
        *(container.create_item({"id": f"i{number}", "pk": "p", "name": "x"}, KEY) for number in range(20)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, UniqueKeyViolation) for outcome in outcomes) == 19
    assert len(await stored(world, container)) == 1


async def test_a_snapshot_unit_reads_one_moment_and_commits_beside_the_writes_of_others(world: World) -> None:
    container = await world.container()
    await container.create_item({"id": "a", "pk": "p", "n": 1}, KEY)
    async with container.snapshot_transaction(KEY) as (work, reads):
        await container.create_item({"id": "b", "pk": "p"}, KEY)
        scope = container.logical_scope(KEY)
        span = Span(ITEMS + scope.start, ITEMS + scope.end)
        (partition,) = container.record.map.ranges
        page = await reads.scan(container.keyspace, container.record, partition, span, limit=10, bytes_max=None)
        assert len(page.entries) == 1
        await units.read(work, "a")
        await units.upsert(work, {"id": "c", "pk": "p"})
        await container.commit(work)
    assert (await stored(world, container)).keys() == {"a", "b", "c"}


async def test_a_snapshot_unit_is_refused_when_others_changed_what_it_read(world: World) -> None:
    container = await world.container()
    await container.create_item({"id": "a", "pk": "p", "n": 1}, KEY)
    async with container.snapshot_transaction(KEY) as (work, _):
        await container.upsert_item({"id": "a", "pk": "p", "n": 2}, KEY)
        assert loads((await units.read(work, "a")).body)["n"] == 1  # type: ignore[index]  # a JSON object
        await units.upsert(work, {"id": "c", "pk": "p"})
        with pytest.raises(ExpectationFailed):
            await container.commit(work)
    assert (await stored(world, container)).keys() == {"a"}


async def test_an_operation_that_is_refused_has_staged_nothing(world: World) -> None:
    container = await world.container(**NAME_IS_UNIQUE)
    await container.run_batch(KEY, [create("a", name="x"), create("b", name="y")])
    async with container.snapshot_transaction(KEY) as (work, _):
        with pytest.raises(UniqueKeyViolation):
            await units.replace(work, "a", {"id": "moved", "pk": "p", "name": "y"})
        with pytest.raises(ItemExists):
            await units.create(work, {"id": "b", "pk": "p", "name": "z"})
        await units.create(work, {"id": "c", "pk": "p", "name": "z"})
        await container.commit(work)
    assert {name: item["name"] for name, item in (await stored(world, container)).items()} == {
        "a": "x",
        "b": "y",
        "c": "z",
    }


@pytest.mark.parametrize("seed", range(6))
async def test_random_batches_leave_what_a_model_says(world: World, seed: int) -> None:
    """The model is a dictionary that is copied for each batch and thrown away when an operation fails."""
    draw = random.Random(seed)
    container = await world.container(**({} if seed % 2 else NAME_IS_UNIQUE))
    unique = not seed % 2
    model: dict[str, str] = {}
    kinds: list[Any] = [create, upsert, replace, delete, read]
    for _ in range(60):
        operations: list[Operation] = []
        attempt: dict[str, str] | None = dict(model)
        for _ in range(draw.randrange(1, 6)):
            kind, item_id, name = draw.choice(kinds), draw.choice("abcd"), draw.choice("vwxyz")
            operations.append(kind(item_id, name=name) if kind in (create, upsert, replace) else kind(item_id))
            attempt = attempt if attempt is None else step(attempt, kind.__name__, item_id, name, unique=unique)
        answer = await container.run_batch(KEY, operations)
        assert answer.failed == (attempt is None)
        model = model if attempt is None else attempt
    assert {name: item["name"] for name, item in (await stored(world, container)).items()} == model


def step(model: dict[str, str], kind: str, item_id: str, name: str, *, unique: bool) -> dict[str, str] | None:
    there = item_id in model
    allowed = {"create": not there, "upsert": True, "replace": there, "delete": there, "read": there}[kind]
    others = [value for other, value in model.items() if other != item_id]
    writes = kind in ("create", "upsert", "replace")
    clashes = unique and writes and name in others
    changed = {"delete": {key: value for key, value in model.items() if key != item_id}, "read": model}
    after = {**model, item_id: name} if writes else changed[kind]
    return after if allowed and not clashes else None


# --- many creates at once -------------------------------------------------------------------------------------------


async def test_creates_made_at_once_leave_what_creates_one_by_one_leave(world: World) -> None:
    container = await world.container()
    operations = [create(f"i{number}", n=number, tags=["a", "b", "a"], deep={"x": number % 2}) for number in range(30)]
    answer = await container.run_batch(KEY, operations)
    alone = await container.create_item(
        {"id": "alone", "pk": "p", "n": 1, "tags": ["a", "b", "a"], "deep": {"x": 1}}, KEY
    )
    items = await stored(world, container)
    assert len(items) == 31
    outcomes = [cast(Outcome, result) for result in answer.results]
    assert {outcome.charge for outcome in outcomes} == {alone.charge}
    assert len({outcome.etag for outcome in outcomes}) == 30
    assert [cast("dict[str, Any]", loads(outcome.body))["n"] for outcome in outcomes] == list(range(30))
    assert list(items["i7"]) == list(items["alone"])


@pytest.mark.parametrize(
    ("spoiler", "place"),
    [
        (create("there"), 2),
        (create("i0"), 3),
        (Operation(OperationKind.CREATE, b"x", {"id": "x", "pk": "another"}), 1),
        (Operation(OperationKind.CREATE, b"a/b", {"id": "a/b", "pk": "p"}), 4),
        (create("x", ttl="soon"), 2),
    ],
)
async def test_of_many_creates_the_first_that_is_refused_is_told_and_none_is_made(
    world: World, spoiler: Operation, place: int
) -> None:
    container = await world.container()
    await container.create_item({"id": "there", "pk": "p"}, KEY)
    operations = [create(f"i{number}") for number in range(5)]
    operations.insert(place, spoiler)
    answer = await container.run_batch(KEY, operations)
    assert [isinstance(result, AsterismError) for result in answer.results] == [at == place for at in range(6)]
    assert set(await stored(world, container)) == {"there"}


async def test_many_creates_see_what_their_unit_has_staged_before(world: World) -> None:
    container = await world.container()
    async with container.snapshot_transaction(KEY) as (work, _):
        await units.create(work, {"id": "a", "pk": "p"})
        refused = await work.create_many([{"id": "b", "pk": "p"}, {"id": "a", "pk": "p"}])
        made = await work.create_many([{"id": "b", "pk": "p"}, {"id": "c", "pk": "p"}])
        await units.delete(work, "b")
        await container.commit(work)
    assert (refused, len(made or ())) == (None, 2)
    assert set(await stored(world, container)) == {"a", "c"}


async def test_however_many_write_one_item_at_once_each_has_its_turn(world: World) -> None:
    container = await world.container()
    await container.create_item({"id": "hot", "pk": "p", "n": 0}, KEY)
    count_up = patch("hot", {"op": "incr", "path": "/n", "value": 1}).edit
    assert count_up is not None
    patched = [container.patch_item(b"hot", count_up, KEY) for _ in range(250)]
    in_batches = [container.run_batch(KEY, [patch("hot", {"op": "incr", "path": "/n", "value": 1})]) for _ in range(50)]
    await asyncio.gather(*patched, *in_batches)
    assert (await stored(world, container))["hot"]["n"] == 300
