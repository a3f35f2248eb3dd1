"""Measure a server inside its own process: `python -m benchmarks.in_process FILE -- OPTIONS OF SERVE`.

The program is started as its users start it, with Granian's place taken (rsgi.py), and measured from within its event
loop. FILE gets the microseconds of CPU, all threads together, of each kind of request, and its calls of functions: a
number that no other program disturbs.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import granian.server.embed

from benchmarks import in_process_requests as requests
from benchmarks import table_wire
from benchmarks.query_data import EQUALITY
from benchmarks.rsgi import Application, Call, Server
from benchmarks.wire import signed_request
from benchmarks.workload import DATABASE, create_container_request

# The least of many short blocks: other programs can only add to the time of a block, and leave some of them alone.
BLOCKS = 15
READY_SECONDS_MAX = 20.0
COMPILATIONS = 100
# The modules of the query language, in newer and older checkouts.
LANGUAGES = ("asterism.languages.cosmos_sql", "asterism.query")


async def measure(items: Application, tables: Application | None) -> dict[str, dict[str, float]]:
    await fill(items, tables)
    microseconds: dict[str, float] = {}
    calls: dict[str, float] = {}
    for kind in requests.kinds():
        application = tables if kind.is_table else items
        if application is not None:
            microseconds[kind.name] = await least_microseconds(application, kind)
            calls[kind.name] = await calls_each(application, kind)
    return {"microseconds": microseconds | compilation(), "calls": calls}


async def fill(items: Application, tables: Application | None) -> None:
    database = signed_request("POST", "/dbs", resource_type="dbs", link="", body={"id": DATABASE})
    for request in (database, create_container_request(requests.CONTAINER)):
        await make_all(items, [Call.of(request)], concurrency=1, status=201)
    await make_all(items, requests.filling_items(), concurrency=requests.WRITERS, status=201)
    if tables is not None:
        await make_all(tables, [Call.of(table_wire.create_table(requests.TABLE))], concurrency=1, status=204)
        await make_all(tables, requests.filling_entities(), concurrency=requests.WRITERS, status=204)


async def least_microseconds(application: Application, kind: requests.Kind) -> float:
    count = kind.block_calls
    microseconds = []
    for _ in range(BLOCKS):
        # Made before: building a request is not the server's work.
        calls = list(itertools.islice(kind.calls, count))
        started = time.process_time()
        await make_all(application, calls, concurrency=kind.concurrency, status=kind.status)
        microseconds.append((time.process_time() - started) / count * 1e6)
    return min(microseconds)


async def calls_each(application: Application, kind: requests.Kind) -> float:
    """Return the calls of Python and C functions on the event loop's thread for a request, resumed coroutines too."""
    calls = list(itertools.islice(kind.calls, kind.block_calls))
    count = 0

    def notice(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(notice)
    try:
        await make_all(application, calls, concurrency=kind.concurrency, status=kind.status)
    finally:
        sys.setprofile(None)
    return count / len(calls)


async def make_all(application: Application, calls: list[Call], *, concurrency: int, status: int) -> None:
    queue = iter(calls)
    if concurrency == 1:
        await make_in_turn(application, queue, status)
        return
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(make_in_turn(application, queue, status))


async def make_in_turn(application: Application, calls: Iterator[Call], status: int) -> None:
    for call in calls:
        answer = await call.make(application)
        if answer.status != status:
            scope = call.scope
            raise SystemExit(f"{answer.status} of {scope.method} {scope.path}: {answer.content[:300]!r}")


# --- compiling --------------------------------------------------------------------------------------------------------


def compilation() -> dict[str, float]:
    language = find_language()
    if language is None:
        return {}

    def microseconds_each(texts: list[str]) -> float:
        started = time.process_time()
        for text in texts:
            language.compile_query(language.parse_query(text), {"@bunch": "b"})
        return (time.process_time() - started) / len(texts) * 1e6

    texts = [EQUALITY + f" AND c.n{number} != 1" for number in range(COMPILATIONS * BLOCKS)]
    blocks = [texts[start : start + COMPILATIONS] for start in range(0, len(texts), COMPILATIONS)]
    return {
        "compile a query, new text": min(microseconds_each(block) for block in blocks),
        "compile a query, known text": min(microseconds_each([texts[-1]] * COMPILATIONS) for _ in blocks),
    }


def find_language() -> Any:
    """Return the module with `parse_query` and `compile_query`, or None if the checkout has it elsewhere."""
    for name in LANGUAGES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        if hasattr(module, "compile_query") and hasattr(module, "parse_query"):
            return module
    return None


# --- the program ------------------------------------------------------------------------------------------------------


async def measure_when_ready(result: Path, ports: list[int]) -> None:
    """Wait for the server's ports, measure, and end the server by the signal that users send."""
    async with asyncio.timeout(READY_SECONDS_MAX):
        while not Server.applications.keys() >= set(ports) or not await _accepts(ports[0]):
            await asyncio.sleep(0.01)
    try:
        items, *others = (Server.applications[port] for port in ports)
        result.write_text(json.dumps(await measure(items, others[0] if others else None)))
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


async def _accepts(port: int) -> bool:
    """Return True when the program listens: it opens the first port last, and is ready then."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def main() -> None:
    result, options = Path(sys.argv[1]), sys.argv[3:]
    ports = [int(options[place + 1]) for place, name in enumerate(options) if name in ("--port", "--table-port")]
    measuring: list[asyncio.Task[None]] = []

    class Measured(Server):
        async def serve(self) -> None:
            if not measuring:
                measuring.append(asyncio.create_task(measure_when_ready(result, ports)))
            await super().serve()

    # The program below makes its listeners of this.
    setattr(granian.server.embed, "Server", Measured)  # noqa: B010  (mypy allows no assignment to a class)
    sys.argv = ["asterism", "serve", *options]
    program: Callable[[], None] = importlib.import_module("asterism.cli.main").main
    program()


if __name__ == "__main__":
    main()
