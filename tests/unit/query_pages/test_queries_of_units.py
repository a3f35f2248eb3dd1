"""Queries on the view of a unit of work: as if it were stored already, without the writes of others meanwhile."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from asterism.keyspaces.routing.router import Reads
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.computed import document_view
from asterism.models.documents.container import Container
from asterism.models.documents.transaction import Transaction
from asterism.reading.continuation import BEGINNING
from asterism.reading.execute import run_page
from asterism.reading.pinned_scopes import scopes_of
from asterism.reading.query_page import QueryPage
from asterism.values.json.text import dumps, loads
from tests.support import units
from tests.support.world import open_world

KEY = ("p",)
# More than a few pages of index entries and slices of a scan.
STORED = 700
QUERIES = (
    "SELECT VALUE [c.id, c.n] FROM c WHERE c.n = 7",
    "SELECT VALUE [c.id, c.n] FROM c WHERE c.n >= 3 AND c.n < 6 AND c.word = 'w1'",
    "SELECT VALUE [c.id, c.n] FROM c WHERE c.word != 'w1'",
    "SELECT VALUE [c.id, c.n] FROM c WHERE c.doubled = 14",
    "SELECT VALUE [c.id, c.n] FROM c ORDER BY c.rank",
    "SELECT VALUE [c.id, c.n] FROM c ORDER BY c.rank DESC OFFSET 10 LIMIT 500",
    "SELECT VALUE [c.id, c.n] FROM c ORDER BY c.n DESC, c.rank ASC",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 4",
    "SELECT c.word, COUNT(1) AS k, MAX(c.rank) AS highest FROM c GROUP BY c.word",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT VALUE MIN(c.rank) FROM c",
)
SETTINGS: dict[str, Any] = {
    "computedProperties": [{"name": "doubled", "query": "SELECT VALUE c.n * 2 FROM c"}],
    "indexingPolicy": {
        "compositeIndexes": [[{"path": "/n", "order": "descending"}, {"path": "/rank", "order": "ascending"}]]
    },
}


def item(draw: random.Random, item_id: str, pk: str = "p") -> dict[str, object]:
    return {"id": item_id, "pk": pk, "n": draw.randrange(10), "word": f"w{draw.randrange(3)}", "rank": draw.random()}


async def pages(reads: Reads, container: Container, text: str, *, items_max: int) -> list[QueryPage]:
    query = compile_query(parse_query(text), {})
    found: list[QueryPage] = []
    continuation = BEGINNING
    while True:
        page = await run_page(
            reads,
            container,
            query,
            scopes_of(container, query, container.logical_scope(KEY)),
            continuation=continuation,
            items_max=items_max,
            monotonic_seconds=lambda: 0.0,
            view=document_view(container),
            is_paid_later=True,
            encode_result=dumps,
        )
        found.append(page)
        if page.continuation is None:
            return found
        continuation = page.continuation


def results(found: Sequence[QueryPage]) -> list[object]:
    return [loads(result) for page in found for result in page.results]


async def change_at_random(work: Transaction, draw: random.Random, count: int) -> None:
    for _ in range(count):
        await units.upsert(work, item(draw, f"{draw.randrange(STORED + 100):04d}"))
        victim = f"{draw.randrange(STORED):04d}"
        await units.upsert(work, item(draw, victim))
        await units.delete(work, victim)


@pytest.mark.parametrize("seed", range(2))
async def test_a_unit_is_asked_as_the_store_will_be(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with open_world(tmp_path) as world:
        container = await world.container(**SETTINGS)
        for number in range(STORED):
            await container.create_item(item(draw, f"{number:04d}"), KEY)
        await container.create_item(item(draw, "other", "q"), ("q",))
        async with container.snapshot_transaction(KEY) as (work, reads):
            before = {text: results(await pages(reads, container, text, items_max=1000)) for text in QUERIES}
            assert before == {
                text: results(await pages(world.router, container, text, items_max=1000)) for text in QUERIES
            }
            beginning = work.savepoint()
            await change_at_random(work, draw, 40)
            await pages(reads, container, QUERIES[0], items_max=1000)
            work.return_to(beginning)
            assert results(await pages(reads, container, QUERIES[0], items_max=1000)) == before[QUERIES[0]]
            await change_at_random(work, draw, 150)
            seen = {text: results(await pages(reads, container, text, items_max=1000)) for text in QUERIES}
            in_parts = {text: results(await pages(reads, container, text, items_max=37)) for text in QUERIES}
            assert in_parts == seen
            await container.commit(work)
        assert seen == {text: results(await pages(world.router, container, text, items_max=1000)) for text in QUERIES}


async def test_a_unit_reads_through_indexes_and_does_not_see_others(tmp_path: Path) -> None:
    draw = random.Random(3)
    async with open_world(tmp_path) as world:
        container = await world.container(**SETTINGS)
        for number in range(200):
            await container.create_item({**item(draw, f"{number:04d}"), "n": number}, KEY)
        async with container.snapshot_transaction(KEY) as (work, reads):
            await units.create(work, {**item(draw, "mine"), "n": 7})
            await container.create_item({**item(draw, "theirs"), "n": 7}, KEY)
            (page,) = await pages(reads, container, "SELECT VALUE c.id FROM c WHERE c.n = 7", items_max=10)
            assert sorted(map(str, map(loads, page.results))) == ["0007", "mine"]
            assert (page.items_loaded, page.has_scanned, page.indexes_used) == (2, False, ("/n/?",))
