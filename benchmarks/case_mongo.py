"""The MongoDB door beside a bare server: raw messages, documents of 1 KB, the server on one core."""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import mongo_wire
from benchmarks.closed_loop import MessageLoad
from benchmarks.measurement import Measurement
from benchmarks.mongo_wire import Talker, message, run_mongo_load
from benchmarks.processes import RunningServer, free_port, fresh_folder, python_module, running
from benchmarks.subject import Subject

CASE = "mongo"
CONNECTIONS = 16
ROUNDS = 3
ROUND_SECONDS = 2.0
WARM_UP_SECONDS = 0.3
DOCUMENTS = 20_000
# Per insert while the collection is filled.
FILLED_AT_ONCE = 500
SMALL_COLLECTION = 1_000
IDLE_CONNECTIONS = 1_000
CREATED_DATABASES = 200

ASTERISM, BARE = "asterism", "bare"
CREATE_AND_DROP_MS_AT_MOST = 3.0
IDLE_MB_AT_MOST = 100.0
SIZE_RATIO_AT_MOST = 1.5

Requests = Callable[[int], Iterator[bytes]]


@contextmanager
def running_mongo(subject: Subject, data: Path) -> Iterator[RunningServer]:
    port = free_port()
    command = [*subject.command, "--data", str(data), "--apis", "mongo", "--mongo-port", str(port), "--no-throttle"]
    with running(
        command, port=port, log_name="mongo", probe=message({"ping": 1}), environment=subject.environment,
        is_answer=bool,
    ) as server:  # fmt: skip
        yield server


@contextmanager
def running_bare(data: Path) -> Iterator[RunningServer]:
    port = free_port()
    command = python_module("benchmarks.bare_mongo", str(port), str(data))
    with running(command, port=port, log_name="bare-mongo", probe=message({"ping": 1}), is_answer=bool) as server:
        yield server


async def fill(port: int, count: int) -> None:
    """Make the collection and its index anew, and insert so many documents."""
    talker = await Talker.connect(port)
    await talker.ask(message({"dropDatabase": 1}))
    await talker.ask(message({"create": mongo_wire.COLLECTION}))
    index = {"key": {"n": 1}, "name": "n_1"}
    await talker.ask(message({"createIndexes": mongo_wire.COLLECTION, "indexes": [index]}))
    numbers = itertools.count()
    for _ in range(count // FILLED_AT_ONCE):
        await talker.ask(mongo_wire.insert(numbers, FILLED_AT_ONCE))
    await talker.close()


# --- rates ------------------------------------------------------------------------------------------------------------


def _cycle(make: Callable[[int], bytes]) -> Requests:
    chosen = random.Random(6)
    numbers = [chosen.randrange(DOCUMENTS - 100) for _ in range(2000)]
    made = [make(number) for number in numbers]
    return lambda _: itertools.cycle(made)


def _inserts(count: int) -> Requests:
    def requests(round_number: int) -> Iterator[bytes]:
        first = DOCUMENTS + (round_number + count * ROUNDS) * 1_000_000
        return mongo_wire.inserts(first, count)

    return requests


# Name, requests, what one request counts, the promised ratio to the bare server, the promised rate.
Kind = tuple[str, Requests, int, float | None, float | None]


def kinds() -> list[Kind]:
    find = mongo_wire.find
    return [
        ("find by _id", _cycle(lambda n: find({"_id": n}, limit=1, singleBatch=True)), 1, 0.5, None),
        ("find by index, 1 result", _cycle(lambda n: find({"n": n}, limit=1, singleBatch=True)), 1, 0.4, None),
        (
            "find by index, 20 results",
            _cycle(lambda n: find({"n": {"$gte": n, "$lt": n + 20}}, batchSize=100)),
            1,
            0.4,
            None,
        ),
        ("insert one", _inserts(1), 1, 0.6, None),
        ("insert 100", _inserts(100), 100, 0.35, None),
        ("update $inc by _id", _cycle(mongo_wire.increment), 1, None, 3_000.0),
        ("aggregate match + group of 100", _cycle(mongo_wire.grouped), 1, None, 2_000.0),
        ("ping", _cycle(lambda _: message({"ping": 1})), 1, None, None),
    ]


async def measure_rates(ports: dict[str, int]) -> list[Measurement]:
    found: list[Measurement] = []
    for kind, requests, count, ratio_at_least, rate_at_least in kinds():
        is_compared = ratio_at_least is not None or kind == "ping"
        names = [name for name in ports if name == ASTERISM or is_compared]
        rounds: dict[str, list[MessageLoad]] = {name: [] for name in names}
        for number in range(ROUNDS):
            for name in names:
                made = requests(number)
                await run_mongo_load(ports[name], made, connections=CONNECTIONS, seconds=WARM_UP_SECONDS)
                result = await run_mongo_load(ports[name], made, connections=CONNECTIONS, seconds=ROUND_SECONDS)
                rounds[name].append(result)
        middle = {
            name: sorted(several, key=lambda load: load.rate_per_second)[len(several) // 2]
            for name, several in rounds.items()
        }
        for name, result in middle.items():
            note = f"p50 {result.percentile_ms(50):.2f} ms, p99 {result.percentile_ms(99):.2f} ms"
            at_least = rate_at_least if name == ASTERISM else None
            rate = result.rate_per_second * count
            found.append(Measurement(CASE, f"{kind}, {name}", rate, "/s", at_least=at_least, note=note))
        if BARE in middle:
            ratio = middle[ASTERISM].rate_per_second / middle[BARE].rate_per_second
            found.append(Measurement(CASE, f"{kind}, ratio", ratio, "x", at_least=ratio_at_least))
    return found


# --- single figures ---------------------------------------------------------------------------------------------------


async def measure_databases(port: int) -> Measurement:
    talker = await Talker.connect(port)
    times: list[float] = []
    for number in range(CREATED_DATABASES):
        begun = time.perf_counter()
        await talker.ask(message({"create": "c"}, database=f"made{number}"))
        await talker.ask(message({"dropDatabase": 1}, database=f"made{number}"))
        times.append(time.perf_counter() - begun)
    await talker.close()
    milliseconds = statistics.median(times) * 1000
    name = "create and drop a database with one collection"
    return Measurement(CASE, name, milliseconds, "ms", at_most=CREATE_AND_DROP_MS_AT_MOST)


async def _median_find_ms(port: int, count: int) -> float:
    chosen = random.Random(8)
    made = [mongo_wire.find({"n": chosen.randrange(count)}, limit=1, singleBatch=True) for _ in range(500)]
    load = await run_mongo_load(port, itertools.cycle(made), connections=1, seconds=ROUND_SECONDS)
    return load.percentile_ms(50)


async def measure_size(port: int) -> Measurement:
    """Compare an indexed find in a small and in a large collection."""
    await fill(port, SMALL_COLLECTION)
    small = await _median_find_ms(port, SMALL_COLLECTION)
    await fill(port, DOCUMENTS)
    large = await _median_find_ms(port, DOCUMENTS)
    note = f"{small:.3f} ms of {SMALL_COLLECTION:,}, {large:.3f} ms of {DOCUMENTS:,}"
    name = "find by index: large collection to small"
    return Measurement(CASE, name, large / small, "x", at_most=SIZE_RATIO_AT_MOST, note=note)


async def measure_idle(server: RunningServer) -> Measurement:
    before = server.resident_bytes()
    talkers = [await Talker.connect(server.port) for _ in range(IDLE_CONNECTIONS)]
    for talker in talkers:
        await talker.ask(message({"ping": 1}))
    await asyncio.sleep(0.5)
    megabytes = (server.resident_bytes() - before) / 1e6
    for talker in talkers:
        await talker.close()
    return Measurement(CASE, f"{IDLE_CONNECTIONS:,} idle connections", megabytes, "MB", at_most=IDLE_MB_AT_MOST)


async def measure(subject: Subject) -> list[Measurement]:
    with (
        fresh_folder() as data,
        fresh_folder() as bare_data,
        running_mongo(subject, data) as server,
        running_bare(bare_data) as bare,
    ):
        found = [await measure_databases(server.port), await measure_size(server.port)]
        ports = {ASTERISM: server.port}
        if not subject.is_compared:
            ports[BARE] = bare.port
            await fill(bare.port, DOCUMENTS)
        found += await measure_rates(ports)
        found.append(await measure_idle(server))
    return found
