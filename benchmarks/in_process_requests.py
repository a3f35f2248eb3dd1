"""The requests that are measured in process: the same bytes that other cases send over a socket."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import table_wire
from benchmarks.query_data import INDEX_PAGE, query_request
from benchmarks.rsgi import Call
from benchmarks.workload import Creates, reads

CONTAINER = "items"
TABLE = "Entities"
ITEMS = 1000
# As many as send at once in the cases over sockets.
WRITERS = 32
ENTITY_TEXT = "t" * 820

SCAN_PAGE = "SELECT c.id, c.name, c.price FROM c"
PAGE_ITEMS = 100
UPSERT = "x-ms-documentdb-is-upsert"


@dataclass(frozen=True)
class Kind:
    """A kind of request: the calls of a block, how many are under way at once, and the status of each."""

    name: str
    calls: Iterator[Call]
    block_calls: int
    concurrency: int
    status: int
    is_table: bool = False


def kinds() -> list[Kind]:
    item_ids = [f"i{number:08d}" for number in range(ITEMS)]
    items, entities = _cycle(reads(CONTAINER, item_ids)), _cycle(_gets())
    creates, inserts = map(Call.of, Creates(CONTAINER, prefix="c").requests()), map(Call.of, _inserts("n"))
    return [
        Kind("point read", items, block_calls=1500, concurrency=1, status=200),
        Kind("create", creates, block_calls=600, concurrency=WRITERS, status=201),
        Kind("upsert of an existing item", _upserts(), block_calls=400, concurrency=WRITERS, status=200),
        Kind("query, scanned page of 100", _pages(SCAN_PAGE), block_calls=40, concurrency=1, status=200),
        Kind("query, indexed page of 100", _pages(INDEX_PAGE), block_calls=40, concurrency=1, status=200),
        Kind("table get", entities, block_calls=1200, concurrency=1, status=200, is_table=True),
        Kind("table insert", inserts, block_calls=600, concurrency=WRITERS, status=204, is_table=True),
    ]


def filling_items() -> list[Call]:
    return [Call.of(request) for request in Creates(CONTAINER, prefix="i").requests(ITEMS)]


def filling_entities() -> list[Call]:
    return [Call.of(request) for request in itertools.islice(_inserts("p"), ITEMS)]


def _cycle(requests: list[bytes]) -> Iterator[Call]:
    return itertools.cycle([Call.of(request) for request in requests])


def _upserts() -> Iterator[Call]:
    """Of all items in turn, so that writers seldom meet at one."""
    calls = filling_items()
    for call in calls:
        call.scope.headers[UPSERT] = "True"
    return itertools.cycle(calls)


def _pages(text: str) -> Iterator[Call]:
    return itertools.repeat(Call.of(query_request(CONTAINER, text, page_items=PAGE_ITEMS)))


def _inserts(prefix: str) -> Iterator[bytes]:
    return table_wire.inserts(TABLE, prefix=prefix, text=ENTITY_TEXT)


def _gets() -> list[bytes]:
    names = [(f"p{number // 100:06d}", f"{number % 100:03d}") for number in range(ITEMS)]
    return [table_wire.get(TABLE, *name) for name in names]
