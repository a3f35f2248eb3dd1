"""A change of the indexing policy: items follow it in the background, under load, and queries never notice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from asterism.errors import ItemNotFound
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.container import Container
from asterism.models.documents.cosmos.profile import CosmosProfile
from asterism.models.documents.results import Scope
from asterism.models.documents.upkeep.reindexer import ReindexStep, due_after_change
from asterism.reading.execute import run_page
from asterism.reading.pinned_scopes import scopes_of
from asterism.reading.query_page import QueryPage
from asterism.values.json.text import dumps, loads
from tests.support.index_check import check_index
from tests.support.world import ACCOUNT, World, open_world

ITEMS = 300
ALL: dict[str, Any] = {"includedPaths": [{"path": "/*"}]}
WITHOUT_TENS: dict[str, Any] = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/tens/?"}]}
ONLY_TENS: dict[str, Any] = {"includedPaths": [{"path": "/tens/?"}], "excludedPaths": [{"path": "/*"}]}
NONE: dict[str, Any] = {"indexingMode": "none"}
WITH_COMPOSITE: dict[str, Any] = {
    **ALL,
    "compositeIndexes": [[{"path": "/tens", "order": "ascending"}, {"path": "/n", "order": "descending"}]],
    "spatialIndexes": [{"path": "/place/*"}],
}
POLICIES = [ALL, WITHOUT_TENS, ONLY_TENS, NONE, WITH_COMPOSITE]


def item(number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "pk": f"k{number % 17}",
        "n": number,
        "tens": number // 10,
        "tags": ["all", f"t{number % 3}"],
        "place": {"type": "Point", "coordinates": [number % 180, number % 90]},
    }


async def filled(world: World, policy: dict[str, Any]) -> Container:
    container = await world.container(indexingPolicy=policy)
    await asyncio.gather(*(container.create_item(item(number), None) for number in range(ITEMS)))
    return container


async def change_policy(world: World, container: Container, policy: dict[str, Any]) -> Container:
    body = {**container.keyspace.record.settings, "indexingPolicy": policy}
    return await world.store.replace_container(container, body)


async def page_of(world: World, container: Container, text: str) -> QueryPage:
    query = compile_query(parse_query(text), {})
    scopes = scopes_of(container, query, Scope(b"", b"\xff"))
    return await run_page(
        world.router, container, query, scopes, items_max=1000, monotonic_seconds=lambda: 0.0, encode_result=dumps
    )


async def answer(world: World, container: Container, text: str) -> list[Any]:
    return [loads(result) for result in (await page_of(world, container, text)).results]


async def write_until(stopped: asyncio.Event, container: Container, writer: int) -> None:
    number = 0
    while not stopped.is_set():
        number += 1
        at = (number * 7 + writer * 41) % (ITEMS + 50)
        if number % 5:
            await container.upsert_item({**item(at), "tens": number % 40}, None)
        else:
            try:
                await container.delete_item(str(at).encode(), (f"k{at % 17}",))
            except ItemNotFound:
                await container.create_item(item(ITEMS + 1000 + number * 10 + writer), None)
        await asyncio.sleep(0)


@pytest.mark.parametrize("after", POLICIES)
@pytest.mark.parametrize("before", POLICIES)
def test_items_end_with_exactly_the_entries_of_the_new_policy(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, before)
            await change_policy(world, container, after)
            await world.store.reindexer.finished(container.keyspace)
            assert await world.store.reindexer.percent(container.keyspace) == 100
            await check_index(world, container)

    asyncio.run(scenario())


def test_writers_a_split_and_a_second_change_on_the_way_leave_an_exact_index(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, ALL)
            stopped = asyncio.Event()
            writers = [asyncio.create_task(write_until(stopped, container, writer)) for writer in range(3)]
            slices: list[ReindexStep] = []
            world.store.reindexer.on_step = slices.append
            await change_policy(world, container, ONLY_TENS)
            job = await world.reshaper.split(container.keyspace, 0)
            while slices.count(ReindexStep.WALKING) < 2:
                await asyncio.sleep(0.001)
            await change_policy(world, container, WITH_COMPOSITE)
            await world.reshaper.finished(job)
            await world.store.reindexer.finished(container.keyspace)
            await asyncio.sleep(0.02)
            stopped.set()
            await asyncio.gather(*writers)
            assert len(container.keyspace.record.map.ranges) == 2
            await check_index(world, container)
            await world.check_statistics(container)

    asyncio.run(scenario())


@pytest.mark.parametrize(("before", "after"), [(ALL, WITHOUT_TENS), (WITHOUT_TENS, ALL), (NONE, ALL), (ALL, NONE)])
def test_queries_are_right_at_every_moment(tmp_path: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    expected = {
        "SELECT VALUE c.n FROM c WHERE c.tens = 7": list(range(70, 80)),
        "SELECT VALUE c.n FROM c WHERE c.n >= 295": list(range(295, 300)),
        "SELECT VALUE c.tens FROM c ORDER BY c.tens DESC OFFSET 0 LIMIT 5": [29] * 5,
        "SELECT VALUE MAX(c.tens) FROM c": [29],
        "SELECT VALUE COUNT(1) FROM c WHERE c.tens >= 20": [100],
        "SELECT VALUE COUNT(1) FROM c WHERE c.tens = 7 AND c.n < 75": [5],
        "SELECT DISTINCT VALUE c.tens FROM c": list(range(30)),
        "SELECT VALUE c.tens * 100 + COUNT(1) FROM c GROUP BY c.tens": [tens * 100 + 10 for tens in range(30)],
    }

    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, before)
            await change_policy(world, container, after)
            rounds = 0
            while container.keyspace.record.catching_up:
                rounds += 1
                found = {text: sorted(await answer(world, container, text)) for text in expected}
                assert found == expected
                await asyncio.sleep(0)
            assert rounds > 0
            assert {text: sorted(await answer(world, container, text)) for text in expected} == expected

    asyncio.run(scenario())


def test_a_new_index_is_used_only_when_it_is_complete(tmp_path: Path) -> None:
    text = "SELECT VALUE c.n FROM c WHERE c.tens = 7"

    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, WITHOUT_TENS)
            await change_policy(world, container, ALL)
            during = await page_of(world, container, text)
            percent = await world.store.reindexer.percent(container.keyspace)
            await world.store.reindexer.finished(container.keyspace)
            after = await page_of(world, container, text)
            assert (during.indexes_used, after.indexes_used) == ((), ("/tens/?",))
            assert during.results == after.results
            assert percent < 100

    asyncio.run(scenario())


def test_the_walk_waits_for_a_query_that_relies_on_entries_it_would_remove(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, ALL)
            with container.keyspace.in_flight:
                await change_policy(world, container, WITHOUT_TENS)
                await asyncio.sleep(0.05)
                assert world.store.reindexer.walks[container.record.rid].items_walked == 0
            await world.store.reindexer.finished(container.keyspace)
            await check_index(world, container)

    asyncio.run(scenario())


def test_a_walk_goes_on_where_it_was_when_the_server_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, ALL)
            steps: list[ReindexStep] = []
            world.store.reindexer.on_step = steps.append
            world.store.reindexer.position_seconds = 0.0
            await change_policy(world, container, ONLY_TENS)
            # At the second slice the position after the first is remembered.
            while steps.count(ReindexStep.WALKING) < 2:
                await asyncio.sleep(0.001)
            await world.store.reindexer.stop()
        async with open_world(tmp_path) as world:
            reindexer = world.store.reindexer
            container = world.store.container_for_items(ACCOUNT, "d", "c")
            walked: list[int] = []
            reindexer.on_step = lambda _: walked.append(reindexer.walks[container.record.rid].items_walked)
            await reindexer.finished(container.keyspace)
            assert 0 < walked[0] < ITEMS
            assert walked[-1] == ITEMS
            await check_index(world, container)

    asyncio.run(scenario())


def test_a_container_may_be_deleted_on_the_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, ALL)
            await change_policy(world, container, ONLY_TENS)
            await asyncio.sleep(0.002)
            await world.store.delete_container(container)
            await world.store.reindexer.finished(container.keyspace)
            assert world.store.reindexer.walks == {}

    asyncio.run(scenario())


def test_what_does_not_touch_the_index_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await filled(world, ALL)
            body = {**container.record.settings, "defaultTtl": 60}
            await world.store.replace_container(container, body)
            assert container.keyspace.record.catching_up == {}

    asyncio.run(scenario())


def test_going_back_and_forth_keeps_every_policy_items_may_have(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            container = await world.container(indexingPolicy=ALL)
            record = container.record
            changed = {
                **record.settings,
                "indexingPolicy": {**record.settings["indexingPolicy"], "indexingMode": "none"},
            }
            due = due_after_change(CosmosProfile(), record, changed, mark="m")
            assert due == {"policies": [record.settings["indexingPolicy"]], "mark": "m"}

    asyncio.run(scenario())
