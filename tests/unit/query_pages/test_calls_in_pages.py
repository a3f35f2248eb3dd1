"""Pages of queries that call users' functions: the same whether calls are made one by one or in bunches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from asterism.documents.container import Container
from asterism.query import compile_query, parse_query
from asterism.query.continuation import BEGINNING, Continuation
from asterism.query.execute import run_page
from asterism.query.pinned_scopes import scopes_of
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
            world.owner,
            container,
            query,
            scopes_of(container, query, EVERYTHING),
            continuation=rest,
            items_max=items_max,
            monotonic_seconds=lambda: 0.0,
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


async def test_a_scan_makes_one_exchange_for_each_slice(tmp_path: Path) -> None:
    function = Halved()
    async with open_world(tmp_path) as world:
        container = await filled(world)
        text = "SELECT VALUE c.n FROM c WHERE udf.half(c.n) < 0"
        assert await results_of(world, container, text, function, items_max=1000) == []
    assert function.bunches == [128, 128, 128, ITEM_COUNT - 3 * 128]
    assert function.single_calls == 0
