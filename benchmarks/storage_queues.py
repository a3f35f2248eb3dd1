"""Figures of queues: put, get and delete with few and many messages waiting, and whole cycles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from statistics import median

from benchmarks import storage_wire
from benchmarks.load import run_all
from benchmarks.measurement import Measurement
from benchmarks.queue_consumers import Consumption, consume
from benchmarks.storage_figures import ASTERISM, CASE, CONNECTIONS, PEER, call, checked, measure_rates, ratio
from benchmarks.storage_servers import StorageServer

MESSAGE = "m" * 1024
WAITING_FEW = 1200
WAITING_MANY = 100_000
# Of each round; as many are put back afterwards.
CONSUMED = 240
ROUNDS = 5
CYCLES = 480

PUT_AT_LEAST, PUTS_PER_SECOND_AT_LEAST = 3.0, 2000.0
CONSUME_AT_LEAST, CYCLE_AT_LEAST = 10.0, 10.0
MANY_TO_FEW_AT_MOST = 1.3


async def measure_queues(servers: dict[str, StorageServer]) -> list[Measurement]:
    ports = {name: server.queue_port for name, server in servers.items()}
    for port in ports.values():
        for queue in ("few", "cycle"):
            await call(port, storage_wire.create_queue(queue), 201)
        await fill(port, "few", WAITING_FEW)
    found = await measure_consumers(ports)
    found += await measure_cycles(ports)
    if PEER in ports:
        found += await measure_independence(ports[ASTERISM])
    # Last, because the peer looks at all messages of all queues; and it is slower the more of them are on its disk.
    for port in ports.values():
        await call(port, storage_wire.create_queue("puts"), 201)
    found += await measure_rates(
        "queue put of 1 KB",
        ports,
        puts,
        unit="messages/s",
        at_least=PUT_AT_LEAST,
        rate_at_least=PUTS_PER_SECOND_AT_LEAST,
        before_each=storage_wire.clear_messages("puts"),
    )
    return found


def puts(_: int) -> Iterator[bytes]:
    return itertools.repeat(storage_wire.put_message("puts", MESSAGE))


async def fill(port: int, queue: str, count: int) -> None:
    requests = itertools.repeat(storage_wire.put_message(queue, MESSAGE), count)
    checked(await run_all(port, requests, connections=CONNECTIONS), "filled a queue")


def middle(rounds: list[Consumption]) -> Consumption:
    """The round with the median rate: rounds that something else on the machine disturbed do not count."""
    return sorted(rounds, key=lambda consumption: consumption.rate_per_second)[len(rounds) // 2]


def consumption_figures(
    kind: str, unit: str, rounds: dict[str, list[Consumption]], at_least: float
) -> list[Measurement]:
    found, rates = [], {}
    for name, several in rounds.items():
        consumption = middle(several)
        rates[name] = consumption.rate_per_second
        note = f"{CONNECTIONS} connections, p50 {consumption.median_ms:.2f} ms"
        found.append(Measurement(CASE, f"{kind}, {name}", rates[name], unit, note=note))
    return [*found, *ratio(kind, rates, at_least=at_least)]


async def measure_consumers(ports: dict[str, int]) -> list[Measurement]:
    """Get and delete, with the same number waiting before each round."""
    rounds: dict[str, list[Consumption]] = {name: [] for name in ports}
    for _ in range(ROUNDS):
        for name, port in ports.items():
            rounds[name].append(await consume(port, "few", rounds=CONSUMED, connections=CONNECTIONS))
            await fill(port, "few", CONSUMED)
    kind = f"queue get and delete, {WAITING_FEW:,} waiting"
    return consumption_figures(kind, "pairs/s", rounds, CONSUME_AT_LEAST)


async def measure_cycles(ports: dict[str, int]) -> list[Measurement]:
    rounds: dict[str, list[Consumption]] = {name: [] for name in ports}
    for _ in range(ROUNDS):
        for name, port in ports.items():
            found = await consume(port, "cycle", rounds=CYCLES, connections=CONNECTIONS, text_to_put=MESSAGE)
            rounds[name].append(found)
    kind = f"queue put, get and delete ({WAITING_FEW:,} waiting in another queue)"
    return consumption_figures(kind, "cycles/s", rounds, CYCLE_AT_LEAST)


async def measure_independence(port: int) -> list[Measurement]:
    """Medians of one consumer alone: a server with few messages in all its queues, then with many in one of them."""
    few = await median_pair_ms(port, "few")
    await call(port, storage_wire.create_queue("many"), 201)
    await fill(port, "many", WAITING_MANY)
    many = await median_pair_ms(port, "many")
    note = f"one connection: {few:.2f} ms of {WAITING_FEW:,}, {many:.2f} ms of {WAITING_MANY:,}"
    name = "queue get and delete: many waiting to few"
    return [Measurement(CASE, name, many / few, "x", at_most=MANY_TO_FEW_AT_MOST, note=note)]


async def median_pair_ms(port: int, queue: str) -> float:
    medians = []
    for _ in range(ROUNDS):
        medians.append((await consume(port, queue, rounds=CONSUMED, connections=1)).median_ms)
        await fill(port, queue, CONSUMED)
    return median(medians)
