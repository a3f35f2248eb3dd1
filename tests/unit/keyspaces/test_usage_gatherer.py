"""The counts of several processes, as one of them shows them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.usage_gatherer import Served, UsageGatherer
from asterism.metrics import WorkCounts


class Process:
    """A process with its own counts, of a catalog without keyspaces."""

    def __init__(self, name: str, boot_number: int) -> None:
        self.name = name
        catalog = SimpleNamespace(is_shared=True, boot_number=boot_number, keyspaces={})
        self.work = WorkCounts()
        self.gatherer = UsageGatherer(cast(Catalog, catalog), lambda: self.work)

    def report(self) -> dict[str, Any]:
        """As others read it from the store."""
        report: dict[str, Any] = json.loads(json.dumps({"name": self.name, **self.gatherer.report()}))
        return report


async def gather(asking: Process, *others: Process) -> Served:
    asking.gatherer.hear([other.report() for other in others])
    served = asyncio.create_task(asking.gatherer.of_all())
    while not served.done():
        for process in (asking, *others):
            process.gatherer.hear([other.report() for other in (asking, *others) if other is not process])
        await asyncio.sleep(0)
    return await served


async def test_requests_of_all_processes_are_summed() -> None:
    first, second = Process("first", 1), Process("second", 2)
    for process in (first, second):
        process.gatherer.requests.of_door("nosql").add("read_item", 200, 0.5)
    second.gatherer.requests.of_door("nosql").add("read_item", 404, 0.25)
    second.gatherer.requests.of_door("table").in_flight = 3
    requests = (await gather(first, second)).requests
    counted = requests.doors["nosql"].operations["read_item"]
    assert (counted.by_status, counted.seconds) == ({"200": 2, "404": 1}, 1.25)
    assert requests.doors["table"].in_flight == 3


async def test_work_behind_the_requests_of_all_processes_is_summed() -> None:
    first, second = Process("first", 1), Process("second", 2)
    first.work = WorkCounts(Counter(split=1), store_commits=10)
    second.work = WorkCounts(Counter(split=2, move=3), store_commits=5)
    work = (await gather(first, second)).work
    assert (work.reshapes, work.store_commits) == (Counter(split=3, move=3), 15)
    assert first.work == WorkCounts(Counter(split=1), store_commits=10)


async def test_a_process_that_counts_no_requests_yet_adds_none() -> None:
    first, older = Process("first", 1), Process("older", 2)
    first.gatherer.requests.of_door("nosql").add("read_item", 200, 0.5)
    report = older.gatherer.report
    older.gatherer.report = lambda: {  # type: ignore[method-assign] # as a version before this one reports
        name: value for name, value in report().items() if name not in ("requests", "work")
    }
    served = await gather(first, older)
    assert served.requests.doors["nosql"].operations["read_item"].by_status == {"200": 1}
    assert served.work == WorkCounts()


async def test_own_counts_stay_as_they_are() -> None:
    first, second = Process("first", 1), Process("second", 2)
    first.gatherer.requests.of_door("nosql").add("read_item", 200, 0.5)
    before = first.gatherer.requests.to_json()
    await gather(first, second)
    await gather(first, second)
    assert first.gatherer.requests.to_json() == before
