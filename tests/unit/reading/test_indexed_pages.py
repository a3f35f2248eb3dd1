"""Pages of a filter that an index serves: every entry is read about once for all of them, whatever the lookup is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.batch import Operation, OperationKind
from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.query_page import QueryPage
from asterism.reading.result_sets import ResultSets
from asterism.values.json.text import dumps
from tests.support.counting_router import CountingRouter
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
ITEMS = 2_400
BATCH_ITEMS = 100
PAGE_ITEMS = 20
POLICY = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/text/?"}],
    "compositeIndexes": [[{"path": "/kind"}, {"path": "/price"}], [{"path": "/kind"}, {"path": "/half"}]],
}


def make_item(number: int) -> dict[str, Any]:
    """Prices are in no order that the numbers have."""
    return {
        "id": f"{number:05d}",
        "pk": number // BATCH_ITEMS,
        "price": number * 1_009 % ITEMS,
        "name": f"n{number * 1_009 % ITEMS:05d}",
        "kind": f"k{number % 12}",
        "half": number % 2 == 0,
        "tags": [f"t{number % 5}", f"u{number % 3}"],
        "text": "x",
    }


async def filled(world: World, **settings: object) -> Container:
    container = await world.container(**{"indexingPolicy": POLICY, **settings})
    for start in range(0, ITEMS, BATCH_ITEMS):
        items = [make_item(number) for number in range(start, start + BATCH_ITEMS)]
        operations = [Operation(OperationKind.CREATE, item["id"], item) for item in items]
        await container.run_batch((start // BATCH_ITEMS,), operations)
    return container


class Reader:
    """Reads queries of one container page by page, as a client does, and counts index entries."""

    def __init__(self, world: World, container: Container, *, is_kept: bool = True) -> None:
        self.router = CountingRouter(world.engine)
        self._container = container
        self._sets = ResultSets(monotonic_seconds=lambda: 0.0, random_bytes=os.urandom) if is_kept else None

    async def page(self, text: str, continuation: Continuation = BEGINNING, items_max: int = PAGE_ITEMS) -> QueryPage:
        return await run_page(
            self.router,
            self._container,
            compile_query(parse_query(text), {}),
            [EVERYTHING],
            continuation=Continuation.from_bytes(continuation.to_bytes()),
            items_max=items_max,
            monotonic_seconds=lambda: 0.0,
            result_sets=self._sets,
            identity=text.encode(),
            encode_result=dumps,
        )

    async def pages(self, text: str, items_max: int = PAGE_ITEMS) -> list[QueryPage]:
        pages = [await self.page(text, items_max=items_max)]
        while (rest := pages[-1].continuation) is not None:
            pages.append(await self.page(text, rest, items_max))
        return pages


def results(pages: list[QueryPage]) -> list[Any]:
    return [json.loads(result) for page in pages for result in page.results]


LOOKUPS = [
    ("c.kind = 'k3'", lambda item: item["kind"] == "k3"),
    ("c.kind IN ('k3', 'k5', 'k7', 'nothing')", lambda item: item["kind"] in ("k3", "k5", "k7")),
    ("c.price >= 2000", lambda item: item["price"] >= 2000),
    ("c.price > 100 AND c.price <= 500", lambda item: 100 < item["price"] <= 500),
    ("c.price BETWEEN 7 AND 300", lambda item: 7 <= item["price"] <= 300),
    ("c.price < 200 OR c.price > 2200", lambda item: item["price"] < 200 or item["price"] > 2200),
    ("STARTSWITH(c.name, 'n00')", lambda item: item["name"].startswith("n00")),
    ("ARRAY_CONTAINS(c.tags, 't1')", lambda item: "t1" in item["tags"]),
    ("ARRAY_CONTAINS(c.tags, 't1') OR ARRAY_CONTAINS(c.tags, 'u2')", lambda item: {"t1", "u2"} & set(item["tags"])),
    ("c.kind = 'k3' AND c.price > 1200", lambda item: item["kind"] == "k3" and item["price"] > 1200),
    ("c.kind = 'k4' AND c.half = true", lambda item: item["kind"] == "k4"),
    ("c.price IN (" + ", ".join(map(str, range(0, 900, 3))) + ")", lambda item: item["price"] in range(0, 900, 3)),
]


# R2 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize(("where", "is_wanted"), LOOKUPS)
async def test_pages_of_a_lookup_read_each_index_entry_about_once(tmp_path: Path, where: str, is_wanted: Any) -> None:
    wanted = [item["id"] for item in map(make_item, range(ITEMS)) if is_wanted(item)]
    async with open_world(tmp_path) as world:
        reader = Reader(world, await filled(world))
        pages = await reader.pages(f"SELECT VALUE c.id FROM c WHERE {where}")
    assert results(pages) == wanted
    assert sum(page.items_loaded for page in pages) <= len(wanted) + len(pages)
    assert not any(page.has_scanned for page in pages)
    # A page reads some entries that the next one begins with: of one value a few times what it answers, never all.
    assert reader.router.index_entries <= 8 * len(wanted) + 100


# R3 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize("where", ["IS_DEFINED(c.price)", "c.price >= 0", "c.half = true OR c.half = false"])
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_lookup_that_names_most_items_costs_no_more_than_a_scan(
    tmp_path: Path, where: str, is_kept: bool
) -> None:
    async with open_world(tmp_path) as world:
        reader = Reader(world, await filled(world), is_kept=is_kept)
        pages = await reader.pages(f"SELECT VALUE c.id FROM c WHERE {where}")
    assert results(pages) == [f"{number:05d}" for number in range(ITEMS)]
    assert sum(page.items_loaded for page in pages) <= ITEMS + len(pages)
    assert reader.router.index_entries <= 8 * ITEMS


# R7 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize(
    "where", ["c.price >= 1800", "STARTSWITH(c.name, 'n01')", "c.kind = 'k3' AND c.price > 100", "c.price < 9"]
)
async def test_candidates_that_are_lost_between_pages_are_found_again_or_scanned(tmp_path: Path, where: str) -> None:
    text = f"SELECT VALUE c.id FROM c WHERE {where}"
    async with open_world(tmp_path) as world:
        container = await filled(world)
        kept = results(await Reader(world, container).pages(text))
        lost = Reader(world, container, is_kept=False)
        assert results(await lost.pages(text)) == kept
        # Over all pages no more than a scan would cost, at six entries for an item.
        assert lost.router.index_entries <= 6 * ITEMS + 1_000 * len(kept) / PAGE_ITEMS


async def test_items_written_between_pages_are_found_by_the_pages_that_follow(tmp_path: Path) -> None:
    text = "SELECT VALUE c.id FROM c WHERE c.price >= 2300"
    async with open_world(tmp_path) as world:
        container = await filled(world)
        reader = Reader(world, container)
        first = await reader.page(text)
        assert first.continuation is not None
        answered = results([first])
        rest = [item["id"] for item in map(make_item, range(ITEMS)) if item["price"] >= 2300][len(answered) :]
        changed, removed = f"{ITEMS - 1:05d}", rest[0]
        assert changed not in rest
        await container.create_item({**make_item(0), "id": "new", "price": 2_400}, None)
        await container.upsert_item({**make_item(ITEMS - 1), "price": 2_500}, None)
        await container.delete_item(removed.encode(), (make_item(int(removed))["pk"],))
        found = answered
        continuation: Continuation | None = first.continuation
        while continuation is not None:
            page = await reader.page(text, continuation)
            found += results([page])
            continuation = page.continuation
    assert found == [*found[:PAGE_ITEMS], *rest[1:], changed, "new"]


async def test_few_results_of_a_wide_filter_are_found_by_reading_few_items(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        reader = Reader(world, await filled(world))
        (page,) = await reader.pages("SELECT TOP 5 VALUE c.id FROM c WHERE c.price >= 1")
    assert len(page.results) == 5
    assert page.items_loaded < 50
    assert reader.router.index_entries <= 1_500


ORDERS = [
    ("c.price > 1200", "c.price", ["price"]),
    ("c.price >= 1200", "c.price", ["price"]),
    ("c.price < 1200", "c.price", ["price"]),
    ("c.price <= 1200", "c.price", ["price"]),
    ("c.price BETWEEN 600 AND 1800", "c.price", ["price"]),
    ("c.price IN (3, 700, 701, 2000, 9999, 5, 6, 7, 8, 9, 10, 11)", "c.price", ["price"]),
    ("STARTSWITH(c.name, 'n01')", "c.name", ["name"]),
    ("c.kind = 'k3'", "c.kind, c.price", ["kind", "price"]),
    ("c.kind = 'k3' AND c.price > 600", "c.kind, c.price", ["kind", "price"]),
    ("c.kind = 'k3' AND c.price BETWEEN 600 AND 1800", "c.kind, c.price", ["kind", "price"]),
    ("c.kind IN ('k3', 'k9') AND c.price < 2000", "c.kind, c.price", ["kind", "price"]),
]


# R5 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize(("where", "order", "names"), ORDERS)
@pytest.mark.parametrize("descends", [False, True])
async def test_an_order_begins_at_the_bound_of_the_filter(
    tmp_path: Path, where: str, order: str, names: list[str], descends: bool
) -> None:
    by = ", ".join(path + " DESC" for path in order.split(", ")) if descends else order
    matches = compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {}).matches
    wanted = [item for item in map(make_item, range(ITEMS)) if matches(item)]
    wanted.sort(key=lambda item: [item[name] for name in names], reverse=descends)
    async with open_world(tmp_path) as world:
        reader = Reader(world, await filled(world))
        (page,) = await reader.pages(f"SELECT TOP 10 VALUE c.id FROM c WHERE {where} ORDER BY {by}")
        assert results([page]) == [item["id"] for item in wanted[:10]]
        assert page.items_loaded == min(10, len(wanted))
        assert reader.router.index_entries <= 200
        pages = await reader.pages(f"SELECT VALUE c.id FROM c WHERE {where} ORDER BY {by}", items_max=100)
    assert results(pages) == [item["id"] for item in wanted]


async def test_an_order_that_the_filter_thins_out_reads_each_entry_once(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        reader = Reader(world, await filled(world))
        # Of other paths than the order's; more candidates than are sorted.
        text = "SELECT TOP 200 VALUE c.price FROM c WHERE c.half = true AND c.price >= 0 ORDER BY c.price"
        (page,) = await reader.pages(text, items_max=1_000)
    assert results([page]) == sorted(item["price"] for item in map(make_item, range(ITEMS)) if item["half"])[:200]
    assert page.items_loaded < 600
    assert reader.router.index_entries < 4_000
