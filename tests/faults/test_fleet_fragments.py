"""A node of a fleet is lost: queues and hubs go on with what lies on the other, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient
from azure.eventhub.exceptions import EventHubError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusServerBusyError

from tests.clients.messaging_server import MessagingServer
from tests.faults.bus_clients import admin_of, create, drain, peek_all, until
from tests.faults.fleet_of_two import fleet_file
from tests.faults.hub_loads import Found, last_sequences_of, read_everything
from tests.support.commands import run_well
from tests.support.postgres import PostgresServer, shared_server
from tests.support.postgres import running_server as running_postgres
from tests.support.server import running_server

QUEUE, HUB = "parcels", "readings"
FRAGMENTS = 16
KEYS = [f"city-{number}" for number in range(12)]


@contextmanager
def running_fleet(directory: Path, lasting: str) -> Iterator[tuple[MessagingServer, PostgresServer]]:
    """Run a gateway over two nodes: one with the catalog, which lasts, and one that a test may kill."""
    with running_postgres() as doomed:
        fleet = fleet_file(directory / "fleet.toml", lasting=lasting, doomed=doomed.create_database())
        options = ("--fleet", str(fleet), "--no-throttle")
        with running_server(directory / "data", *options, doors=("nosql", "amqp"), alone=True) as running:
            yield MessagingServer(running), doomed


def fragments(messaging: MessagingServer) -> dict[int, dict[str, Any]]:
    shown = admin_of(messaging).get("messaging/entity", namespace="asterism", entity=QUEUE)["fragments"]
    return {each["id"]: each for each in shown}


def states(messaging: MessagingServer) -> dict[str, set[str]]:
    """Return the states of the fragments of each node."""
    found: dict[str, set[str]] = {}
    for each in fragments(messaging).values():
        found.setdefault(each["node"], set()).add(each["state"])
    return found


def fragment_of(number: int | None) -> int:
    assert number is not None
    return number >> 48


async def keys_by_node(receiver: ServiceBusReceiver, nodes: dict[int, str]) -> dict[str, list[str]]:
    """Return the keys whose messages lie on each node, by the numbers of messages that were sent with them."""
    found: dict[str, list[str]] = {}
    for message in await peek_all(receiver):
        if message.partition_key is not None:
            found.setdefault(nodes[fragment_of(message.sequence_number)], []).append(str(message.partition_key))
    return found


async def receive_from(receiver: ServiceBusReceiver, wanted: set[str]) -> set[str]:
    """Complete messages until all that are wanted have come; return them."""
    texts: set[str] = set()
    async with asyncio.timeout(180):
        while not wanted <= texts:
            for message in await receiver.receive_messages(20, max_wait_time=5):
                await receiver.complete_message(message)
                texts.add(str(message))
    return texts


async def send_busily(client: ServiceBusClient, key: str) -> None:
    """Send with a key, without the client's own retries."""
    async with client.get_queue_sender(QUEUE) as sender:
        await sender.send_messages(ServiceBusMessage(f"refused {key}", partition_key=key))


async def test_a_partitioned_queue_goes_on_with_the_fragments_of_the_other_node(tmp_path: Path) -> None:
    lasting = await shared_server().empty_database("fragments_lasting")
    with running_fleet(tmp_path, lasting) as (messaging, doomed):
        create(messaging, QUEUE, is_partitioned=True, max_delivery_count=2000)
        nodes = {number: each["node"] for number, each in fragments(messaging).items()}
        assert (len(nodes), set(nodes.values())) == (FRAGMENTS, {"lasting", "doomed"})
        async with messaging.aio_client() as client, messaging.aio_client(retry_total=0) as impatient:
            sender, receiver = client.get_queue_sender(QUEUE), client.get_queue_receiver(QUEUE)
            async with sender, receiver:
                for key in KEYS:
                    await sender.send_messages(ServiceBusMessage(f"before {key}", partition_key=key))
                keys = await keys_by_node(receiver, nodes)
                doomed.kill()

                # Sends without a key and receivers go around the lost node.
                for number in range(2 * FRAGMENTS):
                    await sender.send_messages(ServiceBusMessage(f"anywhere {number}"))
                lasting_keys = keys["lasting"]
                for key in lasting_keys:
                    await sender.send_messages(ServiceBusMessage(f"meanwhile {key}", partition_key=key))
                wanted = {f"anywhere {number}" for number in range(2 * FRAGMENTS)}
                wanted |= {f"{moment} {key}" for key in lasting_keys for moment in ("before", "meanwhile")}
                completed = await receive_from(receiver, wanted)
                assert completed == wanted

                # Sends with a key of the lost node are refused, and the state says why.
                for key in keys["doomed"][:2]:
                    with pytest.raises(ServiceBusServerBusyError):
                        await send_busily(impatient, key)
                await until(
                    lambda: states(messaging) == {"lasting": {"up"}, "doomed": {"down"}}, "the state is not shown"
                )

                doomed.start()
                await until(lambda: states(messaging) == {"lasting": {"up"}, "doomed": {"up"}}, "the node is not back")
                for key in KEYS:
                    await sender.send_messages(ServiceBusMessage(f"after {key}", partition_key=key))
            texts = [str(message) for message in await drain(messaging, client, QUEUE)]
        assert len(texts) == len(set(texts)), "a message is there twice"
        expected = {f"before {key}" for key in keys["doomed"]} | {f"after {key}" for key in KEYS}
        # A send that was refused may have been done.
        assert expected <= set(texts) <= expected | {f"refused {key}" for key in keys["doomed"][:2]}


async def test_a_hub_goes_on_with_the_partitions_of_the_other_node(tmp_path: Path) -> None:
    lasting = await shared_server().empty_database("partitions_lasting")
    with running_fleet(tmp_path, lasting) as (messaging, doomed):
        run_well(messaging.server, "hubs", "create", HUB, "--partitions", "4")
        nodes = {each["id"]: each["node"] for each in partitions(messaging)}
        assert set(nodes.values()) == {"lasting", "doomed"}
        lost = next(number for number, node in nodes.items() if node == "doomed")
        producer = EventHubProducerClient.from_connection_string(
            messaging.connection_string(), eventhub_name=HUB, retry_total=0
        )
        async with producer:
            for number in range(8):
                await producer.send_event(EventData(f"before {number}"))
            before = await read_everything(messaging, last_sequences_of(messaging))
            doomed.kill()
            for number in range(8):
                await producer.send_event(EventData(f"meanwhile {number}"))
            with pytest.raises(EventHubError):
                await producer.send_event(EventData("refused"), partition_id=str(lost))
            doomed.start()
            await until(lambda: {each["state"] for each in partitions(messaging)} == {"up"}, "the node is not back")
            await producer.send_event(EventData("after"), partition_id=str(lost))
        after = await read_everything(messaging, last_sequences_of(messaging))
        check_hub(before, after, nodes)


def check_hub(before: Found, after: Found, nodes: dict[int, str]) -> None:
    sent = {f"{moment} {number}" for moment in ("before", "meanwhile") for number in range(8)} | {"after"}
    assert before.items() <= after.items()
    assert sent <= set(after.values()) <= sent | {"refused"}
    assert len(after) == len(set(after.values())), "an event is there twice"
    meanwhile = {partition for (partition, _), text in after.items() if text.startswith("meanwhile")}
    assert {nodes[partition] for partition in meanwhile} == {"lasting"}


def partitions(messaging: MessagingServer) -> list[dict[str, Any]]:
    return list(admin_of(messaging).get("messaging/hub", namespace="asterism", hub=HUB)["partitions"])
