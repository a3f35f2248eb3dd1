"""Nodes that answer requests: tokens, management, and the pairing of links."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asterism.apis.amqp.engine.performatives import Performative
from asterism.values.amqp.message import (
    Message,
    Properties,
    encode_application_properties,
    encode_data_body,
    encode_properties,
)
from asterism.values.amqp.types import Int, UInt, ULong, Uuid
from tests.unit.amqp_engine.memory_stream import WireClient, value_body, wire_client
from tests.unit.amqp_engine.tokens import EARLIER, directory_token, shared_access
from tests.unit.amqp_engine.toy_host import KEY, ToyHost, toy_engine


def put_token(name: str = "sb://localhost/queue", operation: str = "put-token") -> dict[str, Any]:
    return {"operation": operation, "type": "jwt", "name": name}


async def test_a_token_gives_the_rights_of_its_rule_on_its_resource() -> None:
    host = ToyHost()
    host.is_guarded = True
    engine = toy_engine(host)
    async with wire_client(engine) as client:
        await client.open()
        await client.attach_requests("$cbs")
        client.send_attach(0, "queue", is_receiver=True)
        await client.expect(Performative.ATTACH)
        assert (await client.expect(Performative.DETACH))[2].value[0] == "amqp:unauthorized-access"
        token = shared_access("http://localhost/queue", key="listen key", rule="listener")
        answer = await client.ask(put_token(), token, message_id=Uuid(bytes(16)))
        assert answer.application_properties == {"status-code": 202, "status-description": "Accepted"}
        assert type(answer.application_properties["status-code"]) is Int
        assert answer.properties.correlation_id == Uuid(bytes(16))
        assert type(answer.properties.correlation_id) is Uuid
        assert (await client.attach_receiver(1, "Queue/Subscriptions/s"))[5] is not None
        client.send_attach(2, "queue", is_receiver=False)
        assert (await client.expect(Performative.ATTACH))[6] is None
        await client.expect(Performative.DETACH)
        # The rules of the namespace sign for everything.
        await client.ask(put_token(), shared_access("sb://localhost/"), delivery_id=1)
        await client.attach_sender(3, "anything")
    assert (engine.counters.tokens_accepted, engine.counters.tokens_refused) == (2, 0)


async def test_a_token_of_a_directory_gives_all_rights() -> None:
    host = ToyHost()
    host.is_guarded = True
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_requests("$CBS")
        answer = await client.ask(put_token(), directory_token())
        assert answer.application_properties["status-code"] == 202
        await client.attach_sender(0, "queue")
        await client.attach_receiver(1, "other")


async def test_a_token_that_cannot_be_checked_is_refused_where_its_host_says_so() -> None:
    host = ToyHost()
    host.checks_directories = True
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_requests("$cbs")
        answer = await client.ask(put_token(), directory_token())
        assert answer.application_properties["status-code"] == 401


@pytest.mark.parametrize(
    ("name", "token", "status", "condition"),
    [
        ("sb://localhost/queue", shared_access("sb://localhost/queue", key="x"), 401, "com.microsoft:auth-failed"),
        ("sb://localhost/queue", shared_access("sb://localhost/other"), 401, "com.microsoft:auth-failed"),
        ("sb://localhost/queue", shared_access("sb://elsewhere/queue"), 401, "com.microsoft:auth-failed"),
        ("sb://localhost/queue", shared_access("sb://localhost", expires=EARLIER), 401, "com.microsoft:auth-failed"),
        ("sb://localhost/queue", shared_access("sb://localhost", rule="nobody"), 401, "com.microsoft:auth-failed"),
        # The key of a queue's rule does not sign for the namespace that the queue is in.
        (
            "sb://localhost/queue",
            shared_access("sb://localhost", key="listen key", rule="listener"),
            401,
            "com.microsoft:auth-failed",
        ),
        ("sb://localhost/queue", directory_token(exp=EARLIER), 401, "com.microsoft:auth-failed"),
        ("sb://localhost/queue", "nonsense", 401, "com.microsoft:auth-failed"),
        ("sb://localhost/queue", None, 401, "com.microsoft:auth-failed"),
        ("ftp://localhost/queue", directory_token(), 401, "com.microsoft:auth-failed"),
        ("sb://localhost/missing", directory_token(), 404, "amqp:not-found"),
        ("sb://localhost/missing", shared_access("sb://localhost/missing"), 404, "amqp:not-found"),
    ],
)
async def test_a_token_is_refused_with_a_status(name: str, token: str | None, status: int, condition: str) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_requests("$cbs")
        answer = await client.ask(put_token(name), token)
        assert answer.application_properties["status-code"] == status
        assert answer.application_properties["error-condition"] == condition


async def test_other_operations_and_bad_requests_are_refused() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_requests("$cbs")
        answer = await client.ask(put_token(operation="delete-token"), "x")
        assert answer.application_properties["error-condition"] == "amqp:not-implemented"
        properties = encode_properties(Properties(message_id="m"))
        client.send_transfer(200, 1, properties + b"\0\x53\x74\xc1\x03\x01\x40\x40" + value_body("x"))
        await client.expect(Performative.DISPOSITION)
        answer = Message.parse((await client.expect(Performative.TRANSFER))[-1])
        assert answer.application_properties["status-code"] == 400
        client.send_transfer(200, 2, b"no message")
        assert (await client.expect(Performative.DISPOSITION))[4].value[0].value[0] == "amqp:invalid-field"


async def test_texts_of_a_request_may_be_binary() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_requests("$cbs")
        payload = (
            encode_properties(Properties(message_id="m"))
            + encode_application_properties({key: value.encode() for key, value in put_token().items()})
            + encode_data_body(directory_token().encode())
        )
        client.send_transfer(200, 0, payload)
        await client.expect(Performative.DISPOSITION)
        answer = Message.parse((await client.expect(Performative.TRANSFER))[-1])
        assert answer.application_properties["status-code"] == 202


@pytest.mark.parametrize("message_id", ["text", ULong(7), b"bytes", Uuid(bytes(16))])
async def test_an_answer_has_the_id_of_its_request_with_its_type(message_id: Any) -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_requests("amqps://localhost/queue/$management")
        answer = await client.ask({"operation": "o"}, {"map": [1]}, message_id=message_id)
        assert answer.properties.correlation_id == message_id
        assert type(answer.properties.correlation_id) is type(message_id)
        assert answer.body == {"map": [1]}
    [request] = host.requests
    assert (request.address, request.peer.namespace) == ("queue/$management", "asterism")


async def test_answers_go_to_the_link_that_the_request_names() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_requests("a/$management", target="first")
        await client.attach_receiver(5, "a/$management", target="second")
        await client.attach_receiver(6, "b/$management", target="first")
        for handle in (5, 6):
            client.send_flow(handle, credit=10)
        handles = []
        for number, reply_to in enumerate(["first", "second", "amqp://host/first", None]):
            payload = encode_properties(Properties(message_id="m", reply_to=reply_to)) + value_body(None)
            client.send_transfer(200, number, payload)
            await client.expect(Performative.DISPOSITION)
            handles.append((await client.expect(Performative.TRANSFER))[0])
        assert handles == [201, 5, 201, 5]


async def test_answers_wait_for_credit_and_are_dropped_without_a_link() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_sender(0, "$management")
        client.send_transfer(0, 0, value_body("nowhere"))
        await client.expect(Performative.DISPOSITION)
        await client.attach_receiver(1, "$management")
        client.send_transfer(0, 1, value_body("later"))
        await client.expect(Performative.DISPOSITION)
        client.send_flow(1, credit=5, is_draining=True)
        transfer = await client.expect(Performative.TRANSFER)
        assert Message.parse(transfer[-1]).body == "later"
        assert transfer[4] is True
        assert (await client.expect(Performative.FLOW))[4:9] == [1, 5, 0, None, True]


async def test_slow_answers_do_not_hold_up_others_and_only_so_many_are_under_way() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host, requests_at_once_max=2)) as client:
        await client.open()
        await client.attach_requests("$management")
        slow = encode_application_properties({"wait": True})

        def send(number: int, section: bytes) -> None:
            client.send_transfer(200, number, encode_properties(Properties(message_id=str(number))) + section)

        send(0, slow)
        await client.expect(Performative.DISPOSITION)
        send(1, b"")
        await client.expect(Performative.DISPOSITION)
        assert await answered_id(client) == "1"
        send(2, slow)
        await client.expect(Performative.DISPOSITION)
        send(3, b"")
        await asyncio.sleep(0.02)
        assert len(host.requests) == 3
        host.gate.set()
        found = {await answered_id(client) for _ in range(2)}
        while len(found) < 3:
            found.add(await answered_id(client))
        assert found == {"0", "2", "3"}


async def answered_id(client: WireClient) -> Any:
    """Return the id of the next answer, whatever dispositions come before it."""
    while True:
        message = await client.receive()
        assert message is not None
        body = getattr(message, "body", b"")
        if body[2] == Performative.TRANSFER:
            return Message.parse(body[body.index(b"\0\x53\x73") :]).properties.correlation_id


async def test_a_node_that_fails_leaves_the_connection_alone() -> None:
    host = ToyHost()
    engine = toy_engine(host)
    async with wire_client(engine) as client:
        await client.open()
        await client.attach_requests("$management")
        host.requests = None  # type: ignore[assignment]
        properties = (await client.ask({}, UInt(1))).application_properties
        # Each kind of client knows one of the names.
        assert (properties["statusCode"], properties["status-code"]) == (500, 500)
        assert "log" in properties["statusDescription"]
        host.requests = []
        assert (await client.ask({}, "x", delivery_id=1)).body == "x"
    assert engine.counters.failures == 1


async def test_a_wrong_key_in_constant_form_is_still_wrong() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_requests("$cbs")
        token = shared_access("sb://localhost/queue", key=KEY[:-1])
        assert (await client.ask(put_token(), token)).application_properties["status-code"] == 401
