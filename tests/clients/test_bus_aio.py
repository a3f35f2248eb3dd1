"""Service Bus through the official asynchronous client for Python."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import AutoLockRenewer
from azure.servicebus.exceptions import MessageNotFoundError

from tests.clients.messaging_server import WAIT_SECONDS, MessagingServer


def run(steps: Coroutine[Any, Any, None]) -> None:
    asyncio.run(steps)


def test_competing_receivers_share_the_messages(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()
    wanted = {str(number) for number in range(300)}

    async def steps() -> None:
        received: list[str] = []
        all_received = asyncio.Event()

        async def consume() -> None:
            async with client.get_queue_receiver(queue, prefetch_count=20) as receiver:
                while not all_received.is_set():
                    for message in await receiver.receive_messages(max_message_count=20, max_wait_time=1):
                        await receiver.complete_message(message)
                        received.append(str(message))
                    if len(received) >= len(wanted):
                        all_received.set()

        async with messaging.aio_client() as client:
            async with client.get_queue_sender(queue) as sender:
                await sender.send_messages([ServiceBusMessage(body) for body in sorted(wanted)])
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.gather(*(consume() for _ in range(3)))
        assert len(received) == len(wanted)
        assert set(received) == wanted

    run(steps())


def test_a_batch_of_many_messages_enters_as_a_whole(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()

    async def steps() -> None:
        async with messaging.aio_client() as client, client.get_queue_sender(queue) as sender:
            batch = await sender.create_message_batch()
            for number in range(1_000):
                batch.add_message(ServiceBusMessage(str(number)))
            await sender.send_messages(batch)
            async with client.get_queue_receiver(queue) as receiver:
                peeked = await receiver.peek_messages(max_message_count=1_000)
                assert [str(message) for message in peeked] == [str(number) for number in range(1_000)]

    run(steps())


def test_a_renewer_keeps_a_lock(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(lock_duration=timedelta(seconds=5))

    async def steps() -> None:
        async with messaging.aio_client() as client, AutoLockRenewer() as renewer:
            async with client.get_queue_sender(queue) as sender:
                await sender.send_messages(ServiceBusMessage("slow"))
            async with client.get_queue_receiver(queue) as receiver:
                (message,) = await receiver.receive_messages(max_wait_time=WAIT_SECONDS)
                renewer.register(receiver, message, max_lock_renewal_duration=60)
                await asyncio.sleep(7)
                await receiver.complete_message(message)

    run(steps())


def test_sessions_are_consumed_side_by_side(messaging: MessagingServer) -> None:
    queue = messaging.new_queue(requires_session=True)

    async def steps() -> None:
        async with messaging.aio_client() as client:
            async with client.get_queue_sender(queue) as sender:
                for name in ("a", "b", "c"):
                    await sender.send_messages([ServiceBusMessage(str(n), session_id=name) for n in range(5)])

            async def consume(name: str) -> list[str]:
                received: list[str] = []
                async with client.get_queue_receiver(queue, session_id=name) as receiver:
                    while len(received) < 5:
                        for message in await receiver.receive_messages(max_message_count=5, max_wait_time=10):
                            await receiver.complete_message(message)
                            received.append(str(message))
                return received

            async with asyncio.timeout(WAIT_SECONDS):
                results = await asyncio.gather(*map(consume, ("a", "b", "c")))
        assert results == [[str(n) for n in range(5)]] * 3

    run(steps())


def test_canceling_a_schedule_twice_is_an_error(messaging: MessagingServer) -> None:
    queue = messaging.new_queue()

    async def steps() -> None:
        async with messaging.aio_client() as client, client.get_queue_sender(queue) as sender:
            numbers = await sender.schedule_messages(ServiceBusMessage("x"), datetime.now(UTC) + timedelta(hours=1))
            await sender.cancel_scheduled_messages(numbers)
            with pytest.raises(MessageNotFoundError):
                await sender.cancel_scheduled_messages(numbers)

    run(steps())
