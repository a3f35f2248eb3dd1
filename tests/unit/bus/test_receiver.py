"""Links on which clients receive: credit, drains and settlements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.bus.outgoing import tag_of
from asterism.apis.amqp.bus.receiver import Receiver
from asterism.apis.amqp.bus.transactions import TransactionBook
from asterism.apis.amqp.nodes import ACCEPTED, RELEASED, AmqpError, AttachReply, Modified, Outcome, Rejected, Settlement
from asterism.errors import ResourceNotFound
from asterism.models.messages.messages import Abandon, Complete, DeadLetter, Defer, Failure, Unlock
from tests.unit.bus.fakes import FakeChannel, FakeLink, message, token


class ReceiverPair:
    """A receiver between a fake link and a fake channel."""

    def __init__(self, *, locks: bool = True, credit: int = 0) -> None:
        self.link, self.channel = FakeLink(credit), FakeChannel()
        self.tasks: list[asyncio.Task[None]] = []
        self.closed = 0
        self.receiver = Receiver(
            self.link,
            cast("Any", self.channel),
            TransactionBook(BusLimits()),
            locks=locks,
            hold=None,
            reply=AttachReply(),
            background=self._background,
            on_closed=self._closed,
        )
        self.receiver.start()

    def give_credit(self, credit: int, *, drain: bool = False) -> None:
        self.link.credit, self.link.is_draining = credit, drain
        self.receiver.credit_changed()

    @property
    def sent_tokens(self) -> list[bytes]:
        return [mark for _, _, mark in self.link.sent]

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    def _closed(self) -> None:
        self.closed += 1


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_messages_are_sent_as_far_as_the_credit_goes() -> None:
    async def steps() -> None:
        pair = ReceiverPair()
        pair.channel.put(message(1), message(2), message(3))
        pair.give_credit(2)
        await turns()
        assert pair.link.sent == [(tag_of(token(1)), False, token(1)), (tag_of(token(2)), False, token(2))]
        pair.give_credit(5)
        await turns()
        assert pair.sent_tokens == [token(1), token(2), token(3)]

    run(steps)


def test_a_waiting_receiver_gets_a_message_that_arrives() -> None:
    async def steps() -> None:
        pair = ReceiverPair(credit=1)
        await turns()
        pair.channel.put(message(1))
        await turns()
        assert pair.sent_tokens == [token(1)]

    run(steps)


def test_a_drain_without_messages_is_answered_at_once_and_leaves_no_call_behind() -> None:
    async def steps() -> None:
        pair = ReceiverPair(credit=10)
        await turns()
        assert pair.channel.waiting == 1
        pair.give_credit(10, drain=True)
        await turns()
        assert (pair.link.drained_count, pair.channel.waiting) == (1, 0)
        pair.channel.put(message(1))
        await turns()
        assert pair.link.sent == []

    run(steps)


def test_a_drain_sends_what_is_there_first() -> None:
    async def steps() -> None:
        pair = ReceiverPair()
        pair.channel.put(message(1), message(2))
        pair.give_credit(10, drain=True)
        await turns()
        assert (len(pair.link.sent), pair.link.drained_count) == (2, 1)

    run(steps)


def test_credit_that_is_taken_back_ends_the_wait() -> None:
    async def steps() -> None:
        pair = ReceiverPair(credit=3)
        await turns()
        pair.give_credit(0)
        await turns()
        assert pair.channel.waiting == 0
        pair.give_credit(1)
        pair.channel.put(message(1))
        await turns()
        assert len(pair.link.sent) == 1

    run(steps)


def test_messages_beyond_the_credit_are_unlocked() -> None:
    async def steps() -> None:
        pair = ReceiverPair(credit=3)
        await turns()
        pair.link.credit = 1
        pair.channel.put(message(1), message(2), message(3))
        await turns()
        assert pair.sent_tokens == [token(1)]
        assert pair.channel.settled == [([token(2), token(3)], Unlock())]

    run(steps)


def test_deleting_receivers_settle_what_they_send_and_give_no_tag() -> None:
    async def steps() -> None:
        pair = ReceiverPair(locks=False, credit=2)
        pair.channel.put(message(1, locked=False))
        await turns()
        assert pair.link.sent == [(b"", True, None)]

    run(steps)


def test_a_deleted_entity_detaches_its_receivers() -> None:
    async def steps() -> None:
        pair = ReceiverPair()
        pair.channel.failure = ResourceNotFound(kind="queue", name="queue")
        pair.give_credit(1)
        await turns()
        assert pair.link.error is not None
        assert pair.link.error.condition == "amqp:not-found"

    run(steps)


def test_a_closed_link_leaves_no_call_behind() -> None:
    async def steps() -> None:
        pair = ReceiverPair(credit=1)
        await turns()
        pair.receiver.closed()
        await turns()
        assert (pair.channel.waiting, pair.closed) == (0, 1)

    run(steps)


def settlement(number: int, outcome: Outcome) -> Settlement:
    return Settlement(tag_of(token(number)), outcome, is_settled=False, mark=token(number))


def test_outcomes_become_actions_and_completions_share_a_call() -> None:
    async def steps() -> None:
        pair = ReceiverPair()
        rejected = Rejected(
            AmqpError(
                "com.microsoft:dead-letter",
                "",
                {"DeadLetterReason": b"why", "DeadLetterErrorDescription": "because", "more": 1},
            )
        )
        given: list[Outcome] = [
            ACCEPTED,
            RELEASED,
            ACCEPTED,
            Modified(delivery_failed=True),
            Modified(undeliverable_here=True, annotations={"a": 1}),
            rejected,
        ]
        outcomes = await pair.receiver.settle([settlement(n, outcome) for n, outcome in enumerate(given)])
        assert pair.channel.settled == [
            ([token(0), token(2)], Complete()),
            ([token(1)], Unlock()),
            ([token(3)], Abandon({})),
            ([token(4)], Defer({"a": 1})),
            ([token(5)], DeadLetter("why", "because", {"more": 1})),
        ]
        # The answer to a dead letter has no error.
        assert list(outcomes) == [*given[:5], Rejected()]

    run(steps)


def test_a_lost_lock_is_answered_with_its_error() -> None:
    async def steps() -> None:
        pair = ReceiverPair()
        pair.channel.failures[token(2)] = Failure.LOCK_LOST
        outcomes = await pair.receiver.settle([settlement(1, ACCEPTED), settlement(2, ACCEPTED)])
        assert outcomes[0] is ACCEPTED
        assert isinstance(outcomes[1], Rejected)
        assert outcomes[1].error is not None
        assert outcomes[1].error.condition == "com.microsoft:message-lock-lost"

    run(steps)
