"""Parts of the loads on queues and topics: a sender that remembers, and receivers that find what is there."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from azure.servicebus import (
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.clients.messaging_server import MessagingServer

WAIT_SECONDS_MAX = 180.0
MESSAGES_EACH = 3
PAGE = 100


def admin_of(messaging: MessagingServer) -> AdminClient:
    return AdminClient(messaging.server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)


def create(messaging: MessagingServer, path: str, **settings: Any) -> None:
    admin_of(messaging).post("messaging/create", {"namespace": "asterism", "entity": path, **settings})


def counts_of(messaging: MessagingServer, path: str) -> dict[str, int]:
    """Return the numbers of messages of a queue or subscription: active, scheduled, deferred, dead letters."""
    return dict(admin_of(messaging).get("messaging/entity", namespace="asterism", entity=path)["counts"])


def hold_for_long(messaging: MessagingServer, queue: str) -> None:
    """Let locks of a queue last from now on until everything is read, however busy the machine is."""
    with messaging.administration() as administration:
        properties = administration.get_queue(queue)
        properties.lock_duration = timedelta(minutes=5)
        administration.update_queue(properties)


def kill_all(messaging: MessagingServer) -> None:
    """Kill every process of a server at once: workers whose first process alone is killed end in good order."""
    first = messaging.server.process
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
    for process in (first.pid, *map(int, children)):
        os.kill(process, signal.SIGKILL)
    first.wait()
    for child in map(int, children):
        _wait_until_gone(child)


def _wait_until_gone(process: int) -> None:
    gone_at = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < gone_at:
        try:
            # Behind the name, which may have any characters.
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} does not end")


async def until(is_so: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while not is_so():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(what) from None


class Sender:
    """Sends lists of messages, and remembers which were acknowledged."""

    def __init__(self, make: Callable[[str], ServiceBusMessage] = ServiceBusMessage) -> None:
        self.attempted: set[str] = set()
        self.sent: set[str] = set()
        self.rounds = 0
        self._make = make

    async def run(self, client: ServiceBusClient, queue: str) -> None:
        async with client.get_queue_sender(queue) as sender:
            for number in count():
                texts = [f"{number}-{place}" for place in range(MESSAGES_EACH)]
                self.attempted.update(texts)
                await sender.send_messages([self._make(text) for text in texts])
                self.sent.update(texts)
                self.rounds += 1


def check_sent(sender: Sender, texts: list[str]) -> None:
    """Check that what was acknowledged is there once, and nothing else but what may have been sent."""
    assert len(texts) == len(set(texts)), "a message is there twice"
    assert sender.sent <= set(texts) <= sender.attempted


async def peek_all(receiver: ServiceBusReceiver) -> list[ServiceBusReceivedMessage]:
    found: list[ServiceBusReceivedMessage] = []
    start = 1
    while page := await receiver.peek_messages(PAGE, sequence_number=start):
        found += page
        assert page[-1].sequence_number is not None
        start = page[-1].sequence_number + 1
    return found


async def receive_deferred(
    receiver: ServiceBusReceiver, peeked: list[ServiceBusReceivedMessage]
) -> list[ServiceBusReceivedMessage]:
    """Receive deferred messages by their numbers, those of one fragment in a call."""
    fragments: dict[int, list[int]] = {}
    for message in peeked:
        assert message.sequence_number is not None
        fragments.setdefault(message.sequence_number >> 48, []).append(message.sequence_number)
    found = []
    for numbers in fragments.values():
        messages = await receiver.receive_deferred_messages(numbers)
        for message in messages:
            await receiver.complete_message(message)
        found += messages
    return found


async def drain(
    messaging: MessagingServer,
    client: ServiceBusClient,
    queue: str,
    *,
    subscription: str | None = None,
    is_dead: bool = False,
) -> list[ServiceBusReceivedMessage]:
    """Receive as many messages as the server counts, those that are still locked as well, and see that none is left."""
    path = queue if subscription is None else f"{queue}/subscriptions/{subscription}"
    kind = "dead_letters" if is_dead else "active"
    expected = counts_of(messaging, path)[kind]
    settings: dict[str, Any] = {"receive_mode": ServiceBusReceiveMode.RECEIVE_AND_DELETE}
    if is_dead:
        settings["sub_queue"] = ServiceBusSubQueue.DEAD_LETTER
    if subscription is None:
        receiver = client.get_queue_receiver(queue, **settings)
    else:
        receiver = client.get_subscription_receiver(queue, subscription, **settings)
    found: list[ServiceBusReceivedMessage] = []
    async with receiver, asyncio.timeout(WAIT_SECONDS_MAX):
        while len(found) < expected:
            found += await receiver.receive_messages(PAGE, max_wait_time=5)
    assert counts_of(messaging, path)[kind] == 0
    return found
