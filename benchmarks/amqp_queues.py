"""Figures of queues and topics: send, receive and complete beside the bare loop, one by one beside RabbitMQ."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.amqp_figures import (
    ASTERISM,
    BARE,
    CASE,
    CLIENTS,
    COUNT,
    COUNT_ONE_BY_ONE,
    ONE_BY_ONE_AT_LEAST,
    PEER,
    QUEUE_AT_LEAST,
    QUEUE_RATE_AT_LEAST,
    ROUNDS,
    SUBSCRIPTIONS,
    SYNCS_AT_LEAST,
    TEMPLATE,
    TOPIC_AT_LEAST,
    WINDOW,
    rate,
    rate_figures,
    rates_in_turns,
    ratio_figure,
)
from benchmarks.amqp_servers import Administration, AmqpServer
from benchmarks.amqp_wire import Receiver, Sender, open_receiver, open_sender
from benchmarks.measurement import Measurement
from benchmarks.peer_rabbitmq import PEER_QUEUE, RabbitServer

Load = Callable[[], Awaitable[float]]


@dataclass(frozen=True)
class QueueClients:
    """A sender and two receivers of one queue: the first deletes what it gets, the second locks and completes it."""

    sender: Sender
    remover: Receiver
    completer: Receiver

    @classmethod
    async def open(cls, server: AmqpServer, queue: str) -> QueueClients:
        port, login = server.port, server.login
        return cls(
            await open_sender(port, queue, login),
            await open_receiver(port, queue, login, deletes=True),
            await open_receiver(port, queue, login),
        )

    async def close(self) -> None:
        for link in (self.sender, self.remover, self.completer):
            await link.close()

    def loads(self, count: int) -> dict[str, Load]:
        """Return loads that leave the queue as it was if they are run in this order, by the kind of their figure."""
        half = count // 2
        return {
            "send": lambda: rate(self.sender.send(TEMPLATE, 2 * half, window=WINDOW), 2 * half),
            "receive and delete": lambda: rate(self.remover.receive(half, window=WINDOW), half),
            "receive and complete": lambda: rate(self.completer.receive_and_complete(half, window=WINDOW), half),
        }


async def measure_queue(servers: Mapping[str, AmqpServer]) -> list[Measurement]:
    """Measure Asterism and the bare loop with a window, in turns."""
    await create_queues(servers[ASTERISM], "rates")
    clients = {name: await QueueClients.open(servers[name], "rates") for name in (ASTERISM, BARE) if name in servers}
    loads: dict[str, Load] = {}
    for name, several in clients.items():
        loads |= {f"{name}, {kind}": load for kind, load in several.loads(COUNT).items()}
    rates = await rates_in_turns(loads)
    found = []
    for kind in clients[ASTERISM].loads(0):
        of_kind = {name: rates[f"{name}, {kind}"] for name in clients}
        title = f"queue, {kind}, window {WINDOW}"
        found += [*rate_figures(title, of_kind), *ratio_figure(title, of_kind, to=BARE, at_least=QUEUE_AT_LEAST)]
    for several in clients.values():
        await several.close()
    return found


async def measure_one_by_one(servers: Mapping[str, AmqpServer]) -> list[Measurement]:
    """Measure a sender that waits until each message is accepted, beside RabbitMQ, which confirms each."""
    await create_queues(servers[ASTERISM], "single")
    senders = {}
    for name, server in servers.items():
        address = PEER_QUEUE.format(name="single") if name == PEER else "single"
        senders[name] = await open_sender(server.port, address, server.login)
    peer = servers.get(PEER)
    syncs_before = peer.sync_count() if isinstance(peer, RabbitServer) else 0
    rates = await rates_in_turns({name: partial(_send_one_by_one, sender) for name, sender in senders.items()})
    promised: float | None = ONE_BY_ONE_AT_LEAST
    note = ""
    if isinstance(peer, RabbitServer):
        per_message = (peer.sync_count() - syncs_before) / (ROUNDS * COUNT_ONE_BY_ONE)
        note = f"{PEER} {peer.version} synchronizes its files {per_message:.2f} times a message"
        if per_message < SYNCS_AT_LEAST:
            note, promised = f"{note}: its durability is weaker", None
    for sender in senders.values():
        await sender.close()
    title = "queue, send one by one"
    beside_bare = ratio_figure(title, rates, to=BARE, at_least=None)
    return [
        *rate_figures(title, rates),
        *ratio_figure(title, rates, to=PEER, at_least=promised, note=note),
        *beside_bare,
    ]


def _send_one_by_one(sender: Sender) -> Awaitable[float]:
    return rate(sender.send(TEMPLATE, COUNT_ONE_BY_ONE, window=1), COUNT_ONE_BY_ONE)


async def measure_peer(servers: Mapping[str, AmqpServer]) -> list[Measurement]:
    """Measure the peer with a window, for information."""
    if PEER not in servers:
        return []
    server = servers[PEER]
    sender = await open_sender(server.port, PEER_QUEUE.format(name="window"), server.login)
    found = await rates_in_turns({PEER: lambda: rate(sender.send(TEMPLATE, COUNT, window=WINDOW), COUNT)})
    await sender.close()
    return rate_figures(f"queue, send, window {WINDOW}", found)


async def measure_several_clients(server: AmqpServer) -> list[Measurement]:
    """Measure messages a second into and out of one queue, with several clients at once."""
    await create_queues(server, "shared")
    senders = [await open_sender(server.port, "shared", server.login) for _ in range(CLIENTS)]
    receivers = [await open_receiver(server.port, "shared", server.login) for _ in range(CLIENTS)]
    each = COUNT // CLIENTS

    async def send() -> float:
        return await rate(_all(sender.send(TEMPLATE, each, window=WINDOW) for sender in senders), COUNT)

    async def take() -> float:
        loads = (receiver.receive_and_complete(each, window=WINDOW) for receiver in receivers)
        return await rate(_all(loads), COUNT)

    rates = await rates_in_turns({"into": send, "out of": take})
    for link in (*senders, *receivers):
        await link.close()
    note = f"{CLIENTS} clients, window {WINDOW} each"
    return [
        Measurement(CASE, f"{direction} one queue", value, "messages/s", at_least=QUEUE_RATE_AT_LEAST, note=note)
        for direction, value in rates.items()
    ]


async def _all(loads: Iterable[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for load in loads:
            group.create_task(load)


async def measure_topic(server: AmqpServer) -> list[Measurement]:
    """Compare a topic, each of whose messages goes to ten subscriptions, with a queue."""
    administration = Administration(server)
    await administration.create_queue("beside")
    await administration.create_topic("topic", subscriptions=SUBSCRIPTIONS)
    await administration.close()
    senders = {name: await open_sender(server.port, name, server.login) for name in ("topic", "beside")}
    loads = {name: partial(_send_half, sender) for name, sender in senders.items()}
    rates = await rates_in_turns(loads)
    for sender in senders.values():
        await sender.close()
    title = f"topic with {SUBSCRIPTIONS} subscriptions, send, window {WINDOW}"
    note = f"{rates['topic']:,.0f} messages/s, the queue {rates['beside']:,.0f}"
    ratio = rates["topic"] / rates["beside"]
    return [Measurement(CASE, f"{title}, ratio to a queue", ratio, "x", at_least=TOPIC_AT_LEAST, note=note)]


def _send_half(sender: Sender) -> Awaitable[float]:
    return rate(sender.send(TEMPLATE, COUNT // 2, window=WINDOW), COUNT // 2)


async def create_queues(server: AmqpServer, *names: str) -> None:
    administration = Administration(server)
    for name in names:
        await administration.create_queue(name)
    await administration.close()
