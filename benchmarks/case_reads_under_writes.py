"""Point reads and indexed queries on a server that also creates items at a fixed rate, in the same container.

For changes of the write path: the creates are the same for both checkouts, and reads get the rest of the core.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

from benchmarks.load import Load, LoadResult, run_load
from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.query_data import BUNCH_ITEMS, INDEX_PAGE, equalities, fill, item_id, query_request
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import Creates, reads

CASE = "reads_under_writes"
CONTAINER = "read"
ITEMS = 2000
CONNECTIONS = 8
# So many that the rate holds while a create waits 0.2 s behind queries: otherwise the checkout with the faster creates
# would have more of them to do.
CREATE_CONNECTIONS = 128
CREATES_PER_SECOND = 250
# The kinds take turns, so that whatever disturbs the machine for a while disturbs all of them.
ROUNDS = 5
ROUND_SECONDS = 1.5
WARM_UP_SECONDS = 0.3
PAGE_ITEMS = 100


@dataclass
class Kind:
    """Requests that read, and the results of the rounds: of their own load and of the creates beside it."""

    name: str
    requests: Callable[[], Iterator[bytes]]
    own: list[LoadResult] = field(default_factory=list)
    creates: list[LoadResult] = field(default_factory=list)


def kinds() -> list[Kind]:
    point_reads = reads(CONTAINER, [item_id(number) for number in range(ITEMS)])
    index_page = query_request(CONTAINER, INDEX_PAGE, page_items=PAGE_ITEMS)
    return [
        Kind("point reads", lambda: itertools.cycle(point_reads)),
        Kind("equality, 10 results", lambda: equalities(CONTAINER, ITEMS, different=ITEMS // BUNCH_ITEMS)),
        Kind("indexed page of 100", lambda: itertools.repeat(index_page)),
    ]


async def measure(subject: Subject) -> list[Measurement]:
    measured = kinds()
    with fresh_folder() as data, running_asterism(subject, data) as server:
        await fill(server.port, CONTAINER, ITEMS)
        await check_queries(server.port)
        for number in range(ROUNDS):
            for place, kind in enumerate(measured):
                await measure_beside_creates(server.port, kind, prefix=f"w{number}{place}-")
    return [measurement for kind in measured for measurement in figures(kind)]


async def check_queries(port: int) -> None:
    """Speed counts only for servers that find what there is."""
    caller = Caller(port)
    for request, expected in (
        (next(equalities(CONTAINER, ITEMS, different=1)), BUNCH_ITEMS),
        (query_request(CONTAINER, INDEX_PAGE, page_items=PAGE_ITEMS), PAGE_ITEMS),
    ):
        found = len((await caller.expect(request, 200)).json()["Documents"])
        if found != expected:
            raise UnexpectedAnswer(f"a query found {found} items instead of {expected}")
    await caller.close()


async def measure_beside_creates(port: int, kind: Kind, *, prefix: str) -> None:
    creates = Load(
        port,
        Creates(CONTAINER, prefix=prefix).requests(),
        connections=CREATE_CONNECTIONS,
        per_second=CREATES_PER_SECOND,
    )
    await creates.start()
    own = await run_load(
        port, kind.requests(), connections=CONNECTIONS, seconds=ROUND_SECONDS, warm_up_seconds=WARM_UP_SECONDS
    )
    beside = await creates.finish()
    for result in (own, beside):
        if result.error_count:
            raise UnexpectedAnswer(f"requests failed during {kind.name}: {dict(result.statuses)}")
    kind.own.append(own)
    kind.creates.append(beside)


def figures(kind: Kind) -> Iterator[Measurement]:
    generator_load = median(result.generator_load for result in kind.own)
    note = f"{CONNECTIONS} connections, generator {generator_load:.0%}"
    yield Measurement(CASE, kind.name, median(result.rate_per_second for result in kind.own), "/s", note=note)
    for percent in (50, 99):
        value = median(result.percentile_ms(percent) for result in kind.own)
        yield Measurement(CASE, f"{kind.name}, p{percent}", value, "ms")
    note = f"{CREATES_PER_SECOND} sent, p99 {median(result.percentile_ms(99) for result in kind.creates):.2f} ms"
    rate = median(result.rate_per_second for result in kind.creates)
    yield Measurement(CASE, f"creates during {kind.name}", rate, "/s", note=note)
