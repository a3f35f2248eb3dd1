"""The nodes of Service Bus on the real model: links, sessions, requests and the end of links."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.bus.nodes import BusNodes
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    AmqpError,
    Delivery,
    Intake,
    NodeReply,
    NodeRequest,
    Outcome,
    Outlet,
    Rejected,
    Right,
    Settlement,
)
from asterism.clock import SYSTEM_CLOCK
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.languages.bus_sql.rules import RuleCompiler
from asterism.models.messages.descriptions import (
    QueueDescription,
    RuleDescription,
    SubscriptionDescription,
    TopicDescription,
)
from asterism.models.messages.store import MessageStore
from asterism.models.namespaces.store import NamespaceStore
from asterism.values.amqp.message import (
    Message,
    Properties,
    encode_annotations,
    encode_application_properties,
    encode_data_body,
    encode_properties,
    encode_value_body,
)
from asterism.values.amqp.types import Array, Described, Int, Timestamp, UInt, Uuid
from tests.support.world import open_world
from tests.unit.bus.fakes import FakeLink, FakePeer, attach

NAMESPACE = "asterism"
LATER_MS = Timestamp(4_000_000_000_000)
SESSION = "com.microsoft:session-filter"


def random_bytes(size: int) -> bytes:
    return b"\x5a" * size


class Bus:
    """Nodes over a store in memory, and shorthands for calls of them."""

    def __init__(self, store: MessageStore, limits: BusLimits) -> None:
        self.store = store
        self.nodes = BusNodes(store, limits, random_bytes)
        self.peer = FakePeer()

    async def queue(self, name: str = "queue", **fields: Any) -> None:
        await self.store.create_queue(NAMESPACE, name, QueueDescription(**fields))

    async def topic(self, *subscriptions: str) -> None:
        topic = await self.store.create_topic(NAMESPACE, "topic", TopicDescription())
        for name in subscriptions:
            await self.store.create_subscription(topic, SubscriptionDescription(name=name))

    async def sender(self, address: str = "queue", **fields: Any) -> Intake:
        return await self.nodes.open_intake(attach(address, self.peer, **fields))

    async def receiver(self, address: str = "queue", *, link: FakeLink | None = None, **fields: Any) -> Outlet:
        outlet = await self.nodes.open_outlet(attach(address, self.peer, **fields), link or FakeLink())
        outlet.start()
        return outlet

    async def send(self, *messages: bytes, address: str = "queue") -> list[Outcome]:
        sender = await self.sender(address)
        outcomes = await sender.take([Delivery(message, 0, b"", is_settled=False) for message in messages])
        sender.closed()
        return list(outcomes)

    async def ask(self, operation: str, body: Any = None, *, address: str = "queue") -> NodeReply:
        request = encode_application_properties({"operation": f"com.microsoft:{operation}"}) + encode_value_body(body)
        return await self.nodes.answer(NodeRequest(self.peer, f"{address}/$management", Message.parse(request)))

    async def done(self, operation: str, body: Any = None, *, address: str = "queue") -> Any:
        """Ask, and return the body of the answer, which is a success."""
        reply = await self.ask(operation, body, address=address)
        assert reply.properties["statusCode"] == 200, reply
        # As the client decodes it.
        return Message.parse(encode_value_body(reply.body)).body

    async def refused(self, operation: str, body: Any = None, *, address: str = "queue") -> tuple[int, str]:
        properties = (await self.ask(operation, body, address=address)).properties
        return properties["statusCode"], properties["errorCondition"]


@asynccontextmanager
async def open_bus(**limits: Any) -> AsyncIterator[Bus]:
    async with open_world(None) as world, asyncio.timeout(60):
        namespaces = NamespaceStore(
            world.catalog, world.admission, SmallDocuments(world.nodes), world.reshaper, SYSTEM_CLOCK
        )
        store = MessageStore(namespaces, world.router, SYSTEM_CLOCK, counted_bytes(), RuleCompiler(random_bytes))
        yield Bus(store, BusLimits(**limits))
        await store.stop()


def counted_bytes() -> Callable[[int], bytes]:
    """Return a source of bytes that are never the same."""
    numbers = iter(range(1, 1_000_000))
    return lambda size: next(numbers).to_bytes(size, "big")


def message(body: str = "body", *, session: str | None = None) -> bytes:
    return encode_properties(Properties("m", group_id=session)) + encode_data_body(body.encode())


async def received(link: FakeLink, count: int) -> list[Message]:
    while len(link.payloads) < count:
        await asyncio.sleep(0.001)
    return [Message.parse(payload) for payload in link.payloads]


async def refusal(opening: Awaitable[Any]) -> str:
    with pytest.raises(AmqpError) as refused:
        await opening
    return refused.value.condition


# --- queues ---------------------------------------------------------------------------------------------------------


async def test_a_message_goes_from_a_sender_to_a_receiver_and_is_completed() -> None:
    async with open_bus() as bus:
        await bus.queue()
        assert await bus.send(message("a"), message("b")) == [ACCEPTED, ACCEPTED]
        link = FakeLink(10)
        receiver = await bus.receiver("Queue", link=link)
        assert [found.body for found in await received(link, 2)] == [b"a", b"b"]
        settlements = [Settlement(tag, ACCEPTED, is_settled=False, mark=mark) for tag, _, mark in link.sent]
        assert list(await receiver.settle(settlements)) == [ACCEPTED, ACCEPTED]
        again = await receiver.settle(settlements[:1])
        assert isinstance(again[0], Rejected)
        assert again[0].error is not None
        assert again[0].error.condition == "com.microsoft:message-lock-lost"
        assert (await bus.refused("peek-message", {"message-count": Int(1)}))[0] == 204


async def test_one_bad_message_does_not_refuse_its_neighbors() -> None:
    async with open_bus() as bus:
        await bus.queue(requires_session=True)
        outcomes = await bus.send(message("a", session="s"), message("b"), b"\x00", message("c", session="s"))
        assert [isinstance(outcome, Rejected) for outcome in outcomes] == [False, True, True, False]
        peeked = await bus.done("peek-message", {"message-count": Int(10)})
        assert [Message.parse(each["message"]).body for each in peeked["messages"]] == [b"a", b"c"]


async def test_messages_are_sent_to_entities_only_and_received_from_those_that_hold_any() -> None:
    async with open_bus() as bus:
        await bus.topic("s")
        await bus.queue()
        assert await refusal(bus.sender("topic/Subscriptions/s")) == "amqp:not-allowed"
        assert await refusal(bus.sender("queue/$DeadLetterQueue")) == "amqp:not-allowed"
        transfer = {"com.microsoft:transfer-destination-address": "topic"}
        assert await refusal(bus.sender("queue", properties=transfer)) == "amqp:not-implemented"
        assert await refusal(bus.receiver("topic")) == "amqp:not-allowed"
        assert await refusal(bus.receiver("topic/Subscriptions/other")) == "amqp:not-found"
        assert await refusal(bus.receiver("other")) == "amqp:not-found"
        await bus.receiver("topic/subscriptions/S/$deadletterqueue")


async def test_links_and_requests_need_their_rights() -> None:
    async with open_bus() as bus:
        await bus.queue()
        bus.peer = FakePeer(Right.SEND)
        await bus.sender()
        assert await refusal(bus.receiver()) == "amqp:unauthorized-access"
        assert await bus.refused("peek-message", {}) == (401, "amqp:unauthorized-access")
        bus.peer = FakePeer(Right.LISTEN)
        await bus.receiver()
        assert await refusal(bus.sender()) == "amqp:unauthorized-access"
        assert (await bus.refused("schedule-message", {"messages": []}))[0] == 401


async def test_an_entity_has_so_many_receivers_and_no_more() -> None:
    async with open_bus(receivers_per_entity_max=1) as bus:
        await bus.queue()
        first = await bus.receiver()
        assert await refusal(bus.receiver()) == "amqp:resource-limit-exceeded"
        first.closed()
        await bus.receiver()


async def test_links_end_with_their_entity_and_with_its_status() -> None:
    async with open_bus() as bus:
        await bus.queue()
        entity = bus.store.find(NAMESPACE, "queue")
        assert entity is not None
        receiving = FakeLink()
        ended: list[AmqpError] = []
        await bus.receiver(link=receiving)
        await bus.sender(end=ended.append)
        await bus.store.update(entity, lambda before: replace(before, status="SendDisabled"))
        assert [error.condition for error in ended] == ["com.microsoft:entity-disabled"]
        assert not receiving.is_closed
        assert await refusal(bus.sender()) == "com.microsoft:entity-disabled"
        await bus.store.delete(entity)
        assert receiving.error is not None
        assert receiving.error.condition == "amqp:not-found"


# --- sessions -------------------------------------------------------------------------------------------------------


async def test_a_session_is_accepted_by_id_or_as_the_next() -> None:
    async with open_bus() as bus:
        await bus.queue(requires_session=True)
        await bus.send(message(session="a"))
        first = await bus.receiver(filters={SESSION: "a"})
        assert first.reply.filters == {SESSION: "a"}
        assert first.reply.properties["com.microsoft:locked-until-utc"] > 621_355_968 * 10**9
        assert await refusal(bus.receiver(filters={SESSION: "a"})) == "com.microsoft:session-cannot-be-locked"
        timeout = {"com.microsoft:timeout": UInt(10)}
        waiting = bus.receiver(filters={SESSION: None}, properties=timeout)
        assert await refusal(waiting) == "com.microsoft:timeout"
        first.closed()
        second = await bus.receiver(filters={SESSION: None})
        assert second.reply.filters == {SESSION: "a"}


async def test_receivers_and_entities_agree_about_sessions() -> None:
    async with open_bus() as bus:
        await bus.queue("with", requires_session=True)
        await bus.queue("without")
        assert await refusal(bus.receiver("with")) == "amqp:not-allowed"
        assert await refusal(bus.receiver("without", filters={SESSION: "a"})) == "amqp:not-allowed"
        assert await refusal(bus.receiver("with", filters={SESSION: Int(1)})) == "amqp:invalid-field"


async def test_requests_about_sessions_are_answered() -> None:
    async with open_bus() as bus:
        await bus.queue(requires_session=True)
        everything = {"last-updated-time": Timestamp(253_402_300_800_000), "skip": Int(0), "top": Int(10)}
        assert await bus.refused("get-message-sessions", everything) == (204, "com.microsoft:session-not-found")
        named = {"session-id": "a"}
        assert await bus.refused("renew-session-lock", named) == (410, "com.microsoft:session-lock-lost")
        await bus.receiver(filters={SESSION: "a"})
        assert (await bus.done("get-session-state", named))["session-state"] is None
        await bus.done("set-session-state", {**named, "session-state": b"state"})
        assert (await bus.done("get-session-state", named))["session-state"] == b"state"
        assert isinstance((await bus.done("renew-session-lock", named))["expiration"], Timestamp)
        found = await bus.done("get-message-sessions", everything)
        assert (list(found["sessions-ids"]), found["skip"]) == (["a"], 1)


# --- requests about messages ----------------------------------------------------------------------------------------


async def test_scheduled_messages_have_numbers_and_are_canceled() -> None:
    async with open_bus() as bus:
        await bus.queue()
        scheduled = encode_annotations({"x-opt-scheduled-enqueue-time": LATER_MS}) + message()
        answer = await bus.done("schedule-message", {"messages": [{"message-id": "m", "message": scheduled}] * 2})
        numbers = answer["sequence-numbers"]
        assert isinstance(numbers, Array)
        assert list(numbers) == [1, 2]
        peeked = await bus.done("peek-message", {"from-sequence-number": 2, "message-count": Int(5)})
        (found,) = (Message.parse(each["message"]) for each in peeked["messages"])
        assert found.annotations["x-opt-message-state"] == 2
        assert found.annotations["x-opt-scheduled-enqueue-time"] == LATER_MS
        await bus.done("cancel-scheduled-message", {"sequence-numbers": Array.of(int, [1, 2])})
        again = {"sequence-numbers": Array.of(int, [1])}
        assert await bus.refused("cancel-scheduled-message", again) == (404, "com.microsoft:message-not-found")


async def test_a_lock_is_renewed_and_settled_by_requests() -> None:
    async with open_bus() as bus:
        await bus.queue()
        await bus.send(message("a"))
        link = FakeLink(1)
        await bus.receiver(link=link)
        (found,) = await received(link, 1)
        token = found.delivery_annotations["x-opt-lock-token"]
        tokens = {"lock-tokens": Array.of(Uuid, [token])}
        (until,) = (await bus.done("renew-lock", tokens))["expirations"]
        assert until >= found.annotations["x-opt-locked-until"]
        await bus.done("update-disposition", {**tokens, "disposition-status": "defered"})
        assert await bus.refused("renew-lock", tokens) == (410, "com.microsoft:message-lock-lost")
        numbers = {"sequence-numbers": Array.of(int, [1]), "receiver-settle-mode": UInt(1)}
        (deferred,) = (await bus.done("receive-by-sequence-number", numbers))["messages"]
        dead = {
            "lock-tokens": Array.of(Uuid, [deferred["lock-token"]]),
            "disposition-status": "suspended",
            "deadletter-reason": "why",
            "properties-to-modify": {"more": 1},
        }
        await bus.done("update-disposition", dead)
        peeked = await bus.done("peek-message", {"message-count": Int(1)}, address="queue/$DeadLetterQueue")
        properties = Message.parse(peeked["messages"][0]["message"]).application_properties
        assert properties == {"DeadLetterReason": "why", "more": 1}
        assert await bus.refused("receive-by-sequence-number", numbers) == (404, "com.microsoft:message-not-found")


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        ("no-such-operation", {}, (501, "amqp:not-implemented")),
        ("peek-message", "text", (400, "com.microsoft:argument-error")),
        ("peek-message", {"message-count": "many"}, (400, "com.microsoft:argument-error")),
        ("peek-message", {"message-count": Int(0)}, (400, "com.microsoft:argument-error")),
        ("renew-lock", {}, (400, "com.microsoft:argument-error")),
        ("renew-lock", {"lock-tokens": [b"short"]}, (400, "com.microsoft:argument-error")),
        ("update-disposition", {"disposition-status": "lost"}, (400, "com.microsoft:argument-error")),
        ("schedule-message", {"messages": [{"message": b"\x00"}]}, (400, "amqp:decode-error")),
        ("schedule-message", {"messages": [{"message": message()}]}, (400, "com.microsoft:argument-error")),
        ("set-session-state", {"session-id": "a", "session-state": "text"}, (400, "com.microsoft:argument-error")),
        ("enumerate-rules", {}, (403, "amqp:not-allowed")),
    ],
)
async def test_malformed_requests_are_refused(operation: str, body: Any, expected: tuple[int, str]) -> None:
    async with open_bus() as bus:
        await bus.queue()
        assert await bus.refused(operation, body) == expected


# --- rules ----------------------------------------------------------------------------------------------------------

SUBSCRIPTION = "topic/Subscriptions/s"


async def test_rules_are_added_listed_and_removed() -> None:
    async with open_bus() as bus:
        await bus.topic("s")
        sql = {"sql-filter": {"expression": "a = 1"}, "sql-rule-action": {"expression": "SET b = 2"}}
        await bus.done("add-rule", {"rule-name": "sql", "rule-description": sql}, address=SUBSCRIPTION)
        correlation = {"correlation-filter": {"label": "l", "properties": {"p": Int(5), "q": "text"}}}
        await bus.done("add-rule", {"rule-name": "c", "rule-description": correlation}, address=SUBSCRIPTION)
        again = {"rule-name": "SQL", "rule-description": sql}
        assert await bus.refused("add-rule", again, address=SUBSCRIPTION) == (
            409,
            "com.microsoft:entity-already-exists",
        )
        listed = await bus.done("enumerate-rules", {"top": Int(10), "skip": Int(0)}, address=SUBSCRIPTION)
        rules = [each["rule-description"] for each in listed["rules"]]
        assert [rule.descriptor for rule in rules] == [0x13700000004] * 3
        assert [rule.value[2] for rule in rules] == ["$Default", "sql", "c"]
        assert [rule.value[0].descriptor for rule in rules] == [0x1370000007, 0x1370000006, 0x1370000009]
        assert [rule.value[1].descriptor for rule in rules] == [0x13700000005, 0x13700000006, 0x13700000005]
        assert rules[2].value[0].value[4] == "l"
        assert rules[2].value[0].value[8] == {"p": 5, "q": "text"}
        await bus.done("remove-rule", {"rule-name": "$default"}, address=SUBSCRIPTION)
        assert (await bus.refused("remove-rule", {"rule-name": "$Default"}, address=SUBSCRIPTION))[0] == 404
        sent = encode_application_properties({"p": Int(5), "q": "text"})
        message_of_l = encode_properties(Properties("m", subject="l")) + sent + encode_data_body(b"x")
        await bus.send(message_of_l, message(), address="topic")
        peeked = await bus.done("peek-message", {"message-count": Int(9)}, address=SUBSCRIPTION)
        assert len(peeked["messages"]) == 1


@pytest.mark.parametrize(
    ("description", "status"),
    [
        ({}, 400),
        ({"sql-filter": {"expression": "a ="}}, 400),
        ({"correlation-filter": {"properties": {"list": [1]}}}, 501),
    ],
)
async def test_rules_without_a_meaning_are_refused(description: Any, status: int) -> None:
    async with open_bus() as bus:
        await bus.topic("s")
        body = {"rule-name": "r", "rule-description": description}
        assert (await bus.refused("add-rule", body, address=SUBSCRIPTION))[0] == status


async def test_rules_that_were_stored_otherwise_are_listed() -> None:
    async with open_bus() as bus:
        await bus.topic("s")
        topic = bus.store.find(NAMESPACE, "topic")
        assert topic is not None
        await bus.store.update_subscription(topic, "s", lambda before: replace(before, rules=(RuleDescription("r"),)))
        listed = await bus.done("enumerate-rules", {}, address=SUBSCRIPTION)
        assert listed["rules"][0]["rule-description"].value[1] == Described(0x13700000005, [])
