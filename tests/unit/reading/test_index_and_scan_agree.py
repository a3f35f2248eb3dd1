"""Whatever the data, the policy, the splits and the size of pages: indexes answer as a scan of the items does."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.container import Container
from asterism.models.documents.indexes import missing_values, reader
from asterism.models.documents.results import Scope
from asterism.reading import candidates, execute, index_answers, index_counts, index_samples
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.order_plan import order_for, row_order
from asterism.reading.result_sets import ResultSets
from asterism.values.json.text import dumps
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
NOT_INDEXED = {"includedPaths": [], "excludedPaths": [{"path": "/*"}]}

LONG = "x" * 250
# Few, so that they meet in filters, and none of a number that is written in two ways.
scalars = st.one_of(
    st.sampled_from([1, 1, 2, "a", LONG, LONG + "y"]),
    st.sampled_from([None, False, True, -1, 0, 1.5, 3.0, 2**53 + 1, "", "ab", "b\x00", "x" * 130]),
)
nested = st.sampled_from([[], [1], ["a", 1], {}, {"p": 1}])
values = scalars | scalars | nested
items = st.lists(
    st.fixed_dictionaries(
        {"pk": st.integers(0, 5), "a": scalars}, optional={"b": values, "c": values, "d": st.integers(0, 2)}
    ),
    min_size=1,
    max_size=24,
)


def composite(text: str) -> list[dict[str, str]]:
    """`a, b desc` as policies write it."""
    columns = [column.strip().partition(" ") for column in text.split(",")]
    return [{"path": f"/{name}", "order": "descending" if rest else "ascending"} for name, _, rest in columns]


policies = st.builds(
    lambda composites, excluded: {
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": f"/{name}/?"} for name in sorted(excluded)],
        "compositeIndexes": [composite(text) for text in sorted(composites)],
    },
    st.sets(st.sampled_from(["a, b", "a, b desc", "a desc, b desc", "b, a, c", "c, a desc, b", "d, a"]), max_size=3),
    st.sets(st.sampled_from(["a", "c"]), max_size=1),
)

literals = st.one_of(
    st.sampled_from(["1", "2", "'a'", f"'{LONG}'"]),
    st.sampled_from(["null", "true", "false", "-1", "1.5", "'ab'", "''", f"'{LONG}y'", "'" + "x" * 130 + "'"]),
)
names = st.sampled_from(["c.a", "c.b", "c.c", "c.d"])
comparisons = st.sampled_from(["=", "<", "<=", ">", ">=", "!="])
predicates = st.one_of(
    st.builds("{} {} {}".format, names, comparisons, literals),
    st.builds("{} IN ({}, {}, {})".format, names, literals, literals, literals),
    st.builds("{} BETWEEN {} AND {}".format, names, literals, literals),
    st.builds("STARTSWITH({}, {})".format, names, st.sampled_from(["''", "'a'", "'x'", f"'{LONG[:220]}'"])),
    st.builds("ARRAY_CONTAINS({}, {})".format, names, literals),
    st.builds("IS_DEFINED({})".format, names),
    st.builds("NOT {}".format, names),
)
# Filters that composite indexes answer.
conjunctions = st.one_of(
    st.builds("c.a = {} AND c.b {} {}".format, literals, comparisons, literals),
    st.builds("c.a IN ({}, {}) AND c.b {} {}".format, literals, literals, comparisons, literals),
    st.builds("c.b = {} AND c.a = {} AND c.c {} {}".format, literals, literals, comparisons, literals),
)
filters = st.recursive(
    predicates | conjunctions.map("({})".format),
    lambda inner: st.builds("({} AND {})".format, inner, inner) | st.builds("({} OR {})".format, inner, inner),
    max_leaves=3,
)
clauses = st.just("") | filters.map("WHERE {}".format) | conjunctions.map("WHERE {}".format)
FILTERED = ["SELECT VALUE c.id FROM c {where}", "SELECT VALUE COUNT(1) FROM c {where}"]
SHAPES = [
    *FILTERED,
    "SELECT TOP 4 VALUE c.id FROM c {where}",
    "SELECT COUNT({x}) AS n, COUNT(1) AS m FROM c {where}",
    "SELECT MIN({x}) AS n, MAX({y}) AS m FROM c {where}",
    "SELECT DISTINCT VALUE {x} FROM c {where}",
    "SELECT DISTINCT {x} FROM c {where}",
    "SELECT DISTINCT {x}, {y} FROM c {where}",
    "SELECT DISTINCT TOP 2 VALUE {x} FROM c {where}",
    "SELECT DISTINCT VALUE {x} FROM c {where} ORDER BY {x}",
    "SELECT DISTINCT {x} FROM c {where} ORDER BY {x} DESC",
    "SELECT {x}, COUNT(1) AS n FROM c {where} GROUP BY {x}",
    "SELECT {x}, COUNT({y}) AS n, MIN({y}) AS p, MAX({y}) AS q FROM c {where} GROUP BY {x}",
    "SELECT {x}, {y}, COUNT(1) AS n FROM c {where} GROUP BY {x}, {y}",
]
shapes = st.sampled_from(FILTERED) | st.sampled_from(SHAPES)
queries = st.builds(lambda shape, where, x, y: shape.format(where=where, x=x, y=y), shapes, clauses, names, names)


@contextmanager
def small_limits(are_small: bool) -> Iterator[None]:
    """As if there were many items: the ways that only large containers take are taken for a handful."""
    with pytest.MonkeyPatch.context() as patched:
        if are_small:
            patched.setattr(execute, "SORTED_CANDIDATES_MAX", 1)
            patched.setattr(candidates, "CANDIDATES_MIN", 2)
            patched.setattr(reader, "PAGE_ENTRIES", 3)
            patched.setattr(index_answers, "SAMPLES_BEFORE_ITEMS_MAX", 2)
            patched.setattr(index_samples, "_SKIP_ENTRIES", 1)
            patched.setattr(index_counts, "NUMBERS_MAX", 4)
            patched.setattr(missing_values, "_FEW_MISSING", 1)
        yield


async def answers(world: World, container: Container, text: str, *, items_max: int, splits: bool) -> list[bytes]:
    """Return all results as clients get them page by page, with a split behind the first page."""
    sets = ResultSets(monotonic_seconds=lambda: 0.0, random_bytes=os.urandom)
    found: list[bytes] = []
    rest: Continuation | None = BEGINNING
    while rest is not None:
        page = await run_page(
            world.router,
            container,
            compile_query(parse_query(text), {}),
            [EVERYTHING],
            continuation=Continuation.from_bytes(rest.to_bytes()),
            items_max=items_max,
            monotonic_seconds=lambda: 0.0,
            result_sets=sets,
            identity=text.encode(),
            encode_result=dumps,
        )
        if splits and rest is BEGINNING:
            partition = container.keyspace.record.map.ranges[0]
            await world.reshaper.finished(await world.reshaper.split(container.keyspace, partition.id))
        found += page.results
        rest = page.continuation
    return found


async def compare(
    data: list[dict[str, Any]], policy: dict[str, Any], texts: list[str], items_max: int, split_at: int | None
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with open_world(Path(directory)) as world:
            indexed = await world.container(id="indexed", indexingPolicy=policy)
            scanned = await world.container(id="scanned", indexingPolicy=NOT_INDEXED)
            for number, item in enumerate(data):
                for container in (indexed, scanned):
                    await container.create_item({**item, "id": str(number)}, None)
            for number, text in enumerate(texts):
                # Ranges of one logical partition cannot be divided.
                splits = number == split_at and len({item["pk"] for item in data}) > 1
                found = await answers(world, indexed, text, items_max=items_max, splits=splits)
                expected = await answers(world, scanned, text, items_max=items_max, splits=splits)
                assert (text, found) == (text, expected)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    items,
    policies,
    st.lists(queries, min_size=12, max_size=12),
    st.integers(1, 9),
    st.none() | st.integers(0, 11),
    st.booleans(),
)
def test_an_index_answers_as_a_scan_does(
    data: list[dict[str, Any]],
    policy: dict[str, Any],
    texts: list[str],
    items_max: int,
    split_at: int | None,
    are_small: bool,
) -> None:
    with small_limits(are_small):
        asyncio.run(compare(data, policy, texts, items_max, split_at))


async def compare_orders(
    data: list[dict[str, Any]], policy: dict[str, Any], wheres: list[str], items_max: int, splits: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with open_world(Path(directory)) as world:
            container = await world.container(indexingPolicy=policy)
            for number, item in enumerate(data):
                await container.create_item({**item, "id": str(number)}, None)
            composites = [
                ", ".join(f"c.{column['path'][1:]}{' DESC' * (column['order'] == 'descending')}" for column in index)
                for index in policy["compositeIndexes"]
            ]
            for where in wheres:
                for order in ("c.b", "c.b DESC", "c.d", "c.a", *composites):
                    text = f"SELECT VALUE c.id FROM c {where} ORDER BY {order}"
                    found = await answers(world, container, text, items_max=items_max, splits=splits)
                    splits = False
                    assert (text, found) == (text, sorted_ids(data, container, text))


def sorted_ids(data: list[dict[str, Any]], container: Container, text: str) -> list[bytes]:
    """The ids of the items that match, sorted in memory by the bytes that their order has."""
    query = compile_query(parse_query(text), {})
    index = order_for(query.index_use.order_paths, container.rules)
    rows = row_order(query.directions, container.rules.order) if index is None else index.rows
    found = [
        (rows.encode([key.evaluate(item) for key in query.order_by]), number)
        for number, item in enumerate(data)
        if query.matches(item)
    ]
    return [b'"%d"' % number for _, number in sorted(found, reverse=rows.reverse)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(items, policies, st.lists(clauses, min_size=4, max_size=4), st.integers(1, 9), st.booleans(), st.booleans())
def test_an_order_is_that_of_sorted_items(
    data: list[dict[str, Any]],
    policy: dict[str, Any],
    wheres: list[str],
    items_max: int,
    splits: bool,
    are_small: bool,
) -> None:
    splits = splits and len({item["pk"] for item in data}) > 1
    with small_limits(are_small):
        asyncio.run(compare_orders(data, policy, wheres, items_max, splits))
