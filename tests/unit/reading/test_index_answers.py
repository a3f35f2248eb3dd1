"""Counts, distinct results and groups from index entries: the answers of a scan, without its items."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from asterism.clock import Clock
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.languages.cosmos_sql.compiling.computed import document_view
from asterism.models.documents.container import Container
from asterism.models.documents.results import Scope
from asterism.partitioning.partition_map import PartitionRange
from asterism.reading.continuation import BEGINNING, Continuation
from asterism.reading.execute import run_page
from asterism.reading.query_page import QueryPage
from asterism.reading.result_sets import ResultSets
from asterism.storage.contract import Engine, ScanPage, Snapshot, Span
from asterism.throughput.budgets import Manual
from asterism.values.identifiers import Lsn
from asterism.values.json.text import dumps
from tests.support.world import World, open_world

EVERYTHING = Scope(b"", b"\xff")
ITEMS = 240
CITIES = ("Aarhus", "Bergen", "Cork")
POLICY = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": "/plain/?"}],
    "compositeIndexes": [
        [{"path": "/city"}, {"path": "/price"}],
        [{"path": "/city", "order": "descending"}, {"path": "/kind"}, {"path": "/price", "order": "descending"}],
    ],
}


def make_item(number: int) -> dict[str, Any]:
    return {
        "id": f"{number:03d}",
        "pk": number % 24,
        "price": number * 7 % 60,
        "city": CITIES[number % 3],
        "kind": f"k{number % 4}",
        "tags": [f"t{number % 5}", "all"],
        "plain": number % 2,
    }


async def filled(world: World, **settings: object) -> Container:
    """Over two partitions."""
    container = await world.container(**{"indexingPolicy": POLICY, "throughput": Manual(12_000), **settings})
    for number in range(ITEMS):
        await container.create_item(make_item(number), None)
    return container


async def page_of(
    world: World, container: Container, text: str, *, scope: Scope = EVERYTHING, router: PartitionRouter | None = None
) -> QueryPage:
    return await run_page(
        router or world.router,
        container,
        compile_query(parse_query(text), {}),
        [scope],
        items_max=1000,
        monotonic_seconds=lambda: 0.0,
        view=document_view(container),
        encode_result=dumps,
    )


async def answer(world: World, container: Container, text: str) -> list[Any]:
    return [json.loads(result) for result in (await page_of(world, container, text)).results]


def count(where: str) -> int:
    matches = compile_query(parse_query(f"SELECT * FROM c WHERE {where}"), {}).matches
    return sum(matches(make_item(number)) for number in range(ITEMS))


COUNTED = [
    "c.price > 30",
    "c.price <= 30",
    "c.price > 10 AND c.price < 20",
    "c.price BETWEEN 10 AND 20",
    "c.city = 'Cork'",
    "c.city IN ('Cork', 'Bergen', 'Cork', 'nowhere')",
    "c.price IN (1, 1.0, 2)",
    "c.price < 10 OR c.price > 50 OR c.price = 5",
    "STARTSWITH(c.city, 'B')",
    "c.city LIKE 'Ber%'",
    "IS_DEFINED(c.city)",
    "ARRAY_CONTAINS(c.tags, 't3')",
    "ARRAY_CONTAINS(c.tags, 't3') OR ARRAY_CONTAINS(c.tags, 'all')",
    "c.city = 'Cork' AND c.price > 30",
    "c.city = 'Cork' AND c.kind = 'k1' AND c.price < 30",
    "c.city IN ('Cork', 'Bergen') AND c.kind IN ('k1', 'k2') AND c.price BETWEEN 5 AND 40",
    "c.kind = 'k1' AND c.price > 30",
    "c.kind = 'k1' OR c.price > 30",
    "c.city = 'Cork' AND c.city = 'Bergen'",
    "c.city = 'Cork' AND ARRAY_CONTAINS(c.tags, 't3')",
]


async def test_counts_with_an_exact_filter_load_no_item(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        for where in COUNTED:
            page = await page_of(world, container, f"SELECT VALUE COUNT(1) FROM c WHERE {where}")
            assert (where, page.items_loaded, page.results) == (where, 0, [str(count(where)).encode()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE [{'item': COUNT(1)}] FROM c WHERE c.price > 30", [[{"item": count("c.price > 30")}]]),
        ("SELECT COUNT(c.city) AS n FROM c WHERE c.price > 30", [{"n": count("c.price > 30")}]),
        ("SELECT COUNT(c.nothing) AS n, COUNT(1) AS m FROM c WHERE c.price < 9", [{"n": 0, "m": count("c.price < 9")}]),
        ("SELECT VALUE COUNT(undefined) FROM c", [0]),
        ("SELECT VALUE COUNT(undefined) FROM c WHERE c.price > 30", [0]),
    ],
)
async def test_counts_of_any_shape_are_right(tmp_path: Path, text: str, expected: list[Any]) -> None:
    async with open_world(tmp_path) as world:
        assert await answer(world, await filled(world), text) == expected


async def test_filters_that_an_index_does_not_say_exactly_are_counted_by_items(tmp_path: Path) -> None:
    filters = [
        "c.price != 30",
        "c.price > 30 AND c.plain = 1",
        "c.city LIKE '%e%'",
        "c.price % 2 = 0",
        "IS_STRING(c.city)",
    ]
    async with open_world(tmp_path) as world:
        container = await filled(world)
        for where in filters:
            page = await page_of(world, container, f"SELECT VALUE COUNT(1) FROM c WHERE {where}")
            assert (where, page.results) == (where, [str(count(where)).encode()])
            assert page.items_loaded > 0


DISTINCT = [
    ("SELECT DISTINCT VALUE c.city FROM c", 0),
    ("SELECT DISTINCT c.city FROM c", 0),
    ("SELECT DISTINCT VALUE c.city FROM c ORDER BY c.city", 0),
    ("SELECT DISTINCT VALUE c.city FROM c ORDER BY c.city DESC", 0),
    ("SELECT DISTINCT VALUE c.city FROM c WHERE c.city > 'Bergen'", 0),
    ("SELECT DISTINCT VALUE UPPER(c.city) FROM c WHERE LENGTH(c.city) = 6", 0),
    ("SELECT DISTINCT TOP 2 VALUE c.city FROM c", 0),
    ("SELECT DISTINCT VALUE c.city FROM c OFFSET 1 LIMIT 1", 0),
    # A number may be written in several ways: an item of each, in each of two partitions, knows how.
    ("SELECT DISTINCT VALUE c.price FROM c WHERE c.price < 5", 10),
    ("SELECT DISTINCT c.city, c.kind FROM c", 0),
    ("SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city", 0),
    ("SELECT c.city, COUNT(1) AS n, MIN(c.city) AS a FROM c WHERE c.city >= 'Bergen' GROUP BY c.city", 0),
    ("SELECT c.city, c.kind, COUNT(1) AS n FROM c GROUP BY c.kind, c.city", 0),
    ("SELECT COUNT(1) AS n FROM c GROUP BY UPPER(c.city)", 0),
    # Of each group the cheapest and the dearest, in each of two partitions.
    ("SELECT c.city, MIN(c.price) AS a, MAX(c.price) AS b, COUNT(c.price) AS n FROM c GROUP BY c.city", 3 * 2 * 3),
    ("SELECT c.city, c.kind, MAX(c.price) AS b FROM c GROUP BY c.city, c.kind", 12 * 2 * 3),
]


async def test_values_and_groups_of_indexed_paths_load_few_items(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        plain = await filled(world, id="plain", indexingPolicy={"excludedPaths": [{"path": "/*"}]})
        for text, loaded_max in DISTINCT:
            page = await page_of(world, container, text)
            scanned = await page_of(world, plain, text)
            assert (text, page.results) == (text, scanned.results)
            assert (text, page.items_loaded) <= (text, loaded_max)
            assert not page.has_scanned


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT VALUE c.plain FROM c",
        "SELECT DISTINCT VALUE [c.kind, c.price] FROM c",
        "SELECT c.city, SUM(c.price) AS s FROM c GROUP BY c.city",
        "SELECT c.city, MIN(c.price) AS a, MIN(c.kind) AS b FROM c GROUP BY c.city",
        "SELECT DISTINCT VALUE c.tags[0] FROM c",
        "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags",
    ],
)
async def test_what_an_index_does_not_hold_is_read_from_the_items(tmp_path: Path, text: str) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        plain = await filled(world, id="plain", indexingPolicy={"excludedPaths": [{"path": "/*"}]})
        page = await page_of(world, container, text)
        assert page.results == (await page_of(world, plain, text)).results
        assert page.items_loaded == ITEMS


async def test_values_that_differ_behind_what_an_index_keeps_are_told_apart(tmp_path: Path) -> None:
    names = ["x" * 300, "x" * 300 + "y", "x" * 197, "x" * 196, "x" * 198, "x"]
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number, name in enumerate(names * 3):
            await container.create_item({"id": str(number), "pk": 0, "name": name}, None)
        assert await answer(world, container, "SELECT DISTINCT VALUE c.name FROM c") == names
        for name in names:
            assert await answer(world, container, f"SELECT VALUE COUNT(1) FROM c WHERE c.name = '{name}'") == [3]
            above = 3 * sum(other > name for other in names)
            assert await answer(world, container, f"SELECT VALUE COUNT(1) FROM c WHERE c.name > '{name}'") == [above]
        groups = await answer(world, container, "SELECT c.name, COUNT(1) AS n FROM c GROUP BY c.name")
        assert groups == [{"name": name, "n": 3} for name in names]


async def test_arrays_objects_null_and_nothing_are_values_too(tmp_path: Path) -> None:
    values: list[dict[str, Any]] = [{}, {"v": None}, {"v": [1]}, {"v": [2]}, {"v": {"a": 1}}, {"v": False}, {"v": 1.0}]
    values += [{"v": 2}, {"v": ""}]
    async with open_world(tmp_path) as world:
        container = await world.container(throughput=Manual(12_000))
        for number, value in enumerate(values * 2):
            await container.create_item({"id": str(number), "pk": number, **value}, None)
        found = await answer(world, container, "SELECT DISTINCT c.v FROM c")
        assert found == values
        assert json.dumps(found[6]) == '{"v": 1.0}'
        groups = await answer(world, container, "SELECT c.v, COUNT(1) AS n, COUNT(c.v) AS m FROM c GROUP BY c.v")
        assert groups == [{**value, "n": 2, "m": 2 if value else 0} for value in values]
        assert await answer(world, container, "SELECT DISTINCT VALUE c.v FROM c") == [item["v"] for item in values[1:]]


async def test_expired_items_are_not_counted(tmp_path: Path) -> None:
    now = 1_000.0
    async with open_world(tmp_path, clock=Clock(lambda: now, time.monotonic)) as world:
        container = await world.container(defaultTtl=-1)
        for number in range(20):
            await container.create_item({"id": str(number), "pk": 0, "n": number % 2, "ttl": 5 + number}, None)
        now += 15
        assert await answer(world, container, "SELECT VALUE COUNT(1) FROM c WHERE c.n = 1") == [5]
        assert await answer(world, container, "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n") == [
            {"n": 1, "k": 5},
            {"n": 0, "k": 4},
        ]


async def test_items_that_were_left_out_of_the_index_are_left_out_of_its_answers(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        for number in range(6):
            await container.create_item({"id": str(number), "pk": 0, "n": number}, None, indexes=number % 2 == 0)
        await container.create_item({"id": "x", "pk": 0}, None, indexes=False)
        for text, expected in [
            ("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0", [3]),
            ("SELECT VALUE COUNT(1) FROM c WHERE c.n != 9", [3]),
            ("SELECT DISTINCT VALUE c.n FROM c", [0, 2, 4]),
            ("SELECT DISTINCT c.n FROM c", [{"n": 0}, {"n": 2}, {"n": 4}]),
            ("SELECT COUNT(1) AS k FROM c GROUP BY c.n", [{"k": 1}] * 3),
        ]:
            assert (text, await answer(world, container, text)) == (text, expected)


async def test_computed_properties_are_not_looked_up(tmp_path: Path) -> None:
    computed = [{"name": "city", "query": "SELECT VALUE LOWER(c.city) FROM c"}]
    async with open_world(tmp_path) as world:
        container = await filled(world, computedProperties=computed)
        assert await answer(world, container, "SELECT VALUE COUNT(1) FROM c WHERE c.city = 'cork'") == [80]
        found = await answer(world, container, "SELECT DISTINCT VALUE c.city FROM c")
        assert found == [city.lower() for city in CITIES]


async def test_a_part_of_a_partition_is_counted_by_its_items(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await filled(world)
        scope = container.logical_scope((7,))
        for text, expected in [
            ("SELECT VALUE COUNT(1) FROM c WHERE c.price >= 0", [b"10"]),
            ("SELECT DISTINCT VALUE c.pk FROM c", [b"7"]),
            ("SELECT VALUE COUNT(1) FROM c GROUP BY c.pk", [b"10"]),
        ]:
            assert (await page_of(world, container, text, scope=scope)).results == expected


class _Meddler:
    """Writes whenever index entries were read: what was counted moves to where the count will come, and what is ahead
    to where it was."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._writes = 0

    async def write(self) -> None:
        for number in range(4):
            self._writes += 1
            price = 1_000 + self._writes if number % 2 else -self._writes
            await self._container.upsert_item({**make_item(self._writes % ITEMS), "price": price, "city": "Zug"}, None)


class _MeddledSnapshot:
    def __init__(self, snapshot: Snapshot, meddler: _Meddler) -> None:
        self._snapshot = snapshot
        self._meddler = meddler

    @property
    def lsn(self) -> Lsn:
        return self._snapshot.lsn

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._snapshot.read(keys)

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        page = await self._snapshot.scan(span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        await self._meddler.write()
        return page

    async def close(self) -> None:
        await self._snapshot.close()


class _MeddlingRouter(PartitionRouter):
    def __init__(self, engine: Engine, meddler: _Meddler) -> None:
        super().__init__(engine)
        self._meddler = meddler

    async def snapshot(self, keyspace: Keyspace, point: bytes) -> Snapshot:
        return _MeddledSnapshot(await super().snapshot(keyspace, point), self._meddler)

    async def scan(
        self,
        keyspace: Keyspace,
        seen: KeyspaceRecord,
        partition: PartitionRange,
        span: Span,
        *,
        limit: int,
        bytes_max: int | None,
        reverse: bool = False,
    ) -> ScanPage | None:
        page = await super().scan(keyspace, seen, partition, span, limit=limit, bytes_max=bytes_max, reverse=reverse)
        await self._meddler.write()
        return page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT VALUE COUNT(1) FROM c WHERE c.price >= 0", [b"240"]),
        ("SELECT VALUE COUNT(c.price) FROM c", [b"240"]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'k1' OR c.price >= 0", [b"240"]),
        (
            "SELECT VALUE c.city || ToString(COUNT(1)) FROM c GROUP BY c.city",
            [b'"Aarhus80"', b'"Bergen80"', b'"Cork80"'],
        ),
        ("SELECT DISTINCT VALUE c.city FROM c", [b'"Aarhus"', b'"Bergen"', b'"Cork"']),
    ],
)
async def test_writes_meanwhile_change_no_answer(
    tmp_path: Path, text: str, expected: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asterism.models.documents.indexes.reader.PAGE_ENTRIES", 16)
    async with open_world(tmp_path) as world:
        container = await filled(world, throughput=None)
        router = _MeddlingRouter(world.engine, _Meddler(container))
        page = await page_of(world, container, text, router=router)
        assert page.results == expected


async def test_a_long_answer_of_an_index_goes_on_from_page_to_page(tmp_path: Path) -> None:
    seconds = 0.0

    def slow_clock() -> float:
        nonlocal seconds
        seconds += 4.0
        return seconds

    sets = ResultSets(monotonic_seconds=lambda: 0.0, random_bytes=os.urandom)
    text = "SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city"
    async with open_world(tmp_path) as world:
        container = await filled(world, throughput=Manual(30_000))
        pages: list[QueryPage] = []
        continuation: Continuation | None = BEGINNING
        while continuation is not None:
            page = await run_page(
                world.router,
                container,
                compile_query(parse_query(text), {}),
                [EVERYTHING],
                continuation=continuation,
                items_max=10,
                monotonic_seconds=slow_clock,
                result_sets=sets,
                encode_result=dumps,
            )
            pages.append(page)
            continuation = page.continuation
        assert len(pages) > 2
        assert sum(page.items_loaded for page in pages) == 0
        assert [json.loads(result) for page in pages for result in page.results] == [
            {"city": city, "n": ITEMS // 3} for city in CITIES
        ]
