"""Bytes, frames, links and tokens of AMQP that are wrong or lie: a condition, a sentence, and a server that goes on."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusAuthorizationError

from asterism.apis.amqp.engine.frame_codec import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from asterism.apis.amqp.engine.performatives import Performative, encode_performative
from asterism.values.amqp.message import (
    encode_value_body,
)
from asterism.values.amqp.types import Described, Int, Symbol, Timestamp, UInt, ULong
from asterism.values.amqp.value_codec import encode_value
from tests.clients.amqp_door import CONVERSATION, arm, attach_bytes, goes_on, serving, signed_in
from tests.clients.amqp_raw import (
    ACCEPTED,
    ConnectionEnded,
    RawClient,
    message_of,
    token_for,
)
from tests.clients.messaging_server import MessagingServer
from tests.support.raw import connect, was_closed

NOT_FOUND, NOT_ALLOWED, UNAUTHORIZED = "amqp:not-found", "amqp:not-allowed", "amqp:unauthorized-access"
INVALID, DECODE, FRAMING = "amqp:invalid-field", "amqp:decode-error", "amqp:connection:framing-error"
ILLEGAL, SIZE = "amqp:illegal-state", "amqp:link:message-size-exceeded"
ARGUMENT, OUT_OF_RANGE = "com.microsoft:argument-error", "com.microsoft:argument-out-of-range"
UNIMPLEMENTED = "amqp:not-implemented"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessagingServer]:
    with serving(tmp_path_factory.mktemp("bad") / "data") as made:
        yield made


@pytest.fixture
def raw(door: MessagingServer) -> Iterator[RawClient]:
    with signed_in(door) as client:
        yield client


# --- bytes ------------------------------------------------------------------------------------------------------------


def send_and_leave(door: MessagingServer, data: bytes) -> None:
    """Send bytes, take whatever comes, and see the server close."""
    with connect(door.amqp_port) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert was_closed(connection)


def test_bytes_may_end_anywhere(door: MessagingServer) -> None:
    for length in random.Random(7).sample(range(len(CONVERSATION)), 150):
        send_and_leave(door, CONVERSATION[:length])
    assert goes_on(door)


def test_any_byte_may_be_another(door: MessagingServer) -> None:
    chance = random.Random(11)
    for _ in range(300):
        sent = bytearray(CONVERSATION)
        for place in chance.sample(range(len(sent)), chance.choice((1, 1, 3))):
            sent[place] ^= chance.randrange(1, 256)
        send_and_leave(door, bytes(sent))
    assert goes_on(door)


def test_noise_is_not_answered_for_long(door: MessagingServer) -> None:
    chance = random.Random(13)
    for beginning in (b"", SASL_HEADER, AMQP_HEADER, b"AMQP\x02\x01\x00\x00", b"\x16\x03\x01", b"GET ", b"AMQP"):
        for port in door.server.ports.values():
            with connect(port) as connection:
                connection.sendall(beginning + chance.randbytes(5000))
                connection.shutdown(socket.SHUT_WR)
                assert was_closed(connection)
    assert goes_on(door)


# --- frames -----------------------------------------------------------------------------------------------------------

BEGIN = [None, UInt(0), UInt(10), UInt(10)]
FATAL: dict[str, tuple[bytes, str, str]] = {
    "100 MB announced": ((100 * MIB).to_bytes(4, "big") + bytes((2, 0, 0, 0)), FRAMING, "above the limit"),
    "a frame of 4 GB": (b"\xff" * 8, FRAMING, "above the limit"),
    "a frame without a head": (bytes((0, 0, 0, 7, 2, 0, 0, 0)), FRAMING, "head"),
    "a head beyond its frame": (bytes((0, 0, 0, 8, 3, 0, 0, 0)), FRAMING, "head"),
    "a header again": (AMQP_HEADER, FRAMING, "another layer"),
    "a frame of SASL": (encode_frame(0, b"\x00\x53\x41\x45", kind=SASL_FRAME), FRAMING, "another layer"),
    "no performative": (encode_frame(0, b"\x00\x53\x99\x45"), DECODE, "performative"),
    "a list for a descriptor": (encode_frame(0, b"\x00\xc0\x01\x00\x45"), DECODE, "performative"),
    "a deep value": (encode_frame(0, b"\x00\x53\x12" + b"\xd0\x00\x00\x01\x00\x00\x00\x00\x01" * 50), DECODE, "short"),
    "too many fields": (encode_frame(0, b"\x00\x53\x17" + encode_value([1] * 9)), DECODE, "list of its fields"),
    "a second open": (encode_performative(0, Performative.OPEN, ["again"]), FRAMING, "open"),
    "a second begin": (encode_performative(0, Performative.BEGIN, BEGIN), ILLEGAL, "has a session"),
    "the channel above the last": (encode_performative(5000, Performative.BEGIN, BEGIN), FRAMING, "channel-max"),
    "the last channel of all": (encode_performative(65_535, Performative.BEGIN, BEGIN), FRAMING, "channel-max"),
    "a channel without a session": (encode_performative(9, Performative.FLOW, BEGIN), NOT_ALLOWED, "no session"),
    "a session without a window": (encode_performative(1, Performative.BEGIN, [None, UInt(0)]), DECODE, "window"),
    "an id below zero": (encode_performative(1, Performative.BEGIN, [None, Int(-1), UInt(1)]), DECODE, "id"),
    "a handle above the last": (attach_bytes(256, "queue", is_receiver=False), FRAMING, "handle-max"),
    "a handle of 32 bits": (attach_bytes(2**32 - 1, "queue", is_receiver=False), FRAMING, "handle-max"),
    "an attach of nothing": (encode_performative(0, Performative.ATTACH, []), DECODE, "attach"),
    "a source that is a text": (
        encode_performative(0, Performative.ATTACH, ["n", UInt(9), True, None, None, "queue", None]), DECODE, "source",
    ),
    "an error that is none": (
        encode_performative(0, Performative.DISPOSITION, [True, UInt(0), None, True, Described(ULong(0x25), ["no"])]),
        DECODE,
        "described list",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FATAL)
def test_a_frame_that_breaks_the_protocol_closes_the_connection(
    door: MessagingServer, raw: RawClient, name: str
) -> None:
    sent, condition, words = FATAL[name]
    raw.send_bytes(sent)
    found = raw.closing_error()
    assert (found[0], words in found[1]) == (condition, True), found
    assert was_closed(raw.socket)
    assert goes_on(door)


def test_the_first_frame_has_to_be_an_open_of_use(door: MessagingServer) -> None:
    begin = encode_performative(0, Performative.BEGIN, BEGIN)
    small = encode_performative(0, Performative.OPEN, ["c", None, UInt(511)])
    nameless = encode_performative(0, Performative.OPEN, [])
    for frame, condition in ((begin, FRAMING), (small, INVALID), (nameless, DECODE)):
        with RawClient(door.amqp_port) as client:
            client.shake_hands()
            client.send_bytes(AMQP_HEADER + frame)
            assert client.closing_error()[0] == condition


def test_a_mistake_about_a_handle_ends_the_session_alone(door: MessagingServer, raw: RawClient) -> None:
    raw.begin(1)
    raw.send_transfer(7, message_of(b"x"), channel=1)
    assert raw.closing_error()[0] == "amqp:session:unattached-handle"
    raw.begin(1)
    assert raw.attach(3, "queue", is_receiver=True, channel=1) is None
    raw.send_attach(3, "queue", is_receiver=True, channel=1)
    condition, sentence = raw.closing_error()
    assert (condition, "3" in sentence) == ("amqp:session:handle-in-use", True)
    assert raw.attach(0, "queue", is_receiver=False) is None
    assert raw.deliver(0, message_of(b"x")) == ACCEPTED


def test_frames_for_links_and_deliveries_that_are_not_there_are_ignored(raw: RawClient) -> None:
    raw.send_flow(99, 2**32 - 1)
    raw.send(Performative.DETACH, [UInt(99), True])
    raw.send(Performative.DISPOSITION, [True, UInt(0), UInt(2**32 - 1), True, ACCEPTED])
    raw.send(Performative.DISPOSITION, [True, UInt(2**32 - 1), UInt(0), False, ACCEPTED])
    assert raw.attach(0, "queue", is_receiver=False) is None
    assert raw.deliver(0, message_of(b"x")) == ACCEPTED


@pytest.mark.parametrize("count", [0, 1, 2**31, 2**32 - 1])
def test_credit_and_counts_may_be_any_number(door: MessagingServer, raw: RawClient, count: int) -> None:
    queue = door.new_queue()
    assert raw.attach(0, queue, is_receiver=False) is None
    assert raw.deliver(0, message_of(b"x")) == ACCEPTED
    assert raw.attach(1, queue, is_receiver=True) is None
    raw.send_flow(1, 2**32 - 1, delivery_count=count)
    raw.send_flow(1, 2**32 - 1)
    delivery_id, _ = raw.next_delivery()
    assert raw.settle(delivery_id) == ACCEPTED


# --- links ------------------------------------------------------------------------------------------------------------

NOWHERE: list[tuple[str, bool, str]] = [
    ("", True, NOT_FOUND),
    ("", False, NOT_FOUND),
    ("missing", True, NOT_FOUND),
    ("missing", False, NOT_FOUND),
    ("x" * 10_000, True, NOT_FOUND),
    ("queue/nothing", True, NOT_FOUND),
    ("queue/$DeadLetterQueue", False, NOT_ALLOWED),
    ("queue/Subscriptions/sub", True, NOT_FOUND),
    ("topic", True, NOT_ALLOWED),
    ("topic/Subscriptions/missing", True, NOT_FOUND),
    ("topic/Subscriptions/sub", False, NOT_ALLOWED),
    ("sessions", True, NOT_ALLOWED),
    ("hub", True, NOT_FOUND),
    ("hub/Partitions/2", False, OUT_OF_RANGE),
    ("hub/Partitions/-1", False, OUT_OF_RANGE),
    ("hub/Partitions/x", False, OUT_OF_RANGE),
    ("hub/ConsumerGroups/missing/Partitions/0", True, NOT_FOUND),
    ("hub/ConsumerGroups/$Default/Partitions/2", True, OUT_OF_RANGE),
    ("hub/ConsumerGroups/$Default/Partitions/0", False, NOT_FOUND),
    ("amqps://elsewhere:1/missing", True, NOT_FOUND),
    ("\x00/\udbff"[:2], True, NOT_FOUND),
]


@pytest.mark.parametrize(("address", "is_receiver", "condition"), NOWHERE)
def test_a_link_to_nowhere_is_refused(raw: RawClient, address: str, is_receiver: bool, condition: str) -> None:
    refusal = raw.attach(0, address, is_receiver=is_receiver)
    assert refusal is not None
    assert (refusal[0], len(refusal[1]) > 20) == (condition, True), refusal
    # Its handle is free again.
    assert raw.attach(0, "queue", is_receiver=False) is None


def test_a_node_made_for_the_client_is_refused(raw: RawClient) -> None:
    dynamic = Described(ULong(0x29), [None, None, None, None, True])
    refusal = raw.attach(0, "", is_receiver=False, target=dynamic)
    assert refusal is not None
    assert refusal[0] == UNIMPLEMENTED


FILTERS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("queue", {"com.microsoft:session-filter": "s"}, {}, NOT_ALLOWED),
    ("sessions", {"com.microsoft:session-filter": 5}, {}, INVALID),
    ("sessions", {"com.microsoft:session-filter": "s" * 129}, {}, INVALID),
    ("sessions", {"com.microsoft:session-filter": None}, {"com.microsoft:timeout": UInt(1)}, "com.microsoft:timeout"),
    ("hub/ConsumerGroups/$Default/Partitions/0", {"apache.org:selector-filter:string": "x"}, {}, ARGUMENT),
    ("hub/ConsumerGroups/$Default/Partitions/0", {"apache.org:selector-filter:string": 7}, {}, ARGUMENT),
    ("hub/ConsumerGroups/$Default/Partitions/0", {}, {"com.microsoft:epoch": "high"}, ARGUMENT),
]


@pytest.mark.parametrize(("address", "filters", "properties", "condition"), FILTERS, ids=repr)
def test_a_filter_that_is_none_is_refused(
    raw: RawClient, address: str, filters: dict[str, Any], properties: dict[str, Any], condition: str
) -> None:
    refusal = raw.attach(0, address, is_receiver=True, filters=filters, properties=properties)
    assert refusal is not None
    assert refusal[0] == condition, refusal


@pytest.mark.parametrize("timeout", [ULong(2**64 - 1), -5, "soon", Timestamp(-1), float("inf")], ids=repr)
def test_the_time_for_a_session_may_be_any_value(raw: RawClient, timeout: Any) -> None:
    raw.send_attach(
        0,
        "sessions",
        is_receiver=True,
        filters={"com.microsoft:session-filter": None},
        properties={"com.microsoft:timeout": timeout},
    )
    raw.send(Performative.DETACH, [UInt(0), True])
    raw.wait_for(Performative.DETACH)


# --- tokens and rights ------------------------------------------------------------------------------------------------

TOKENS: dict[str, tuple[str, int]] = {
    "another key": (token_for("queue", key="wrong"), 401),
    "another rule": (token_for("queue", key_name="nobody"), 401),
    "expired": (token_for("queue", lives_seconds=-10), 401),
    "another entity": (token_for("other"), 401),
    "another host": (token_for("queue", host="elsewhere"), 401),
    "cut": (token_for("queue")[:-20], 401),
    "empty": ("", 401),
    "fields of nothing": ("SharedAccessSignature ", 401),
    "an expiry that is no number": ("SharedAccessSignature sr=sb%3a%2f%2flocalhost%2fqueue&sig=eA==&se=x&skn=r", 401),
    "an expiry beyond all numbers": (
        "SharedAccessSignature sr=sb%3a%2f%2flocalhost%2fqueue&sig=eA==&skn=r&se=" + "9" * 5000, 401,
    ),
    "a text": ("let me in", 401),
    "a web token of nothing": ("a.b.c", 401),
    "a large one": ("x" * 200_000, 401),
}  # fmt: skip


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_that_proves_nothing_is_refused(door: MessagingServer, name: str) -> None:
    token, status = TOKENS[name]
    with RawClient(door.amqp_port) as client:
        client.open()
        assert client.put_token("queue", token[:60_000]) == status
        refusal = client.attach(0, "queue", is_receiver=True)
        assert refusal is not None
        assert (refusal[0], "$cbs" in refusal[1]) == (UNAUTHORIZED, True)
        # A good one helps at once.
        assert client.put_token("queue") == 202
        assert client.attach(0, "queue", is_receiver=True) is None


def test_a_token_for_a_missing_entity_is_refused(door: MessagingServer) -> None:
    with RawClient(door.amqp_port) as client:
        client.open()
        assert client.put_token("missing") == 404
        assert client.put_token("topic/Subscriptions/missing") == 404
        assert client.put_token("x" * 5000) == 401


CBS: dict[str, tuple[dict[str, Any], bytes]] = {
    "no operation": ({}, encode_value_body("x")),
    "another operation": ({"operation": "drop-token"}, encode_value_body("x")),
    "no name": ({"operation": "put-token"}, encode_value_body("x")),
    "a number for a name": ({"operation": "put-token", "name": 5}, encode_value_body("x")),
    "a name that is no address": ({"operation": "put-token", "name": "http://[::1"}, encode_value_body("x")),
    "no token": ({"operation": "put-token", "name": "sb://localhost/queue"}, b""),
    "a map for a token": ({"operation": "put-token", "name": "sb://localhost/queue"}, encode_value_body({"a": 1})),
    "a broken body": (
        {"operation": "put-token", "name": "sb://localhost/queue"},
        b"\x00\x53\x77\xc0\x04\x02\x55\xff\x45",
    ),
}


@pytest.mark.parametrize("name", CBS)
def test_a_request_for_a_token_that_is_none_is_refused(raw: RawClient, name: str) -> None:
    properties, body = CBS[name]
    answered = raw.ask("$cbs", properties, body).application_properties
    assert 400 <= answered["status-code"] < 500
    assert len(answered["status-description"]) > 10


def test_rights_are_those_of_the_rule(door: MessagingServer) -> None:
    queue = door.new_queue()
    keys = {}
    for right in ("Send", "Listen"):
        path = f"queues/{queue}/authorizationRules/{right}"
        assert arm(door.server, "PUT", "Microsoft.ServiceBus", path, {"rights": [right]})[0] in (200, 201)
        keys[right] = arm(door.server, "POST", "Microsoft.ServiceBus", f"{path}/listKeys")[1]["primaryKey"]
    for right, sends in (("Send", True), ("Listen", False)):
        with RawClient(door.amqp_port) as client:
            client.open()
            assert client.put_token(queue, token_for(queue, key=keys[right], key_name=right)) == 202
            # A rule of a queue signs for nothing else.
            assert client.put_token("queue", token_for("queue", key=keys[right], key_name=right)) == 401
            assert client.put_token("", token_for("", key=keys[right], key_name=right)) == 401
            assert client.attach(0, queue, is_receiver=not sends) is None
            for handle, address, is_receiver in ((1, queue, sends), (2, "queue", not sends)):
                refusal = client.attach(handle, address, is_receiver=is_receiver)
                assert refusal is not None
                assert refusal[0] == UNAUTHORIZED
            operation = "peek-message" if sends else "schedule-message"
            status, condition, sentence = client.manage(queue, operation, encode_value_body({}))
            assert (status, condition) == (401, UNAUTHORIZED)
            assert "claim" in sentence


def test_wrong_rights_are_the_exceptions_of_the_client(door: MessagingServer) -> None:
    queue = door.new_queue()
    path = f"queues/{queue}/authorizationRules/sends"
    arm(door.server, "PUT", "Microsoft.ServiceBus", path, {"rights": ["Send"]})
    key = arm(door.server, "POST", "Microsoft.ServiceBus", f"{path}/listKeys")[1]["primaryKey"]
    with ServiceBusClient.from_connection_string(door.connection_string(key=key, key_name="sends")) as client:
        with client.get_queue_sender(queue) as sender:
            sender.send_messages(ServiceBusMessage("x"))
        with pytest.raises((ServiceBusAuthorizationError, ServiceBusAuthenticationError)):
            client.get_queue_receiver(queue).receive_messages(max_wait_time=1)
    wrong = door.connection_string(key="wrong")
    with (
        ServiceBusClient.from_connection_string(wrong, retry_total=0) as client,
        pytest.raises(ServiceBusAuthenticationError),
        client.get_queue_sender(queue),
    ):
        pass


def test_a_login_with_a_wrong_key_is_refused(door: MessagingServer) -> None:
    for response in (b"\0RootManageSharedAccessKey\0wrong", b"\0\0", b"", None, b"\0" * 500, b"\0\xff\0\xff"):
        with RawClient(door.amqp_port) as client:
            client.send_bytes(SASL_HEADER)
            client.send(Performative.SASL_INIT, [Symbol("PLAIN"), response], kind=SASL_FRAME)
            assert client.wait_for(Performative.SASL_OUTCOME)[1] == 1
            with pytest.raises(ConnectionEnded):
                client.receive()
