"""A continuation of ORDER BY is a position in the order, whatever the filter and the plan of the next page are.

The clients for .NET, Java and JavaScript go on with a partition's token and a filter of their own (`c.n >= last`), and
skip rows that have the value of the last one by their resource ids, which must therefore be in order too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.reading import execute
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.pinned_scopes import scopes_of
from asterism.reading.query_page import QueryPage
from asterism.values.json.order import compare
from asterism.values.json.text import dumps, loads
from asterism.values.undefined import UNDEFINED
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
REWRITTEN = 'SELECT c._rid, [{{"item": c.n}}] AS orderByItems, c AS payload FROM c WHERE ({}) ORDER BY c.n {}'


async def page_of(
    world: World, container: Container, text: str, continuation: Continuation, *, items_max: int
) -> QueryPage:
    query = compile_query(parse_query(text), {})
    # As it comes back from a client.
    known = BEGINNING if continuation is BEGINNING else Continuation.from_bytes(continuation.to_bytes())
    return await run_page(
        world.router,
        container,
        query,
        scopes_of(container, query, EVERYTHING),
        continuation=known,
        items_max=items_max,
        monotonic_seconds=lambda: 0.0,
        encode_result=dumps,
    )


async def rest_of(
    world: World, container: Container, text: str, continuation: Continuation | None, *, items_max: int
) -> list[Any]:
    found: list[Any] = []
    while continuation is not None:
        page = await page_of(world, container, text, continuation, items_max=items_max)
        assert len(page.results) <= items_max
        found += map(loads, page.results)
        continuation = page.continuation
    return found


async def numbered(world: World, count: int, **settings_of_container: object) -> Container:
    container = await world.container(**settings_of_container)
    for number in range(count):
        await container.create_item({"id": str(number), "pk": number % 3, "n": number}, None)
    return container


async def test_a_token_goes_on_with_the_filter_that_clients_rewrite(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await numbered(world, 20)
        first = await page_of(world, container, REWRITTEN.format("true", "ASC"), BEGINNING, items_max=5)
        assert first.continuation is not None
        text = REWRITTEN.format("c.n >= 4", "ASC")
        second = await page_of(world, container, text, first.continuation, items_max=5)
        assert [loads(row)["payload"]["n"] for row in second.results] == [5, 6, 7, 8, 9]  # type: ignore[index,call-overload]


async def test_every_item_is_in_an_order_those_without_a_value_first(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        for name, value in (("1", {"rank": 1}), ("2", {}), ("3", {"rank": "x"}), ("4", {"rank": None}), ("5", {})):
            await container.create_item({"id": name, "pk": 0, **value}, None)
        text = "SELECT VALUE c.id FROM c ORDER BY c.rank"
        expected = ["2", "5", "4", "1", "3"]
        for items_max in (1, 2, 100):
            assert await rest_of(world, container, text, BEGINNING, items_max=items_max) == expected
            found = await rest_of(world, container, text + " DESC", BEGINNING, items_max=items_max)
            assert found == expected[::-1]
        found = await rest_of(world, container, "SELECT c.rank FROM c ORDER BY c.rank", BEGINNING, items_max=2)
        assert found == [{}, {}, {"rank": None}, {"rank": 1}, {"rank": "x"}]


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
async def test_pages_of_an_order_with_a_join_have_no_more_rows_than_asked_for(tmp_path: Path, direction: str) -> None:
    text = f"SELECT VALUE [c.n, t] FROM c JOIN t IN c.tags ORDER BY c.n {direction}"
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number in range(1200):
            item = {"id": str(number), "pk": number, "n": number // 2, "tags": list(range(number % 4))}
            await container.create_item(item, None)
        found = await rest_of(world, container, text, BEGINNING, items_max=5)
    rows = [(number // 2, number, tag) for number in range(1200) for tag in range(number % 4)]
    sign = 1 if direction == "ASC" else -1
    ordered = sorted(rows, key=lambda row: (sign * row[0], sign * row[1], row[2]))
    assert found == [[value, tag] for value, _, tag in ordered]


@pytest.mark.parametrize("few", [0, 1_000])
async def test_the_rows_of_an_item_are_on_one_page_where_they_fit(
    tmp_path: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "SORTED_CANDIDATES_MAX", few)
    text = "SELECT VALUE [c.n, t] FROM c JOIN t IN c.tags ORDER BY c.n"
    counts = [3, 3, 1, 7, 2, 4, 5]
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number, count in enumerate(counts):
            await container.create_item({"id": str(number), "pk": 0, "n": number, "tags": list(range(count))}, None)
        pages: list[list[int]] = []
        continuation: Continuation | None = BEGINNING
        while continuation is not None:
            page = await page_of(world, container, text, continuation, items_max=5)
            pages.append([loads(row)[0] for row in page.results])  # type: ignore[index,call-overload,misc]
            continuation = page.continuation
    # The item with seven rows fits on no page.
    assert pages == [[0, 0, 0], [1, 1, 1, 2], [3, 3, 3, 3, 3], [3, 3, 4, 4], [5, 5, 5, 5], [6, 6, 6, 6, 6]]


# --- whatever the data, the filters, the plans and the partitions ---------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "ab", 1.5])
ROWS = st.lists(
    st.fixed_dictionaries({}, optional={"n": SCALARS | st.just([1]) | st.just({"k": 1}), "m": st.integers(0, 2)}),
    min_size=1,
    max_size=14,
)
FILTERS = st.sampled_from(
    [
        "true",
        "c.n >= 0",
        "c.n > -1",
        "c.n <= 1",
        "c.n < 'b'",
        "NOT (c.n < 1)",
        "IS_STRING(c.n) OR c.n >= 0",
        "NOT IS_DEFINED(c.n)",
        "c.m = 1",
        "c.m >= 1 AND c.n >= -1",
        "c.m IN (0, 2)",
        "c.n >= 0 AND c.n < 2 AND c.m != 1",
    ]
)
COMPOSITES = [
    [{"path": "/n", "order": "ascending"}, {"path": "/m", "order": "descending"}],
    [{"path": "/n", "order": "descending"}, {"path": "/m", "order": "descending"}],
]
# By an index, by none, by an expression, and by composite indexes read both ways.
ORDERS = [
    ("c.n {0}", "/*", [("n", 1)]),
    ("c.n {0}", "/m/?", [("n", 1)]),
    ("c.m + 1 {0}", "/*", [("m", 1)]),
    ("c.n {0}, c.m {1}", "/*", [("n", 1), ("m", -1)]),
    ("c.n {0}, c.m {0}", "/*", [("n", 1), ("m", 1)]),
]


def expected_rows(rows: Sequence[dict[str, Any]], keys: Sequence[tuple[str, int]], sign: int) -> list[int]:
    """The numbers of the rows in order: values of all types, arrays and objects among each other equal."""

    def value(number: int, name: str) -> object:
        found = rows[number].get(name, UNDEFINED)
        return [] if isinstance(found, list) else {} if isinstance(found, dict) else found

    def order(left: int, right: int) -> int:
        for name, direction in keys:
            compared = compare(value(left, name), value(right, name))
            if compared:
                return sign * direction * compared
        return sign * (left - right)

    return sorted(range(len(rows)), key=cmp_to_key(order))


# R11 of asterism/reading/DESIGN.md.
@pytest.mark.parametrize(("order", "included", "keys"), ORDERS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=ROWS,
    filters=st.lists(FILTERS, min_size=1, max_size=4),
    items_max=st.integers(1, 4),
    descending=st.booleans(),
    splits_after=st.integers(0, 3),
    few=st.sampled_from([0, 3, 1_000]),
)
async def test_pages_with_any_filter_go_on_behind_the_last(
    order: str,
    included: str,
    keys: list[tuple[str, int]],
    rows: list[dict[str, Any]],
    filters: list[str],
    items_max: int,
    descending: bool,
    splits_after: int,
    few: int,
) -> None:
    policy = {"indexingMode": "consistent", "includedPaths": [{"path": included}], "compositeIndexes": COMPOSITES}
    if included != "/*":
        policy["excludedPaths"] = [{"path": "/*"}]
    sign = -1 if descending else 1
    by = order.format(*(("DESC", "ASC") if descending else ("ASC", "DESC")))
    in_order = expected_rows(rows, keys, sign)
    matching = [compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {}).matches for where in filters]
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        # How few items are sorted rather than followed by an index: all, some, none.
        patch.setattr(execute, "SORTED_CANDIDATES_MAX", few)
        async with open_world(Path(directory)) as world:
            container = await world.container(indexingPolicy=policy)
            for number, row in enumerate(rows):
                await container.create_item({**row, "id": str(number), "pk": number}, None)
            continuation: Continuation | None = BEGINNING
            page_number = 0
            while continuation is not None:
                which = min(page_number, len(filters) - 1)
                text = f"SELECT VALUE c.id FROM c WHERE {filters[which]} ORDER BY {by}"
                page = await page_of(world, container, text, continuation, items_max=items_max)
                found = [int(str(loads(result))) for result in page.results]
                left = [number for number in in_order if matching[which](rows[number])]
                assert found == left[: len(found)]
                assert len(found) == min(items_max, len(left)) or page.continuation is not None
                if found:
                    in_order = in_order[in_order.index(found[-1]) + 1 :]
                continuation = page.continuation
                page_number += 1
                if page_number == splits_after and len(rows) > 1:
                    await world.reshaper.finished(await world.reshaper.split(container.keyspace, 0))
