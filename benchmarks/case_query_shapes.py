"""Shapes of queries over 50,000 items in five partitions: how many items each loads, what else it takes.

Items loaded are the promise, not seconds: they are the same on every machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks import query_shapes
from benchmarks.administration import admin_request, online_ids, partitions
from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.query_shapes import FIVE_PARTITIONS_RU_PER_SECOND, ITEMS, KIND_ITEMS, PARTITIONS, Shape
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import DATABASE, ONE_PARTITION_RU_PER_SECOND

CASE = "query"
TIME_UNIT = "ms"
SPREAD, ALONE = "shapes", "alone"
# A shape that takes longer is not read to its end; what it has loaded by then is far more than it may.
SHAPE_SECONDS_MAX = 1.0
REPEATS = 7
REPEAT_SECONDS_MAX = 0.5

PAGE_ITEMS = 100
READS = 3
# In `ALONE`, where every item matches: one for each page and each value that is looked up, of which there are at most
# two, and one more at the end of each.
LOOKUPS_AT_MOST = 2 * (KIND_ITEMS // PAGE_ITEMS + 1)


@dataclass
class Cost:
    """Sums over the pages of a query."""

    items_loaded: int = 0
    index_lookups: int = 0
    request_units: float = 0.0
    pages: int = 0
    seconds: float = 0.0
    is_whole: bool = False
    results: list[Any] = field(default_factory=list)


async def measure(subject: Subject) -> list[Measurement]:
    items = [query_shapes.make_item(number) for number in range(ITEMS)]
    alike = [item | {"n": 5, "m": place} for place, item in enumerate(items[:KIND_ITEMS])]
    with fresh_folder() as data, running_asterism(subject, data) as server:
        await query_shapes.fill(server.port, SPREAD, items=items, ru_per_second=FIVE_PARTITIONS_RU_PER_SECOND)
        await query_shapes.fill(server.port, ALONE, items=alike, ru_per_second=ONE_PARTITION_RU_PER_SECOND)
        caller = Caller(server.port)
        count = len(online_ids(await partitions(caller, SPREAD)))
        if count != PARTITIONS:
            raise UnexpectedAnswer(f"the container has {count} partitions instead of {PARTITIONS}")
        found = [row for shape in query_shapes.shapes(items) for row in await measure_shape(caller, shape)]
        found += await measure_full_reads(caller)
        await caller.close()
    # If nothing stands beside them, the notes say so.
    return [figure for figure in found if subject.is_compared or figure.unit != TIME_UNIT]


async def ask(caller: Caller, container: str, text: str, *, page_items: int | None, seconds_max: float) -> Cost:
    """Read the pages of a query to the end, or until `seconds_max` have passed."""
    cost = Cost()
    body = {"database": DATABASE, "container": container, "query": text, "explain": True}
    if page_items is not None:
        body["max_items"] = page_items
    started = time.perf_counter()
    while True:
        page = (await caller.expect(admin_request("POST", "query", body=body), 200)).json()
        cost.seconds = time.perf_counter() - started
        explanation = page["explanation"]
        cost.items_loaded += explanation["items_loaded"]
        cost.index_lookups += explanation["index_lookups"]
        cost.request_units += explanation["request_units"]
        cost.pages += 1
        cost.results += page["results"]
        cost.is_whole = page["continuation"] is None
        if cost.is_whole or cost.seconds > seconds_max:
            return cost
        body["continuation"] = page["continuation"]


# --- shapes -----------------------------------------------------------------------------------------------------------


async def measure_shape(caller: Caller, shape: Shape) -> list[Measurement]:
    cost = await ask(caller, SPREAD, shape.text, page_items=None, seconds_max=SHAPE_SECONDS_MAX)
    if cost.is_whole and shape.answer(cost.results) != shape.expected:
        raise UnexpectedAnswer(f"wrong results of {shape.text}")
    seconds = await repeat(caller, shape, cost)
    note = f"{cost.index_lookups:,} lookups, {median(seconds) * 1000:,.1f} ms p50, {cost.request_units:,.1f} RU"
    if not cost.is_whole:
        note = f"stopped after {cost.pages} pages: {note}"
    return [
        Measurement(CASE, shape.text, cost.items_loaded, "items", at_most=shape.loaded_at_most, note=note),
        Measurement(CASE, f"{shape.text}: time", median(seconds) * 1000, TIME_UNIT),
    ]


async def repeat(caller: Caller, shape: Shape, first: Cost) -> list[float]:
    """Return the seconds of several runs; of a query that was stopped, those of the first."""
    seconds = [first.seconds]
    if first.is_whole:
        deadline = time.perf_counter() + REPEAT_SECONDS_MAX
        while len(seconds) <= REPEATS and time.perf_counter() < deadline:
            cost = await ask(caller, SPREAD, shape.text, page_items=None, seconds_max=SHAPE_SECONDS_MAX)
            seconds.append(cost.seconds)
    # The first one compiles.
    return seconds[1:] or seconds


# --- filters read to their end ----------------------------------------------------------------------------------------


async def measure_full_reads(caller: Caller) -> list[Measurement]:
    """Filters that all items of a partition match, page by page, beside the scan that finds the same items.

    A lookup that begins again for every page reads its entries many times over: their number then grows with the
    square of the matches, and the filter becomes slower than the scan.
    """
    found: list[Measurement] = []
    scan = await full_read(caller, "SELECT * FROM c")
    for text in (
        "SELECT * FROM c WHERE c.n = 5",
        "SELECT * FROM c WHERE c.m >= 0",
        "SELECT * FROM c WHERE c.m BETWEEN 0 AND 5000",
        "SELECT * FROM c WHERE STARTSWITH(c.name, 'n')",
        "SELECT * FROM c WHERE c.n IN (5, 6)",
        "SELECT * FROM c WHERE c.m >= 0 ORDER BY c.m",
    ):
        cost = await full_read(caller, text)
        name = f"{text}: all {KIND_ITEMS:,} in pages of {PAGE_ITEMS}"
        times = f"{cost.seconds * 1000:,.0f} ms, {cost.seconds / scan.seconds:.2f} times the scan"
        note = f"{cost.pages} pages, {cost.items_loaded:,} items loaded, {times}, {cost.request_units:,.0f} RU"
        found.append(Measurement(CASE, name, cost.index_lookups, "lookups", at_most=LOOKUPS_AT_MOST, note=note))
        found.append(Measurement(CASE, f"{name}: time", cost.seconds * 1000, TIME_UNIT))
    return found


async def full_read(caller: Caller, text: str) -> Cost:
    """Return the cost of the run with the median time."""
    costs = [await ask(caller, ALONE, text, page_items=PAGE_ITEMS, seconds_max=30.0) for _ in range(READS)]
    if any(len(cost.results) != KIND_ITEMS for cost in costs):
        raise UnexpectedAnswer(f"{text} found {[len(cost.results) for cost in costs]} instead of {KIND_ITEMS} items")
    return sorted(costs, key=lambda cost: cost.seconds)[READS // 2]
