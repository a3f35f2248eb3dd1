"""Reading a partition again from a place, and readers that take it over from each other.

Needs a hub:

    asterism hubs create audit --partitions 1
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from datetime import datetime
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient, PartitionContext
from azure.eventhub.exceptions import ConnectionLostError
from reading import EMULATOR, read_to_end

HUB, PARTITION = "audit", "0"


def consumer(connection: str) -> EventHubConsumerClient:
    return EventHubConsumerClient.from_connection_string(connection, "$Default", eventhub_name=HUB)


async def read(
    connection: str, count: int, start: str | int | datetime | None, *, is_inclusive: bool = False
) -> list[str]:
    """Read events from a place on: an offset, a sequence number, a time, "-1" for the beginning."""
    texts: list[str] = []
    enough = asyncio.Event()

    async def keep(_context: PartitionContext, event: EventData | None) -> None:
        assert event is not None
        texts.append(event.body_as_str())
        if len(texts) == count:
            enough.set()

    async with consumer(connection) as client:
        receiving = asyncio.create_task(
            client.receive(
                keep, partition_id=PARTITION, starting_position=start, starting_position_inclusive=is_inclusive
            )
        )
        await enough.wait()
        receiving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await receiving
    return texts[:count]


async def take_over(connection: str) -> str:
    """Start a reader of epoch 1 and then one of epoch 2: the first is sent away. Return what it was told."""
    reasons: asyncio.Queue[Exception] = asyncio.Queue()
    has_started: dict[int, asyncio.Event] = {1: asyncio.Event(), 2: asyncio.Event()}

    async def run(client: EventHubConsumerClient, epoch: int) -> None:
        async def note_event(*_: Any) -> None:
            has_started[epoch].set()

        async def note_error(_context: PartitionContext, error: Exception) -> None:
            await reasons.put(error)

        await client.receive(
            note_event, on_error=note_error, partition_id=PARTITION, owner_level=epoch, starting_position="-1"
        )

    async with consumer(connection) as first, consumer(connection) as second:
        readers = [asyncio.create_task(run(first, 1))]
        await has_started[1].wait()
        readers.append(asyncio.create_task(run(second, 2)))
        reason = await reasons.get()
        await has_started[2].wait()
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
    return "taken over" if isinstance(reason, ConnectionLostError) else repr(reason)


async def main(connection: str) -> None:
    producer = EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB)
    async with producer:
        for number in range(5):
            await producer.send_event(EventData(f"entry {number}"))
            # So that each has a time of its own.
            await asyncio.sleep(0.01)
    events = (await read_to_end(connection, HUB))[PARTITION]
    fourth = events[3]
    print("sequence numbers:", [event.sequence_number for event in events])

    print("from the beginning:", await read(connection, 5, "-1"))
    print("after an offset:", await read(connection, 1, str(fourth.offset)))
    print("from a number on:", await read(connection, 2, fourth.sequence_number, is_inclusive=True))
    print("from a time on:", await read(connection, 2, fourth.enqueued_time, is_inclusive=True))
    print("the reader of the lower epoch:", await take_over(connection))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else EMULATOR))
