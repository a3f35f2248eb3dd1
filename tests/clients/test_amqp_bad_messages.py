"""Messages and requests over AMQP that are wrong, too large or a lie: a condition, a sentence, and links that go on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from asterism.apis.amqp.engine.performatives import Performative, encode_performative
from asterism.values.amqp.message import (
    BATCH_FORMAT,
    encode_annotations,
    encode_application_properties,
    encode_data_body,
    encode_value_body,
)
from asterism.values.amqp.types import Array, Described, Int, Timestamp, UInt, ULong, Uuid
from asterism.values.amqp.value_codec import encode_value
from tests.clients.amqp_door import serving, signed_in
from tests.clients.amqp_raw import (
    ACCEPTED,
    RawClient,
    error_of,
    message_of,
)
from tests.clients.messaging_server import MessagingServer

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


# --- messages ---------------------------------------------------------------------------------------------------------

TOKEN = Uuid(uuid.UUID(int=5).bytes)
MESSAGES: dict[str, tuple[str, bytes, int, str]] = {
    "no section": ("queue", b"hello", 0, DECODE),
    "an unknown section": ("queue", b"\x00\x53\x6f\xa0\x01a", 0, DECODE),
    "sections out of order": ("queue", encode_data_body(b"x") + encode_application_properties({}), 0, DECODE),
    "two value bodies": ("queue", encode_value_body(1) * 2, 0, DECODE),
    "a text for data": ("queue", b"\x00\x53\x75\xa1\x01a", 0, DECODE),
    "a cut body": ("queue", b"\x00\x53\x75\xb0\x7f\xff\xff\xffabc", 0, DECODE),
    "properties that are no list": ("queue", b"\x00\x53\x73\xa1\x01a" + encode_data_body(b"x"), 0, DECODE),
    "too many properties": ("queue", b"\x00\x53\x73" + encode_value([None] * 14) + encode_data_body(b"x"), 0, DECODE),
    "a header of texts": ("queue", b"\x00\x53\x70" + encode_value(["a"] * 5) + encode_data_body(b"x"), 0, DECODE),
    "a lifetime below zero": (
        "queue", b"\x00\x53\x70" + encode_value([None, None, Int(-1)]) + encode_data_body(b"x"), 0, DECODE,
    ),
    "a long id": ("queue", message_of(b"x", message_id="i" * 129), 0, NOT_ALLOWED),
    "a long session id": ("sessions", message_of(b"x", group_id="i" * 129), 0, NOT_ALLOWED),
    "no session id": ("sessions", message_of(b"x"), 0, NOT_ALLOWED),
    "a time that is a text": (
        "queue", encode_annotations({"x-opt-scheduled-enqueue-time": "soon"}) + encode_data_body(b"x"), 0, INVALID,
    ),
    "keys that differ": (
        "parts", encode_annotations({"x-opt-partition-key": "b"}) + message_of(b"x", group_id="a"), 0, NOT_ALLOWED,
    ),
    "a property above its limit": (
        "queue", encode_application_properties({"a": "x" * 33_000}) + encode_data_body(b"x"), 0, SIZE,
    ),
    "properties above their limit": (
        "queue",
        encode_application_properties({str(number): "x" * 1000 for number in range(70)}) + encode_data_body(b"x"),
        0,
        SIZE,
    ),
    "a message above its limit": ("queue", message_of(b"x" * 263_000), 0, SIZE),
    "a batch that is a message": ("queue", encode_value_body("x"), BATCH_FORMAT, DECODE),
    "a batch without messages": ("queue", encode_application_properties({"a": 1}), BATCH_FORMAT, DECODE),
    "a batch of nothing": ("queue", b"", BATCH_FORMAT, DECODE),
    "a batch of noise": ("queue", encode_data_body(b"noise") * 3, BATCH_FORMAT, DECODE),
    "a batch of a good and a bad one": (
        "queue", encode_data_body(message_of(b"x")) + encode_data_body(b"bad"), BATCH_FORMAT, DECODE,
    ),
    "an event of noise": ("hub", b"noise", 0, DECODE),
    "events of noise": ("hub", encode_data_body(b"noise"), BATCH_FORMAT, DECODE),
    "an event above its limit": ("hub", message_of(b"x" * (MIB + 10)), 0, SIZE),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_that_is_none_is_refused_and_the_link_goes_on(raw: RawClient, name: str) -> None:
    address, payload, message_format, condition = MESSAGES[name]
    assert raw.attach(0, address, is_receiver=False) is None
    refused = error_of(raw.deliver(0, payload, message_format=message_format))
    assert (refused[0], len(refused[1]) > 20) == (condition, True), refused
    assert raw.deliver(0, message_of(b"x", group_id="a")) == ACCEPTED


ODD_MESSAGES: dict[str, bytes] = {
    "nothing at all": b"",
    "no body": encode_application_properties({"a": 1}),
    "an id that is a list": b"\x00\x53\x73" + encode_value([[1, 2]]) + encode_data_body(b"x"),
    "an id below zero": b"\x00\x53\x73" + encode_value([Int(-5)]) + encode_data_body(b"x"),
    "a time before all times": encode_annotations({"x-opt-scheduled-enqueue-time": Timestamp(-(2**63))})
    + encode_data_body(b"x"),
    "a time after all times": encode_annotations({"x-opt-scheduled-enqueue-time": Timestamp(2**63 - 1)})
    + encode_data_body(b"x"),
    "annotations of the server": encode_annotations({"x-opt-sequence-number": 7, "x-opt-lock-token": "me"})
    + encode_data_body(b"x"),
    "annotations with numbers for keys": b"\x00\x53\x72" + encode_value({1: 2, ULong(3): {}}) + encode_data_body(b"x"),
    "properties with a list in them": b"\x00\x53\x74" + encode_value({"a": [[[]]], 5: None}) + encode_data_body(b"x"),
    "a list for a partition key": encode_annotations({"x-opt-partition-key": [1]}) + encode_data_body(b"x"),
    "a session id of bytes": b"\x00\x53\x73" + encode_value([None] * 10 + [b"\xff"]) + encode_data_body(b"x"),
    "a number for a session id": b"\x00\x53\x73" + encode_value([None] * 10 + [5]) + encode_data_body(b"x"),
    "texts for times": b"\x00\x53\x73" + encode_value([None] * 8 + ["x", "y"]) + encode_data_body(b"x"),
    "a lifetime of 49 days": b"\x00\x53\x70" + encode_value([None, None, UInt(2**32 - 1)]) + encode_data_body(b"x"),
}


@pytest.mark.parametrize("name", ODD_MESSAGES)
def test_an_odd_message_is_passed_on_or_refused_and_others_behind_it_arrive(
    door: MessagingServer, raw: RawClient, name: str
) -> None:
    for address in (door.new_queue(), "sessions", "parts", "topic", "hub"):
        raw.begin(1)
        assert raw.attach(0, address, is_receiver=False, channel=1) is None
        raw.send_transfer(0, ODD_MESSAGES[name], channel=1)
        raw.send_transfer(0, message_of(b"y", group_id="g"), channel=1)
        settled = 0
        while settled < 2:
            _, _, first, last, _, state, *_ = raw.wait_for(Performative.DISPOSITION)
            settled += (first if last is None else last) - first + 1
            assert state.descriptor in (0x24, 0x25)
            assert state.descriptor == 0x24 or "internal" not in error_of(state)[0], error_of(state)
        raw.end(1)


def test_a_message_of_100_mb_is_refused_without_being_kept(door: MessagingServer, raw: RawClient) -> None:
    assert raw.attach(0, "queue", is_receiver=False) is None
    piece = bytes(65_000)
    delivery_id = raw.send_transfer(0, b"\x00\x53\x75\xb0" + (100 * MIB).to_bytes(4, "big"), has_more=True)
    frame = encode_performative(0, Performative.TRANSFER, [UInt(0), None, None, None, False, True], payload=piece)
    for _ in range(100 * MIB // len(piece)):
        raw.send_bytes(frame)
    raw.send(Performative.TRANSFER, [UInt(0), None, None, None, False, False], payload=piece)
    _, _, first, _, _, state, *_ = raw.wait_for(Performative.DISPOSITION)
    assert first == delivery_id
    assert error_of(state)[0] == SIZE
    assert raw.deliver(0, message_of(b"x")) == ACCEPTED


# --- management -------------------------------------------------------------------------------------------------------

MANAGEMENT: list[tuple[str, Any, int]] = [
    ("fly", {}, 501),
    ("peek-message", [], 400),
    ("peek-message", "text", 400),
    ("peek-message", {"from-sequence-number": "first"}, 400),
    ("peek-message", {"from-sequence-number": 0, "message-count": Int(0)}, 400),
    ("peek-message", {"from-sequence-number": 0, "message-count": Int(-1)}, 400),
    ("renew-lock", {}, 400),
    ("renew-lock", {"lock-tokens": "mine"}, 400),
    ("renew-lock", {"lock-tokens": [b"short"]}, 400),
    ("renew-lock", {"lock-tokens": Array.of(Uuid, [TOKEN])}, 410),
    ("update-disposition", {"disposition-status": "eaten", "lock-tokens": Array.of(Uuid, [TOKEN])}, 400),
    ("update-disposition", {"disposition-status": 5, "lock-tokens": []}, 400),
    ("update-disposition", {"disposition-status": "completed", "lock-tokens": Array.of(Uuid, [TOKEN])}, 410),
    ("update-disposition", {"disposition-status": "defered", "lock-tokens": [TOKEN], "properties-to-modify": 5}, 400),
    ("receive-by-sequence-number", {}, 400),
    ("receive-by-sequence-number", {"sequence-numbers": ["1"]}, 400),
    ("receive-by-sequence-number", {"sequence-numbers": Array.of(int, [2**62])}, 404),
    ("receive-by-sequence-number", {"sequence-numbers": Array.of(int, [-1])}, 404),
    ("receive-by-sequence-number", {"sequence-numbers": Array.of(int, range(5000))}, 400),
    ("schedule-message", {}, 400),
    ("schedule-message", {"messages": "x"}, 400),
    ("schedule-message", {"messages": [5]}, 400),
    ("schedule-message", {"messages": [{"message": 5}]}, 400),
    ("schedule-message", {"messages": [{"message": b"noise"}]}, 400),
    ("schedule-message", {"messages": [{"message": message_of(b"x")}]}, 400),
    ("cancel-scheduled-message", {"sequence-numbers": 5}, 400),
    ("cancel-scheduled-message", {"sequence-numbers": Array.of(int, [2**62])}, 404),
    ("add-rule", {"rule-name": "r"}, 400),
    ("add-rule", {"rule-name": "r", "rule-description": {"sql-filter": {"expression": "1=1"}}}, 403),
    ("set-session-state", {"session-id": "s", "session-state": b"x"}, 403),
    ("renew-session-lock", {}, 400),
]


@pytest.mark.parametrize(("operation", "body", "status"), MANAGEMENT, ids=repr)
def test_a_request_to_manage_that_is_none_is_refused(raw: RawClient, operation: str, body: Any, status: int) -> None:
    found = raw.manage("queue", operation, encode_value_body(body))
    assert (found[0], len(found[2]) > 20) == (status, True), found
    assert raw.manage("queue", "peek-message", encode_value_body({"from-sequence-number": 0}))[0] in (200, 204)


ODD_FIELDS: list[Any] = [
    None,
    -1,
    2**63 - 1,
    -(2**63),
    ULong(2**64 - 1),
    "",
    "x" * 60_000,
    b"\xff",
    [],
    {},
    [None],
    True,
    1.5,
]
FIELDS: dict[str, list[str]] = {
    "peek-message": ["from-sequence-number", "message-count", "session-id"],
    "renew-lock": ["lock-tokens"],
    "receive-by-sequence-number": ["sequence-numbers", "receiver-settle-mode", "session-id"],
    "update-disposition": [
        "disposition-status", "lock-tokens", "deadletter-reason", "deadletter-description", "session-id",
        "properties-to-modify",
    ],
    "schedule-message": ["messages"],
    "cancel-scheduled-message": ["sequence-numbers"],
    "renew-session-lock": ["session-id"],
    "get-session-state": ["session-id"],
    "set-session-state": ["session-id", "session-state"],
    "get-message-sessions": ["last-updated-time", "skip", "top"],
    "add-rule": ["rule-name", "rule-description"],
    "remove-rule": ["rule-name"],
    "enumerate-rules": ["top", "skip"],
}  # fmt: skip
LIKELY: dict[str, dict[str, Any]] = {
    "peek-message": {"from-sequence-number": 0, "message-count": Int(1)},
    "receive-by-sequence-number": {"sequence-numbers": [1], "receiver-settle-mode": UInt(1)},
    "update-disposition": {"disposition-status": "suspended", "lock-tokens": [TOKEN]},
    "get-message-sessions": {"last-updated-time": Timestamp(253402300800000), "skip": Int(0), "top": Int(10)},
    "add-rule": {"rule-name": "r", "rule-description": {"sql-filter": {"expression": "1=1"}}},
    "enumerate-rules": {"top": Int(10), "skip": Int(0)},
    "set-session-state": {"session-id": "s", "session-state": b"x"},
}


@pytest.mark.parametrize("operation", FIELDS)
def test_every_field_of_a_request_may_have_any_value(raw: RawClient, operation: str) -> None:
    for entity in ("queue", "sessions", "parts", "topic/Subscriptions/sub"):
        for field in FIELDS[operation]:
            for value in ODD_FIELDS:
                body = {**LIKELY.get(operation, {}), field: value}
                status, condition, sentence = raw.manage(entity, operation, encode_value_body(body))
                assert status in range(200, 500) or status == 501, (entity, field, value, condition, sentence)


def test_a_request_that_is_no_message_is_refused(raw: RawClient) -> None:
    assert raw.attach(0, "queue/$management", is_receiver=False) is None
    for payload in (b"noise", b"\x00\x53\x77", encode_data_body(b"x") + encode_application_properties({})):
        assert error_of(raw.deliver(0, payload))[0] == INVALID
    # There is no link for the answer to this.
    assert raw.deliver(0, b"") == ACCEPTED


def test_requests_about_hubs_that_are_none_are_refused(raw: RawClient) -> None:
    hub, partition = "com.microsoft:eventhub", "com.microsoft:partition"
    for properties, status in (
        ({}, 501),
        ({"operation": "WRITE", "type": hub, "name": "hub"}, 501),
        ({"operation": "READ", "type": hub, "name": "missing"}, 404),
        ({"operation": "READ", "type": hub}, 404),
        ({"operation": "READ", "type": partition, "name": "hub"}, 400),
        ({"operation": "READ", "type": partition, "name": "hub", "partition": "99"}, 400),
        ({"operation": "READ", "type": partition, "name": "hub", "partition": 5}, 400),
        ({"operation": "READ", "type": hub, "name": "hub"}, 200),
    ):
        answered = raw.ask("$management", properties, b"").application_properties
        assert answered["status-code"] == status, (properties, answered)


# --- transactions -----------------------------------------------------------------------------------------------------


def test_transactions_that_are_none_are_refused(raw: RawClient) -> None:
    assert raw.attach(0, "", is_receiver=False, target=Described(ULong(0x30), [[]])) is None
    assert raw.attach(1, "queue", is_receiver=False) is None
    for body, condition in (
        (Described(ULong(0x32), [b"none", False]), "amqp:transaction:unknown-id"),
        (Described(ULong(0x32), []), "amqp:transaction:unknown-id"),
        (Described(ULong(0x32), {}), None),
        (Described(ULong(0x31), {}), None),
        ("declare", UNIMPLEMENTED),
    ):
        state = raw.deliver(0, encode_value_body(body))
        assert state.descriptor in (0x24, 0x25, 0x33)
        assert condition is None or error_of(state)[0] == condition
    lost = Described(ULong(0x34), [b"none", None])
    assert raw.deliver(1, message_of(b"x"), state=lost).value[1].value[0].value[0] == "amqp:transaction:unknown-id"
    assert raw.deliver(1, message_of(b"x")) == ACCEPTED
