"""Hubs, queues and topics over AMQP beside a bare loop and RabbitMQ: raw messages of 1 KB, each server on one core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from benchmarks.amqp_figures import ASTERISM, BARE, CASE, PEER
from benchmarks.amqp_hubs import measure_hub
from benchmarks.amqp_queues import (
    measure_one_by_one,
    measure_peer,
    measure_queue,
    measure_several_clients,
    measure_topic,
)
from benchmarks.amqp_scale import measure_backlog, measure_idle, measure_start
from benchmarks.amqp_servers import AmqpServer, running_bare_amqp, running_messaging
from benchmarks.measurement import Measurement, not_measured
from benchmarks.peer_rabbitmq import running_rabbitmq
from benchmarks.processes import NotMeasured, fresh_folder
from benchmarks.subject import Subject
from benchmarks.wire import UnexpectedAnswer

Part = Callable[[Subject], Awaitable[list[Measurement]]]


async def measure_beside_others(subject: Subject) -> list[Measurement]:
    with ExitStack() as stack:
        servers: dict[str, AmqpServer] = {}
        servers[ASTERISM] = stack.enter_context(running_messaging(subject, stack.enter_context(fresh_folder())))
        missing: list[Measurement] = []
        if not subject.is_compared:
            servers[BARE] = stack.enter_context(running_bare_amqp(stack.enter_context(fresh_folder())))
            missing = start_peer(stack, servers)
        return [
            *await measure_queue(servers),
            *await measure_one_by_one(servers),
            *await measure_peer(servers),
            *await measure_hub(servers),
            *missing,
        ]


def start_peer(stack: ExitStack, servers: dict[str, AmqpServer]) -> list[Measurement]:
    """Add the peer to the servers; return the measurements that are missing where it does not run."""
    try:
        servers[PEER] = stack.enter_context(running_rabbitmq(stack.enter_context(fresh_folder())))
    except (NotMeasured, OSError) as problem:
        return [not_measured(CASE, f"ratio to {PEER}", str(problem))]
    return []


async def measure_alone(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_messaging(subject, data) as server:
        return [*await measure_several_clients(server), *await measure_topic(server)]


async def measure_waiting(subject: Subject) -> list[Measurement]:
    if subject.is_compared:
        return []
    with fresh_folder() as data, running_messaging(subject, data) as server:
        return await measure_backlog(server, subject.backlog)


async def measure_connections(subject: Subject) -> list[Measurement]:
    with fresh_folder() as data, running_messaging(subject, data) as server:
        return await measure_idle(server)


async def measure_entities(subject: Subject) -> list[Measurement]:
    return [] if subject.is_compared else [await measure_start(subject)]


# Each part has servers of its own: what one leaves behind would slow the next.
PARTS: dict[str, Part] = {
    "beside others": measure_beside_others,
    "several clients and topics": measure_alone,
    "backlog": measure_waiting,
    "idle connections": measure_connections,
    "start": measure_entities,
}


async def measure(subject: Subject) -> list[Measurement]:
    found: list[Measurement] = []
    for name, part in PARTS.items():
        try:
            found += await part(subject)
        except (NotMeasured, UnexpectedAnswer, OSError) as problem:
            found.append(not_measured(CASE, name, str(problem) or type(problem).__name__))
    return found
