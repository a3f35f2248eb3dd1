"""Queues with the official client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import QueueSasPermissions, generate_queue_sas
from azure.storage.queue.aio import QueueClient

from tests.clients.queue_server import QueueServer, new_name


@asynccontextmanager
async def new_queue(queues: QueueServer) -> AsyncIterator[QueueClient]:
    async with queues.aio_service() as service:
        queue = await service.create_queue(new_name())
        yield queue
        await queue.delete_queue()


def run(queues: QueueServer, test: Callable[[QueueClient], Awaitable[None]]) -> None:
    async def go() -> None:
        async with new_queue(queues) as queue:
            await test(queue)

    asyncio.run(go())


def test_a_message_is_put_peeked_taken_updated_and_deleted(queues: QueueServer) -> None:
    async def test(queue: QueueClient) -> None:
        await queue.send_message("text <&>\r\n")
        (peeked,) = await queue.peek_messages()
        assert peeked.content == "text <&>\r\n"
        taken = await queue.receive_message(visibility_timeout=60)
        assert taken is not None
        assert await queue.receive_message() is None
        await queue.update_message(taken, visibility_timeout=0, content="again")
        again = await queue.receive_message()
        assert again is not None
        assert (again.content, again.dequeue_count) == ("again", 2)
        with pytest.raises(HttpResponseError):
            await queue.delete_message(taken.id, taken.pop_receipt)
        await queue.delete_message(again)
        with pytest.raises(ResourceNotFoundError):
            await queue.delete_message(again)
        assert (await queue.get_queue_properties()).approximate_message_count == 0

    run(queues, test)


def test_queues_metadata_and_policies_are_kept(queues: QueueServer) -> None:
    async def test(queue: QueueClient) -> None:
        with pytest.raises(ResourceExistsError):
            await queue.create_queue()
        await queue.set_queue_metadata({"a": "b"})
        async with queues.aio_service() as service:
            (listed,) = [found async for found in service.list_queues(queue.queue_name, include_metadata=True)]
        assert listed.metadata == {"a": "b"}
        await queue.set_queue_access_policy({})
        assert await queue.get_queue_access_policy() == {}

    run(queues, test)


def test_consumers_at_once_get_different_messages(queues: QueueServer) -> None:
    async def test(queue: QueueClient) -> None:
        await asyncio.gather(*[queue.send_message(f"{number}") for number in range(120)])
        taken: list[str] = []

        async def consume() -> None:
            async for message in queue.receive_messages(messages_per_page=3):
                await queue.delete_message(message)
                taken.append(message.content)

        await asyncio.gather(*[consume() for _ in range(8)])
        assert sorted(taken) == sorted(map(str, range(120)))
        assert (await queue.get_queue_properties()).approximate_message_count == 0

    run(queues, test)


def test_a_signature_for_a_queue_permits_what_it_names(queues: QueueServer) -> None:
    async def test(queue: QueueClient) -> None:
        token = generate_queue_sas(
            queues.account,
            queue.queue_name,
            queues.key,
            permission=QueueSasPermissions(add=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        async with QueueClient(queues.endpoint, queue.queue_name, token, retry_total=0) as adder:
            await adder.send_message("by signature")
            with pytest.raises(HttpResponseError) as refused:
                await adder.receive_message()
        assert refused.value.status_code == 403
        await queue.clear_messages()

    run(queues, test)
