"""Items that are created a hundred at once, by a batch and by a stored procedure; and a function called in a filter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.batch_data import (
    BATCH_ITEMS,
    PROCEDURE,
    PROCEDURE_BODY,
    batches,
    create_script,
    fill_in_batches,
    procedure_runs,
)
from benchmarks.load import run_load
from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder, running_asterism
from benchmarks.query_data import query_request
from benchmarks.subject import Subject
from benchmarks.wire import Caller, UnexpectedAnswer
from benchmarks.workload import Creates, create_container, create_database

CASE = "batch"
CREATED, CALLED = "created", "called"
CONNECTIONS = 32
# The three ways take turns, so that whatever disturbs the machine for a while disturbs all of them.
ROUNDS = 3
ROUND_SECONDS = 2.5
WARM_UP_SECONDS = 0.5
CALLED_ITEMS = 30_000
SCANS = 5

# Both scan every item and match none; they differ in the side that multiplies.
FUNCTION_BODY = "function (n) { return n * 2; }"
CALLING = "SELECT VALUE c.id FROM c WHERE udf.f(c.n) = 1"
NOT_CALLING = "SELECT VALUE c.id FROM c WHERE c.n * 2 = 1"
# This one finds one item of each batch.
FINDING = "SELECT VALUE c.id FROM c WHERE udf.f(c.n) = 2"

BATCH_TO_SINGLE_AT_LEAST = 5.0
PROCEDURE_TO_BATCH_AT_LEAST = 0.5
CALLS_PER_SECOND_AT_LEAST = 50_000.0


async def measure(subject: Subject) -> list[Measurement]:
    # Scripts run in processes of their own, beside the server's: one core would measure how they take turns.
    with fresh_folder() as data, running_asterism(subject, data, on_all_cores=True) as server:
        caller = Caller(server.port)
        await create_database(caller)
        found = await measure_creates(server.port, caller)
        found += await measure_function(server.port, caller)
        await caller.close()
    return found


# --- a hundred at once ------------------------------------------------------------------------------------------------


async def measure_creates(port: int, caller: Caller) -> list[Measurement]:
    await create_container(caller, CREATED)
    await create_script(caller, CREATED, segment="sprocs", name=PROCEDURE, body=PROCEDURE_BODY)
    await check_creates(caller)
    single_rates: list[float] = []
    batch_rates: list[float] = []
    procedure_rates: list[float] = []
    for number in range(ROUNDS):
        singles = Creates(CREATED, prefix=f"s{number}-").requests()
        single_rates.append(await answers_per_second(port, singles, status=201))
        in_batches = batches(CREATED, prefix=f"b{number}-")
        batch_rates.append(await answers_per_second(port, in_batches, status=200) * BATCH_ITEMS)
        by_procedure = procedure_runs(CREATED, prefix=f"p{number}-")
        procedure_rates.append(await answers_per_second(port, by_procedure, status=200) * BATCH_ITEMS)
    single, batch, procedure = median(single_rates), median(batch_rates), median(procedure_rates)
    return [
        Measurement(CASE, "single creates", single, "items/s", note=f"{CONNECTIONS} connections"),
        Measurement(CASE, f"batches of {BATCH_ITEMS} creates", batch, "items/s"),
        Measurement(CASE, "ratio to single creates", batch / single, "x", at_least=BATCH_TO_SINGLE_AT_LEAST),
        Measurement(CASE, f"procedure with {BATCH_ITEMS} creates", procedure, "items/s"),
        Measurement(CASE, "procedure's ratio to batches", procedure / batch, "x", at_least=PROCEDURE_TO_BATCH_AT_LEAST),
    ]


async def check_creates(caller: Caller) -> None:
    """Speed counts only if the items are really created."""
    answer = await caller.expect(next(batches(CREATED, prefix="check-b")), 200)
    made_by_batch = sum(result["statusCode"] == 201 for result in answer.json())
    answer = await caller.expect(next(procedure_runs(CREATED, prefix="check-p")), 200)
    if (made_by_batch, answer.json()) != (BATCH_ITEMS, BATCH_ITEMS):
        raise UnexpectedAnswer(f"{made_by_batch} and {answer.json()} items were created instead of {BATCH_ITEMS}")


async def answers_per_second(port: int, requests: Iterator[bytes], *, status: int) -> float:
    result = await run_load(
        port, requests, connections=CONNECTIONS, seconds=ROUND_SECONDS, warm_up_seconds=WARM_UP_SECONDS
    )
    if result.error_count or set(result.statuses) != {status}:
        raise UnexpectedAnswer(f"items could not be created: {dict(result.statuses)}")
    # Requests under way at the end finished after it. With a hundred items each, that is not to be neglected.
    in_time = sum(arrival < result.ended for arrival in result.arrivals)
    return in_time / (result.ended - result.started)


# --- a function in a filter -------------------------------------------------------------------------------------------


async def measure_function(port: int, caller: Caller) -> list[Measurement]:
    await create_container(caller, CALLED)
    await create_script(caller, CALLED, segment="udfs", name="f", body=FUNCTION_BODY)
    await fill_in_batches(port, CALLED, CALLED_ITEMS)
    await check_function(caller)
    calling: list[float] = []
    not_calling: list[float] = []
    for _ in range(SCANS):
        calling.append(await scan_rate(caller, CALLING))
        not_calling.append(await scan_rate(caller, NOT_CALLING))
    note = f"with the scan itself, which alone does {median(not_calling):,.0f} items/s"
    return [
        Measurement(
            CASE, "function in a filter", median(calling), "calls/s", at_least=CALLS_PER_SECOND_AT_LEAST, note=note
        )
    ]


async def check_function(caller: Caller) -> None:
    """A filter that was never called would also find nothing."""
    found, _ = await scan(caller, FINDING)
    if found != CALLED_ITEMS // BATCH_ITEMS:
        raise UnexpectedAnswer(f"the function found {found} items instead of {CALLED_ITEMS // BATCH_ITEMS}")


async def scan_rate(caller: Caller, text: str) -> float:
    found, seconds = await scan(caller, text)
    if found:
        raise UnexpectedAnswer(f"a scan that is to find nothing found {found} items")
    return CALLED_ITEMS / seconds


async def scan(caller: Caller, text: str) -> tuple[int, float]:
    """How many items a query finds, page by page, and the seconds it takes."""
    started = time.perf_counter()
    found = 0
    continuation: str | None = None
    while True:
        answer = await caller.expect(query_request(CALLED, text, continuation=continuation), 200)
        found += len(answer.json()["Documents"])
        continuation = answer.headers.get("x-ms-continuation")
        if continuation is None:
            return found, time.perf_counter() - started
