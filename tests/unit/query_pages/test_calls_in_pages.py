"""Pages of queries that call users' functions: the same whether calls are made one by one or in bunches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.container import Container
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.pinned_scopes import scopes_of
from asterism.values.json.text import dumps
from tests.support.world import World, open_world
from tests.unit.query_pages.test_query_pages import EVERYTHING, ITEM_COUNT, filled


class Halved:
    def __init__(self) -> None:
        self.bunches: list[int] = []
        self.single_calls = 0

    def __call__(self, number: int) -> object:
        self.single_calls += 1
        return number // 2

    def results_ahead(self, calls: Iterable[tuple[int]]) -> list[object]:
        found: list[object] = [number // 2 for (number,) in calls]
        self.bunches.append(len(found))
        return found


async def results_of(
    world: World, container: Container, text: str, function: Callable[..., object], *, items_max: int
) -> list[object]:
    results: list[bytes] = []
    rest: Continuation | None = BEGINNING
    while rest is not None:
        query = compile_query(parse_query(text), {}, udfs={"half": function})
        page = await run_page(
            world.router,
            container,
            query,
            scopes_of(container, query, EVERYTHING),
            continuation=rest,
            items_max=items_max,
            monotonic_seconds=lambda: 0.0,
            encode_result=dumps,
        )
        results += page.results
        rest = page.continuation
    return [json.loads(result) for result in results]


QUERIES = [
    "SELECT VALUE c.n FROM c WHERE udf.half(c.n) % 3 = 1",
    "SELECT TOP 70 VALUE c.n FROM c WHERE udf.half(c.n) % 3 = 1",
    "SELECT VALUE c.n FROM c WHERE udf.half(c.n) > 3 OFFSET 5 LIMIT 9",
    "SELECT VALUE udf.half(c.n) FROM c",
    "SELECT DISTINCT VALUE udf.half(c.tens) FROM c",
    "SELECT VALUE c.n FROM c WHERE udf.half(c.n) > 100 AND c.tens < 35",
    "SELECT VALUE c.n FROM c WHERE c.tens < 35 AND udf.half(c.n) > 100",
    "SELECT VALUE c.n FROM c WHERE udf.half(c.n) > 100 ORDER BY c.n DESC",
    "SELECT VALUE c.n FROM c WHERE udf.half(c.n) > 190 ORDER BY c.n % 7, c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE udf.half(c.n) > 100",
    "SELECT c.pk, COUNT(1) AS many FROM c WHERE udf.half(c.n) > 100 GROUP BY c.pk",
]


async def test_pages_are_the_same_whichever_way_calls_are_made(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        for text in QUERIES:
            expected = await results_of(world, container, text, lambda number: number // 2, items_max=1000)
            assert expected, text
            for items_max in (1000, 7):
                assert await results_of(world, container, text, Halved(), items_max=items_max) == expected, text


async def test_a_scan_makes_one_exchange_for_each_slice_once_calls_were_seen_to_be_short(tmp_path: Path) -> None:
    function = Halved()
    async with open_world(tmp_path) as world:
        container = await filled(world)
        text = "SELECT VALUE c.n FROM c WHERE udf.half(c.n) < 0"
        assert await results_of(world, container, text, function, items_max=1000) == []
    # The first 32 are loaded before the size of the items is known.
    assert function.bunches == [4, 16, 12, 128 - 32, 128, 128, ITEM_COUNT - 3 * 128]
    assert function.single_calls == 0


class Slow:
    """Each call takes as long as one may; it remembers which turn of the event loop it was made in."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.turn = 0
        self.turns_of_calls: list[int] = []

    def __call__(self, number: int) -> int:
        self.seconds += 0.04
        self.turns_of_calls.append(self.turn)
        return number

    async def count_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE c.n FROM c WHERE udf.slow(c.n) >= 0",
        "SELECT VALUE udf.slow(c.n) FROM c",
        "SELECT TOP 1000 udf.slow(c.n) AS n FROM c",
        "SELECT VALUE udf.slow(c.n) FROM c ORDER BY c.n",
        "SELECT VALUE SUM(udf.slow(c.n)) FROM c",
    ],
)
async def test_other_requests_have_their_turn_between_calls_that_take_long(tmp_path: Path, text: str) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        slow = Slow()
        counting = asyncio.create_task(slow.count_turns())
        query = compile_query(parse_query(text), {}, udfs={"slow": slow})
        await run_page(
            world.router,
            container,
            query,
            scopes_of(container, query, EVERYTHING),
            items_max=1000,
            monotonic_seconds=lambda: slow.seconds,
            encode_result=dumps,
        )
        counting.cancel()
        # A few at the beginning, while their duration is not known yet, run together.
        later = slow.turns_of_calls[8:]
        assert len(later) >= 10
        assert len(set(later)) == len(later)
