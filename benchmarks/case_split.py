"""A partition of 100,000 items splits under a mixed load: no request fails, nothing is lost or doubled."""

from __future__ import annotations

from benchmarks.administration import online_ids, partitions, split_and_wait
from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.subject import Subject
from benchmarks.under_load import CONTAINER, fill, measure_under_load
from benchmarks.wire import Caller

CASE = "split"
SPLIT_SECONDS_MAX = 90.0


async def measure(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_asterism(subject, data) as server:
        caller = Caller(server.port)
        item_ids = await fill(caller, server.port)
        (range_id,) = online_ids(await partitions(caller, CONTAINER))

        async def split() -> float:
            return await split_and_wait(caller, CONTAINER, range_id, seconds_max=SPLIT_SECONDS_MAX)

        measured = await measure_under_load(CASE, caller, server.port, item_ids, split)
        await caller.close()
    return measured
