"""Queues and topics in this process, on an engine in memory held to its contract, in virtual time."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.families import COUNTERS as PAIR
from asterism.keyspaces.routing.families import LOGICAL_SIZES, TOTALS_KEY
from asterism.models.messages.channel import Channel
from asterism.models.messages.descriptions import (
    QueueDescription,
    RuleDescription,
    SubscriptionDescription,
    TopicDescription,
)
from asterism.models.messages.entity import Entity
from asterism.models.messages.layout import (
    ACTIVATION,
    ASIDE,
    BODIES,
    COUNTERS,
    DUE,
    DUPLICATES,
    DUPLICATES_DUE,
    EXPIRY,
    FORWARDED,
    LOCKS,
    MESSAGES,
    NEVER,
    READY,
    REFERENCES,
    RETURNED,
    SESSION_MESSAGES,
    SESSIONS,
    STATES,
    due_key,
    number_in,
    session_part,
)
from asterism.models.messages.messages import Failure, MessageState, MessagingRefused, NewMessage, Received, SubQueue
from asterism.models.messages.records import stored_message, unpack_references
from asterism.models.messages.rules import Envelope, FilterFailed
from asterism.models.messages.store import MessageStore
from asterism.models.messages.upkeep import MessageUpkeep
from asterism.models.namespaces.store import NamespaceStore
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.contract import decode_counters
from asterism.storage.memory import MemoryEngine, MemoryStore
from asterism.values.amqp.message import Message
from tests.support.virtual_time import virtual_clock
from tests.support.world import World, open_gateway, open_world

NAMESPACE = "asterism"
SECOND = 1000
MINUTE = 60 * SECOND


def content(text: bytes) -> bytes:
    """Return a message with a body and nothing else."""
    return b"\x00\x53\x75\xb0" + len(text).to_bytes(4, "big") + text


def new(text: bytes | str, **properties: Any) -> NewMessage:
    return NewMessage(content(text.encode() if isinstance(text, str) else text), **properties)


def text_of(received: Received) -> str:
    return str(Message.parse(received.content).body.decode())


def texts(received: Sequence[Received]) -> list[str]:
    return [text_of(message) for message in received]


def tokens(received: Sequence[Received]) -> list[bytes]:
    return [message.lock_token for message in received if message.lock_token is not None]


class PlainRules:
    """Rules for tests: an expression is text that the message must have in it, an action is text that it gets at its
    end, and the expression `broken` cannot be evaluated."""

    def __init__(self, rules: Sequence[RuleDescription]) -> None:
        self._rules = rules

    def select(self, message: Message, envelope: Envelope) -> list[bytes | None]:
        assert envelope.sequence_number > 0
        matching = [rule for rule in self._rules if self._matches(rule, message)]
        plain: list[bytes | None] = [None] if any(rule.action_sql is None for rule in matching) else []
        return plain + [
            content(message.body + (rule.action_sql or "").encode()) for rule in matching if rule.action_sql
        ]

    def _matches(self, rule: RuleDescription, message: Message) -> bool:
        if rule.filter.kind != "sql":
            return rule.filter.kind == "true"
        if rule.filter.expression == "broken":
            raise FilterFailed("It is broken.")
        return (rule.filter.expression or "").encode() in message.body


@dataclass(frozen=True)
class BusWorld:
    world: World
    store: MessageStore
    upkeep: MessageUpkeep

    async def queue(self, name: str = "q", **settings: Any) -> Entity:
        return await self.store.create_queue(NAMESPACE, name, replace(QueueDescription(), **settings))

    async def topic(self, *subscriptions: str, name: str = "t", **settings: Any) -> Entity:
        topic = await self.store.create_topic(NAMESPACE, name, replace(TopicDescription(), **settings))
        for subscription in subscriptions:
            await self.subscribe(topic, subscription)
        return topic

    async def subscribe(self, topic: Entity, name: str, **settings: Any) -> Channel:
        await self.store.create_subscription(topic, replace(SubscriptionDescription(name=name), **settings))
        return self.store.channel(topic, name)

    def find(self, name: str = "q") -> Entity:
        """Return an entity that another process of the test has created."""
        found = self.store.find(NAMESPACE, name)
        assert found is not None
        return found

    def channel(self, entity: Entity, subscription: str | None = None, sub_queue: SubQueue = SubQueue.MAIN) -> Channel:
        return self.store.channel(entity, subscription, sub_queue)

    def dead_letters(self, entity: Entity, subscription: str | None = None) -> Channel:
        return self.channel(entity, subscription, SubQueue.DEAD_LETTER)

    # --- checks -----------------------------------------------------------------------------------------------------

    async def check_entries(self, entity: Entity) -> None:
        """Check that every message has its entries and is counted, and that nothing else is stored (M1)."""
        for fragment in range(entity.fragment_count):
            await self._check_fragment(entity, numbered_point(fragment))

    async def _entries(self, entity: Entity, point: bytes, family: bytes) -> dict[bytes, bytes]:
        partition = entity.keyspace.record.map.find(point).partition
        return {key[3:]: value for key, value in await self.world.everything(partition, family + point)}

    async def _check_fragment(self, entity: Entity, point: bytes) -> None:
        async def entries(family: bytes) -> dict[bytes, bytes]:
            return await self._entries(entity, point, family)

        states = await entries(STATES)
        messages = [
            stored_message(key[:4], number_in(key), value, states.get(key))
            for key, value in (await entries(MESSAGES)).items()
        ]
        places = {message.facts.channel + message.facts.number.to_bytes(8, "big") for message in messages}
        assert states.keys() <= places
        assert (await entries(LOCKS)).keys() <= places
        assert (await entries(RETURNED)).keys() <= places
        counted: dict[bytes, list[int]] = {}
        expected_due: set[bytes] = set()
        expected_index: set[bytes] = set()
        references: Counter[int] = Counter()
        for message in messages:
            facts, state = message.facts, message.facts.state.state
            counters = counted.setdefault(facts.channel, [0, 0, 0, 0])
            counters[state] += 1
            counters[3] += facts.size
            if state is MessageState.SCHEDULED:
                moment = message.record.scheduled_ms
                expected_due.add(due_key(point, moment, ACTIVATION, facts.channel, facts.number)[3:])
            elif facts.expires_ms < NEVER:
                expected_due.add(due_key(point, facts.expires_ms, EXPIRY, facts.channel, facts.number)[3:])
            if facts.body is not None:
                references[facts.body.number] += 1
            terms = entity.terms.channel(facts.channel)
            if terms is not None and terms.requires_session and facts.session_id is not None:
                group = ASIDE if state else READY
                number = facts.number.to_bytes(8, "big")
                expected_index.add(facts.channel + group + session_part(facts.session_id) + number)
        assert {key: list(decode_counters(value)) for key, value in (await entries(COUNTERS)).items()} == counted
        assert (await entries(DUE)).keys() == expected_due
        assert (await entries(SESSION_MESSAGES)).keys() == expected_index
        stored_references = {number_in(key): unpack_references(v) for key, v in (await entries(REFERENCES)).items()}
        assert {number: count for number, (count, _) in stored_references.items()} == dict(references)
        bodies = await entries(BODIES)
        assert {number_in(key): len(value) for key, value in bodies.items()} == {
            number: length for number, (_, length) in stored_references.items()
        }
        assert not await entries(FORWARDED)
        remembered = {value[:8] + key for key, value in (await entries(DUPLICATES)).items()}
        assert (await entries(DUPLICATES_DUE)).keys() == remembered
        sessions = sum(len(value) for value in (await entries(SESSIONS)).values())
        size = sum(message.facts.size for message in messages) + sum(map(len, bodies.values())) + sessions
        partition = entity.keyspace.record.map.find(point).partition
        (totals,) = await self.world.engine.read_unfenced(partition, [TOTALS_KEY])
        (sizes,) = await self.world.engine.read_unfenced(partition, [LOGICAL_SIZES + point])
        assert (PAIR.unpack(totals) if totals else (0, 0)) == (size, len(messages))
        assert (PAIR.unpack(sizes) if sizes else (0, 0)) == (size, len(messages))


def _assembled(world: World, *, offset_seconds: float = 0.0) -> BusWorld:
    clock = virtual_clock(asyncio.get_running_loop(), wall_offset_seconds=offset_seconds)
    namespaces = NamespaceStore(world.catalog, world.admission, SmallDocuments(world.engine), world.reshaper, clock)
    store = MessageStore(namespaces, world.router, clock, os.urandom, PlainRules)
    return BusWorld(world, store, MessageUpkeep(store))


@asynccontextmanager
async def open_bus() -> AsyncIterator[BusWorld]:
    """Open a process that is alone with its store."""
    clock = virtual_clock(asyncio.get_running_loop())
    async with open_world(None, clock=clock) as world:
        bus = _assembled(world)
        yield bus
        await bus.store.stop()


@asynccontextmanager
async def open_processes(count: int) -> AsyncIterator[list[BusWorld]]:
    """Open several processes on one store; the first of them leads."""
    memory = MemoryStore()
    clock = virtual_clock(asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        opened: list[BusWorld] = []
        for number in range(count):
            world = await stack.enter_async_context(
                open_gateway(MemoryEngine(memory), clock=clock, is_first=not number)
            )
            bus = _assembled(world)
            stack.push_async_callback(bus.store.stop)
            opened.append(bus)
        yield opened


@asynccontextmanager
async def reopened(memory: MemoryStore) -> AsyncIterator[BusWorld]:
    """Open a process on a store that an earlier one has left, as after a crash."""
    clock = virtual_clock(asyncio.get_running_loop())
    async with open_gateway(MemoryEngine(memory), clock=clock, is_first=True) as world:
        bus = _assembled(world)
        yield bus
        await bus.store.stop()


async def failure_of(call: Awaitable[object]) -> Failure:
    with pytest.raises(MessagingRefused) as refused:
        await call
    return refused.value.failure


async def drain(channel: Channel) -> list[Received]:
    """Take everything that is there without locks."""
    found: list[Received] = []
    while received := await channel.receive(100, lock=False, wait=False):
        found += received
    return found
