"""MIN, MAX and COUNT of a path from its index: the same answers as from the items, without reading them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.results import Scope
from asterism.reading.execute import run_page
from asterism.reading.query_page import QueryPage
from asterism.throughput.budgets import Manual
from asterism.values.json.text import dumps
from tests.support.world import World, open_world

TEXTS = [
    "SELECT VALUE MIN(c.x) FROM c",
    "SELECT VALUE MAX(c.x) FROM c",
    "SELECT VALUE COUNT(c.x) FROM c",
    'SELECT VALUE [{"item": MIN(c.x), "item2": {"min": MIN(c.x), "count": COUNT(c.x)}}] FROM c',
    "SELECT MAX(c.x) AS most, MIN(c.y.z) AS least FROM c",
]
EVERYTHING = Scope(b"", b"\xff")
UNINDEXED = {"includedPaths": [], "excludedPaths": [{"path": "/*"}]}


async def page_of(world: World, name: str, text: str, scope: Scope = EVERYTHING) -> QueryPage:
    database = world.catalog.find_database("test", "d")
    assert database is not None
    container = world.store.container(database, name)
    query = compile_query(parse_query(text), {})
    return await run_page(
        world.router, container, query, [scope], items_max=10, monotonic_seconds=lambda: 0.0, encode_result=dumps
    )


async def two_containers(world: World, items: list[dict[str, Any]]) -> None:
    """The same items with and without an index, in two partitions each."""
    for name, policy in (("with", {}), ("without", UNINDEXED)):
        container = await world.container(id=name, indexingPolicy=policy, throughput=Manual(12_000))
        for number, item in enumerate(items):
            await container.create_item({"id": str(number), "pk": number, **item}, None)


def answers(items: list[dict[str, Any]], texts: list[str]) -> list[tuple[QueryPage, QueryPage]]:
    async def scenario(directory: Path) -> list[tuple[QueryPage, QueryPage]]:
        async with open_world(directory) as world:
            await two_containers(world, items)
            return [(await page_of(world, "with", text), await page_of(world, "without", text)) for text in texts]

    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(scenario(Path(directory)))


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([2**53 + 1, -1.5, "", "a", "b\x00", "x" * 300, "x" * 300 + "y"]),
    st.sampled_from([[], {}, [1], {"a": 1}]),
)
some_items = st.lists(
    st.fixed_dictionaries({}, optional={"x": values, "y": st.fixed_dictionaries({}, optional={"z": values})}),
    max_size=6,
)


# R9 of asterism/reading/DESIGN.md.
@settings(max_examples=15, deadline=None)
@given(items=some_items)
def test_the_index_answers_as_the_items_do(items: list[dict[str, Any]]) -> None:
    assert all(indexed.results == scanned.results for indexed, scanned in answers(items, TEXTS))


def test_one_item_of_each_partition_is_enough() -> None:
    items = [{"x": number, "y": {"z": -number}} for number in range(60)]
    found = [indexed for indexed, _ in answers(items, TEXTS)]
    assert [page.results[0] for page in found] == [
        b"0",
        b"59",
        b"60",
        b'[{"item":0,"item2":{"min":0,"count":60}}]',
        b'{"most":59,"least":-59}',
    ]
    assert [page.items_loaded for page in found] == [2, 2, 0, 2, 4]
    assert found[0].indexes_used == ("/x/?",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE MIN(c.x) FROM c WHERE c.x > 3",
        "SELECT VALUE MIN(c.x + 1) FROM c",
        "SELECT VALUE SUM(c.x) FROM c",
        "SELECT VALUE MIN(t) FROM c JOIN t IN c.tags",
        "SELECT VALUE MIN(c.x) FROM c GROUP BY c.y",
    ],
)
def test_what_an_index_cannot_answer_is_read_from_the_items(text: str) -> None:
    items = [{"x": number, "tags": [number]} for number in range(20)]
    ((indexed, scanned),) = answers(items, [text])
    assert indexed.results == scanned.results
    assert indexed.items_loaded > 2


def test_a_part_of_a_partition_is_read_from_its_items(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_world(tmp_path) as world:
            await two_containers(world, [{"x": number} for number in range(30)])
            page = await page_of(world, "with", TEXTS[0], Scope(b"\x10", b"\x20"))
            again = await page_of(world, "without", TEXTS[0], Scope(b"\x10", b"\x20"))
            assert page.results == again.results
            assert page.items_loaded == again.items_loaded

    asyncio.run(scenario())
