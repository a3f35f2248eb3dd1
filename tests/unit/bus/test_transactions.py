"""Transactions of one connection: declared, filled and discharged through a coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asterism.apis.amqp.bus.incoming import Parcel
from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.bus.transactions import Coordinator, TransactionBook
from asterism.apis.amqp.nodes import ACCEPTED, AmqpError, Declared, Delivery, Outcome, Rejected
from asterism.models.messages.messages import Action, Complete, Failure, MessagingRefused, NewMessage
from asterism.values.amqp.message import encode_value_body
from asterism.values.amqp.types import Described, Symbol, ULong
from tests.support.virtual_time import in_virtual_time

PARCEL = Parcel([NewMessage(b"")], None)


@dataclass
class FakeWork:
    done: list[Any] = field(default_factory=list)
    failure: MessagingRefused | None = None

    def send(self, messages: Sequence[NewMessage], *, key: str | None = None) -> None:
        self.done.append(("send", len(messages), key))

    async def settle(
        self, channel: Any, tokens: Sequence[bytes], action: Action, *, session_id: str | None = None
    ) -> list[Failure | None]:
        del channel, session_id
        self.done.append(("settle", list(tokens), action))
        return [None] * len(tokens)

    async def commit(self) -> None:
        if self.failure is not None:
            raise self.failure
        self.done.append("commit")

    def rollback(self) -> None:
        self.done.append("rollback")


class FakeEntity:
    namespace = "asterism"

    def __init__(self, name: str) -> None:
        self.name = name
        self.work = FakeWork()

    def transaction(self) -> FakeWork:
        return self.work


def entity(name: str = "queue") -> Any:
    return FakeEntity(name)


def declare() -> Delivery:
    return Delivery(encode_value_body(Described(ULong(0x31), [None])), 0, b"", is_settled=False)


def discharge(identity: bytes, *, fail: bool = False) -> Delivery:
    return Delivery(encode_value_body(Described(Symbol("amqp:discharge:list"), [identity, fail])), 0, b"", False)


async def declared(coordinator: Coordinator) -> bytes:
    (outcome,) = await coordinator.take([declare()])
    return cast("Declared", outcome).transaction


def condition_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Rejected)
    assert outcome.error is not None
    return outcome.error.condition


def test_a_commit_carries_out_all_that_was_collected() -> None:
    async def steps() -> None:
        book, queue = TransactionBook(BusLimits()), entity()
        coordinator = Coordinator(book)
        identity = await declared(coordinator)
        book.send(identity, queue, Parcel([NewMessage(b""), NewMessage(b"")], "key"))
        channel: Any = SimpleNamespace(entity=queue)
        assert await book.settle(identity, channel, [b"token"], Complete()) == [None]
        assert await coordinator.take([discharge(identity)]) == [ACCEPTED]
        assert queue.work.done == [("send", 2, "key"), ("settle", [b"token"], Complete()), "commit"]
        assert condition_of((await coordinator.take([discharge(identity)]))[0]) == "amqp:transaction:unknown-id"

    asyncio.run(steps())


def test_a_failed_discharge_and_a_lost_link_roll_back() -> None:
    async def steps() -> None:
        book, first, second = TransactionBook(BusLimits()), entity(), entity()
        coordinator = Coordinator(book)
        identity = await declared(coordinator)
        book.send(identity, first, PARCEL)
        assert await coordinator.take([discharge(identity, fail=True)]) == [ACCEPTED]
        book.send(await declared(coordinator), second, PARCEL)
        coordinator.closed()
        assert first.work.done[-1] == second.work.done[-1] == "rollback"

    asyncio.run(steps())


def test_a_commit_that_the_model_refuses_is_rolled_back() -> None:
    async def steps() -> None:
        book, queue = TransactionBook(BusLimits()), entity()
        queue.work.failure = MessagingRefused(Failure.LOCK_LOST)
        coordinator = Coordinator(book)
        identity = await declared(coordinator)
        book.send(identity, queue, PARCEL)
        assert condition_of((await coordinator.take([discharge(identity)]))[0]) == "amqp:transaction:rollback"

    asyncio.run(steps())


def test_a_second_entity_is_refused_and_the_first_goes_on() -> None:
    async def steps() -> None:
        book, queue = TransactionBook(BusLimits()), entity()
        coordinator = Coordinator(book)
        identity = await declared(coordinator)
        book.send(identity, queue, PARCEL)
        with pytest.raises(AmqpError) as refused:
            book.send(identity, entity("other"), PARCEL)
        assert refused.value.condition == "amqp:not-allowed"
        assert await coordinator.take([discharge(identity)]) == [ACCEPTED]

    asyncio.run(steps())


def test_messages_and_open_transactions_are_limited() -> None:
    async def steps() -> None:
        book, queue = (
            TransactionBook(BusLimits(transaction_messages_max=2, transactions_per_connection_max=1)),
            entity(),
        )
        coordinator = Coordinator(book)
        identity = await declared(coordinator)
        book.send(identity, queue, PARCEL)
        book.send(identity, queue, PARCEL)
        with pytest.raises(AmqpError) as refused:
            book.send(identity, queue, PARCEL)
        assert refused.value.condition == "amqp:resource-limit-exceeded"
        assert condition_of((await coordinator.take([declare()]))[0]) == "amqp:resource-limit-exceeded"

    asyncio.run(steps())


def test_a_transaction_ends_after_its_time() -> None:
    @in_virtual_time
    async def steps() -> None:
        book, queue = TransactionBook(BusLimits(transaction_seconds_max=120)), entity()
        coordinator = Coordinator(book)
        identity = await declared(coordinator)
        book.send(identity, queue, PARCEL)
        await asyncio.sleep(121)
        assert queue.work.done[-1] == "rollback"
        assert condition_of((await coordinator.take([discharge(identity)]))[0]) == "amqp:transaction:timeout"

    steps()


def test_other_messages_to_a_coordinator_are_refused() -> None:
    async def steps() -> None:
        coordinator = Coordinator(TransactionBook(BusLimits()))
        outcomes = await coordinator.take(
            [Delivery(encode_value_body("hello"), 0, b"", False), Delivery(b"\x00", 0, b"", False)]
        )
        assert [condition_of(outcome) for outcome in outcomes] == ["amqp:not-implemented", "amqp:decode-error"]

    asyncio.run(steps())
