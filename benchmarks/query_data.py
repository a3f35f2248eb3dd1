"""Items to query, and the queries: the same bytes for every server that is compared."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from benchmarks.load import run_all
from benchmarks.wire import Caller, UnexpectedAnswer, request_head, signed_headers, signed_request
from benchmarks.workload import container_link, create_container, create_database, make_item

# So many items have the same `bunch`: what the equality finds.
BUNCH_ITEMS = 10
# Throughput for which a container begins with two partitions.
TWO_PARTITIONS_RU_PER_SECOND = 12_000
FILL_CONNECTIONS = 64

EQUALITY = "SELECT * FROM c WHERE c.bunch = @bunch"
ORDERED = "SELECT * FROM c ORDER BY c.x OFFSET 0 LIMIT 10"
# Every item has this quantity: the entries of one value fill a page, and newer items have theirs behind it.
INDEX_PAGE = "SELECT c.id, c.name, c.price FROM c WHERE c.quantity = 42"
COUNT = "SELECT VALUE COUNT(1) FROM c"
# No index knows what a value is when multiplied.
SCAN = "SELECT VALUE c.id FROM c WHERE c.x * 2 = 1"

_WIDTH = 8
_X_FIRST = 10_000_000
# Prime, so that x takes every value once, in no order that the ids have.
_X_STEP, _X_COUNT = 7919, 1_000_003


def item_id(number: int) -> str:
    return f"q{number:0{_WIDTH}d}"


def _bunch(number: int) -> str:
    return f"b{number // BUNCH_ITEMS:0{_WIDTH}d}"


def creates(container: str, count: int) -> Iterator[bytes]:
    """A create for each item. All are of one length, so one head and one body serve as the form for all."""
    link = container_link(container)
    form = make_item(item_id(0))
    form |= {"bunch": _bunch(0), "x": _X_FIRST, "text": form["text"][: -len(',"bunch":"b00000000","x":10000000')]}
    body = json.dumps(form, separators=(",", ":")).encode()
    headers = signed_headers("POST", resource_type="docs", link=link)
    headers["x-ms-documentdb-partitionkey"] = json.dumps([form["pk"]])
    request = request_head("POST", f"/{link}/docs", headers, body_length=len(body)) + body
    for number in range(count):
        made = request.replace(item_id(0).encode(), item_id(number).encode())
        made = made.replace(_bunch(0).encode(), _bunch(number).encode())
        yield made.replace(b"%d" % _X_FIRST, b"%d" % (_X_FIRST + number * _X_STEP % _X_COUNT))


async def fill(port: int, container: str, count: int) -> None:
    caller = Caller(port)
    await create_database(caller)
    await create_container(caller, container, ru_per_second=TWO_PARTITIONS_RU_PER_SECOND)
    await caller.close()
    filled = await run_all(port, creates(container, count), connections=FILL_CONNECTIONS)
    if filled.error_count:
        raise UnexpectedAnswer(f"items could not be created: {dict(filled.statuses)}")


def query_request(
    container: str,
    text: str,
    parameters: dict[str, object] | None = None,
    *,
    continuation: str | None = None,
    page_items: int | None = None,
) -> bytes:
    link = container_link(container)
    headers = {"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True"}
    if continuation is not None:
        headers["x-ms-continuation"] = continuation
    if page_items is not None:
        headers["x-ms-max-item-count"] = str(page_items)
    given = [{"name": name, "value": value} for name, value in (parameters or {}).items()]
    body = {"query": text, "parameters": given}
    return signed_request("POST", f"/{link}/docs", resource_type="docs", link=link, body=body, headers=headers)


def equalities(container: str, item_count: int, *, different: int = 500) -> Iterator[bytes]:
    """Queries for bunches from all over the data, again and again."""
    bunches = item_count // BUNCH_ITEMS
    chosen = [number * bunches // different for number in range(different)]
    return itertools.cycle([query_request(container, EQUALITY, {"@bunch": _bunch(n * BUNCH_ITEMS)}) for n in chosen])
