"""A query's pages on a real engine: they end in time, find by index what a scan finds, and survive a split."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.errors import MalformedRequest, RequestRateTooLarge
from asterism.languages.cosmos_sql import CompiledQuery, compile_query, parse_query
from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.page_progress import ClientWatch, QueryAbandoned
from asterism.reading.pinned_scopes import pinned_keys, scopes_of
from asterism.reading.query_page import QueryPage
from asterism.throughput.token_bucket import TokenBucket
from asterism.values.json.text import dumps
from asterism.values.undefined import UNDEFINED
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
ITEM_COUNT = 400


def compiled(text: str) -> CompiledQuery:
    return compile_query(parse_query(text), {})


async def filled(world: World, **settings_of_container: object) -> Container:
    container = await world.container(**settings_of_container)
    for number in range(ITEM_COUNT):
        item = {
            "id": str(number),
            "pk": number % 3,
            "n": number,
            "tens": number // 10,
            "name": f"n{number:03d}",
            "tags": [f"t{number % 5}", "all"],
        }
        await container.create_item(item, None)
    return container


async def page_of(
    world: World,
    container: Container,
    text: str,
    continuation: Continuation | None = None,
    seconds: Callable[[], float] = lambda: 0.0,
    items_max: int = 1000,
) -> QueryPage:
    query = compiled(text)
    scopes = scopes_of(container, query, EVERYTHING)
    return await run_page(
        world.router,
        container,
        query,
        scopes,
        continuation=continuation or BEGINNING,
        items_max=items_max,
        monotonic_seconds=seconds,
        encode_result=dumps,
    )


async def all_pages(world: World, container: Container, text: str, items_max: int) -> list[QueryPage]:
    pages = [await page_of(world, container, text, items_max=items_max)]
    while pages[-1].continuation is not None:
        continuation = Continuation.from_bytes(pages[-1].continuation.to_bytes())
        pages.append(await page_of(world, container, text, continuation, items_max=items_max))
    return pages


async def results_of(world: World, container: Container, text: str, items_max: int = 1000) -> list[Any]:
    pages = await all_pages(world, container, text, items_max)
    return [json.loads(result) for page in pages for result in page.results]


# R6 of asterism/reading/DESIGN.md.
async def test_a_page_that_takes_too_long_ends_and_the_next_goes_on(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        # Every reading of this clock is an hour later, so each page has time for one slice.
        hours = count(step=3600.0)
        text = "SELECT VALUE c.n FROM c"
        pages = [await page_of(world, container, text, None, lambda: next(hours))]
        while (rest := pages[-1].continuation) is not None:
            pages.append(await page_of(world, container, text, rest, lambda: next(hours)))
        found = sorted(int(result) for page in pages for result in page.results)
    assert len(pages) > 2
    assert found == list(range(ITEM_COUNT))


# R10 of asterism/reading/DESIGN.md.
async def test_a_query_that_was_begun_is_finished_and_the_next_one_waits_for_what_it_owes(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        container.keyspace.buckets = {0: TokenBucket(1.0, burst=False, now=0.0)}
        page = await page_of(world, container, "SELECT * FROM c")
        with pytest.raises(RequestRateTooLarge):
            await page_of(world, container, "SELECT * FROM c")
    assert len(page.results) == ITEM_COUNT


async def test_a_query_without_from_has_one_row(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        assert await results_of(world, container, "SELECT VALUE 1 + 1") == [2]


async def test_a_filter_that_nothing_can_pass_reads_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        page = await page_of(world, container, "SELECT * FROM c WHERE c.pk = 1 AND c.pk = 2")
    assert (page.results, page.items_loaded, page.continuation) == ([], 0, None)
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


@pytest.mark.parametrize(
    ("where", "index", "loaded_max"),
    [
        ("c.n = 7", "/n/?", 1),
        ("c.n IN (7, 8, 'x')", "/n/?", 2),
        ("c.n >= 390", "/n/?", 10),
        ("c.n > 389 AND c.n <= 395", "/n/?", 6),
        ("c.n BETWEEN 5 AND 9", "/n/?", 5),
        ("STARTSWITH(c.name, 'n00')", "/name/?", 10),
        ("c.name LIKE 'n39%'", "/name/?", 10),
        ("ARRAY_CONTAINS(c.tags, 't3') AND c.n < 20", "/tags/[]/?", 80),
        ("c.n = 3 OR c.name = 'n300'", "/name/?", 2),
        ("IS_NULL(c.n)", "/n/?", 0),
        ("c.tens = 5 AND c.n = 55", "/tens/?", 10),
    ],
)
async def test_an_index_finds_what_a_scan_finds_and_loads_little(
    tmp_path: Path, where: str, index: str, loaded_max: int
) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        text = f"SELECT VALUE c.n FROM c WHERE {where}"
        page = await page_of(world, container, text)
        matches = compiled(text).matches
        expected = [
            n
            for n in range(ITEM_COUNT)
            if matches(json.loads((await container.read_item(str(n).encode(), (n % 3,))).body))
        ]
    assert sorted(int(result) for result in page.results) == expected
    assert index in page.indexes_used
    assert page.items_loaded <= loaded_max


async def test_order_and_limit_load_only_what_they_answer(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        page = await page_of(world, container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 5")
    assert [int(result) for result in page.results] == [397, 396, 395, 394, 393]
    assert page.items_loaded == 7
    assert page.indexes_used == ("/n/?",)


@pytest.mark.parametrize("text", ["SELECT VALUE COUNT(1) FROM c", "SELECT VALUE [{'item': COUNT(1)}] FROM c"])
async def test_counting_items_loads_none(tmp_path: Path, text: str) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        page = await page_of(world, container, text)
    assert str(ITEM_COUNT).encode() in page.results[0]
    assert page.items_loaded == 0


async def test_counting_a_logical_partition_loads_none(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        query = compiled("SELECT VALUE COUNT(1) FROM c")
        page = await run_page(
            world.router,
            container,
            query,
            [container.logical_scope((1,))],
            items_max=10,
            monotonic_seconds=lambda: 0.0,
            encode_result=dumps,
        )
    assert (page.results, page.items_loaded) == ([b"133"], 0)


async def test_a_long_query_ends_when_its_client_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClientWatch, "_FIRST_CHECK_SLICES", 1)

    async def gone_at_once() -> None:
        return

    async with open_world(tmp_path) as world:
        container = await filled(world)
        query = compiled("SELECT VALUE SUM(c.n * 2) FROM c")
        with pytest.raises(QueryAbandoned):
            await run_page(
                world.router,
                container,
                query,
                [EVERYTHING],
                items_max=10,
                monotonic_seconds=lambda: 0.0,
                client_gone=gone_at_once,
                encode_result=dumps,
            )


async def test_a_key_that_the_scope_has_chosen_is_not_looked_up_again(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        page = await page_of(world, container, "SELECT * FROM c WHERE c.pk = 1 AND c.n = 7")
    assert (len(page.results), page.items_loaded, page.indexes_used) == (1, 1, ("/n/?",))


COMPOSITE = {
    "indexingMode": "consistent",
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [],
    "compositeIndexes": [[{"path": "/tens", "order": "descending"}, {"path": "/n", "order": "ascending"}]],
}


async def test_an_order_by_several_paths_needs_a_composite_index_and_uses_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world, indexingPolicy=COMPOSITE)
        found = await results_of(world, container, "SELECT VALUE c.n FROM c ORDER BY c.tens DESC, c.n ASC", 7)
        turned = await results_of(world, container, "SELECT VALUE c.n FROM c ORDER BY c.tens ASC, c.n DESC", 50)
        with pytest.raises(MalformedRequest, match="composite index"):
            await page_of(world, container, "SELECT * FROM c ORDER BY c.tens ASC, c.n ASC")
    expected = sorted(range(ITEM_COUNT), key=lambda n: (-(n // 10), n))
    assert found == expected
    assert turned == expected[::-1]


async def paged_over_a_split(world: World, container: Container, text: str) -> list[object]:
    """All results in pages of seven, with a split after the first."""
    first = await page_of(world, container, text, items_max=7)
    await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
    found: list[object] = [json.loads(result) for result in first.results]
    continuation = first.continuation
    while continuation is not None:
        page = await page_of(world, container, text, continuation, items_max=7)
        assert len(page.results) <= 7
        found += [json.loads(result) for result in page.results]
        continuation = page.continuation
    return found


# R4 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE c.n FROM c ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE c.n < 250 ORDER BY c.name DESC",
        "SELECT DISTINCT VALUE c.tens FROM c",
        "SELECT c.tens, COUNT(1) AS n FROM c GROUP BY c.tens",
        "SELECT TOP 33 VALUE c.n FROM c ORDER BY c.n",
    ],
)
async def test_pages_of_an_order_put_together_are_the_whole_even_over_a_split(tmp_path: Path, text: str) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        whole = await results_of(world, container, text)
        assert await paged_over_a_split(world, container, text) == whole


# R4 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize(
    ("text", "results"),
    [
        ("SELECT VALUE c.n FROM c", ITEM_COUNT),
        ("SELECT VALUE [c.n, t] FROM c JOIN t IN c.tags", 2 * ITEM_COUNT),
        ("SELECT VALUE c.n FROM c WHERE c.tens < 30", 300),
        ("SELECT VALUE c.n FROM c WHERE c.name = 'nobody' OR c.n >= 0", ITEM_COUNT),
        ("SELECT VALUE c.n FROM c OFFSET 5 LIMIT 100", 100),
    ],
)
async def test_a_split_between_pages_changes_the_order_and_no_more(tmp_path: Path, text: str, results: int) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        whole = await results_of(world, container, text)
        found = await paged_over_a_split(world, container, text)
    assert found[:7] == whole[:7]
    assert len({json.dumps(result) for result in found}) == len(found) == results


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", "b\x00", "x" * 250, 1.5])
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.sampled_from("pq"), scalars, max_size=2)
items = st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3), min_size=1, max_size=12)
literals = st.sampled_from(["null", "true", "1", "-2", "1.5", "'a'", "'ab'", "''", f"'{'x' * 250}'"])
predicates = st.one_of(
    st.builds(
        "c.{} {} {}".format, st.sampled_from("abc"), st.sampled_from(["=", "<", "<=", ">", ">=", "!="]), literals
    ),
    st.builds("c.{} IN ({}, {})".format, st.sampled_from("abc"), literals, literals),
    st.builds("STARTSWITH(c.{}, {})".format, st.sampled_from("abc"), st.sampled_from(["''", "'a'", "'x'"])),
    st.builds("ARRAY_CONTAINS(c.{}, {})".format, st.sampled_from("abc"), literals),
    st.builds("IS_DEFINED(c.{})".format, st.sampled_from("abc")),
)
filters = st.recursive(
    predicates,
    lambda inner: st.builds("({} AND {})".format, inner, inner) | st.builds("({} OR {})".format, inner, inner),
    max_leaves=4,
)


async def compare_with_memory(data: list[dict[str, Any]], where: str, order: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with open_world(Path(directory)) as world:
            container = await world.container()
            for number, item in enumerate(data):
                await container.create_item({**item, "id": str(number), "pk": number % 2}, None)
            found = await results_of(world, container, f"SELECT VALUE c.id FROM c WHERE {where}", 3)
            query = compiled(f"SELECT VALUE c.id FROM c WHERE {where}")
            expected = [str(number) for number, item in enumerate(data) if query.matches(item)]
            assert found == expected
            ordered_text = f"SELECT VALUE c.id FROM c WHERE {where} ORDER BY c.{order}"
            ordered = await results_of(world, container, ordered_text, 2)
            assert sorted(ordered) == sorted(expected)


@pytest.mark.parametrize("where", ["c.a < true", "c.a <= false", "c.a > false", "c.a >= true"])
async def test_booleans_are_one_type_to_the_index(where: str) -> None:
    await compare_with_memory([{"a": False}, {"a": True}, {"a": None}, {"a": 0}], where, "a")


# R1 of asterism/reading/DESIGN.md.
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(items, filters, st.sampled_from("abc"))
def test_whatever_the_data_and_the_filter_index_and_memory_agree(
    data: list[dict[str, Any]], where: str, order: str
) -> None:
    asyncio.run(compare_with_memory(data, where, order))
