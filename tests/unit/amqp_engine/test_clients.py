"""The engine and the clients that applications use, over sockets: a host with queues in memory behind it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.aio import ServiceBusClient as AsyncServiceBusClient
from azure.servicebus.exceptions import (
    MessageSizeExceededError,
    ServiceBusAuthenticationError,
    ServiceBusError,
)
from proton import Message as ProtonMessage
from proton.utils import BlockingConnection, LinkDetached

from asterism.apis.amqp.engine.serve import Engine
from asterism.apis.transports.tcp import ByteStream
from asterism.values.amqp.message import Message
from tests.unit.amqp_engine.toy_host import KEY, KEY_NAME, ToyHost, toy_engine
from tests.unit.listeners.echo_server import echo_server

WAIT_SECONDS_MAX = 60.0


class EngineDoor:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def serve(self, stream: ByteStream) -> None:
        await self._engine.serve(stream)


class Server:
    def __init__(self, host: ToyHost, engine: Engine, port: int) -> None:
        self.host = host
        self.engine = engine
        self.port = port

    def connection_string(self, *, key: str = KEY) -> str:
        parts = {
            "Endpoint": f"sb://localhost:{self.port}",
            "SharedAccessKeyName": KEY_NAME,
            "SharedAccessKey": key,
            "UseDevelopmentEmulator": "true",
        }
        return ";".join(f"{name}={value}" for name, value in parts.items())


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    host = ToyHost()
    host.is_guarded = True
    engine = toy_engine(host)
    async with echo_server("tcp", door=EngineDoor(engine)) as running:
        yield Server(host, engine, running.port)


def send_and_receive(connection_string: str, count: int) -> tuple[list[str], int]:
    with ServiceBusClient.from_connection_string(connection_string) as client:
        with client.get_queue_sender("queue") as sender:
            sender.send_messages([ServiceBusMessage(f"message {number}") for number in range(count)])
            for number in range(count):
                sender.send_messages(ServiceBusMessage(f"single {number}"))
        with client.get_queue_receiver("queue", max_wait_time=30) as receiver:
            bodies = []
            while len(bodies) < 2 * count:
                for message in receiver.receive_messages(max_message_count=count, max_wait_time=30):
                    bodies.append(str(message))
                    receiver.complete_message(message)
            return bodies, len(receiver.receive_messages(max_message_count=1, max_wait_time=1))


async def test_a_client_sends_receives_and_completes(server: Server) -> None:
    bodies, left = await asyncio.to_thread(send_and_receive, server.connection_string(), 20)
    assert sorted(bodies) == sorted(
        [f"message {number}" for number in range(20)] + [f"single {number}" for number in range(20)]
    )
    assert left == 0
    assert len(server.host.queue("queue").settled) == 40


async def test_an_asynchronous_client_settles_in_every_way(server: Server) -> None:
    async with AsyncServiceBusClient.from_connection_string(server.connection_string()) as client:
        async with client.get_queue_sender("queue") as sender:
            await sender.send_messages([ServiceBusMessage(name) for name in ("complete", "dead-letter")])
            await sender.send_messages(ServiceBusMessage(b"large" * 40_000))
        async with client.get_queue_receiver("queue", max_wait_time=30) as receiver:
            [first] = await receiver.receive_messages(max_message_count=1, max_wait_time=30)
            await receiver.abandon_message(first)
            [again] = await receiver.receive_messages(max_message_count=1, max_wait_time=30)
            await receiver.complete_message(again)
            [second] = await receiver.receive_messages(max_message_count=1, max_wait_time=30)
            await receiver.dead_letter_message(second, reason="because", error_description="of the test")
            [third] = await receiver.receive_messages(max_message_count=1, max_wait_time=30)
            assert b"".join(third.body) == b"large" * 40_000
            await receiver.complete_message(third)
    outcomes = [type(settlement.outcome).__name__ for settlement in server.host.queue("queue").settled]
    assert outcomes == ["Modified", "Accepted", "Rejected", "Accepted"]


async def test_messages_are_received_and_deleted_when_they_are_sent(server: Server) -> None:
    async with AsyncServiceBusClient.from_connection_string(server.connection_string()) as client:
        async with client.get_queue_sender("queue") as sender:
            await sender.send_messages([ServiceBusMessage(str(number)) for number in range(100)])
        receiver = client.get_queue_receiver(
            "queue", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE, prefetch_count=50
        )
        async with receiver:
            received: list[str] = []
            while len(received) < 100:
                received += map(str, await receiver.receive_messages(max_message_count=100, max_wait_time=30))
    assert received == [str(number) for number in range(100)]


async def test_errors_reach_the_client_as_its_exceptions(server: Server) -> None:
    async with AsyncServiceBusClient.from_connection_string(server.connection_string(), retry_total=0) as client:
        with pytest.raises(ServiceBusAuthenticationError):
            async with client.get_queue_sender("missing"):
                pass
        async with client.get_queue_sender("queue") as sender:
            with pytest.raises(ServiceBusError, match="no"):
                await sender.send_messages(ServiceBusMessage("refuse me"))
            await sender.send_messages(ServiceBusMessage("but not me"))
        async with client.get_queue_sender("broken") as sender:
            with pytest.raises(ServiceBusError, match="failed to carry this out"):
                await sender.send_messages(ServiceBusMessage("x"))
        async with client.get_queue_sender("small") as sender:
            with pytest.raises(MessageSizeExceededError):
                await sender.send_messages(ServiceBusMessage("x" * 2000))
    assert len(server.host.queue("queue").payloads) == 1


async def test_a_wrong_key_gives_no_rights(server: Server) -> None:
    wrong = server.connection_string(key="wrong")
    async with AsyncServiceBusClient.from_connection_string(wrong, retry_total=0) as client:
        with pytest.raises(ServiceBusAuthenticationError):
            async with client.get_queue_sender("queue"):
                pass
    assert server.engine.counters.tokens_accepted == 0


async def test_a_producer_of_events_sends_batches(server: Server) -> None:
    producer = EventHubProducerClient.from_connection_string(server.connection_string(), eventhub_name="hub")
    async with producer:
        batch = await producer.create_batch(partition_key="key")
        for number in range(50):
            batch.add(EventData(f"event {number}"))
        await producer.send_batch(batch)
        await producer.send_event(EventData("single"))
    bodies = [Message.parse(payload).body for payload in server.host.queue("hub").payloads]
    assert bodies == [*(b"event %d" % number for number in range(50)), b"single"]


def proton_round_trip(port: int) -> list[str]:
    connection = BlockingConnection(
        f"amqp://{KEY_NAME}:{KEY}@localhost:{port}",
        timeout=WAIT_SECONDS_MAX,
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
    )
    try:
        sender = connection.create_sender("queue")
        for number in range(300):
            sender.send(ProtonMessage(body=f"message {number}"))
        receiver = connection.create_receiver("queue", credit=50)
        bodies = []
        for _ in range(300):
            bodies.append(receiver.receive(timeout=WAIT_SECONDS_MAX).body)
            receiver.accept()
        with contextlib.suppress(LinkDetached):
            connection.create_sender("missing")
            bodies.append("a sender of nothing")
        return bodies
    finally:
        connection.close()


async def test_another_client_logs_in_with_a_key(server: Server) -> None:
    bodies = await asyncio.to_thread(proton_round_trip, server.port)
    assert bodies == [f"message {number}" for number in range(300)]
    assert server.engine.counters.connections == 0
