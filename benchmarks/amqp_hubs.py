"""Figures of hubs: events into one partition, beside the bare loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from benchmarks.amqp_figures import (
    ASTERISM,
    BARE,
    CASE,
    CLIENTS,
    COUNT,
    HUB_AT_LEAST,
    HUB_RATE_AT_LEAST,
    TEMPLATE,
    WINDOW,
    rate,
    rate_figures,
    rates_in_turns,
    ratio_figure,
)
from benchmarks.amqp_servers import Administration, AmqpServer
from benchmarks.amqp_wire import Sender, open_sender
from benchmarks.measurement import Measurement

PARTITIONS = 4


def partition_address(hub: str, partition: int) -> str:
    return f"{hub}/Partitions/{partition}"


async def measure_hub(servers: Mapping[str, AmqpServer]) -> list[Measurement]:
    await create_hub(servers[ASTERISM], "hub")
    address = partition_address("hub", 0)
    compared = [name for name in (ASTERISM, BARE) if name in servers]
    senders = {name: await open_sender(servers[name].port, address, servers[name].login) for name in compared}
    rates = await rates_in_turns({name: partial(send_events, sender) for name, sender in senders.items()})
    title = f"hub, send to a partition, window {WINDOW}"
    found = rate_figures(title, rates, unit="events/s")
    found += ratio_figure(title, rates, to=BARE, at_least=HUB_AT_LEAST)
    for sender in senders.values():
        await sender.close()
    return [*found, await _measure_several_senders(servers[ASTERISM])]


async def send_events(sender: Sender) -> float:
    return await rate(sender.send(TEMPLATE, COUNT, window=WINDOW), COUNT)


async def _measure_several_senders(server: AmqpServer) -> Measurement:
    address = partition_address("hub", 1)
    senders = [await open_sender(server.port, address, server.login) for _ in range(CLIENTS)]

    async def send_all() -> None:
        async with asyncio.TaskGroup() as group:
            for sender in senders:
                group.create_task(sender.send(TEMPLATE, COUNT // CLIENTS, window=WINDOW))

    rates = await rates_in_turns({ASTERISM: lambda: rate(send_all(), COUNT)})
    for sender in senders:
        await sender.close()
    note = f"{CLIENTS} senders, window {WINDOW} each"
    value = rates[ASTERISM]
    return Measurement(CASE, "into one partition of a hub", value, "events/s", at_least=HUB_RATE_AT_LEAST, note=note)


async def create_hub(server: AmqpServer, name: str) -> None:
    administration = Administration(server)
    await administration.create_hub(name, partitions=PARTITIONS)
    await administration.close()
