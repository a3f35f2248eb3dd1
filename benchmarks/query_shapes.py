"""Shapes of queries that an index answers with few items or without any, and the data they are asked of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.load import run_all
from benchmarks.wire import Caller, UnexpectedAnswer, signed_request
from benchmarks.workload import container_link, create_container, create_database

ITEMS: Final = 50_000
PARTITIONS: Final = 5
# Throughput for which a container begins with five partitions.
FIVE_PARTITIONS_RU_PER_SECOND: Final = 30_000
BATCH_ITEMS: Final = 100
FILL_CONNECTIONS: Final = 8

CITIES: Final = ("Aarhus", "Bergen", "Cork", "Delft", "Espoo")
# Twelve kinds of 4,000 items each, and one of 2,000.
KIND_ITEMS: Final = 4000
# Prime, so that rank takes every value once, in no order that the ids have.
_RANK_STEP: Final = 7919

# An item of each partition for each result that is asked for: the others of the partition are behind them.
TOP: Final = 10
LOADED_BY_ORDER_MAX: Final = TOP * PARTITIONS
# At most an item for each different value in each partition.
LOADED_BY_CITY_MAX: Final = len(CITIES) * PARTITIONS
LOADED_BY_CITY_AND_KIND_MAX: Final = len(CITIES) * 13 * PARTITIONS


def make_item(number: int) -> dict[str, Any]:
    """About 250 bytes. 25 items have the same price, from 0 to 99.95."""
    rank = number * _RANK_STEP % ITEMS
    return {
        "id": f"i{number:05d}",
        "pk": f"p{number // BATCH_ITEMS:03d}",
        "rank": rank,
        "name": f"n{rank:05d}",
        "price": rank // 25 / 20,
        "city": CITIES[number % len(CITIES)],
        "kind": f"k{number % 25 // 2:02d}",
        "text": "x" * 120,
    }


def indexing(*composites: str) -> dict[str, Any]:
    """A policy that indexes every path, and has composite indexes such as `city, price desc`."""

    def column(text: str) -> dict[str, str]:
        path, _, order = text.strip().partition(" ")
        return {"path": f"/{path}", "order": "descending" if order == "desc" else "ascending"}

    indexes = [[column(text) for text in composite.split(",")] for composite in composites]
    return {"indexingPolicy": {"includedPaths": [{"path": "/*"}], "compositeIndexes": indexes}}


SETTINGS: Final = indexing("city, price", "city, price desc", "city, kind", "city, kind, price")


async def fill(port: int, container: str, *, items: Sequence[dict[str, Any]], ru_per_second: int) -> None:
    caller = Caller(port)
    await create_database(caller)
    await create_container(caller, container, ru_per_second=ru_per_second, settings=SETTINGS)
    await caller.close()
    filled = await run_all(port, _batches(container, items), connections=FILL_CONNECTIONS)
    # 207 is the status of a batch of which nothing was done.
    if filled.error_count or set(filled.statuses) != {200}:
        raise UnexpectedAnswer(f"items could not be created: {dict(filled.statuses)}")


def _batches(container: str, items: Sequence[dict[str, Any]]) -> Iterator[bytes]:
    link = container_link(container)
    headers = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "prefer": "return=minimal"}
    for start in range(0, len(items), BATCH_ITEMS):
        several = items[start : start + BATCH_ITEMS]
        key = {"x-ms-documentdb-partitionkey": f'["{several[0]["pk"]}"]'}
        body = [{"operationType": "Create", "resourceBody": item} for item in several]
        yield signed_request("POST", f"/{link}/docs", resource_type="docs", link=link, body=body, headers=headers | key)


# --- shapes -----------------------------------------------------------------------------------------------------------

Item = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """A query, what it has to answer, and how many items it may load. `answer` takes the results that came."""

    text: str
    loaded_at_most: int
    expected: object
    answer: Callable[[list[Any]], object]


def shapes(items: Sequence[Item]) -> list[Shape]:
    return [*_ordered(items), *_counted(items), *_distinct(items), *_grouped(items)]


def _ordered(items: Sequence[Item]) -> Iterator[Shape]:
    conditions: list[tuple[str, str, Callable[[Item], bool]]] = [
        ("price", "c.price > 50", lambda item: item["price"] > 50),
        ("price", "c.price >= 50", lambda item: item["price"] >= 50),
        ("price", "c.price < 50", lambda item: item["price"] < 50),
        ("price", "c.price <= 50", lambda item: item["price"] <= 50),
        ("price", "c.price BETWEEN 40 AND 60", lambda item: 40 <= item["price"] <= 60),
        ("name", "STARTSWITH(c.name, 'n2')", lambda item: item["name"].startswith("n2")),
    ]
    for path, condition, is_wanted in conditions:
        for direction in ("ASC", "DESC"):
            order = f"c.{path}" if direction == "ASC" else f"c.{path} DESC"
            yield _top(items, condition, order, path, is_wanted)
    in_cork: list[tuple[str, Callable[[Item], bool]]] = [
        ("c.city = 'Cork'", lambda item: item["city"] == "Cork"),
        ("c.city = 'Cork' AND c.price > 50", lambda item: item["city"] == "Cork" and item["price"] > 50),
        (
            "c.city = 'Cork' AND c.price BETWEEN 40 AND 60",
            lambda item: item["city"] == "Cork" and 40 <= item["price"] <= 60,
        ),
    ]
    for condition, is_wanted in in_cork:
        for order in ("c.city, c.price", "c.city, c.price DESC", "c.price", "c.price DESC"):
            yield _top(items, condition, order, "price", is_wanted)
    yield _top(
        items,
        "c.city = 'Cork' AND c.kind = 'k03' AND c.price > 50",
        "c.city, c.kind, c.price",
        "price",
        lambda item: item["city"] == "Cork" and item["kind"] == "k03" and item["price"] > 50,
    )


def _top(items: Sequence[Item], condition: str, order: str, path: str, is_wanted: Callable[[Item], bool]) -> Shape:
    """The values of `path`, in order, are what the results must agree with: items of one value have no order."""
    wanted = sorted((item[path] for item in items if is_wanted(item)), reverse=order.endswith("DESC"))
    return Shape(
        f"SELECT TOP {TOP} * FROM c WHERE {condition} ORDER BY {order}",
        LOADED_BY_ORDER_MAX,
        wanted[:TOP],
        lambda results: [item[path] for item in results],
    )


def _counted(items: Sequence[Item]) -> Iterator[Shape]:
    conditions: list[tuple[str, Callable[[Item], bool]]] = [
        ("c.price > 50", lambda item: item["price"] > 50),
        ("c.price <= 50", lambda item: item["price"] <= 50),
        ("c.price BETWEEN 40 AND 60", lambda item: 40 <= item["price"] <= 60),
        ("STARTSWITH(c.name, 'n2')", lambda item: item["name"].startswith("n2")),
        ("c.kind = 'k03'", lambda item: item["kind"] == "k03"),
        ("c.kind IN ('k03', 'k05')", lambda item: item["kind"] in ("k03", "k05")),
        ("c.city = 'Cork' AND c.price > 50", lambda item: item["city"] == "Cork" and item["price"] > 50),
        ("c.city = 'Cork' AND c.kind = 'k03'", lambda item: item["city"] == "Cork" and item["kind"] == "k03"),
        (
            "c.city = 'Cork' AND c.kind = 'k03' AND c.price > 50",
            lambda item: item["city"] == "Cork" and item["kind"] == "k03" and item["price"] > 50,
        ),
    ]
    for condition, is_wanted in conditions:
        count = sum(map(is_wanted, items))
        yield Shape(f"SELECT VALUE COUNT(1) FROM c WHERE {condition}", 0, [count], _as_they_are)


def _distinct(items: Sequence[Item]) -> Iterator[Shape]:
    cities = sorted({item["city"] for item in items})
    yield Shape("SELECT DISTINCT VALUE c.city FROM c", LOADED_BY_CITY_MAX, cities, sorted)
    yield Shape(
        "SELECT DISTINCT c.city FROM c", LOADED_BY_CITY_MAX, cities, lambda results: sorted(r["city"] for r in results)
    )
    yield Shape("SELECT DISTINCT VALUE c.city FROM c ORDER BY c.city", LOADED_BY_CITY_MAX, cities, _as_they_are)
    yield Shape("SELECT DISTINCT VALUE c.city FROM c WHERE c.city > 'Bergen'", LOADED_BY_CITY_MAX, cities[2:], sorted)


def _grouped(items: Sequence[Item]) -> Iterator[Shape]:
    for condition, above in (("", ""), ("WHERE c.city > 'Bergen' ", "Bergen")):
        wanted = [item["city"] for item in items if item["city"] > above]
        yield Shape(
            f"SELECT c.city, COUNT(1) AS n FROM c {condition}GROUP BY c.city",
            LOADED_BY_CITY_MAX,
            sorted((city, wanted.count(city)) for city in set(wanted)),
            lambda results: sorted((group["city"], group["n"]) for group in results),
        )
    pairs = [(item["city"], item["kind"]) for item in items]
    yield Shape(
        "SELECT c.city, c.kind, COUNT(1) AS n FROM c GROUP BY c.city, c.kind",
        LOADED_BY_CITY_AND_KIND_MAX,
        sorted((*pair, pairs.count(pair)) for pair in set(pairs)),
        lambda results: sorted((group["city"], group["kind"], group["n"]) for group in results),
    )


def _as_they_are(results: list[Any]) -> list[Any]:
    return results
