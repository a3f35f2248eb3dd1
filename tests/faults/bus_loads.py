"""Clients that use queues and topics of a server until it is killed, and what must be there when it runs again.

Each load counts as done only what was acknowledged. The outcome of a call that was under way is unknown: of a message
that was being completed, for example, both is right, that it is gone and that it is there.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Protocol

from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusMessage,
    ServiceBusMessageState,
    ServiceBusReceivedMessage,
)
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import (
    MessageLockLostError,
    OperationTimeoutError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from tests.clients.messaging_server import MessagingServer
from tests.faults.bus_clients import (
    MESSAGES_EACH,
    PAGE,
    WAIT_SECONDS_MAX,
    Sender,
    check_sent,
    counts_of,
    create,
    drain,
    hold_for_long,
    kill_all,
    peek_all,
    receive_deferred,
    until,
)

# With several processes locks are stored, and outlive the kill.
LOCK_SECONDS = 10


class Load(Protocol):
    """One kind of work: its entities, its clients, and its check after the restart."""

    @property
    def progress(self) -> int:
        """The number of rounds that each of its clients has done."""
        ...

    def create(self, messaging: MessagingServer, *, is_partitioned: bool) -> None: ...

    def clients(self, client: ServiceBusClient) -> list[Coroutine[Any, Any, None]]:
        """Return its endless clients."""
        ...

    async def check(self, messaging: MessagingServer, client: ServiceBusClient) -> None: ...


# --- work with every end of a lock ------------------------------------------------------------------------------------

# A message's action follows from its text; most are completed.
ACTIONS = ("complete", "dead_letter", "complete", "defer", "complete", "abandon", "complete")
PLACES = {"complete": "gone", "dead_letter": "dead", "defer": "deferred", "abandon": "active"}


class QueueWork:
    """A sender and two receivers that complete, abandon, defer and dead-letter."""

    queue = "jobs"

    def __init__(self) -> None:
        self.sender = Sender()
        # By the text of a message: the last action that was tried, and whether it was acknowledged.
        self.tried: dict[str, tuple[str, bool]] = {}
        self.abandoned: set[str] = set()
        self.numbers: dict[str, int] = {}
        self.settled = 0

    @property
    def progress(self) -> int:
        return min(self.sender.rounds, self.settled)

    def create(self, messaging: MessagingServer, *, is_partitioned: bool) -> None:
        settings = {"is_partitioned": is_partitioned, "lock_seconds": LOCK_SECONDS, "max_delivery_count": 2000}
        create(messaging, self.queue, **settings)

    def clients(self, client: ServiceBusClient) -> list[Coroutine[Any, Any, None]]:
        return [self.sender.run(client, self.queue), self._receive(client), self._receive(client)]

    async def _receive(self, client: ServiceBusClient) -> None:
        async with client.get_queue_receiver(self.queue) as receiver:
            while True:
                for message in await receiver.receive_messages(5, max_wait_time=5):
                    await self._settle(receiver, message)

    async def _settle(self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> None:
        text = str(message)
        assert message.sequence_number is not None
        assert self.numbers.setdefault(text, message.sequence_number) == message.sequence_number
        assert self.tried.get(text, ("abandon", False))[0] == "abandon", f"{text} was delivered again"
        action = "complete" if message.delivery_count else ACTIONS[zlib.crc32(text.encode()) % len(ACTIONS)]
        before = self.tried.get(text)
        self.tried[text] = (action, False)
        settle: Callable[[ServiceBusReceivedMessage], Awaitable[None]] = getattr(receiver, f"{action}_message")
        try:
            await settle(message)
        except MessageLockLostError:
            # The machine was busy for longer than the lock lasts: the message comes again.
            self.tried.pop(text) if before is None else self.tried.update({text: before})
            return
        self.tried[text] = (action, True)
        self.abandoned.update([text] if action == "abandon" else [])
        self.settled += 1

    def _places(self, text: str) -> set[str]:
        """Return where a message may be."""
        action, is_acknowledged = self.tried.get(text, ("abandon", True))
        places = {PLACES[action]} if is_acknowledged else {PLACES[action], "active"}
        return places if text in self.sender.sent or text in self.tried else places | {"gone"}

    async def check(self, messaging: MessagingServer, client: ServiceBusClient) -> None:
        counts = counts_of(messaging, self.queue)
        async with client.get_queue_receiver(self.queue) as receiver:
            peeked = await peek_all(receiver)
            deferred = [message for message in peeked if message.state == ServiceBusMessageState.DEFERRED]
            assert len(deferred) == counts["deferred"]
            found = await receive_deferred(receiver, deferred)
        active = await drain(messaging, client, self.queue)
        dead = await drain(messaging, client, self.queue, is_dead=True)
        assert (len(active), len(dead)) == (counts["active"], counts["dead_letters"])
        places = [("active", active), ("dead", dead), ("deferred", found)]
        place_of = {str(message): place for place, messages in places for message in messages}
        assert len(place_of) == len(active) + len(dead) + len(found), "a message is there twice"
        assert place_of.keys() <= self.sender.attempted
        wrong = {
            text: (place_of.get(text, "gone"), self.tried.get(text))
            for text in self.sender.attempted
            if place_of.get(text, "gone") not in self._places(text)
        }
        assert not wrong
        for message in active:
            assert self.numbers.get(str(message), message.sequence_number) == message.sequence_number
            assert (message.delivery_count or 0) >= (str(message) in self.abandoned)


# --- sessions ---------------------------------------------------------------------------------------------------------


class SessionWork:
    """Senders of numbers in four sessions, and two receivers that complete them and note the last in the state."""

    queue = "steps"
    sessions = ("a", "b", "c", "d")

    def __init__(self) -> None:
        self.attempted = dict.fromkeys(self.sessions, -1)
        self.sent = dict.fromkeys(self.sessions, -1)
        self.completing = dict.fromkeys(self.sessions, -1)
        self.completed = dict.fromkeys(self.sessions, -1)
        self.noting = dict.fromkeys(self.sessions, -1)
        self.noted = dict.fromkeys(self.sessions, -1)

    @property
    def progress(self) -> int:
        return 1 + min(min(self.noted.values()), min(self.sent.values()) // MESSAGES_EACH)

    def create(self, messaging: MessagingServer, *, is_partitioned: bool) -> None:
        settings = {"is_partitioned": is_partitioned, "lock_seconds": LOCK_SECONDS, "max_delivery_count": 2000}
        create(messaging, self.queue, requires_session=True, **settings)

    def clients(self, client: ServiceBusClient) -> list[Coroutine[Any, Any, None]]:
        senders = [self._send(client, session) for session in self.sessions]
        return [*senders, self._receive(client), self._receive(client)]

    async def _send(self, client: ServiceBusClient, session: str) -> None:
        async with client.get_queue_sender(self.queue) as sender:
            for start in count(0, MESSAGES_EACH):
                numbers = range(start, start + MESSAGES_EACH)
                self.attempted[session] = numbers[-1]
                await sender.send_messages([ServiceBusMessage(str(number), session_id=session) for number in numbers])
                self.sent[session] = numbers[-1]

    async def _receive(self, client: ServiceBusClient) -> None:
        while True:
            try:
                async with client.get_queue_receiver(
                    self.queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5
                ) as receiver:
                    await self._handle(receiver)
            except (OperationTimeoutError, SessionLockLostError):
                # Nothing is there, or the machine was busy for longer than the lock lasts.
                continue

    async def _handle(self, receiver: ServiceBusReceiver) -> None:
        for message in await receiver.receive_messages(5, max_wait_time=2):
            session, number = str(message.session_id), int(str(message))
            assert number in (self.completed[session] + 1, self.completing[session]), "out of order"
            self.completing[session] = number
            await receiver.complete_message(message)
            self.completed[session] = number
            self.noting[session] = number
            await receiver.session.set_state(str(number).encode())
            self.noted[session] = number

    async def check(self, messaging: MessagingServer, client: ServiceBusClient) -> None:
        found: list[int] = []
        hold_for_long(messaging, self.queue)
        for session in self.sessions:
            numbers, state = await self._read(client, session)
            first, last = self.completed[session] + 1, self.sent[session]
            # Without gaps, from behind what was completed to what was sent.
            start = numbers[0] if numbers else first
            assert start in (first, self.completing[session] + 1)
            assert numbers == [*range(start, start + len(numbers))]
            assert last < start + len(numbers) <= self.attempted[session] + 1
            assert state in (self.noted[session], self.noting[session])
            found += numbers
        assert counts_of(messaging, self.queue)["active"] == 0

    async def _read(self, client: ServiceBusClient, session: str) -> tuple[list[int], int]:
        """Complete all of a session, which may be locked by a client of before; return the numbers and the state."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while True:
                try:
                    async with client.get_queue_receiver(self.queue, session_id=session) as receiver:
                        return await self._complete_all(receiver), int(await receiver.session.get_state() or b"-1")
                except SessionCannotBeLockedError:
                    await asyncio.sleep(0.2)

    async def _complete_all(self, receiver: ServiceBusReceiver) -> list[int]:
        numbers: list[int] = []
        session = receiver.session.session_id
        while page := await receiver.receive_messages(PAGE, max_wait_time=2):
            for message in page:
                assert message.session_id == session
                numbers.append(int(str(message)))
                await receiver.complete_message(message)
        return numbers


# --- messages for later -----------------------------------------------------------------------------------------------


class ScheduledWork:
    """Schedules messages for soon and for a day later, and takes every third of the latter back."""

    queue = "later"

    def __init__(self) -> None:
        self.attempted: set[str] = set()
        # By text, their numbers.
        self.soon: dict[str, int] = {}
        self.late: dict[str, int] = {}
        self.canceling: set[str] = set()
        self.canceled: set[str] = set()

    @property
    def progress(self) -> int:
        return len(self.canceled)

    def create(self, messaging: MessagingServer, *, is_partitioned: bool) -> None:
        create(messaging, self.queue, is_partitioned=is_partitioned)

    def clients(self, client: ServiceBusClient) -> list[Coroutine[Any, Any, None]]:
        return [self._schedule(client)]

    async def _schedule(self, client: ServiceBusClient) -> None:
        async with client.get_queue_sender(self.queue) as sender:
            for number in count():
                soon, late = f"soon-{number}", f"late-{number}"
                now = datetime.now(UTC)
                self.attempted.add(soon)
                (self.soon[soon],) = await sender.schedule_messages(ServiceBusMessage(soon), now + timedelta(seconds=1))
                self.attempted.add(late)
                (self.late[late],) = await sender.schedule_messages(ServiceBusMessage(late), now + timedelta(days=1))
                if number % 3 == 0:
                    self.canceling.add(late)
                    await sender.cancel_scheduled_messages(self.late[late])
                    self.canceled.add(late)

    async def check(self, messaging: MessagingServer, client: ServiceBusClient) -> None:
        async with client.get_queue_receiver(self.queue) as receiver:
            numbers = {str(message): message.sequence_number for message in await peek_all(receiver)}
        assert {text: numbers[text] for text in self.soon} == self.soon
        kept = {text: number for text, number in self.late.items() if text not in self.canceling}
        assert {text: numbers.get(text) for text in kept} == kept
        assert not self.canceled & numbers.keys()
        assert numbers.keys() <= self.attempted
        late = [text for text in numbers if text.startswith("late")]
        await until(
            lambda: counts_of(messaging, self.queue)["scheduled"] == len(late), "a message is due and not active"
        )
        active = [str(message) for message in await drain(messaging, client, self.queue)]
        assert sorted(active) == sorted(text for text in numbers if text.startswith("soon"))


# --- forwarding, topics and duplicates --------------------------------------------------------------------------------


class ForwardedWork:
    """Sends to a queue from which messages go over a second one to a third."""

    entrance, hall, room = "entrance", "hall", "room"

    def __init__(self) -> None:
        self.sender = Sender()

    @property
    def progress(self) -> int:
        return self.sender.rounds

    def create(self, messaging: MessagingServer, *, is_partitioned: bool) -> None:
        # Messages that were being moved are locked, too.
        settings = {"is_partitioned": is_partitioned, "lock_seconds": LOCK_SECONDS}
        create(messaging, self.room, **settings)
        create(messaging, self.hall, forward_to=self.room, **settings)
        create(messaging, self.entrance, forward_to=self.hall, **settings)

    def clients(self, client: ServiceBusClient) -> list[Coroutine[Any, Any, None]]:
        return [self.sender.run(client, self.entrance)]

    async def check(self, messaging: MessagingServer, client: ServiceBusClient) -> None:
        def is_forwarded() -> bool:
            return not any(counts_of(messaging, queue)["active"] for queue in (self.entrance, self.hall))

        await until(is_forwarded, "messages are not forwarded")
        texts = [str(message) for message in await drain(messaging, client, self.room)]
        check_sent(self.sender, texts)


class TopicWork:
    """Sends to a topic; of its subscriptions one has a filter and another a receiver."""

    topic = "news"

    def __init__(self) -> None:
        self.attempted: set[str] = set()
        self.sent: set[str] = set()
        self.completing: set[str] = set()
        self.completed: set[str] = set()
        self.rounds = 0

    @property
    def progress(self) -> int:
        return min(self.rounds, len(self.completed))

    def create(self, messaging: MessagingServer, *, is_partitioned: bool) -> None:
        create(messaging, self.topic, kind="topic", is_partitioned=is_partitioned)
        create(messaging, f"{self.topic}/subscriptions/all")
        create(messaging, f"{self.topic}/subscriptions/even", filter="number % 2 = 0")
        create(messaging, f"{self.topic}/subscriptions/work", lock_seconds=LOCK_SECONDS, max_delivery_count=2000)

    def clients(self, client: ServiceBusClient) -> list[Coroutine[Any, Any, None]]:
        return [self._send(client), self._receive(client)]

    async def _send(self, client: ServiceBusClient) -> None:
        async with client.get_topic_sender(self.topic) as sender:
            for start in count(0, MESSAGES_EACH):
                numbers = range(start, start + MESSAGES_EACH)
                self.attempted.update(map(str, numbers))
                await sender.send_messages(
                    [ServiceBusMessage(str(number), application_properties={"number": number}) for number in numbers]
                )
                self.sent.update(map(str, numbers))
                self.rounds += 1

    async def _receive(self, client: ServiceBusClient) -> None:
        async with client.get_subscription_receiver(self.topic, "work") as receiver:
            while True:
                for message in await receiver.receive_messages(5, max_wait_time=5):
                    assert str(message) not in self.completed
                    self.completing.add(str(message))
                    try:
                        await receiver.complete_message(message)
                    except MessageLockLostError:
                        continue
                    self.completed.add(str(message))

    async def check(self, messaging: MessagingServer, client: ServiceBusClient) -> None:
        texts = [
            [str(message) for message in await drain(messaging, client, self.topic, subscription=name)]
            for name in ("all", "even", "work")
        ]
        every, even, work = map(set, texts)
        assert [len(every), len(even), len(work)] == [len(found) for found in texts], "a message is there twice"
        assert self.sent <= every <= self.attempted
        # All subscriptions have what one has.
        assert even == {text for text in every if int(text) % 2 == 0}
        assert not work & self.completed
        assert every - self.completing <= work <= every


class RepeatedWork:
    """Sends to a queue that detects duplicates, and after the restart sends everything again."""

    queue = "once"

    def __init__(self) -> None:
        self.sender = Sender(_with_id)

    @property
    def progress(self) -> int:
        return self.sender.rounds

    def create(self, messaging: MessagingServer, *, is_partitioned: bool) -> None:
        # Of a partitioned queue the ids decide about fragments, and so a list could not be sent.
        create(messaging, self.queue, duplicate_window_seconds=3600)

    def clients(self, client: ServiceBusClient) -> list[Coroutine[Any, Any, None]]:
        return [self.sender.run(client, self.queue)]

    async def check(self, messaging: MessagingServer, client: ServiceBusClient) -> None:
        texts = sorted(self.sender.attempted)
        async with client.get_queue_sender(self.queue) as sender:
            for start in range(0, len(texts), PAGE):
                await sender.send_messages([_with_id(text) for text in texts[start : start + PAGE]])
        assert sorted(str(message) for message in await drain(messaging, client, self.queue)) == texts


def _with_id(text: str) -> ServiceBusMessage:
    return ServiceBusMessage(text, message_id=text)


def all_loads() -> list[Load]:
    return [QueueWork(), SessionWork(), ScheduledWork(), ForwardedWork(), TopicWork(), RepeatedWork()]


# --- the kill ---------------------------------------------------------------------------------------------------------


async def run_until_kill(messaging: MessagingServer, loads: Iterable[Load], rounds: int) -> None:
    """Run loads until each has done so many rounds, and kill the server under them."""
    loads = list(loads)
    connections = [messaging.aio_client(retry_total=0) for _ in loads]
    tasks = [
        asyncio.create_task(work)
        for load, client in zip(loads, connections, strict=True)
        for work in load.clients(client)
    ]

    def is_time() -> bool:
        ended = [task for task in tasks if task.done()]
        for task in ended:
            task.result()
        return min(load.progress for load in loads) >= rounds

    try:
        await until(is_time, "the clients do not get on")
        kill_all(messaging)
    finally:
        # Each ends by itself; which error a client makes of a server that is gone is its own matter.
        await asyncio.wait(tasks, timeout=30)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for client in connections:
            await client.close()
    surprises = [problem for problem in outcomes if isinstance(problem, AssertionError)]
    assert not surprises, surprises
