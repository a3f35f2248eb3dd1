"""Figures of much at once: a backlog, idle connections, a start with many entities."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.amqp_figures import (
    BATCH,
    BATCH_TEMPLATE,
    CASE,
    COUNT,
    keeps_figure,
    rate,
    rates_in_turns,
)
from benchmarks.amqp_hubs import create_hub, partition_address, send_events
from benchmarks.amqp_queues import Load, QueueClients, create_queues
from benchmarks.amqp_servers import Administration, AmqpServer, running_messaging
from benchmarks.amqp_wire import open_receiver, open_sender
from benchmarks.measurement import Measurement
from benchmarks.processes import fresh_folder
from benchmarks.subject import Subject

IDLE_CONNECTIONS = 1_000
OPENED_AT_ONCE = 50
SETTLE_SECONDS, WATCHED_SECONDS = 2.0, 5.0
IDLE_MB_AT_MOST = 100.0
# Every connection gets an empty frame every 5 seconds; beside them there is nothing to do.
IDLE_CPU_PERCENT_AT_MOST = 2.0
ENTITIES = 1_000
STARTS = 3
START_RATIO_AT_MOST = 1.2


async def measure_backlog(server: AmqpServer, backlog: int) -> list[Measurement]:
    """Measure a queue and a partition without a backlog and with one, in turns, in the same server."""
    await create_queues(server, "few", "many")
    for hub in ("few-events", "many-events"):
        await create_hub(server, hub)
    many = partition_address("many-events", 0)
    filled = await _fill(server, "many", backlog)
    filled_events = await _fill(server, many, backlog)
    queues = {name: await QueueClients.open(server, name) for name in ("few", "many")}
    hubs = {
        "few": await open_sender(server.port, partition_address("few-events", 0), server.login),
        "many": await open_sender(server.port, many, server.login),
    }
    loads: dict[str, Load] = {}
    for name, clients in queues.items():
        loads |= {f"{name} queue, {kind}": load for kind, load in clients.loads(COUNT).items()}
    loads |= {f"{name} hub, send": partial(send_events, sender) for name, sender in hubs.items()}
    rates = await rates_in_turns(loads)
    for clients in queues.values():
        await clients.close()
    for sender in hubs.values():
        await sender.close()
    found = [
        Measurement(CASE, f"backlog of {backlog:,}, filled", filled, "messages/s", note=f"in batches of {BATCH}"),
        Measurement(CASE, f"backlog of {backlog:,}, filled", filled_events, "events/s", note=f"in batches of {BATCH}"),
    ]
    for kind in [name.removeprefix("few ") for name in rates if name.startswith("few ")]:
        before, after = rates[f"few {kind}"], rates[f"many {kind}"]
        note = f"{before:,.0f}/s without, {after:,.0f}/s with it"
        found.append(keeps_figure(f"{kind}, {backlog:,} waiting to none", before=before, after=after, note=note))
    return found


async def _fill(server: AmqpServer, address: str, count: int) -> float:
    sender = await open_sender(server.port, address, server.login)
    filled = await rate(sender.send(BATCH_TEMPLATE, max(count // BATCH, 1), window=20), count)
    await sender.close()
    return filled


async def measure_idle(server: AmqpServer) -> list[Measurement]:
    """Measure connections that each wait for messages of an empty queue."""
    await create_queues(server, "idle")
    process = server.process
    resident_before = process.resident_bytes()
    receivers = []
    for _ in range(IDLE_CONNECTIONS // OPENED_AT_ONCE):
        opening = (open_receiver(server.port, "idle", server.login) for _ in range(OPENED_AT_ONCE))
        receivers += await asyncio.gather(*opening)
    for receiver in receivers:
        receiver.wait_for_messages(credit=10)
    await asyncio.sleep(SETTLE_SECONDS)
    megabytes = (process.resident_bytes() - resident_before) / 1e6
    cpu_before = process.cpu_seconds()
    await asyncio.sleep(WATCHED_SECONDS)
    cpu_percent = (process.cpu_seconds() - cpu_before) / WATCHED_SECONDS * 100
    for receiver in receivers:
        await receiver.close()
    title = f"{IDLE_CONNECTIONS:,} idle connections"
    return [
        Measurement(CASE, f"{title}, memory", megabytes, "MB", at_most=IDLE_MB_AT_MOST),
        Measurement(CASE, f"{title}, processor", cpu_percent, "%", at_most=IDLE_CPU_PERCENT_AT_MOST),
    ]


async def measure_start(subject: Subject) -> Measurement:
    """Compare starts with many entities and with none, each on data that an earlier run has left."""
    with fresh_folder() as few, fresh_folder() as many:
        with running_messaging(subject, few):
            pass
        with running_messaging(subject, many) as server:
            administration = Administration(server)
            for number in range(ENTITIES):
                await administration.create_queue(f"queue{number:04d}")
            await administration.close()
        seconds = _start_seconds(subject, few, many)
    note = f"median of {STARTS}: {seconds[0]:.2f} s without, {seconds[1]:.2f} s with them"
    name = f"start with {ENTITIES:,} entities, ratio to none"
    return Measurement(CASE, name, seconds[1] / seconds[0], "x", at_most=START_RATIO_AT_MOST, note=note)


def _start_seconds(subject: Subject, *folders: Path) -> list[float]:
    found: dict[Path, list[float]] = {folder: [] for folder in folders}
    for _ in range(STARTS):
        for folder, seconds in found.items():
            with running_messaging(subject, folder) as server:
                seconds.append(server.process.start_seconds)
    return [median(seconds) for seconds in found.values()]
