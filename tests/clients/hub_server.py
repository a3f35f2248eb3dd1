"""The hubs of a running server: official clients, hubs of a test's own, and events as they arrive."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from azure.eventhub import (
    EventData,
    EventHubConsumerClient,
    EventHubProducerClient,
    EventHubSharedKeyCredential,
    PartitionContext,
)
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient
from azure.eventhub.aio import EventHubProducerClient as AioProducerClient
from azure.eventhub.aio import PartitionContext as AioPartitionContext

from tests.clients.messaging_server import KEY, KEY_NAME, WAIT_SECONDS, MessagingServer

GROUP = "$Default"
START = "-1"
_HUBS = "/subscriptions/0/resourceGroups/g/providers/Microsoft.EventHub/namespaces/asterism/eventhubs"


@dataclass(frozen=True)
class HubServer(MessagingServer):
    # --- hubs ---------------------------------------------------------------------------------------------------------

    def manage(self, method: str, path: str = "", properties: dict[str, Any] | None = None) -> Any:
        """Send a request in the form of the resource manager about the hubs of the namespace."""
        host = f"localhost:{self.server.ports['messaging']}"
        connection = http.client.HTTPConnection(host, timeout=WAIT_SECONDS)
        token = EventHubSharedKeyCredential(KEY_NAME, KEY).get_token(f"sb://{host}").token
        headers = {"Authorization": token, "Content-Type": "application/json"}
        connection.request(method, _HUBS + path, json.dumps({"properties": properties or {}}), headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        assert reply.status == 200, content
        return json.loads(content) if content else None

    def new_hub(self, *, partitions: int = 2, groups: tuple[str, ...] = (), **properties: Any) -> str:
        name = f"hub-{uuid.uuid4()}"
        self.manage("PUT", f"/{name}", {"partitionCount": partitions, **properties})
        for group in groups:
            self.manage("PUT", f"/{name}/consumergroups/{group}")
        return name

    # --- clients ------------------------------------------------------------------------------------------------------

    def producer(self, hub: str, **options: Any) -> EventHubProducerClient:
        return EventHubProducerClient.from_connection_string(
            self.connection_string(), eventhub_name=hub, retry_backoff_factor=0.1, **options
        )

    def consumer(self, hub: str, group: str = GROUP, **options: Any) -> EventHubConsumerClient:
        return EventHubConsumerClient.from_connection_string(
            self.connection_string(), group, eventhub_name=hub, retry_backoff_factor=0.1, **options
        )

    def aio_producer(self, hub: str, **options: Any) -> AioProducerClient:
        return AioProducerClient.from_connection_string(
            self.connection_string(), eventhub_name=hub, retry_backoff_factor=0.1, **options
        )

    def aio_consumer(self, hub: str, group: str = GROUP, **options: Any) -> AioConsumerClient:
        # Its end, and its next try after an error, come after this interval.
        given = {"retry_backoff_factor": 0.1, "load_balancing_interval": 0.3, **options}
        return AioConsumerClient.from_connection_string(self.connection_string(), group, eventhub_name=hub, **given)

    def send(self, hub: str, *bodies: str, **options: Any) -> None:
        """Send events in one batch; `partition_id` or `partition_key` say where."""
        with self.producer(hub) as producer:
            producer.send_batch([EventData(body) for body in bodies], **options)


# --- events as they arrive --------------------------------------------------------------------------------------------


@dataclass
class Arrivals:
    """Everything that handlers of a consumer were given: events with their partitions, errors, partitions in hand."""

    events: list[tuple[str, EventData]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    owned: set[str] = field(default_factory=set)
    # Of each event, called in the handler.
    on_each: Callable[[PartitionContext, EventData], None] | None = None

    def on_event_batch(self, context: PartitionContext, events: list[EventData]) -> None:
        for event in events:
            self.events.append((context.partition_id, event))
            if self.on_each is not None:
                self.on_each(context, event)

    def on_error(self, _: PartitionContext, error: Exception) -> None:
        self.errors.append(error)

    def on_partition_initialize(self, context: PartitionContext) -> None:
        self.owned.add(context.partition_id)

    def on_partition_close(self, context: PartitionContext, _: object) -> None:
        self.owned.discard(context.partition_id)

    @property
    def bodies(self) -> list[str]:
        return [event.body_as_str() for _, event in self.events]

    def bodies_of(self, partition: str) -> list[str]:
        return [event.body_as_str() for place, event in self.events if place == partition]

    def until(self, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_there():
            assert time.monotonic() < deadline, (self.bodies, self.errors, self.owned)
            time.sleep(0.02)

    async def until_aio(self, is_there: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not is_there():
                await asyncio.sleep(0.02)

    def first_error(self) -> Exception:
        self.until(lambda: bool(self.errors))
        return self.errors[0]


@contextmanager
def receiving(
    client: EventHubConsumerClient,
    on_each: Callable[[PartitionContext, EventData], None] | None = None,
    **options: Any,
) -> Iterator[Arrivals]:
    """Let a client receive in a thread, from the start unless the options say otherwise, until the block ends."""
    arrivals = Arrivals(on_each=on_each)
    given = {
        "starting_position": START,
        "on_error": arrivals.on_error,
        "on_partition_initialize": arrivals.on_partition_initialize,
        "on_partition_close": arrivals.on_partition_close,
        **options,
    }
    # By batches: one by one the client waits at the empty partitions between two events of another.
    thread = threading.Thread(target=client.receive_batch, args=(arrivals.on_event_batch,), kwargs=given, daemon=True)
    with client:
        thread.start()
        yield arrivals
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()


def receive(client: EventHubConsumerClient, count: int, **options: Any) -> Arrivals:
    """Return events when there are so many."""
    with receiving(client, **options) as arrivals:
        arrivals.until(lambda: len(arrivals.events) >= count)
    return arrivals


@dataclass
class AioReceiver:
    """The same for an asynchronous client: receives in a task until the block ends."""

    client: AioConsumerClient
    options: dict[str, Any]
    on_each: Callable[[AioPartitionContext, EventData], Awaitable[None]] | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)
    task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Arrivals:
        given = {
            "starting_position": START,
            "on_error": self._on_error,
            "on_partition_initialize": self._on_partition_initialize,
            "on_partition_close": self._on_partition_close,
            **self.options,
        }
        await self.client.__aenter__()
        self.task = asyncio.create_task(self.client.receive(self._on_event, **given))
        return self.arrivals

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        assert self.task is not None
        async with asyncio.timeout(WAIT_SECONDS):
            await self.task

    async def _on_event(self, context: AioPartitionContext, event: EventData | None) -> None:
        # Without an event only if a client asks to be called anyway.
        assert event is not None
        self.arrivals.events.append((context.partition_id, event))
        if self.on_each is not None:
            await self.on_each(context, event)

    async def _on_error(self, context: PartitionContext, error: Exception) -> None:
        self.arrivals.on_error(context, error)

    async def _on_partition_initialize(self, context: PartitionContext) -> None:
        self.arrivals.on_partition_initialize(context)

    async def _on_partition_close(self, context: PartitionContext, reason: object) -> None:
        self.arrivals.on_partition_close(context, reason)
