"""Queries over collections of MongoDB: pages put together are the whole result, whatever happens between them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from asterism.clock import SYSTEM_CLOCK
from asterism.errors import MalformedRequest, QueryMemoryInUse
from asterism.languages.cosmos_sql.compiling.compile import CompiledQuery, compile_query
from asterism.languages.cosmos_sql.syntax.parser import parse_query
from asterism.models.collections.collection import Collection
from asterism.models.collections.item_view import item_key, item_rid
from asterism.reading import source_page
from asterism.reading.collection_source import CollectionSource, intervals_of_query
from asterism.reading.limits import QueryMemory
from asterism.reading.result_sets import ResultSets
from asterism.reading.source_page import BEGINNING, SourceContinuation, SourcePage, run_source_page
from asterism.values.json.text import dumps, loads
from tests.support.collections import CollectionWorld, bodies, open_collections

pytestmark = pytest.mark.store

DOCUMENTS = [{"_id": number, "k": f"k{number % 9}", "n": number % 7, "tags": [number, -number]} for number in range(90)]
MEMORY_BYTES = 50_000_000
QUERIES = {
    "SELECT VALUE c._id FROM c": sorted(range(90)),
    "SELECT VALUE c._id FROM c WHERE c.n = 3": [number for number in range(90) if number % 7 == 3],
    "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c._id < 20": sorted([*range(20), *(-number for number in range(20))]),
    "SELECT VALUE c._id FROM c ORDER BY c.n DESC, c._id": sorted(range(90), key=lambda number: (-(number % 7), number)),
    "SELECT VALUE c._id FROM c ORDER BY c._id DESC OFFSET 5 LIMIT 30": list(range(84, 54, -1)),
    "SELECT TOP 4 VALUE c._id FROM c ORDER BY c._id": [0, 1, 2, 3],
    "SELECT DISTINCT VALUE c.n FROM c": list(range(7)),
    "SELECT VALUE SUM(c._id) FROM c": [sum(range(90))],
    "SELECT VALUE COUNT(1) FROM c GROUP BY c.k": [10] * 9,
    "SELECT VALUE 1": [1],
}


def compiled(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), {})


def new_result_sets() -> ResultSets:
    return ResultSets(monotonic_seconds=SYSTEM_CLOCK.monotonic_seconds, random_bytes=os.urandom)


async def page_of(
    world: CollectionWorld,
    collection: Collection,
    text: str,
    continuation: SourceContinuation,
    sets: ResultSets,
    *,
    memory_bytes: int = MEMORY_BYTES,
) -> SourcePage:
    query, rules, keyspace = compiled(text), collection.rules, collection.keyspace
    whole = rules.whole_interval()
    intervals = intervals_of_query(rules, item_key(rules.record, keyspace.record), query, [whole])
    source = CollectionSource(world.world.router, keyspace, intervals, item_rid(rules.record, keyspace.record))
    return await run_source_page(
        source,
        query,
        start=whole.start,
        continuation=continuation,
        items_max=4,
        monotonic_seconds=SYSTEM_CLOCK.monotonic_seconds,
        encode_result=dumps,
        result_sets=sets,
        identity=text.encode(),
        memory=QueryMemory(memory_bytes),
    )


async def new_orders(world: CollectionWorld) -> Collection:
    orders = await world.collection("orders", shard_pattern={"k": "hashed"})
    await orders.insert(bodies(*DOCUMENTS))
    return orders


@pytest.mark.parametrize("keeps_results", [True, False])
@pytest.mark.parametrize("text", list(QUERIES))
async def test_pages_put_together_are_the_whole_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, keeps_results: bool
) -> None:
    # Few, so that an order is collected in several parts.
    monkeypatch.setattr(source_page, "ORDERED_ROWS_MAX", 17)
    async with open_collections(tmp_path) as world:
        orders, sets = await new_orders(world), new_result_sets()
        results: list[Any] = []
        state: SourceContinuation | None = BEGINNING
        pages = 0
        while state is not None:
            page = await page_of(world, orders, text, state, sets)
            results += [loads(result) for result in page.results]
            state = None
            if page.continuation is not None:
                state = SourceContinuation.from_bytes(page.continuation.to_bytes())
            sets = sets if keeps_results else new_result_sets()
            pages += 1
            if pages == 2 and len(orders.keyspace.record.map.ranges) == 1:
                await world.world.reshaper.finished(await world.world.reshaper.split(orders.keyspace, 0))
        expected = QUERIES[text]
        assert (results if "ORDER BY" in text else sorted(results)) == expected


async def test_a_filter_on_the_shard_key_reads_its_logical_partition_alone(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        orders, sets = await new_orders(world), new_result_sets()
        page = await page_of(world, orders, "SELECT VALUE COUNT(1) FROM c WHERE c.k = 'k3'", BEGINNING, sets)
        assert ([loads(result) for result in page.results], page.items_loaded) == ([10], 10)


async def test_a_query_that_needs_more_memory_than_is_left_is_refused(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        orders, sets = await new_orders(world), new_result_sets()
        await orders.insert(bodies(*({"_id": f"large-{place}", "k": "k", "pad": "x" * 10_000} for place in range(200))))
        with pytest.raises(QueryMemoryInUse):
            await page_of(world, orders, "SELECT DISTINCT c.pad, c._id FROM c", BEGINNING, sets, memory_bytes=100_000)
        few = await page_of(world, orders, "SELECT * FROM c", BEGINNING, sets, memory_bytes=100_000)
        assert len(few.results) == 4


BAD_TOKENS = [b"", b"[]", b"{}", b'["z",0,null,0,0,null,0]', b'["",-1,null,0,0,null,null]', b'["",0,1,0,0,1]']


@pytest.mark.parametrize("token", BAD_TOKENS)
def test_a_token_that_no_page_has_given_is_refused(token: bytes) -> None:
    with pytest.raises(MalformedRequest):
        SourceContinuation.from_bytes(token)
