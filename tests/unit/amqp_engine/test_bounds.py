"""Bounds of the state that a connection keeps for its client, whatever the client leaves undone."""

from __future__ import annotations

from asterism.apis.amqp.engine.performatives import Performative
from asterism.values.amqp.message import Message
from asterism.values.amqp.message import encode_value_body as value_body
from asterism.values.amqp.types import UInt
from tests.unit.amqp_engine.memory_stream import ACCEPTED_STATE, wire_client
from tests.unit.amqp_engine.toy_host import ToyHost, toy_engine


async def test_the_oldest_deliveries_are_forgotten_when_too_many_are_not_settled() -> None:
    host = ToyHost()
    host.queue("queue").payloads += [value_body(number) for number in range(5)]
    async with wire_client(toy_engine(host, unsettled_max=3)) as client:
        await client.open()
        await client.attach_receiver(0, "queue")
        client.send_flow(0, credit=10)
        for number in range(5):
            assert (await client.expect(Performative.TRANSFER))[1] == number
        client.send_disposition(0, 4, ACCEPTED_STATE)
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [2, 4]
        assert len(host.queue("queue").settled) == 3


async def test_the_oldest_answers_are_dropped_when_a_client_takes_none() -> None:
    engine = toy_engine(ToyHost(), answers_bytes_max=4000)
    async with wire_client(engine) as client:
        await client.open()
        await client.attach_sender(0, "$management")
        await client.attach_receiver(1, "$management")
        for number in range(10):
            client.send_transfer(0, number, value_body(f"{number}" * 1000))
            await client.expect(Performative.DISPOSITION)
        client.send_flow(1, credit=10)
        answers = [Message.parse((await client.expect(Performative.TRANSFER))[-1]).body for _ in range(3)]
        assert [answer[0] for answer in answers] == ["7", "8", "9"]


async def test_a_message_in_many_small_frames_takes_no_more_than_its_bytes() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host, partial_bytes_max=4000)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        payload = value_body("x" * 1000)
        for place in range(len(payload) - 1):
            client.send_transfer(0, None if place else 0, payload[place : place + 1], has_more=True)
            client.send_transfer(0, None, b"", has_more=True)
        client.send_transfer(0, None, payload[-1:])
        while (await client.receive()) is not None and not host.queue("queue").payloads:
            pass
        assert list(host.queue("queue").payloads) == [payload]


async def test_links_before_the_first_token_are_few() -> None:
    async with wire_client(toy_engine(ToyHost(), links_without_token_max=2)) as client:
        await client.open()
        await client.attach_requests("$cbs")
        for handle in (5, 6):
            assert (await client.attach_receiver(handle, "queue"))[5] is None
            _, _, error = await client.expect(Performative.DETACH)
            assert error.value[0] == "amqp:unauthorized-access"
        client.send(Performative.DETACH, [UInt(201), True])
        await client.expect(Performative.DETACH)
        assert (await client.attach_receiver(5, "queue"))[5] is not None
