"""Queries that need all items are computed once for their pages, as long as the rest is kept; and right without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from asterism.errors import RequestRateTooLarge
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.reading import result_sets as module
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.pinned_scopes import scopes_of
from asterism.reading.query_page import QueryPage
from asterism.reading.result_sets import KEPT_SECONDS, ResultSets
from asterism.throughput.budgets import Manual
from asterism.values.json.text import dumps, loads
from tests.support.world import World, open_world

QUERIES = (
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.free",
)
POLICY = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/free/?"}, {"path": "/n/?"}]}


class Hands:
    seconds = 0.0


@pytest.fixture
def sets() -> ResultSets:
    return ResultSets(monotonic_seconds=lambda: Hands.seconds, random_bytes=os.urandom)


async def filled(world: World) -> Container:
    container = await world.container(indexingPolicy=POLICY)
    for number in range(60):
        item = {"id": f"{number:02d}", "pk": "a", "n": number % 20, "free": (number * 7) % 60}
        await container.create_item(item, ("a",))
    return container


async def spread(world: World) -> Container:
    """The same items, over five partitions."""
    throughput = Manual(30_000)
    container = await world.container(throughput=throughput, indexingPolicy=POLICY)
    for number in range(60):
        item = {"id": f"{number:02d}", "pk": f"{number % 30}", "n": number % 20, "free": (number * 7) % 60}
        await container.create_item(item, None)
    return container


async def all_pages(
    world: World,
    container: Container,
    text: str,
    sets: ResultSets | None,
    *,
    identities: int = 1,
    monotonic_seconds: Callable[[], float] = lambda: 0.0,
) -> list[QueryPage]:
    query = compile_query(parse_query(text), {})
    pages: list[QueryPage] = []
    continuation: Continuation | None = BEGINNING
    while continuation is not None:
        page = await run_page(
            world.router,
            container,
            query,
            scopes_of(container, query, Scope(b"", b"\xff")),
            continuation=Continuation.from_bytes(continuation.to_bytes()),
            items_max=6,
            monotonic_seconds=monotonic_seconds,
            result_sets=sets,
            identity=b"%d" % (len(pages) % identities),
            encode_result=dumps,
        )
        pages.append(page)
        continuation = page.continuation
    return pages


def results(pages: list[QueryPage]) -> list[object]:
    return [loads(result) for page in pages for result in page.results]


@pytest.mark.parametrize("text", QUERIES)
async def test_only_the_first_page_reads_items(tmp_path: Path, sets: ResultSets, text: str) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        pages = await all_pages(world, container, text, sets)
        recomputed = await all_pages(world, container, text, None)
        assert results(pages) == results(recomputed)
        assert len(pages) == len(recomputed) > 3
        assert [page.items_loaded for page in pages] == [60, *[0] * (len(pages) - 1)]
        assert {page.items_loaded for page in recomputed} == {60}
        assert all(0 < page.charge < pages[0].charge for page in pages[1:])


# R7 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize("text", QUERIES)
async def test_another_query_and_a_late_one_are_computed_again(
    tmp_path: Path, sets: ResultSets, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        expected = results(await all_pages(world, container, text, None))
        other = await all_pages(world, container, text, sets, identities=2)
        assert (results(other), {page.items_loaded for page in other}) == (expected, {60})
        monkeypatch.setattr(module, "KEPT_SECONDS", -1.0)
        late = await all_pages(world, container, text, sets)
        assert (results(late), {page.items_loaded for page in late}) == (expected, {60})
        monkeypatch.setattr(module, "KEPT_SECONDS", KEPT_SECONDS)
        monkeypatch.setattr(module, "SET_BYTES_MAX", 0)
        large = await all_pages(world, container, text, sets)
        assert (results(large), {page.items_loaded for page in large}) == (expected, {60})


# R8 of asterism/reading/DESIGN.md.
async def test_what_is_kept_is_bounded(sets: ResultSets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALL_BYTES_MAX", 100)
    first, second, third = [await sets.keep(b"q", ["x" * 38], first=0) for _ in range(3)]
    assert sets.find(first, b"q", first=0) is None
    assert sets.find(second, b"q", first=0) == sets.find(third, b"q", first=0) == (["x" * 38], [])
    assert sets.find(second, b"other", first=0) is None
    assert sets.find(second, b"q", first=1) is None
    assert sets.find("made up", b"q", first=0) is None


def slow_clock() -> Callable[[], float]:
    """Return a clock whose every reading is four seconds later: no page has the time to read all partitions."""
    ticks = count(0.0, 4.0)
    return lambda: next(ticks)


AGGREGATES = (
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 3",
    "SELECT COUNT(1) AS k, AVG(c.n) AS a FROM c WHERE c.pk IN ('0', '1', '2', '3', '4', '5', '6')",
)


# R6 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize("text", [*QUERIES, *AGGREGATES])
async def test_a_long_collection_resumes_from_page_to_page(tmp_path: Path, sets: ResultSets, text: str) -> None:
    async with open_world(tmp_path) as world:
        container = await spread(world)
        expected = results(await all_pages(world, container, text, None))
        pages = await all_pages(world, container, text, sets, monotonic_seconds=slow_clock())
        assert results(pages) == expected
        assert len([page for page in pages if not page.results]) > 1
        assert sum(page.items_loaded for page in pages) <= 60
        assert all(page.charge > 0 for page in pages)


# R7 of asterism/reading/DESIGN.md.
async def test_a_collection_that_is_lost_or_finds_no_room_is_carried_to_its_end(
    tmp_path: Path, sets: ResultSets, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = QUERIES[1]
    async with open_world(tmp_path) as world:
        container = await spread(world)
        expected = results(await all_pages(world, container, text, None))
        lost = await all_pages(world, container, text, sets, identities=2, monotonic_seconds=slow_clock())
        assert results(lost) == expected
        assert [len(page.results) for page in lost[:2]] == [0, 6]
        monkeypatch.setattr(module, "UNFINISHED_MAX", 0)
        alone = await all_pages(world, container, text, sets, monotonic_seconds=slow_clock())
        assert results(alone) == expected
        assert [page.items_loaded for page in alone] == [60, *[0] * (len(alone) - 1)]


async def test_a_refused_page_leaves_what_was_collected(
    tmp_path: Path, sets: ResultSets, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        container = await spread(world)
        query = compile_query(parse_query("SELECT VALUE SUM(c.n) FROM c"), {})
        scopes = scopes_of(container, query, Scope(b"", b"\xff"))
        ticking = slow_clock()

        async def next_page(continuation: Continuation) -> QueryPage:
            return await run_page(
                world.router,
                container,
                query,
                scopes,
                continuation=continuation,
                items_max=6,
                monotonic_seconds=ticking,
                result_sets=sets,
                encode_result=dumps,
            )

        first = await next_page(BEGINNING)
        assert first.continuation is not None
        with monkeypatch.context() as patched:
            patched.setattr(type(container.keyspace), "spend", refuse)
            with pytest.raises(RequestRateTooLarge):
                await next_page(first.continuation)
        pages = [first]
        while pages[-1].continuation is not None:
            pages.append(await next_page(pages[-1].continuation))
        assert sum(page.items_loaded for page in pages) == 60
        assert results(pages) == [sum(number % 20 for number in range(60))]


def refuse(*_: object) -> None:
    raise RequestRateTooLarge(retry_after_seconds=1.0)
