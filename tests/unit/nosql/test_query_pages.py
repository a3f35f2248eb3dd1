"""A query's pages: they end in time, and they end early rather than fail when the budget ends first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from asterism.documents.answers import Scope, Stopped
from asterism.documents.container import Container
from asterism.errors import RequestRateTooLarge
from asterism.query import CompiledQuery, compile_query, parse_query
from asterism.query.execute import QueryPage, pinned_keys, run_page, scopes_of
from asterism.throughput.token_bucket import TokenBucket
from asterism.values.undefined import UNDEFINED
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
ITEM_COUNT = 400


def compiled(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), {})


async def filled(world: World) -> Container:
    container = await world.container()
    for number in range(ITEM_COUNT):
        await container.create_item({"id": str(number), "pk": number % 3, "n": number}, None)
    return container


async def page_of(
    world: World, container: Container, text: str, position: bytes | None, seconds: Callable[[], float]
) -> QueryPage:
    query = compiled(text)
    scopes = scopes_of(container, query, EVERYTHING)
    return await run_page(
        world.owner, container, query, scopes, position=position, items_max=1000, monotonic_seconds=seconds
    )


async def test_a_page_that_takes_too_long_ends_and_the_next_goes_on(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        # Every look at this clock finds it an hour later, so each page has time for one slice.
        hours = count(step=3600.0)
        pages = [await page_of(world, container, "SELECT VALUE c.n FROM c", None, lambda: next(hours))]
        while pages[-1].position is not None:
            assert pages[-1].stopped is Stopped.TIME
            position = pages[-1].position
            pages.append(await page_of(world, container, "SELECT VALUE c.n FROM c", position, lambda: next(hours)))
        found = sorted(int(result) for page in pages for result in page.results)
    assert len(pages) > 2
    assert found == list(range(ITEM_COUNT))
    assert pages[-1].stopped is Stopped.END_OF_DATA


async def test_a_page_that_was_begun_is_answered_when_the_budget_ends(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        container.keyspace.buckets = {0: TokenBucket(1.0, burst=False, now=0.0)}
        page = await page_of(world, container, "SELECT * FROM c", None, lambda: 0.0)
        with pytest.raises(RequestRateTooLarge):
            await page_of(world, container, "SELECT * FROM c", page.position, lambda: 0.0)
    assert 0 < len(page.results) < ITEM_COUNT
    assert page.position is not None


async def test_a_query_without_from_has_one_row(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        page = await page_of(world, container, "SELECT VALUE 1 + 1", None, lambda: 0.0)
    assert page.results == [b"2"]
    assert page.position is None


async def test_a_filter_that_nothing_can_pass_reads_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        page = await page_of(world, container, "SELECT * FROM c WHERE c.pk = 1 AND c.pk = 2", None, lambda: 0.0)
    assert (page.results, page.items_loaded, page.position) == ([], 0, None)
    assert page.charge > 0


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("c.pk = 'a'", [("a",)]),
        ("c.pk IN (1, null)", [(1,), (None,)]),
        ("NOT IS_DEFINED(c.pk)", [(UNDEFINED,)]),
        ("c.pk = [1]", None),
        ("c.n = 1", None),
    ],
)
async def test_only_what_can_be_a_key_pins_one(
    tmp_path: Path, where: str, keys: list[tuple[object, ...]] | None
) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        assert pinned_keys(container, compiled(f"SELECT * FROM c WHERE {where}")) == keys
