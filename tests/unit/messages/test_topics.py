"""Topics: copies for each subscription, rules, bodies that are shared, subscriptions that come and go."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from asterism.errors import ResourceExists, ResourceNotFound
from asterism.models.messages.descriptions import FilterDescription, RuleDescription, SubscriptionDescription
from asterism.models.messages.messages import COMPLETE, DeadLetter, SubQueue
from tests.support.messages import NAMESPACE, SECOND, drain, new, open_bus, texts, tokens
from tests.support.virtual_time import in_virtual_time


def rule(name: str, expression: str, action: str | None = None) -> RuleDescription:
    return RuleDescription(name=name, filter=FilterDescription(kind="sql", expression=expression), action_sql=action)


@in_virtual_time
async def test_every_subscription_gets_a_copy_with_the_number_of_the_message() -> None:
    async with open_bus() as bus:
        topic = await bus.topic("one", "two")
        assert await topic.send([new("a"), new("b")]) == [1, 2]
        for name in ("ONE", "two"):
            received = await bus.channel(topic, name).receive(5, lock=True)
            assert texts(received) == ["a", "b"]
            assert [message.sequence_number for message in received] == [1, 2]
        await bus.check_entries(topic)


@in_virtual_time
async def test_a_message_without_subscriptions_is_gone() -> None:
    async with open_bus() as bus:
        topic = await bus.topic()
        assert await topic.send([new("a")]) == [1]
        channel = await bus.subscribe(topic, "late")
        assert await channel.receive(1, lock=True, wait=False) == []
        assert await topic.send([new("b")]) == [2]
        assert texts(await channel.receive(1, lock=True)) == ["b"]
        await bus.check_entries(topic)


@in_virtual_time
async def test_rules_select_and_actions_make_copies_of_their_own() -> None:
    async with open_bus() as bus:
        topic = await bus.topic()
        only = await bus.subscribe(topic, "only", rules=(rule("r", "red"),))
        both = await bus.subscribe(topic, "both", rules=(rule("r", "red"), rule("x", "e", "!"), rule("y", "blue", "?")))
        none = await bus.subscribe(topic, "none", rules=())
        await topic.send([new("red"), new("blue")])
        assert texts(await drain(only)) == ["red"]
        received = await drain(both)
        assert sorted(texts(received)) == ["blue!", "blue?", "red", "red!"]
        assert len({message.sequence_number for message in received}) == 4
        assert await drain(none) == []
        await bus.check_entries(topic)


@in_virtual_time
async def test_a_rule_that_cannot_be_evaluated_makes_a_dead_letter_if_the_subscription_says_so() -> None:
    async with open_bus() as bus:
        topic = await bus.topic()
        await bus.subscribe(topic, "keeps", rules=(rule("r", "broken"),))
        await bus.subscribe(topic, "drops", rules=(rule("r", "broken"),), dead_letters_filter_errors=False)
        await topic.send([new("a")])
        (letter,) = await bus.dead_letters(topic, "keeps").receive(1, lock=True)
        assert letter.overlay["DeadLetterErrorDescription"] == "It is broken."
        assert await bus.dead_letters(topic, "drops").receive(1, lock=True, wait=False) == []
        await bus.check_entries(topic)


@in_virtual_time
async def test_a_large_body_is_stored_once_and_goes_with_its_last_copy() -> None:
    async with open_bus() as bus:
        topic = await bus.topic("one", "two", "three")
        large = b"x" * 100_000
        await topic.send([new(large), new(b"y" * 50_000)])
        counts = await topic.fragments()
        assert counts[0].counts.bytes < 1_000
        await bus.check_entries(topic)
        first, second, third = [bus.channel(topic, name) for name in ("one", "two", "three")]
        received = await first.receive(5, lock=True)
        assert [len(message.content) for message in received] == [100_008, 50_008]
        await first.settle(tokens(received), COMPLETE)
        letters = await second.receive(1, lock=True)
        await second.settle(tokens(letters), DeadLetter())
        await drain(third)
        await bus.check_entries(topic)
        moved = await drain(bus.dead_letters(topic, "two"))
        assert [len(message.content) for message in moved] == [100_008]
        await drain(second)
        await bus.check_entries(topic)


@in_virtual_time
async def test_sessions_of_subscriptions_and_messages_without_one() -> None:
    async with open_bus() as bus:
        topic = await bus.topic("plain")
        channel = await bus.subscribe(topic, "sessions", requires_session=True)
        await topic.send([new("a", session_id="s"), new("b")])
        hold = await channel.accept_session(None, wait_seconds=0)
        assert texts(await channel.receive(5, lock=False, session=hold)) == ["a"]
        (letter,) = await drain(bus.dead_letters(topic, "sessions"))
        assert letter.overlay["DeadLetterReason"] == "Session ID is null."
        assert texts(await drain(bus.channel(topic, "plain"))) == ["a", "b"]
        await bus.check_entries(topic)


@in_virtual_time
async def test_a_scheduled_message_of_a_topic_meets_the_rules_when_it_is_due() -> None:
    async with open_bus() as bus:
        topic = await bus.topic()
        first = await bus.subscribe(topic, "first")
        (number,) = await topic.send([new("a", scheduled_ms=first.now_ms() + 10 * SECOND)])
        assert (await topic.counts())[0, SubQueue.MAIN].scheduled == 1
        waiting = asyncio.create_task(first.receive(1, lock=True))
        await asyncio.sleep(5)
        second = await bus.subscribe(topic, "second")
        await topic.send([new("b")])
        assert texts(await waiting) == ["b"]
        (received,) = await first.receive(1, lock=True)
        assert received.sequence_number == number
        assert texts(await drain(second)) == ["a", "b"]
        await bus.check_entries(topic)


@in_virtual_time
async def test_a_subscription_is_created_once_and_its_number_is_not_used_again() -> None:
    async with open_bus() as bus:
        topic = await bus.topic("a")
        with pytest.raises(ResourceExists):
            await bus.subscribe(topic, "A")
        old = bus.channel(topic, "a")
        waiting = asyncio.create_task(old.receive(1, lock=True))
        await topic.send([new("x") for _ in range(10)])
        await waiting
        deleted: list[tuple[str, str, str | None]] = []
        bus.store.deletion_listeners.append(lambda *news: deleted.append(news))
        waiting = asyncio.create_task(bus.dead_letters(topic, "a").receive(1, lock=True))
        await asyncio.sleep(1)
        await bus.store.delete_subscription(topic, "a")
        assert deleted == [(NAMESPACE, "t", "a")]
        with pytest.raises(ResourceNotFound):
            await waiting
        with pytest.raises(ResourceNotFound):
            await old.receive(1, lock=True)
        with pytest.raises(ResourceNotFound):
            bus.channel(topic, "a")
        channel = await bus.subscribe(topic, "a")
        assert topic.topic.subscriptions["a"].number == 2
        assert await channel.receive(1, lock=True, wait=False) == []
        await bus.upkeep.tidy()
        assert topic.topic.removed_subscriptions == frozenset()
        assert await topic.counts() == {}
        await bus.check_entries(topic)


@in_virtual_time
async def test_rules_are_changed_with_their_subscription() -> None:
    async with open_bus() as bus:
        topic = await bus.topic("s")
        changed: list[object] = []
        bus.store.change_listeners.append(lambda *news: changed.append(news))

        def only_red(before: SubscriptionDescription) -> SubscriptionDescription:
            return replace(before, rules=(rule("r", "red"),), status="ReceiveDisabled")

        await bus.store.update_subscription(topic, "s", only_red)
        assert changed == [(NAMESPACE, "t", "s")]
        await topic.send([new("red"), new("blue")])
        await bus.store.update_subscription(topic, "s", lambda before: replace(before, status="Active"))
        assert texts(await drain(bus.channel(topic, "s"))) == ["red"]


@in_virtual_time
async def test_a_description_is_the_same_after_it_was_stored() -> None:
    async with open_bus() as bus:
        topic = await bus.topic(auto_delete_ms=5, is_partitioned=True, closed_fragments=frozenset({3}))
        await bus.subscribe(topic, "s", rules=(rule("r", "red", "x"),), forward_to="q")
        found = bus.find("T")
        assert found is topic
        assert type(topic.topic).from_json(topic.topic.to_json()) == topic.topic
        assert topic.topic.subscriptions["s"].rules[0].action_sql == "x"
        assert topic.fragment_count == 16
