"""Forwarding: every message arrives once, whatever step the process ends at."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from asterism.models.messages.descriptions import QueueDescription
from asterism.models.messages.messages import DeadLetter, Failure, SubQueue
from tests.support.messages import MINUTE, NAMESPACE, drain, failure_of, new, open_bus, open_processes, texts, tokens
from tests.support.virtual_time import in_virtual_time


class Crash(BaseException):
    """The end of a process at a step."""


@in_virtual_time
async def test_messages_move_on_with_their_first_number() -> None:
    async with open_bus() as bus:
        target = await bus.queue("target")
        source = await bus.queue("source", forward_to="target")
        await target.send([new("before")])
        await source.send([new("a", message_id="1", session_id="s"), new("b")])
        channel = bus.channel(target)
        received = await drain(channel)
        while len(received) < 3:
            received += await channel.receive(5, lock=False)
        assert texts(received) == ["before", "a", "b"]
        assert [message.enqueued_sequence_number for message in received] == [None, 1, 2]
        assert (received[1].message_id, received[1].session_id, received[1].hops) == ("1", "s", 1)
        assert await failure_of(bus.channel(source).receive(1, lock=True)) is Failure.NOT_ALLOWED
        await asyncio.sleep(1)
        assert await source.counts() == {}
        await bus.check_entries(source)
        await bus.check_entries(target)


@in_virtual_time
async def test_a_backlog_is_forwarded_when_forwarding_is_turned_on() -> None:
    async with open_bus() as bus:
        target = await bus.topic("s", name="target", is_partitioned=True)
        source = await bus.queue("source")
        await source.send([new(str(number)) for number in range(500)])

        def forward(before: QueueDescription) -> QueueDescription:
            return replace(before, forward_to="sb://localhost/target")

        await bus.store.update(source, forward)
        await asyncio.sleep(5)
        assert await source.counts() == {}
        channel = bus.channel(target, "s")
        assert sorted(texts(await drain(channel)), key=int) == [str(number) for number in range(500)]
        await bus.check_entries(target)


@in_virtual_time
async def test_dead_letters_are_forwarded_with_their_reason_and_source() -> None:
    async with open_bus() as bus:
        letters = await bus.queue("letters")
        topic = await bus.topic()
        channel = await bus.subscribe(topic, "s", forward_dead_letters_to="letters")
        await topic.send([new("a")])
        await channel.settle(tokens(await channel.receive(1, lock=True)), DeadLetter("bad", "text"))
        (letter,) = await bus.channel(letters).receive(1, lock=True)
        assert letter.dead_letter_source == "t/Subscriptions/s"
        assert dict(letter.overlay) == {"DeadLetterReason": "bad", "DeadLetterErrorDescription": "text"}


@in_virtual_time
async def test_a_circle_ends_after_four_hops() -> None:
    async with open_bus() as bus:
        queues = [await bus.queue(name, forward_to=target) for name, target in (("a", "b"), ("b", "a"))]
        await queues[0].send([new("round")])
        await asyncio.sleep(5)
        found = [letter for queue in queues for letter in await drain(bus.dead_letters(queue))]
        assert [(letter.hops, letter.overlay["DeadLetterReason"]) for letter in found] == [
            (4, "MaxTransferHopCountExceeded")
        ]
        for queue in queues:
            await bus.check_entries(queue)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (None, "MessagingEntityNotFound"),
        ({"status": "Disabled"}, "MessagingEntityDisabled"),
        ({"requires_session": True}, "TransferRefused"),
    ],
)
def test_a_message_that_no_target_takes_is_among_the_dead_letters_of_transfers(
    settings: dict[str, object] | None, reason: str
) -> None:
    @in_virtual_time
    async def test() -> None:
        async with open_bus() as bus:
            source = await bus.queue("source", forward_to="target")
            for description in [] if settings is None else [settings]:
                await bus.queue("target", **description)
            await source.send([new("a"), new("b")])
            await asyncio.sleep(1)
            letters = await drain(bus.channel(source, None, SubQueue.TRANSFER_DEAD_LETTER))
            assert [letter.overlay["DeadLetterReason"] for letter in letters] == [reason, reason]
            await bus.check_entries(source)

    test()


@in_virtual_time
async def test_a_full_target_is_waited_for() -> None:
    async with open_bus() as bus:
        target = await bus.queue("target", max_size_mb=1)
        await target.send([new(b"x" * 900_000)])
        source = await bus.queue("source", forward_to="target")
        await source.send([new(b"y" * 200_000)])
        await asyncio.sleep(5)
        assert (await target.counts())[0, SubQueue.MAIN].active == 1
        await drain(bus.channel(target))
        assert len(await bus.channel(target).receive(1, lock=False)) == 1


@pytest.mark.parametrize("step", ["claimed", "sent", "completed"])
def test_a_message_arrives_once_if_the_process_ends_in_the_middle(step: str) -> None:
    @in_virtual_time
    async def test() -> None:
        async with open_bus() as bus:
            target = await bus.queue("target", is_partitioned=True)
            source = await bus.queue("source", forward_to="target")

            crashes: list[str] = []

            def crash(name: str) -> None:
                if name == step:
                    crashes.append(name)
                    raise Crash

            forwarding = bus.store.services.forwarding
            forwarding.on_step = crash
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda *_: None)
            await source.send([new(str(number)) for number in range(10)])
            await asyncio.sleep(1)
            assert crashes == [step]
            # The next process knows nothing of the locks.
            forwarding.on_step = lambda _: None
            bus.channel(source).forget(0)
            await bus.upkeep.tidy()
            await asyncio.sleep(5)
            assert await source.counts() == {}
            assert sorted(texts(await drain(bus.channel(target)))) == [str(number) for number in range(10)]
            # A mark that a crash has left goes when no lock of its source can be there.
            await asyncio.sleep(11 * 60)
            for _ in range(10):
                await bus.upkeep.tidy()
            await bus.check_entries(source)
            await bus.check_entries(target)

    test()


@in_virtual_time
async def test_two_processes_forward_each_message_once() -> None:
    async with open_processes(2) as buses:
        await buses[0].queue("target")
        await buses[0].queue("source", forward_to="target")
        await buses[1].store.namespaces.catch_up()
        sources = [bus.find("source") for bus in buses]
        await asyncio.gather(
            *[source.send([new(f"{place}.{number}")]) for number in range(50) for place, source in enumerate(sources)]
        )
        await asyncio.sleep(30)
        received = await drain(buses[0].channel(buses[0].find("target")))
        assert len(received) == len(set(texts(received))) == 100
        assert buses[0].store.find(NAMESPACE, "source") is sources[0]
        await buses[0].check_entries(sources[0])
        await asyncio.sleep(11 * MINUTE // 1000)
        for _ in range(10):
            await buses[0].upkeep.tidy()
        await buses[0].check_entries(buses[0].find("target"))
